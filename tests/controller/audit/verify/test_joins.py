"""What can be wrong only where a segment goes on from the one before it; and that it makes no
difference how many records are looked at together."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.audit.verify import INVALID, VALID, segment, verify
from tests.support.audit.tools.by_page import ORIGIN, Json, Pen, Signer, b64, closed, sha, started
from tests.support.audit.tools.outside import flip
from tests.support.audit.verifying import read_independently, whats
from tests.support.audit.wrong_records import CASES, ONLY_WITH_REPLAY, broken

Write = Callable[[Pen], object]


def snapshot(pen: Pen, put: Json | None = None, data: Json | None = None, **more: Any) -> None:
    """A new segment whose first record has something other than right."""
    pen.sync()
    pen.segment()
    said: Json = {"origin": ORIGIN, "segment": pen.number, **pen.so_far()}
    said |= {"opened": pen.opened, "certificate": pen.certificate}
    said |= {"cursors": pen.cursors, "state": pen.state, **(data or {})}
    pen.put(pen.line({**pen.record("snapshot", said), **more}), **(put or {}))


def note(pen: Pen, **more: Any) -> None:
    pen.write("note", {"text": "x"}, **more)


def another_version(pen: Pen) -> None:
    pen.version = 1
    snapshot(pen)
    note(pen)


def other_frontier(pen: Pen) -> None:
    snapshot(pen, data={"frontier": ["ab" * 32, *pen.so_far()["frontier"][1:]]})


def older_certificate(pen: Pen) -> None:
    older = pen.certificate
    pen.close()
    pen.start()
    snapshot(pen, data={"certificate": older})


def older_opened(pen: Pen) -> None:
    older = pen.opened
    pen.close()
    pen.start()
    snapshot(pen, data={"opened": older})


def clock_back(pen: Pen) -> None:
    pen.mono -= 5_000_000
    snapshot(pen)


def time_back(pen: Pen) -> None:
    snapshot(pen)
    pen.utc -= 5_000_000
    note(pen)


def went_on_after_closed(pen: Pen) -> None:
    pen.close()
    snapshot(pen)
    note(pen)


def certificate_of_another(pen: Pen) -> None:
    opened = pen.open()
    snapshot(pen)
    pen.certify(opened - 1)


def bytes_not_told(pen: Pen) -> None:
    pen.open(torn=7)
    snapshot(pen)
    note(pen)


def boot_over(pen: Pen) -> None:
    first = pen.boot
    pen.close()
    pen.start()
    snapshot(pen)
    pen.boot = first
    pen.opened = {**(pen.opened or {}), "last": pen.seq}
    pen.write("opened", pen.opened)


def boot_not_opened(pen: Pen) -> None:
    snapshot(pen)
    pen.boot = "f" * 16
    snapshot(pen)
    note(pen)


def opened_twice(pen: Pen) -> None:
    snapshot(pen)
    pen.write("opened", {**(pen.opened or {}), "last": pen.seq - 1})


JOINS: dict[str, tuple[Write, str]] = {
    "another tree": (other_frontier, "its snapshot has another tree than the segment before it"),
    "an older certificate": (older_certificate, "its snapshot has another certificate than"),
    "an older boot": (older_opened, "its snapshot has another last boot than the segment"),
    "its clock back": (clock_back, "its clock that only goes forward went back"),
    "its time back": (time_back, "its time is before that of the record before it, and no clock"),
    "another version": (another_version, "version 1 after version 2"),
    "less on the disk": (
        lambda pen: snapshot(pen, put={"durable": 1}),
        "it says that less was on the disk than the record before it",
    ),
    "something after closed": (went_on_after_closed, "something follows on closed"),
    "another boot's certificate": (
        certificate_of_another,
        "the certificate is of a boot opened by record",
    ),
    "bytes not told of": (bytes_not_told, "no tail record tells of 7 bytes that were set aside"),
    "a boot that was over": (boot_over, "boot 0000000000000001 was over"),
    "a boot without opened": (boot_not_opened, "boot ffffffffffffffff does not begin with opened"),
    "a boot opened twice": (opened_twice, "boot 0000000000000001 was opened already, by record 2"),
}


@pytest.mark.parametrize("name", JOINS)
def test_what_does_not_go_on_from_the_segment_before_is_found(name: str, tmp_path: Path) -> None:
    write, words = JOINS[name]
    pen = started(65536, rounds=1)
    write(pen)
    begun = next(at for at, place in enumerate(pen.frames, 1) if place[0] == 2)
    note(pen)
    place = pen.save(tmp_path)
    report = verify(place)
    assert any(one.what.startswith(words) for one in report.findings), report.findings
    assert report.findings[0].seq >= begun
    theirs = read_independently(place)
    if name != "bytes not told of":  # of which FORMAT.md does not say that they are told at once
        assert theirs["exit"] == INVALID
        assert theirs["wrong"]["seq"] >= begun


def test_a_segment_that_does_not_begin_where_the_other_ends_is_found(tmp_path: Path) -> None:
    """Whole in itself, and some records further on."""
    pen = started(65536, rounds=1)
    place = pen.save(tmp_path / "whole")
    note(pen)
    note(pen)
    snapshot(pen)
    (place / "segments" / "00000002.seg").write_bytes(pen.files[2])
    (found,) = verify(place).findings
    assert found.what == "its snapshot has another seq than the segment before it ends with"
    assert (found.segment, found.offset) == (2, 24)


@pytest.mark.parametrize("left", [b"\x40", b"\0" * 200 + b"x"])
def test_only_the_last_segment_may_end_with_a_write_that_was_cut_off(
    left: bytes, tmp_path: Path
) -> None:
    pen = started(65536, rounds=1)
    end = pen.frames[-1][2]
    pen.files[1][end : end + len(left)] = left
    place = pen.save(tmp_path)
    if left == b"\x40":
        assert not verify(place).findings
    snapshot(pen)
    first, *_ = verify(pen.end(tmp_path)).findings
    assert (first.segment, first.offset, first.seq) == (1, end, 11)
    assert read_independently(place)["wrong"]["offset"] == end


def test_a_boot_that_begins_with_a_segment_is_right(tmp_path: Path) -> None:
    """Its snapshot is its first record, and tells of the boot before; what was set aside lay in
    the segment before."""
    pen = started(65536, rounds=1)
    end = pen.frames[-1]
    lost = b"torn"
    pen.sync()
    last, opened, certificate = pen.seq, pen.opened, pen.certificate
    pen.boots += 1
    pen.boot = f"{pen.boots:016x}"
    pen.key = Signer(ORIGIN, pen.boot)
    pen.next_segment()
    data = {**(opened or {}), "last": last, "torn": len(lost)}
    at = pen.write("opened", data)
    pen.opened = data
    tail = {
        "segment": 1,
        "offset": end[2],
        "size": len(lost),
        "sha256": sha(lost).hex(),
        "file": "tails/1.json",
        "verdict": "torn",
    }
    pen.write("tail", tail)
    pen.certify(at)
    pen.checkpoint()
    pen.close()
    assert pen.certificate != certificate
    place = pen.save(tmp_path)
    kept = {name: value for name, value in tail.items() if name != "file"}
    (place / "tails").mkdir()
    (place / "tails" / "1.json").write_text(json.dumps({**kept, "bytes": b64(lost)}))
    report = verify(place)
    assert (report.findings, report.remarks) == ((), ())
    assert read_independently(place)["wrong"] is None


@pytest.mark.parametrize("together", [1, 2, 5])
@pytest.mark.parametrize(("group", "name"), CASES)
def test_however_many_are_looked_at_together_the_same_is_found(
    group: str, name: str, together: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pen = broken(group, name)
    pen.write("note", {"text": "something after it"})
    pen.sync()
    pen.write("note", {"text": "and that is on the disk"})
    place = pen.save(tmp_path)
    for replay in (True, False):
        wanted = verify(place, replay=replay)
        with monkeypatch.context() as patch:
            patch.setattr(segment, "BATCH_SIZE", together)
            report = verify(place, replay=replay)
        assert report == wanted
        assert report.findings or (group, name) in ONLY_WITH_REPLAY


@given(st.data())
def test_a_record_in_good_order_is_looked_at_together_and_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    place = closed(
        65536, rounds=data.draw(st.integers(1, 4)), boots=data.draw(st.integers(1, 3))
    ).save(tmp_path_factory.mktemp("record"))
    wanted = verify(place)
    assert not wanted.findings
    usual = segment.BATCH_SIZE
    try:
        segment.BATCH_SIZE = data.draw(st.integers(1, 40))  # type: ignore[misc]
        assert verify(place) == wanted
    finally:
        segment.BATCH_SIZE = usual  # type: ignore[misc]


@pytest.mark.parametrize("segments", [1, 3])
def test_what_was_unsigned_over_several_segments_is_late_once(
    segments: int, tmp_path: Path
) -> None:
    """Whether or not more than a second of it lies within one of them."""
    pen = started(65536)
    note(pen)
    for _ in range(segments):
        pen.mono, pen.utc = pen.mono + 1_500_000_000, pen.utc + 1_500_000
        snapshot(pen)
        note(pen)
    if segments == 1:
        pen.mono, pen.utc = pen.mono + 3_000_000_000, pen.utc + 3_000_000
    pen.checkpoint()
    assert [one for one in verify(pen.end(tmp_path)).remarks if "without a signature" in one] == [
        "1 times something stood without a signature for more than a second, the longest for 4.5 s"
    ]


def test_a_boot_that_ends_unsigned_was_late_if_it_went_on_for_long(tmp_path: Path) -> None:
    pen = started(65536)
    note(pen)
    pen.mono, pen.utc = pen.mono + 3_000_000_000, pen.utc + 3_000_000
    note(pen)
    snapshot(pen)
    pen.start()
    report = verify(pen.end(tmp_path))
    assert report.code == VALID
    assert [one for one in report.remarks if "the longest for 3.0 s" in one]
    assert whats(report) == []


def test_what_may_stand_where_a_segment_could_not_be_read_is_not_missed(tmp_path: Path) -> None:
    """Another boot is opened there, and tells of bytes that were set aside."""
    pen = started(65536, rounds=1)
    broken = pen.frames[-1]
    pen.close()
    pen.start()
    snapshot(pen)
    note(pen)
    place = pen.save(tmp_path)
    assert not verify(place).findings
    flip(place / "segments" / "00000001.seg", broken[1] + 100)
    (found,) = verify(place).findings
    assert (found.segment, found.offset) == broken[:2]
    assert read_independently(place)["wrong"]["offset"] == broken[1]
