"""A table in real time: a table file, keys on the disk, devices behind ports, and the record with
its thread. Whatever ends it, nothing of it is left."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from controller.audit.errors import InUse
from controller.audit.keys import create_key
from controller.audit.read.reader import records
from controller.audit.verify import verify
from controller.config import load_table
from controller.errors import UsageProblem
from controller.procedure.model.game import Game
from controller.procedure.model.state import Step
from controller.table.devices import StoreRetry
from controller.table.loop import TableParts, parts_of
from controller.table.running import RunningTable
from drivers.keys import KeyStore, PairedDevice
from drivers.ports import Transport
from firmware_protocol.device import Plug, ShufflePace, create_identity, pair_directly
from firmware_protocol.messages import DeviceClass
from hil.simulator import LiveDevice
from hil.simulator.run import device_in_loop
from hil.table.robots import Robot
from tests.support.asynchronous import asynchronous
from tests.support.drivers.simulated import until
from tests.support.table.simulated.killing import Policy
from tests.support.table.simulated.simulated_table import AtTable, ready

FILE = """
schema = 1
[table]
name = "real-1"
game = "mega"
[options]
decks = 6
money.unit = 50
[devices]
min_confidence = 80
[devices.shoe]
serial = "SH-1"
port = "serial:{folder}/shoe/port"
[devices.shuffler]
serial = "SF-1"
port = "serial:{folder}/shuffler/port"
[[devices.stations]]
serial = "ST-1"
port = "serial:{folder}/station/port"
seats = [1, 2]
[devices.standing]
1 = {{ main = 1000, buster = 500 }}
[record]
directory = "record"
day_starts = "06:30"
segment_mib = 1
[keys]
directory = "keys"
"""
DEVICES = (
    ("shoe", DeviceClass.SHOE, "SH-1"),
    ("shuffler", DeviceClass.SHUFFLER, "SF-1"),
    ("station", DeviceClass.STATION, "ST-1"),
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


def furnished(folder: Path) -> Path:
    """A table's file and keys; its devices are made and paired."""
    keys = folder / "keys"
    store = KeyStore.create(keys)
    for role in ("table", "hole", "surveillance"):
        create_key(keys, role)
    own = store.standing_own().public_key().public_bytes_raw()
    for name, kind, serial in DEVICES:
        made = create_identity(folder / name, kind, serial)
        pair_directly(folder / name, own)
        at = "2026-01-01T00:00:00Z"
        store.add(PairedDevice(kind, serial, "maker", "model", made.public, at, ("Flo", "Bob")))
    file = folder / "table.toml"
    file.write_text(FILE.format(folder=folder))
    return file


def parts(file: Path) -> TableParts:
    return parts_of(load_table(file))


@asynccontextmanager
async def plugged(folder: Path, game: Game) -> AsyncIterator[Real]:
    async with (
        device_in_loop("shoe", folder / "shoe") as shoe,
        device_in_loop("shuffler", folder / "shuffler") as shuffler,
        device_in_loop("station", folder / "station", seats=(1, 2)) as station,
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
    report = verify(tmp_path / "record")
    assert [finding.what for finding in report.findings] == []


def test_what_the_file_says_is_what_runs(tmp_path: Path) -> None:
    given = parts(furnished(tmp_path))
    assert (given.name, given.size, given.record) == ("real-1", 1 << 20, tmp_path / "record")
    shoe, shuffler, station = given.devices
    assert [one.device for one in given.devices] == ["shoe", "shuffler", "station"]
    assert station.seats == (1, 2)
    assert shoe.wanted.address is not None
    assert shoe.wanted.address.transport is Transport.SERIAL
    assert shuffler.serial == "SF-1"
    assert given.house.standing == {1: (("main", 1000), ("buster", 500))}
    # The gaming day begins at half past six.
    assert [given.day(hours * 3_600_000_000) for hours in (24 + 6, 24 + 7)] == [
        "1970-01-01",
        "1970-01-02",
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
    with pytest.raises(UsageProblem) as caught:
        parts(file)
    assert words in str(caught.value)


@pytest.mark.parametrize("key", ["table.key", "hole.key", "surveillance.pub", "host.json"])
def test_a_key_that_is_missing(key: str, tmp_path: Path) -> None:
    file = furnished(tmp_path)
    (tmp_path / "keys" / key).unlink()
    with pytest.raises(UsageProblem) as caught:
        parts(file)
    assert key.split(".", maxsplit=1)[0] in str(caught.value)


def test_seats_without_buttons_where_nobody_else_decides(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    file.write_text(file.read_text().replace("decks = 6", 'decks = 6\ndecisions.by = "buttons"'))
    with pytest.raises(UsageProblem, match="seats 3, 4, 5, 6, 7 have no station"):
        parts(file)


# --- how it ends ------------------------------------------------------------------------------


@asynchronous
async def test_a_table_without_its_devices_begins_and_ends(tmp_path: Path) -> None:
    file = furnished(tmp_path)

    async with RunningTable(parts(file)) as table:
        assert table.shown.state.step is Step.CLOSED
        assert table.boot == table.log.boot
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
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [record.kind for _, record in records(tmp_path / "record")][-2] == "closed"
