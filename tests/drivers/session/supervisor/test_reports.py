"""What is told: enough for a record, never a flood, and never a card."""

from __future__ import annotations

import asyncio
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import get_args

import msgspec
import structlog
from structlog.testing import capture_logs

from drivers import events as told
from drivers.devices import LinkState, ShoeDriver
from drivers.devices.shoe import ShoeCardRead
from drivers.session import WantedDevice
from drivers.session.reports import (
    MAX_KEYS,
    OTHERS,
    REPORT_INTERVAL_US,
    REPORTERS,
    SAME_FIELDS,
    ReportLimiter,
)
from firmware_protocol.device import (
    CardName,
    CutPower,
    Draw,
    Freeze,
    LineNoise,
    Load,
    MoveCover,
    Plug,
    ServiceSwitch,
)
from firmware_protocol.host import (
    LinkEvent,
    RecordReceived,
)
from firmware_protocol.messages import Alert, AlertCode, DeviceClass, DeviceState, FrameKind
from firmware_protocol.tablelink import Frame
from tests.long.fuzz.scripted import Wired
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import (
    Desk,
    Plugged,
    Watched,
    now_us,
    running,
    simulate,
    table,
    until,
    when_ready,
)
from tests.support.table.simulated.serving import run, serving

S = LinkState


def test_all_events_of_a_link_are_reported_but_records() -> None:
    assert {*REPORTERS, *SAME_FIELDS} == set(get_args(LinkEvent)) - {RecordReceived}


@when_ready
async def test_a_happening_is_read_back_as_it_was(device: Plugged, watched: Watched) -> None:
    device.request(Load(decks=2))
    device.request(LineNoise(flip=0.1, splice=0.1))
    await asyncio.sleep(10)
    device.request(LineNoise())
    for hand in (CutPower(), Freeze(on=True), Freeze(on=False), Plug(connected=False)):
        device.request(hand)
        await asyncio.sleep(3)
    kinds = {type(one) for one in watched.happenings}
    assert len(kinds) > 12
    for one in watched.happenings:
        line = msgspec.json.encode(one)
        assert msgspec.json.decode(line, type=told.AnyHappening) == one
        assert b'"serial":"SH-0001"' in line


@simulated
async def test_states_are_reported_in_order(tmp_path: Path) -> None:
    async with table(tmp_path) as (_, device, watched):
        async with running(watched):
            await watched.ready()
            device.request(CutPower(off_ms=2000))
            await asyncio.sleep(8)
        changes = watched.of(told.StateChanged)
        assert (changes[0].former, changes[-1].state) == (S.ABSENT, S.ABSENT)
        for before, after in pairwise(changes):
            assert before.state is after.former
            assert before.at <= after.at
        assert all(one.why for one in changes)


@when_ready
async def test_the_devices_own_flags_and_counts_are_reported_when_they_change(
    device: Plugged, watched: Watched
) -> None:
    await asyncio.sleep(3)
    watched.happenings.clear()
    device.request(ServiceSwitch(on=True))
    device.request(MoveCover(open=True))
    device.to_device(b"\x01\x02noise\0\x05\0")
    await asyncio.sleep(3)
    (stands,) = watched.of(told.DeviceStands)
    assert stands.state & DeviceState.SERVICE
    assert stands.state & DeviceState.OPEN
    assert [(one.damaged, one.refused) for one in watched.of(told.DeviceCounts)] == [(2, 0)]


@when_ready
async def test_a_flood_of_noise_is_no_flood_of_reports(device: Plugged, watched: Watched) -> None:
    """Whoever holds the cable can make bytes; what is told of them is bounded."""
    await asyncio.sleep(1)
    began, stood = now_us(), len(watched.happenings)
    alert = Frame(FrameKind.ALERT, 0, 0, Alert(AlertCode.DEFECT, 12).encode())
    session = watched.of(told.SessionBegan)[-1].session
    forged = Frame(FrameKind.DATA, session, 5000, bytes(72))
    strange = Frame(FrameKind.DATA, session ^ 1, 0, bytes(72))
    heard = 0
    for at in range(2000):
        listener = device.listener
        assert listener is not None
        listener.received((alert, forged, strange)[at % 3].encode() + b"\x05x\0")
        heard += 1
        await asyncio.sleep(0.002)
    seconds = (now_us() - began) / 1_000_000
    assert watched.state is S.READY
    await asyncio.sleep(1)
    fresh = watched.happenings[stood:]
    assert len(fresh) <= 3 * (seconds + 2) + 2
    damaged = sum(count for one in watched.of(told.Damage) for _, count in one.counts)
    assert damaged == heard
    suspected: dict[str, int] = {}
    for one in watched.of(told.Suspicion):
        for name, count in one.counts:
            suspected[name] = suspected.get(name, 0) + count
    assert suspected == {"not-authentic": 667, "wrong-session": 666}
    alerts = sum(count for one in watched.of(told.Alert) for _, count in one.counts)
    assert alerts == 667


# --- never a card ---------------------------------------------------------------------------------


DECK: tuple[CardName, ...] = tuple(rank + suit for suit in "cdhs" for rank in "A23456789TJQK")


def test_two_orders_of_cards_look_the_same(tmp_path: Path) -> None:
    """All that is logged, told, queued or named, for two orders of cards, bit for bit."""

    async def shown(folder: Path, cards: tuple[CardName, ...]) -> tuple[list[str], list[int]]:
        out: list[str] = []
        desk = Desk()
        rng = random.Random(5)
        device = desk.plug(Plugged(folder, rng=rng.randbytes))
        watched = Watched(desk, device.wanted)
        with capture_logs() as logs:
            async with running(watched):
                shoe: ShoeDriver = watched.driver
                await watched.ready()
                device.request(Load(cards=cards, decks=0))
                await shoe.open_gate()
                device.request(Draw(count=20))
                device.request(Draw(count=3, read="low"))
                device.request(Draw(count=2, double=True))
                for _ in range(40):
                    await asyncio.sleep(0.1)
                    out += sorted(blurred(repr(one)) for one in asyncio.all_tasks())
                    out.append(repr(watched.supervisor.__dict__))
                device.request(CutPower(off_ms=100))
                await asyncio.sleep(3)
                again = await shoe.reread(watched.store.cursor().epoch, 5)
                out.append(repr(again))
        device.switch_off()
        events = watched.events()
        out += [repr(one) for one in (*logs, *watched.happenings, *events)]
        return out, [one.card.open() for one in events if isinstance(one, ShoeCardRead)]

    def blurred(text: str) -> str:
        return re.sub(r"session=\d+|0x[0-9a-f]+|Task-\d+|name='[^']*'", "", text)

    def run(name: str, cards: tuple[CardName, ...]) -> tuple[list[str], list[int]]:
        lines, drawn = simulate(shown(tmp_path / name, cards))
        return [blurred(line) for line in lines], drawn

    structlog.reset_defaults()
    one, first = run("one", DECK)
    other, second = run("two", tuple(reversed(DECK)))
    assert first != second
    assert len(first) == len(second) > 20
    assert one == other


# --- counting -------------------------------------------------------------------------------------


def test_the_first_is_reported_at_once_and_the_rest_once_a_second() -> None:
    tally = ReportLimiter()
    assert tally.due() is None
    assert tally.due_counts(5_000_000) == ()
    tally.add("crc")
    assert tally.due() == 0
    assert tally.due_counts(5_000_000) == (("crc", 1),)
    assert tally.due() is None
    for _ in range(7):
        tally.add("crc")
        tally.add("cobs")
        assert tally.due() == 5_000_000 + REPORT_INTERVAL_US
        assert tally.due_counts(5_000_000 + REPORT_INTERVAL_US - 1) == ()
    assert tally.due_counts(5_000_000 + REPORT_INTERVAL_US) == (("cobs", 7), ("crc", 7))
    tally.add("crc")
    assert tally.all_counts(5_000_000 + REPORT_INTERVAL_US + 1) == (("crc", 1),)
    assert tally.all_counts(9_000_000) == ()


def test_what_is_counted_apart_is_bounded() -> None:
    tally = ReportLimiter()
    for number in range(10_000):
        tally.add(f"name {number}")
    counts = dict(tally.due_counts(1))
    assert (len(counts), counts[OTHERS]) == (MAX_KEYS + 1, 10_000 - MAX_KEYS)


@simulated
async def test_repeats_and_gaps_are_counted_over_links() -> None:
    supervisor = Watched(Desk(), WantedDevice(DeviceClass.SHOE, "SH-1", bytes(32))).supervisor

    def counts() -> tuple[int, int]:
        return (supervisor.repeats, supervisor.gaps)

    assert counts() == (0, 0)
    first, second = Wired.running(3), Wired.running(3)
    supervisor.link = first.link
    first.send(2)
    assert counts() == (0, 1)
    first.send(1, 2)
    first.stored(2)
    assert counts() == (0, 1)
    first.send(1, 2)
    assert counts() == (2, 1)
    supervisor.failure = OSError("the disk is full")
    supervisor.recovered()  # replaces the link
    await asyncio.sleep(1)  # its timer
    assert counts() == (2, 1)
    supervisor.link = second.link
    second.send(2)
    assert counts() == (2, 2)


def test_something_is_done_for_a_device_all_the_time(tmp_path: Path) -> None:
    """While it is ready, while it is away, and while it is searched for."""

    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            for connected, state in ((True, LinkState.READY), (False, LinkState.ABSENT)):
                one.room.shoe.request(Plug(connected=connected))
                await until(lambda state=state: shoe.state is state)  # type: ignore[misc]
                for _ in range(5):
                    at = shoe.last_active_us
                    await until(lambda at=at: shoe.last_active_us > at, 10)  # type: ignore[misc]

    run(main())


def test_a_noisy_cable_shows_in_the_counts(tmp_path: Path) -> None:
    async def main() -> None:
        async with serving(tmp_path) as one:
            shoe = one.table.supervisor("SH-1")
            one.room.shoe.request(LineNoise(drop=0.3, seed=3))
            one.room.shoe.request(Load(decks=one.room.game.decks, seed=3))
            one.room.shoe.request(Draw(force=True))
            await until(lambda: shoe.repeats + shoe.gaps > 0, 600)
            one.room.shoe.request(LineNoise())

    run(main())
