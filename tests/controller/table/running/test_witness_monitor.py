"""Whether a witness has seen the record lately: told in the record and on the screen, and not more
often than it changes."""

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from controller.audit.format.records import Record, RecordEntry
from controller.audit.log import Log
from controller.audit.verify import verify
from controller.audit.witness import WitnessReport, check_witnesses, store_notes
from controller.procedure.model.state import State
from controller.table.loop import RequestResult, TableStopped
from controller.table.memory import WitnessStatus
from controller.table.running import WitnessMonitor
from controller.table.running.witness_monitor import WitnessCheck
from tests.support.asynchronous import asynchronous
from tests.support.audit.record.table import FakeClock, begun, everything, note
from tests.support.audit.tools.outside import WITNESS, play
from tests.support.audit.witnessing import seen_by

HOURS = 24
HOUR = 3600


class House:
    """A table whose record is real, the witness elsewhere, and a clock that tests set."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.clock = FakeClock()
        self.log = self._begun()
        self.shown: list[WitnessStatus] = []
        self.refuses: list[Exception] = []
        self.looked = 0
        self.witnessing = self._looks()

    def _begun(self) -> Log:
        return begun(self.place / "record", clock=self.clock)

    def _looks(self) -> WitnessMonitor:
        house = self

        class Here(WitnessMonitor):
            async def _in_thread(self, work: Callable[[], WitnessCheck]) -> WitnessCheck:
                house.looked += 1
                return work()

        return Here(self, self.log.record, self.clock, timedelta(hours=HOURS))

    # --- as its table ---------------------------------------------------------------------

    @property
    def seq(self) -> int:
        return self.log.where.seq

    def set_witness(self, witness: WitnessStatus) -> None:
        self.shown.append(witness)

    async def record(self, entry: RecordEntry) -> RequestResult:
        if self.refuses:
            raise self.refuses.pop()
        turn = everything(self.log.record)[-1].round
        made = tuple(self.log.write([replace(entry, round=turn)]))
        self.log.sign()
        return RequestResult(made, (entry,), (), State())

    # --- what happens to it ---------------------------------------------------------------

    def deal(self, turn: int) -> int:
        """The time of what it comes to."""
        self.log.write([note(f"round {turn}", round=turn)])
        written = everything(self.log.record)[-1].utc
        self.log.sign()
        return written

    def look(self, hours: float = 0) -> list[str]:
        """After so long. What was recorded of it."""
        self.clock.go(hours * HOUR)
        before = self.seq
        asyncio.run(self.witnessing.check())
        return [one.kind for one in self.told() if one.seq > before]

    def sees(self, hours: float = 0) -> tuple[list[str], WitnessStatus]:
        """The same, and what is shown then."""
        return self.look(hours), self.shown[-1]

    def told(self) -> list[Record]:
        kinds = ("witnessed", "unwitnessed")
        return [one for one in everything(self.log.record) if one.kind in kinds]

    def since(self) -> int:
        """As the last word of it says."""
        return int(msgspec.json.decode(self.told()[-1].data)["since"])

    def witness(self) -> int:
        made = seen_by(self.log.record, self.place / "archive")
        store_notes(self.log.record, [("n", made.note.encode())], WITNESS.cosigner)
        return made.size

    def again(self) -> None:
        """The controller ends, and is started."""
        self.log.close()
        self.log = self._begun()
        self.witnessing = self._looks()

    def right(self) -> None:
        """Both verifiers find nothing."""
        self.log.close()
        assert [one.what for one in verify(self.log.record).findings] == []
        page = str(files("controller.audit").joinpath("verify_record.py"))
        ran = subprocess.run(
            [sys.executable, "-I", page, str(self.log.record)],
            capture_output=True,
            text=True,
            timeout=100,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    made = House(tmp_path)
    yield made
    made.log.release()


def test_a_table_that_no_witness_has_ever_seen_says_so_at_once_and_once(house: House) -> None:
    first = next(one for one in everything(house.log.record) if one.kind == "opened")
    assert house.sees() == (["unwitnessed"], WitnessStatus(0, first.utc))
    assert house.since() == first.utc
    for hours in (0, 1, 30, 300):
        house.deal(hours)
        assert house.look(hours) == []
    house.again()
    assert house.sees() == ([], WitnessStatus(0, first.utc))
    house.right()


def test_a_witness_that_comes_each_hour_is_told_of_and_nothing_else(house: House) -> None:
    house.look()
    for turn in range(1, 6):
        house.deal(turn)
        size = house.witness()
        assert house.sees(1) == (["witnessed"], WitnessStatus(size, 0))
    house.right()


def test_where_nothing_happens_a_witness_makes_no_records(house: House) -> None:
    """Its own word is signed again, and countersigned again: that goes round for ever else."""
    house.deal(1)
    house.witness()
    assert house.look() == ["witnessed"]
    for _ in range(5):
        house.witness()
        assert house.look(HOURS) == []
        assert house.shown[-1].since == 0
    house.deal(2)
    house.witness()
    assert house.look() == ["witnessed"]
    house.right()


def test_a_witness_that_stays_away_is_missed_after_the_time_and_once(house: House) -> None:
    house.deal(1)
    size = house.witness()
    assert house.look() == ["witnessed"]
    house.clock.go(3 * HOUR)
    missed = house.deal(2)
    house.deal(3)
    assert house.sees(HOURS - 1) == ([], WitnessStatus(size, 0))
    assert house.sees(2) == (["unwitnessed"], WitnessStatus(size, missed))
    assert house.since() == missed
    assert house.look(1) == []
    house.again()
    assert house.sees(40) == ([], WitnessStatus(size, missed))
    back = house.witness()
    assert house.sees() == (["witnessed"], WitnessStatus(back, 0))
    house.deal(4)
    house.again()
    assert house.look(HOURS + 1) == ["unwitnessed"]
    house.right()


def test_what_cannot_be_recorded_is_told_the_next_time(house: House) -> None:
    house.refuses = [TableStopped("no room")]
    assert house.look() == []
    assert house.look() == ["unwitnessed"]
    for turn in (1, 2):
        house.deal(turn)
        house.witness()
    house.refuses = [TableStopped("no room")]
    assert house.look() == []
    assert house.look() == ["witnessed", "witnessed"]
    assert house.look() == []


def test_what_counts_for_nothing_is_not_recorded(house: House) -> None:
    house.look()
    place = house.log.record / "cosigned"
    place.mkdir()
    (place / "3.note").write_text("countersigned, believe me\n")
    (place / "x.note").write_text("")
    assert house.look() == []
    house.deal(1)
    house.witness()
    assert house.look() == ["witnessed"]


def test_a_record_that_cannot_be_read_holds_nothing_up(house: House) -> None:
    house.log.record.joinpath("segments").rename(house.place / "away")
    asyncio.run(house.witnessing.check())
    assert house.shown == []
    house.place.joinpath("away").rename(house.log.record / "segments")
    assert house.look() == ["unwitnessed"]


@asynchronous
async def test_a_disk_that_stands_still_is_asked_once(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("controller.table.running.witness_monitor.CHECK_TIMEOUT", 0.01)
    asked = []

    class Still(WitnessMonitor):
        async def _in_thread(self, work: Callable[[], WitnessCheck]) -> WitnessCheck:
            asked.append(work)
            await answers.wait()
            return work()

    answers = asyncio.Event()
    still = Still(house, house.log.record, house.clock, timedelta(hours=HOURS))
    for _ in range(3):
        await still.check()
    assert (len(asked), house.shown) == (1, [])
    answers.set()
    await still.check()
    assert len(house.shown) == 1


def test_long_records_are_read_only_where_something_has_changed(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = []

    def counted(record: Path, told: int) -> WitnessReport:
        looks.append(told)
        return check_witnesses(record, told)

    monkeypatch.setattr("controller.table.running.witness_monitor.check_witnesses", counted)
    play(house.log, 1, 20)
    for _ in range(5):
        house.look()
    assert len(looks) == 1
