"""A table in real time: a table file, keys on the disk, devices behind ports, and the record with
its thread. Whatever ends it, nothing of it is left. And in simulated time: scripted rounds,
and a dealer who takes another one's place."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.audit.errors import InUse, RetryLater
from controller.audit.format.records import RecordActor
from controller.audit.read.reader import records
from controller.audit.verify import verify
from controller.config import load_table
from controller.errors import UsageProblem
from controller.people import SignInData, SignOutData, entry_for
from controller.procedure.model.effects import Tell
from controller.procedure.model.events import DealerRelieved
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.sim.scripts import ScriptRound
from controller.table.devices import StoreRetry
from controller.table.intake import TableSnapshot
from controller.table.loop import TableParts, TableStopped, parts_of
from controller.table.running import RunningTable
from controller.table.running.table import is_relief, relief_input
from drivers.ports import Transport
from firmware_protocol.device import Plug, ShufflePace
from hil.simulator import LiveDevice
from hil.simulator.run import device_in_loop
from hil.table.robots import Robot
from tests.support.asynchronous import asynchronous, raised, simulated_in
from tests.support.daemon.rig import furnished
from tests.support.drivers.simulated import until
from tests.support.paths import SCRIPT_FILES
from tests.support.table.simulated.scripted import Played, failures, played, scripts
from tests.support.table.simulated.serving import (
    AtTable,
    Policy,
    Room,
    Served,
    ready,
    room,
    serving,
)


class Real(NamedTuple):
    """What is before everybody, in real time."""

    game: Game
    shoe: LiveDevice
    shuffler: LiveDevice
    station: LiveDevice

    @property
    def decks(self) -> int:
        return self.game.decks

    def station_of(self, seat: int) -> LiveDevice:
        return self.station


def parts(file: Path) -> TableParts:
    return parts_of(load_table(file))


@asynccontextmanager
async def plugged(folder: Path, game: Game) -> AsyncIterator[Real]:
    async with (
        device_in_loop("shoe", folder / "shoe", create=True) as shoe,
        device_in_loop("shuffler", folder / "shuffler", create=True) as shuffler,
        device_in_loop("station", folder / "station", seats=(1, 2), create=True) as station,
    ):
        shuffler.request(ShufflePace(shuffle_ms=20))
        yield Real(game, shoe, shuffler, station)


@asynchronous
async def test_a_round_in_real_time(tmp_path: Path) -> None:
    """With a stop and a start in the middle of it."""
    file = furnished(tmp_path)

    given = parts(file)
    async with plugged(tmp_path, given.game) as real:
        async with RunningTable(given) as table:
            await ready(table)
            await Robot(real, AtTable(table), Policy()).play(lambda s: s.state.step is Step.REVEAL)
            before = table.shown.state
        async with RunningTable(parts(file)) as table:
            await ready(table)
            await until(lambda: table.shown.state.step is Step.FELT)
            robot = Robot(real, AtTable(table), Policy())
            await robot.act("FeltConfirmed")
            assert table.shown.state == before
            await robot.play(lambda s: s.state.step is Step.WAGERING and not s.state.seats)
            assert robot.refused == []
            real.shoe.request(Plug(connected=False))
            await until(lambda: table.shown.state.lost == ("shoe",))
    found = [record for _, record in records(tmp_path / "record")]
    assert [record.kind for record in found].count("opened") == 2
    assert found[-2].kind == "closed"
    assert [finding.what for finding in verify(tmp_path / "record").findings] == []


def test_what_the_file_says_is_what_runs(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    more = 'day_starts = "06:30"\n[devices.standing]\n1 = { main = 1000, buster = 500 }\n[keys]'
    file.write_text(file.read_text().replace("[keys]", more))
    given = parts(file)
    assert (given.name, given.size, given.record) == ("real-1", 1 << 20, tmp_path / "record")
    shoe, shuffler, station = given.devices
    assert [one.device for one in given.devices] == ["shoe", "shuffler", "station"]
    assert station.seats == (1, 2)
    assert shoe.wanted.address is not None
    assert shoe.wanted.address.transport is Transport.SERIAL
    assert shuffler.serial == "SF-1"
    assert given.house.standing == {1: (("main", 1000), ("buster", 500))}
    # The gaming day begins at half past six; it is named where it is not the date of the time.
    assert [given.day(hours * 3_600_000_000) for hours in (24 + 6, 24 + 7)] == [
        "1970-01-01",
        "",
    ]


# --- what is wrong with it --------------------------------------------------------------------


def _without(section: str) -> Callable[[str], str]:
    def change(text: str) -> str:
        head, _, rest = text.partition(f"[{section}]")
        return head + rest.partition("\n[")[1].strip("\n") + rest.partition("\n[")[2]

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_without("keys"), "keys: is missing: the table cannot be served without it"),
        (_without("record"), "record: is missing"),
        (lambda text: text.replace('"SH-1"', '"SH-9"'), "SH-9 is not paired with this host"),
        (
            lambda text: text.replace('"SF-1"', '"SX"').replace('"SH-1"', '"SF-1"'),
            "SF-1 is a shuffler; allowed: a shoe",
        ),
        (
            lambda text: text.replace('"serial:', '"cereal:', 1),
            "devices.shoe.port: 'cereal:",
        ),
        (lambda text: text.replace('"keys"', '"nowhere"'), "nowhere"),
    ],
)
def test_a_file_that_cannot_be_served(
    change: Callable[[str], str], words: str, tmp_path: Path
) -> None:
    file = furnished(tmp_path)
    file.write_text(change(file.read_text()))
    with pytest.raises(UsageProblem, match=re.escape(words)):
        parts(file)


@pytest.mark.parametrize("key", ["table.key", "hole.key", "surveillance.pub", "host.json"])
def test_a_key_that_is_missing(key: str, tmp_path: Path) -> None:
    file = furnished(tmp_path)
    (tmp_path / "keys" / key).unlink()
    with pytest.raises(UsageProblem, match=key.split(".", maxsplit=1)[0]):
        parts(file)


def test_seats_without_buttons_where_nobody_else_decides(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    file.write_text(file.read_text().replace("decks = 6", 'decks = 6\ndecisions.by = "buttons"'))
    with pytest.raises(UsageProblem, match="seats 3, 4, 5, 6, 7 have no station"):
        parts(file)


# --- how it ends ------------------------------------------------------------------------------


@asynchronous
async def test_a_table_without_its_devices_begins_and_ends(tmp_path: Path) -> None:

    async with RunningTable(parts(furnished(tmp_path))) as table:
        assert (table.shown.state.step, table.boot) == (Step.CLOSED, table.log.boot)
    with pytest.raises(LookupError):
        table.supervisor("SH-9")
    assert [record.kind for _, record in records(tmp_path / "record")][-2:] == [
        "closed",
        "checkpoint",
    ]


@asynchronous
async def test_two_controllers_do_not_write_one_record(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    async with RunningTable(parts(file)):
        with pytest.raises(InUse):
            async with RunningTable(parts(file)):
                pytest.fail("it runs")


class Broken(Exception):
    """Something of ours."""


@asynchronous
async def test_whatever_fails_in_it_ends_all_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = furnished(tmp_path)

    async def broken(self: object) -> None:
        await asyncio.sleep(0.01)
        raise Broken("a defect")

    monkeypatch.setattr(StoreRetry, "run", broken)

    with pytest.raises(ExceptionGroup) as caught:
        async with RunningTable(parts(file)):
            await asyncio.sleep(60)
    assert caught.group_contains(Broken)
    assert [record.kind for _, record in records(tmp_path / "record")][-2] == "closed"


@asynchronous
async def test_what_its_user_raises_comes_out_as_it_is(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    with pytest.raises(Broken, match="the user's"):
        async with RunningTable(parts(file)):
            raise Broken("the user's")


@asynchronous
async def test_a_table_that_is_called_off(tmp_path: Path) -> None:
    file = furnished(tmp_path)

    async def session() -> None:
        async with RunningTable(parts(file)):
            await asyncio.sleep(60)

    task = asyncio.create_task(session())
    await asyncio.sleep(0.2)
    task.cancel()
    await raised(asyncio.CancelledError, task)
    assert [record.kind for _, record in records(tmp_path / "record")][-2] == "closed"


EXAMPLES = scripts("examples")
OTHERS = [
    scripted for name in ("classic", "maxtime", "mega", "sf21x") for scripted in scripts(name)[::12]
]
"""All of them are dealt in tests/long/campaigns."""


def findings(record: Path) -> list[str]:
    report = verify(record)
    assert report.again > 0
    return [finding.what for finding in report.findings]


@pytest.mark.parametrize("scripted", EXAMPLES + OTHERS, ids=lambda one: one.script.id)
def test_a_scripted_round(scripted: ScriptRound, tmp_path: Path) -> None:
    assert failures(scripted, played(tmp_path, scripted).result) == []
    assert findings(tmp_path / "record") == []


def test_the_scripts_are_of_all_four_games() -> None:
    assert {one.script.game for one in EXAMPLES} == {"classic", "maxtime", "mega", "sf21x"}
    assert len(list(SCRIPT_FILES.glob("*.json"))) == 5


def _asked(found: Played, tell: Tell) -> int:
    return sum(prompt.tell is tell for prompt in found.robot.prompts)


def test_each_step_of_a_round_is_shown_once(tmp_path: Path) -> None:
    """A prompt is an instruction: who follows it is not told the same again."""
    found = played(tmp_path, next(one for one in EXAMPLES if one.script.game == "classic"))
    assert found.robot.refused == []
    assert _asked(found, Tell.OPEN_TABLE) == _asked(found, Tell.LOAD_SHOE) == 1
    assert (_asked(found, Tell.CLEAR), found.robot.repeats) == (1, [])


def signed(name: str, relieved: str = "") -> SignInData:
    return SignInData("dealer", name, "D-1", "l", "dealer", 0, relieved)


@pytest.mark.parametrize(
    ("name", "relieved", "dealt", "does"),
    [
        ("Ann Lee", "", "", False),
        ("Ann Lee", "", "Ann Lee", False),
        ("Ann Lee", "", "ANN  lee", False),
        ("Ann Lee", "", "Bo Chan", True),
        ("Ann Lee", "Bo Chan", "", True),
        ("Ann Lee", "Bo Chan", "Bo Chan", True),
    ],
)
def test_whose_place_it_is(name: str, relieved: str, dealt: str, does: bool) -> None:
    assert is_relief(signed(name, relieved), dealt) is does


@pytest.mark.parametrize("step", list(Step))
def test_an_open_table_is_told_and_a_closed_one_is_not(step: Step) -> None:
    entry = entry_for(signed("Ann Lee", "Bo Chan"))
    heard = relief_input(entry)(TableSnapshot(State(step=step, round=4)))
    assert [type(one) for one in heard.events] == ([] if step is Step.CLOSED else [DealerRelieved])
    (note,) = heard.notes
    assert (note.data, note.by, note.round) == (entry.data, RecordActor("dealer", "Ann Lee"), 4)


@simulated_in(serving)
async def test_both_stand_in_one_write(at: Served) -> None:
    await at.to_step(Step.WAGERING)
    table = at.table
    await table.record(entry_for(signed("Ann Lee")))
    assert not any(isinstance(one, DealerRelieved) for one in at.events())
    groups = at.room.book.appended
    await table.record(entry_for(signed("Bo Chan")))
    assert at.room.book.appended == groups + 1
    last = at.events()[-1]
    assert isinstance(last, DealerRelieved)
    assert (last.actor.role, last.actor.name) == ("dealer", "Bo Chan")
    person = at.room.records("person")[-1]
    assert (person.seq, person.round) == (table.table.seq, at.state.round)


@simulated_in(serving)
async def test_whoever_comes_back_relieves_nobody(at: Served) -> None:
    await at.to_step(Step.WAGERING)
    left = SignOutData("dealer", "Ann Lee", "D-1", "dealer", "asked")
    for entry in (signed("Ann Lee"), left, signed("Ann Lee")):
        await at.table.record(entry_for(entry))
    assert not any(isinstance(one, DealerRelieved) for one in at.events())


@simulated_in(serving)
async def test_where_it_cannot_be_recorded_nobody_has_signed_in(at: Served) -> None:
    """The next one to come relieves whoever dealt before."""
    await at.to_step(Step.WAGERING)
    await at.table.record(entry_for(signed("Ann Lee")))
    at.room.book.refusing = RetryLater("record", "no room", "make room")
    await raised(TableStopped, at.table.record(entry_for(signed("Bo Chan"))))
    at.room.book.refusing = None
    async with asyncio.timeout(30):
        await at.table.table.working.wait()
    await at.table.record(entry_for(signed("Ann Lee")))
    assert not any(isinstance(one, DealerRelieved) for one in at.events())


@simulated_in(room)
async def test_a_table_that_was_closed_has_no_dealer_to_relieve(made: Room) -> None:
    table = made.serve()
    async with table:
        await table.record(entry_for(signed("Ann Lee")))
        await table.record(entry_for(signed("Bo Chan", "Ann Lee")))
    kinds = [record.kind for record in made.records()]
    assert (kinds.count("person"), kinds.count("refusal")) == (2, 0)
