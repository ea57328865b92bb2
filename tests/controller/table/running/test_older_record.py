"""An older copy of the record is put back: the devices know better, and two people decide."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.procedure.model.events import DeviceLost, ErrorCardDrawn
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity
from drivers.devices import LinkState
from drivers.keys import TwoPeopleNeeded
from firmware_protocol.device import Plug, TamperWith
from firmware_protocol.messages import Verdict
from hil.table.robots import Robot
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import (
    SHOE,
    SHUFFLER,
    STATION,
    AtTable,
    Policy,
    Room,
    Served,
    right,
    room,
    served,
)

EVERY = (SHOE, SHUFFLER, STATION)
TWO = ("Flo", "Bob")
OLDER = "this record ends before events that the {} was told are stored, up to {}: an older copy?"


TAMPERS = (TamperWith(source="case"), TamperWith(source="case", active=False))
"""Events of a device of any class."""


async def copied(made: Room, rounds: int, *tampered: str) -> Path:
    """Play a round, copy the record, and play so many more; then events of these devices. Returns
    the copy."""
    copy = made.folder / "copy"
    async with served(made) as one:
        await one.to_end()
    shutil.copytree(made.record, copy)
    async with served(made) as one:
        for _ in range(rounds):
            await one.to_end()
        for device in made.desk.devices:
            if device.wanted.serial in tampered:
                await one.asked(device, *TAMPERS)
        await asyncio.sleep(1)
    return copy


def put_back(made: Room, copy: Path) -> None:
    shutil.rmtree(made.record)
    shutil.copytree(copy, made.record)


@asynccontextmanager
async def started(made: Room) -> AsyncIterator[Served]:
    """A start after which nobody adopts anything."""
    async with made.serve() as table:
        yield Served(made, table, Robot(made, AtTable(table), Policy()))


async def adopt(one: Served, serial: str, *, skip: bool = False) -> None:
    supervisor = one.table.supervisor(serial)
    await supervisor.adopt(TWO, skip=skip)
    await until(lambda: supervisor.state is LinkState.READY, 10)


def checked(made: Room) -> None:
    """Both verifiers accept the record; the second one may name what it does not check."""
    right(made)
    assert verify_record.main([str(made.record)]) in (0, 3)


@simulated
async def test_an_older_copy_of_the_record_holds_the_table_until_two_people_adopt(
    tmp_path: Path,
) -> None:
    async with room(tmp_path) as made:
        put_back(made, await copied(made, 2, *EVERY))
        async with started(made) as one:
            supervised = one.table.devices.supervised
            await until(lambda: len(one.state.lost) == 3, 30)
            for serial, device in supervised.items():
                held = device.supervisor.held
                assert held is not None, serial
                assert held.verdict is Verdict.BEHIND, serial
                text = OLDER.format(device.config.device, held.acked_seq)
                assert device.supervisor.why == f"{text}: two people decide"
            holds = [hold for hold in one.state.holds if hold.what is Irregularity.DEVICE_LOST]
            assert {hold.device for hold in holds} == {"shoe", "shuffler", "station"}
            assert all("an older copy?" in hold.detail for hold in holds)
            with pytest.raises(TwoPeopleNeeded):
                await supervised[SHOE].supervisor.adopt(("Flo", "Flo"))
            for serial in supervised:
                await adopt(one, serial)
            await one.to_end()
            assert not any(isinstance(event, ErrorCardDrawn) for event in one.events())
            adopted = one.data("link", "adopted")[-3:]
            assert [entry["verdict"] for entry in adopted] == ["behind"] * 3
            assert [entry["next"] for entry in adopted] == [entry["acked"] + 1 for entry in adopted]
            assert all(entry["two"] == list(TWO) for entry in adopted)
        checked(made)


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("serial", EVERY)
@simulated
async def test_a_device_of_any_class_that_knows_more_holds_the_table(
    tmp_path: Path, serial: str, skip: bool
) -> None:
    """The others continue; the record knows all of their events."""
    async with room(tmp_path) as made:
        put_back(made, await copied(made, 0, serial))
        async with started(made) as one:
            await until(lambda: bool(one.state.lost), 30)
            await until(lambda: one.state.holds[-1].what is Irregularity.DEVICE_LOST, 5)
            assert "an older copy?" in one.state.holds[-1].detail
            behind = {
                one_serial
                for one_serial, device in one.table.devices.supervised.items()
                if device.supervisor.held is not None
            }
            assert behind == {serial}
            await adopt(one, serial, skip=skip)
            await one.to_end()
        checked(made)


@simulated
async def test_a_device_that_knows_more_holds_the_table_although_it_was_lost_before(
    tmp_path: Path,
) -> None:
    """The copy is of a time at which the shuffler was lost in a round, which held nothing."""
    async with room(tmp_path) as made:
        copy, shuffler = made.folder / "copy", made.shuffler
        assert shuffler is not None
        async with served(made) as one:
            await one.to_step(Step.TURN)
            await one.asked(shuffler, Plug(connected=False))
            await until(lambda: one.state.lost == ("shuffler",), 5)
            await one.stands(Step.TURN)
        shutil.copytree(made.record, copy)
        await asyncio.sleep(1)
        shuffler.request(Plug(connected=True))
        async with served(made) as one:
            await until(lambda: one.state.lost == (), 5)
            await one.asked(shuffler, *TAMPERS)
            await asyncio.sleep(1)
        put_back(made, copy)
        for _ in range(2):
            async with started(made) as one:
                await until(lambda: one.table.supervisor(SHUFFLER).held is not None, 30)
                await until(lambda: "shuffler" in [hold.device for hold in one.state.holds], 5)
                await asyncio.sleep(1)
                lost = [event for event in one.events() if isinstance(event, DeviceLost)]
                assert [event.behind for event in lost] == [False, True]
                assert "an older copy?" in one.state.holds[-1].detail
        async with served(made) as one:
            await one.to_end()
        checked(made)


@simulated
async def test_a_shoe_that_is_further_ahead_than_its_ring_holds_the_table(tmp_path: Path) -> None:
    async with room(tmp_path) as made:
        copy = await copied(made, 2)
        async with served(made) as one:
            while made.shoe.stand.firmware.ring.oldest < 200:
                await one.asked(made.shoe, *TAMPERS)
                await asyncio.sleep(0.1)
        put_back(made, copy)
        async with started(made) as one:
            await until(lambda: "shoe" in one.state.lost, 30)
            held = one.table.supervisor(SHOE).held
            assert held is not None
            assert (held.verdict, held.oldest > 199) == (Verdict.BEHIND, True)
            await adopt(one, SHOE)
            await one.to_end()
        checked(made)


@simulated
async def test_a_closed_table_is_held_when_it_is_opened(tmp_path: Path) -> None:
    async with room(tmp_path) as made:
        async with served(made) as one:
            pass
        copy = made.folder / "copy"
        shutil.copytree(made.record, copy)
        async with served(made) as one:
            await one.asked(made.station or made.shoe, *TAMPERS)
            await asyncio.sleep(1)
        put_back(made, copy)
        async with started(made) as one:
            await until(lambda: one.table.supervisor(STATION).held is not None, 30)
            await asyncio.sleep(1)
            await one.stands(Step.CLOSED)
            await one.robot.play(lambda shown: bool(shown.state.holds))
            assert one.state.holds[-1].device == "station"
            await adopt(one, STATION)
            await one.to_end()
        checked(made)


@simulated
async def test_a_copy_from_before_a_device_was_adopted_holds_the_table(tmp_path: Path) -> None:
    """The record has nothing of the devices' logs, as a new one, and each class holds it."""
    async with room(tmp_path) as made:
        async with served(made) as one:
            await one.to_end()
        shutil.rmtree(made.record)
        async with started(made) as one:
            supervised = one.table.devices.supervised
            await until(lambda: all(each.supervisor.held for each in supervised.values()), 30)
            await asyncio.sleep(1)
            await one.stands(Step.CLOSED)
            assert not one.state.lost
            await one.robot.play(lambda shown: bool(shown.state.holds))
            assert {hold.device for hold in one.state.holds} == {"shoe", "shuffler", "station"}
            assert all("an older copy?" in hold.detail for hold in one.state.holds)
            for serial in supervised:
                await adopt(one, serial)
            await one.to_end()
        checked(made)


@simulated
async def test_a_new_device_is_not_taken_for_one_with_a_history(tmp_path: Path) -> None:
    async with room(tmp_path) as made, started(made) as one:
        supervised = one.table.devices.supervised
        await until(lambda: all(each.supervisor.held for each in supervised.values()), 30)
        await one.robot.play(lambda shown: shown.state.step is not Step.CLOSED)
        await asyncio.sleep(1)
        assert (one.state.lost, one.state.holds) == ((), ())


@simulated
async def test_a_new_record_and_devices_with_a_history(tmp_path: Path) -> None:
    """Two people adopt each log, as that of a new device; it is said that it may be an older
    record."""
    async with room(tmp_path) as made:
        async with served(made) as one:
            await one.to_end()
        shutil.rmtree(made.record)
        async with started(made) as one:
            supervisor = one.table.supervisor(SHOE)
            await until(lambda: supervisor.held is not None, 30)
            assert supervisor.held is not None
            assert supervisor.held.verdict is Verdict.NEW_EPOCH
            assert supervisor.why == (
                "this record has nothing of the log of the shoe, which was told that its events up "
                f"to {supervisor.held.acked_seq} are stored: a new record, or an older copy?: two "
                "people decide"
            )
        async with served(made) as one:
            await one.to_end()
        checked(made)
