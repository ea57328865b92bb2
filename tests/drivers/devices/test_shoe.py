"""The shoe's driver on a simulated shoe: cards come sealed, once each, and can be read again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from drivers.devices import (
    CommandRefusedError,
    LinkState,
    NotReady,
    RereadProblem,
    Sealed,
    ShoeDriver,
    Tampered,
)
from drivers.devices.events import Started
from drivers.devices.shoe import (
    CardRetracted,
    CoverMoved,
    CutCardCame,
    ReadFailed,
    ShoeCardRead,
    ShoeJammed,
    ShoeLoaded,
)
from firmware_protocol.device import Draw, Load, MoveCover, Retract, SetJam, TamperWith
from firmware_protocol.messages import (
    DeviceClass,
    DeviceState,
    JamCode,
    LockReply,
    LockState,
    ReadWhy,
    Refusal,
    RereadReply,
    TamperSource,
)
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import FakeLine
from tests.support.drivers.simulated import running, table, until


@simulated
async def test_cards_come_sealed_and_in_order(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        shoe: ShoeDriver = watched.driver
        async with running(watched):
            await watched.ready()
            device.request(Load(cards=("As", "Kd", "2c", "cut", "Th"), decks=0))
            assert await shoe.open_gate() is LockState.OPEN
            device.request(Draw(count=5))
            await asyncio.sleep(2)
            read = [one for one in watched.events() if isinstance(one, ShoeCardRead)]
            assert [one.card.open() for one in read] == [39, 25, 1, 35]
            assert [one.pos for one in read] == [1, 2, 3, 5]
            assert {one.shoe for one in read} == {1}
            assert [one.origin.seq for one in read] == [5, 6, 7, 9]
            assert len({repr(one.card) + repr(one.body) for one in read}) == 1
            assert [one.body.open().card for one in read] == [39, 25, 1, 35]


@simulated
async def test_everything_else_that_a_shoe_tells(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        shoe: ShoeDriver = watched.driver
        async with running(watched):
            await watched.ready()
            device.request(Load(cards=("As", "cut", "2c", "3c"), decks=0))
            await shoe.open_gate()
            device.request(Draw(count=2))
            await asyncio.sleep(1)
            device.request(Draw(read="too_fast"))
            await asyncio.sleep(1)
            device.request(Retract())
            device.request(SetJam(code="stuck"))
            device.request(SetJam(code=None))
            device.request(MoveCover(open=True))
            device.request(TamperWith(source="magnet"))
            await asyncio.sleep(1)
            events = watched.events()
            assert [type(one) for one in events] == [
                Started,
                CoverMoved,
                CoverMoved,
                ShoeLoaded,
                ShoeCardRead,
                CutCardCame,
                ReadFailed,
                CardRetracted,
                ShoeJammed,
                ShoeJammed,
                CoverMoved,
                Tampered,
            ]
            loaded, cut, failed, back, jam = (events[at] for at in (3, 5, 6, 7, 8))
            assert isinstance(loaded, ShoeLoaded)
            assert (loaded.shoe, loaded.count) == (1, 3)
            assert isinstance(cut, CutCardCame)
            assert cut.pos == 2
            assert isinstance(failed, ReadFailed)
            assert (failed.pos, failed.why) == (3, ReadWhy.TOO_FAST)
            assert isinstance(back, CardRetracted)
            assert back.pos == 3
            assert isinstance(jam, ShoeJammed)
            assert jam.code is JamCode.STUCK
            assert isinstance(events[11], Tampered)
            assert events[11].source is TamperSource.MAGNET


@simulated
async def test_the_lock_is_what_was_asked(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        shoe: ShoeDriver = watched.driver
        with pytest.raises(NotReady, match="the device is absent"):
            await shoe.lock()
        async with running(watched):
            await watched.ready()
            assert await shoe.open_gate() is LockState.OPEN
            assert not device.stand.firmware.mechanism.state() & DeviceState.LOCKED
            assert await shoe.lock() is LockState.LOCKED
            assert await shoe.lock() is LockState.LOCKED
            assert device.stand.firmware.mechanism.state() & DeviceState.LOCKED
            info = await shoe.info()
            assert info.boot == 1
            assert (await shoe.selftest()).code == 0


@simulated
async def test_a_record_can_be_asked_for_again(tmp_path: Path) -> None:
    """Also by a host that was restarted and may not resume yet."""
    async with table(tmp_path) as (_, device, watched):
        shoe: ShoeDriver = watched.driver
        async with running(watched):
            await until(lambda: watched.supervisor.held is not None)
            epoch = watched.supervisor.held.epoch
            again = await shoe.reread(epoch, 1)
            assert watched.state is LinkState.RESUMING
            await watched.ready()
            device.request(Load(cards=("As", "Kd"), decks=0))
            await shoe.open_gate()
            device.request(Draw(count=2))
            await asyncio.sleep(1)
            assert isinstance(again, Sealed)
            assert again.open() == watched.store.records[0]
            for record in watched.store.records:
                assert (await shoe.reread(epoch, record.seq)).open() == record
            for wrong in ((epoch, 99), (epoch ^ 1, 1)):
                with pytest.raises(CommandRefusedError) as refused:
                    await shoe.reread(*wrong)
                assert refused.value.why is Refusal.NOT_KEPT


@simulated
async def test_a_shoe_that_gives_another_record_is_found_out() -> None:
    line = FakeLine(DeviceClass.SHOE)
    shoe: ShoeDriver = line.driver
    line.answers = [RereadReply(bytes(56)), RereadReply(b"\x01" * 56)]
    for _ in range(2):
        with pytest.raises(RereadProblem, match="record 7 came back as"):
            await shoe.reread(5, 7)
    line.answers = [LockReply(LockState.OPEN)]
    with pytest.raises(TypeError, match="REREAD was answered with LockReply"):
        await shoe.reread(5, 7)
