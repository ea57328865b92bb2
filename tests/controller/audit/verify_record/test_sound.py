"""Records that look odd and are right: both verifiers say so."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.format.records import DeviceCursor, Moment, RecordActor, RecordEntry
from controller.audit.format.segments import segment_file
from controller.audit.verify import verify
from tests.support.audit.interrupted import Interrupted
from tests.support.audit.record.table import FakeClock, begun, everything, kinds, note, told


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


def right(place: Path) -> None:
    report = verify(place, replay=False)
    assert report.findings == ()
    ran = subprocess.run(
        [sys.executable, verify_record.__file__, str(place), "--json"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, json.loads(ran.stdout)["wrong"]


def test_a_log_that_two_people_have_adopted_begins_anew(place: Path) -> None:
    log = begun(place)
    log.write([told("SH-1", 5)])
    data = {"what": "adopted", "device": "SH-1", "two": ["Ann", "Bo"]}
    cursor = DeviceCursor("SH-1", 7, 1, "0" * 16)
    log.write([RecordEntry("link", RecordActor("floor", "Ann"), data, cursor=cursor)])
    log.write([told("SH-1", 2)])
    log.close()
    right(place)


def test_integers_of_data_may_be_as_large_and_as_small_as_64_bits_are(place: Path) -> None:
    log = begun(place)
    ends = [-(2**63), 2**63 - 1, -1, 0]
    log.write([RecordEntry("device", RecordActor("device", "SH-1"), {"what": "ends", "all": ends})])
    log.write(
        [RecordEntry("fault", RecordActor("device", "SH-1"), {"what": "ends", "detail": ends})]
    )
    log.close()
    right(place)


@pytest.mark.parametrize("seconds", [5, -5, -0.3])
def test_a_clock_that_is_set_right_before_a_signature(place: Path, seconds: float) -> None:
    clock = FakeClock()
    log = begun(place, clock=clock)
    log.write([note("before")])
    clock.set(seconds)
    log.sign()
    log.write([note("after")])
    log.close()
    assert kinds(everything(place)).count("clock") == 1
    right(place)


class SetAtTheEnd(FakeClock):
    """Set between the last record and the signature over it."""

    looks = 0

    def set_at(self, looks: int) -> None:
        self.looks = looks

    def __call__(self) -> Moment:
        self.looks -= 1
        if not self.looks:
            self.set(3)
        return super().__call__()


def test_a_clock_that_is_set_between_closed_and_its_signature(place: Path) -> None:
    clock = SetAtTheEnd()
    log = begun(place, clock=clock)
    clock.set_at(2)
    log.close()
    assert kinds(everything(place))[-3:] == ["closed", "clock", "checkpoint"]
    right(place)


def test_bytes_that_were_set_aside_twice(place: Path) -> None:
    """The power went between the file of what was set aside and the zeros in its place."""
    log = begun(place)
    log.write([note("kept")])
    log.let_go()
    file = segment_file(place, 1)
    whole = file.read_bytes()
    end = len(whole.rstrip(b"\0"))
    torn = whole[end - 400 : end - 300]
    head = (500).to_bytes(4, "little") + b"1234" + (6).to_bytes(8, "little") + bytes(8) + torn[:32]
    file.write_bytes(whole[:end] + head + whole[end + len(head) :])
    disk = Interrupted()
    disk.at = "sync"
    with pytest.raises(KeyboardInterrupt):
        begun(place, disk=disk)
    saved = [one for one in (place / "tails").glob("*") if one.suffix == ".new"]
    for one in saved:  # as if it had got as far as its name
        one.rename(one.with_suffix(""))
    begun(place).close()
    assert kinds(everything(place)).count("tail") == 2
    right(place)


def test_what_is_no_part_of_a_record_is_named_and_is_no_damage(place: Path) -> None:
    begun(place).close()
    known = (
        "index.db",
        "index.db-wal",
        "cosigned/5.note.new",
        "tails/1.json.new",
        "keys/table.key",
    )
    strange = ("a note.txt", "segments/00000001.seg.bak", "segments/1.seg", "cosigned/x.note")
    for name in (*known, *strange, "tails/x", "more/within"):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_bytes(b"somebody put it there")
    named = ["a note.txt", "more", *sorted(strange[1:3]), "tails/x", "cosigned/x.note"]
    report = verify(place, replay=False)
    told = [one for one in report.remarks if "no part" in one]
    assert told == [f"{name}: is no part of the record" for name in named]
    assert report.code == 0
    reading = verify_record.Reading(place, None, None)
    theirs = verify_record.verify(reading, None, lambda _: None)
    assert theirs["exit"] == 0
    assert [one for one in theirs["remarks"] if "no part" in one] == [
        f"{name} is no part of the record" for name in sorted(named)
    ]
    for number in range(30):
        (place / f"x{number}").touch()
    again = verify(place, replay=False)
    assert "16 more files that are no part of the record" in again.remarks
