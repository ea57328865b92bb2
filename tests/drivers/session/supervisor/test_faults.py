"""Each record exactly once, through power cuts, noise, killed hosts, and all of it together."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest

from drivers import events
from drivers.devices import CommandUnansweredError, LinkState, ShoeDriver
from drivers.devices.shoe import ShoeCardRead
from firmware_protocol.device import (
    Break,
    CutPower,
    Describe,
    Draw,
    Freeze,
    LineNoise,
    Moment,
    Plug,
)
from firmware_protocol.host import SessionEnding
from firmware_protocol.host.exchange import BEHIND_ASK, BEHIND_END
from firmware_protocol.messages import WINDOW, LockState, Verdict
from tests.support.asynchronous import simulated
from tests.support.drivers.dealing import FULL_DISK, dealing, head, same, store_fails, when_dealing
from tests.support.drivers.simulated import (
    MemoryStore,
    Plugged,
    Watched,
    now_us,
    running,
    supervised,
    table,
    until,
)

S = LinkState


# --- power, noise, and all of it ------------------------------------------------------------------


MOMENTS: tuple[Moment, ...] = (
    "before_commit",
    "in_commit",
    "after_commit",
    "before_reply",
    "before_ack",
)


@pytest.mark.parametrize("off_ms", [0, 3000])
@pytest.mark.parametrize("moment", MOMENTS)
@when_dealing
async def test_power_may_go_at_any_moment(
    device: Plugged, watched: Watched, moment: Moment, off_ms: int, shoe: ShoeDriver
) -> None:
    for round_ in range(3):
        await asyncio.sleep(1)
        device.request(CutPower(at=moment, off_ms=off_ms))
        device.request(Draw(count=2 + round_, force=True))
        await asyncio.sleep(1.5 + off_ms / 1000)
        await _opened(watched, shoe)
    await asyncio.sleep(2)
    assert device.stand.firmware.boot >= 3
    same(watched, device, watched.events())


async def _opened(watched: Watched, shoe: ShoeDriver) -> None:
    """The gate is open. The command itself may be what the power goes at."""
    await watched.until(S.READY)
    try:
        assert await shoe.open_gate() is LockState.OPEN
    except CommandUnansweredError:
        await asyncio.sleep(0.2)
        await _opened(watched, shoe)


@pytest.mark.parametrize("seed", range(2))
@when_dealing
async def test_a_bad_line_delays_and_loses_nothing(
    device: Plugged, watched: Watched, seed: int, shoe: ShoeDriver
) -> None:
    noise = LineNoise(flip=0.06, drop=0.05, double=0.05, splice=0.05, cut=0.04, seed=seed)
    device.request(noise)
    began = now_us()
    for _ in range(6):
        device.request(Draw(count=10, force=True))
        await asyncio.sleep(5)
    device.request(LineNoise())
    await watched.until(S.READY)
    await shoe.lock()
    await asyncio.sleep(3)
    same(watched, device, watched.events())
    seconds = (now_us() - began) / 1_000_000
    damage = watched.of(events.Damage)
    assert damage
    assert len(damage) <= seconds + 1
    for kind in (events.Suspicion, events.Alert, events.DeviceCounts, events.Defect):
        assert len(watched.of(kind)) <= seconds + 1
    assert watched.of(events.DeviceCounts)[-1].damaged > 0
    assert not watched.of(events.Defect)


@pytest.mark.parametrize("seed", range(3))
@simulated
async def test_all_of_it_at_once(tmp_path: Path, seed: int) -> None:
    """Five minutes at a table where everything goes wrong."""
    dice = random.Random(seed)
    async with table(tmp_path) as (_, device, watched), running(watched):
        shoe = await dealing(device, watched, decks=12)
        until_us = now_us() + 300_000_000
        while now_us() < until_us:
            await asyncio.sleep(dice.choice((0.01, 0.3, 1, 3, 12)))
            await _mishap(dice, device, watched, shoe)
        device.request(LineNoise())
        device.request(Plug(connected=True))
        await until(lambda: device.stand.powered)
        device.request(Freeze(on=False))
        watched.store.failing, watched.store.slow = None, 0.0
        if watched.supervisor.failure is not None:
            watched.supervisor.recovered()
        await asyncio.sleep(15)
        await watched.until(S.READY)
        await asyncio.sleep(20)
        taken = watched.events()
        kept = watched.store.seqs
        assert (kept, [one.origin.seq for one in taken]) == (list(range(1, head(device) + 1)), kept)
        assert sum(isinstance(one, ShoeCardRead) for one in taken) > 15


async def _mishap(dice: random.Random, device: Plugged, watched: Watched, shoe: ShoeDriver) -> None:
    stand, chance = device.stand, dice.random()
    alive = stand.powered and not stand.frozen
    if chance < 0.4 and alive:
        if device.request(Describe())["mechanism"]["left"] > 5:
            device.request(Draw(count=dice.randint(1, 4), force=True))
    elif chance < 0.5:
        device.request(Plug(connected=not stand.plugged))
    elif chance < 0.6 and alive:
        device.request(
            CutPower(at=dice.choice((*MOMENTS, "now")), off_ms=dice.choice((0, 300, 3000)))
        )
    elif chance < 0.7 and stand.powered:
        device.request(Freeze(on=not stand.frozen))
    elif chance < 0.8:
        share = dice.choice((0.0, 0.0, 0.02, 0.1))
        device.request(
            LineNoise(flip=share, drop=share, double=share, splice=share, seed=dice.getrandbits(9))
        )
    elif chance < 0.9:
        watched.store.slow = dice.choice((0.0, 0.0, 0.2, 4.0))
        watched.store.failing = FULL_DISK if dice.random() < 0.2 else None
    elif watched.supervisor.failure is not None and watched.store.failing is None:
        watched.supervisor.recovered()


@simulated
async def test_stored_records_survive_when_the_host_is_killed(tmp_path: Path) -> None:
    """A host that dies at any turn of its loop: the next one goes on with what is kept."""
    async with table(tmp_path) as (desk, device, watched):
        keeper: MemoryStore = watched.store
        async with running(watched):
            await dealing(device, watched)
        dice = random.Random(1)
        for _ in range(12):
            again = Watched(desk, device.wanted, keeper)
            async with running(again):
                await again.until(S.READY, S.RESUMING)
                device.request(Draw(count=3, force=True))
                for _ in range(dice.randint(0, 400)):
                    await asyncio.sleep(0.001)
        last = Watched(desk, device.wanted, keeper)
        async with running(last):
            await last.until(S.READY)
            await asyncio.sleep(1)
        assert keeper.seqs == list(range(1, head(device) + 1))


@pytest.mark.parametrize("deaf", [False, True], ids=["asked for it", "deaf too"])
@when_dealing
async def test_a_device_that_never_sends_again_is_found_out(
    device: Plugged, watched: Watched, deaf: bool
) -> None:
    """By its heartbeats: what is missing is asked for, and if that is in vain, by the next session.
    What is missing until then is not made up, and nothing after it is taken."""
    stood = head(device)
    device.request(Break(name="never-resends"))
    if deaf:
        device.request(Break(name="nak-ignored"))
    device.request(LineNoise(drop=1.0))
    device.request(Draw(count=1, force=True))
    await asyncio.sleep(0.3)
    device.request(LineNoise())
    lost_at = now_us()
    await asyncio.sleep(1.5)
    assert (head(device), watched.store.cursor().seq) == (stood + 1, stood)
    await until(lambda: watched.store.cursor().seq == stood + 1, 6)
    if deaf:
        assert now_us() - lost_at > BEHIND_END - 500_000
        stuck, ended = watched.of(events.StuckBehind), watched.of(events.SessionEnded)
        assert [(one.next, one.head) for one in stuck] == [(stood + 1, stood + 1)]
        assert [one.why for one in ended] == [SessionEnding.BEHIND]
        whys = [one.why for one in watched.of(events.StateChanged) if one.state is S.LOST]
        assert whys == [f"its ring goes up to {stood + 1}, and record {stood + 1} does not come"]
    else:
        assert now_us() - lost_at < BEHIND_ASK + 500_000
        assert watched.of(events.StuckBehind) == []
        assert S.LOST not in watched.states
    await watched.until(S.READY)
    await asyncio.sleep(3 * BEHIND_END / 1_000_000)
    assert len(watched.of(events.StuckBehind)) == deaf
    same(watched, device, watched.events())


@pytest.mark.parametrize("verdict", [Verdict.NEW_EPOCH, Verdict.FORK], ids=lambda one: one.name)
@when_dealing
async def test_a_ring_that_changes_under_a_device_that_is_ready_is_held(
    device: Plugged, watched: Watched, verdict: Verdict
) -> None:
    """It sends nothing and says nothing of it: its heartbeats do."""
    await asyncio.sleep(2)
    assert watched.of(events.SessionEnded) == []
    ring = device.stand.firmware.ring
    if verdict is Verdict.NEW_EPOCH:
        ring.epoch += 1
    else:
        ring.head -= 1
        ring.acked = ring.position(ring.head)
    await watched.until(S.RESUMING)
    await until(lambda: watched.supervisor.held is not None)
    assert watched.whys(events.SessionEnded) == [SessionEnding.OTHER_RING]
    assert watched.of(events.Held)[-1].verdict is verdict
    whys = [one.why for one in watched.of(events.StateChanged) if one.state is S.LOST]
    assert whys == ["the session is over: other ring"]
    await asyncio.sleep(10)
    assert (watched.state, len(watched.of(events.SessionEnded))) == (S.RESUMING, 1)


@when_dealing
async def test_while_nothing_is_to_come_nothing_is_missed(
    device: Plugged, watched: Watched
) -> None:
    """A device whose records cannot be stored is asked to wait: that is not a gap."""
    await store_fails(device, watched)
    device.request(Draw(count=200, force=True))
    await asyncio.sleep(4 * BEHIND_END / 1_000_000)
    assert head(device) > len(watched.store.records) + WINDOW
    assert watched.states[-1] is S.UNKEPT
    assert (watched.of(events.StuckBehind), watched.of(events.SessionEnded)) == ([], [])


@pytest.mark.parametrize("how", ["ready", "held", "unkept", "looking"])
@supervised
async def test_a_clock_that_jumps_harms_nothing(
    device: Plugged, watched: Watched, how: str
) -> None:
    """The host stood still for an hour: all that has a time is over at once."""
    if how == "held":
        await until(lambda: watched.supervisor.held is not None)
    else:
        await dealing(device, watched)
    if how == "unkept":
        await asyncio.sleep(1)
        await store_fails(device, watched)
    elif how == "looking":
        device.request(Plug(connected=False))
    loop: Any = asyncio.get_running_loop()
    loop.us += 3600_000_000
    await asyncio.sleep(3)
    if how == "unkept":
        assert watched.states[-1] is S.UNKEPT
        watched.supervisor.recovered()
    device.request(Plug(connected=True))
    await watched.ready()
    await asyncio.sleep(10)
    assert watched.state is S.READY
    same(watched, device, watched.events())


@when_dealing
async def test_a_chain_that_is_wrong_is_held(device: Plugged, watched: Watched) -> None:
    """Nothing here can make a device honest, but what it says has to go together."""
    device.request(Break(name="chain-wrong"))
    stood = watched.store.cursor()
    device.request(Draw(count=2))
    await watched.until(S.RESUMING)
    assert watched.store.cursor() == stood
    assert watched.supervisor.held is not None
