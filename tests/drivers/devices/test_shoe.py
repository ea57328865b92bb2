"""The shoe's driver on a simulated shoe: cards come sealed, once each, and can be read again."""

from __future__ import annotations

import asyncio
import copy
import io
import json
import logging
import pickle
import pprint
import re
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
import structlog
from rich.console import Console
from rich.pretty import pretty_repr

from drivers.devices import (
    CommandRefusedError,
    LinkState,
    NotReady,
    RereadProblem,
    Sealed,
    SealedCard,
    ShoeDriver,
    Tampered,
)
from drivers.devices.events import Origin, SealBroken, Started
from drivers.devices.shoe import (
    EVENTS,
    CardRetracted,
    CoverMoved,
    CutCardCame,
    ReadFailed,
    ShoeCardRead,
    ShoeJammed,
    ShoeLoaded,
    reread_record,
)
from drivers.session.acknowledge import StoredRecord
from firmware_protocol.device import Draw, Load, MoveCover, Retract, SetJam, TamperWith
from firmware_protocol.host.events import RecordReceived, ReplyReceived
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    DeckKind,
    DeviceClass,
    DeviceState,
    JamCode,
    LockReply,
    LockState,
    ReadWhy,
    Refusal,
    Reread,
    RereadReply,
    TamperSource,
)
from firmware_protocol.tablelink import EventRecord, chained
from tests.support.asynchronous import simulated
from tests.support.drivers.fake_line import line_to
from tests.support.drivers.simulated import Plugged, Watched, running, supervised, table, until


@supervised
async def test_cards_come_sealed_and_in_order(
    device: Plugged, watched: Watched, shoe: ShoeDriver
) -> None:
    device.request(Load(cards=("As", "Kd", "2c", "cut", "Th"), decks=0))
    assert await shoe.open_gate() is LockState.OPEN
    device.request(Draw(count=5))
    await asyncio.sleep(2)
    read = [one for one in watched.events() if isinstance(one, ShoeCardRead)]
    assert [
        (one.card.open(), one.body.open().card, one.shoe, one.pos, one.origin.seq) for one in read
    ] == [(39, 39, 1, 1, 5), (25, 25, 1, 2, 6), (1, 1, 1, 3, 7), (35, 35, 1, 5, 9)]
    assert len({repr(one.card) + repr(one.body) for one in read}) == 1


@supervised
async def test_everything_else_that_a_shoe_tells(
    device: Plugged, watched: Watched, shoe: ShoeDriver
) -> None:
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
    loaded, cut, failed, back, jam, magnet = (events[at] for at in (3, 5, 6, 7, 8, 11))
    assert loaded == ShoeLoaded(loaded.origin, 1, 0, 3, 0, DeckKind.FULL_52)
    assert cut == CutCardCame(cut.origin, 2)
    assert failed == ReadFailed(failed.origin, 3, ReadWhy.TOO_FAST)
    assert back == CardRetracted(back.origin, 3)
    assert jam == ShoeJammed(jam.origin, JamCode.STUCK)
    assert magnet == Tampered(magnet.origin, TamperSource.MAGNET, active=True)


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
            assert [await shoe.lock(), await shoe.lock()] == [LockState.LOCKED] * 2
            assert device.stand.firmware.mechanism.state() & DeviceState.LOCKED
            assert ((await shoe.info()).boot, (await shoe.selftest()).code) == (1, 0)


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
    line, shoe = line_to(DeviceClass.SHOE)
    line.answers = [RereadReply(bytes(56)), RereadReply(b"\x01" * 56)]
    for _ in range(2):
        with pytest.raises(RereadProblem, match="record 7 came back as"):
            await shoe.reread(5, 7)
    line.answers = [LockReply(LockState.OPEN)]
    with pytest.raises(TypeError, match="REREAD was answered with LockReply"):
        await shoe.reread(5, 7)


CARD = 37
BODY = CardRead(7, 211, CARD, 91, 38, CardFlags.DUPLICATE, 433, 66, b"saltysecret")
RECORD = chained(bytes(8), epoch=5, seq=9, boot=1, t_us=1234567, event=BODY)
ORIGIN = Origin("SH-0001", 5, 9, 1, 1234567, 7654321)
EVENT = EVENTS[CardRead](ORIGIN, BODY)

TELLTALE = ("37", "91", "38", "433", "66", "salty", "DUPLICATE", "K", "spade")
"""What any of the sealed fields would look like. None of it stands in the rest of the event."""

WAYS: dict[str, Callable[[Any], str]] = {
    "repr": repr,
    "str": str,
    "format": lambda one: f"{one} {one!r} {one!s:>30} {one!a}",
    "percent": lambda one: "%s %r" % (one, one),  # noqa: UP031 - it is a way to show
    "pprint": pprint.pformat,
    "rich": pretty_repr,
    "container": lambda one: repr({"a": [one, (one,)], "b": {1: one}}),
}
HOLDERS: dict[str, Any] = {
    "card": SealedCard(CARD),
    "body": Sealed(BODY),
    "event": EVENT,
    "message": BODY,
    "record": RECORD,
    "arrived": RecordReceived(RECORD),
    "stored": StoredRecord(9, EVENT),
    "sealed record": Sealed(RECORD),
    "reread": RereadReply(RECORD.encode()),
    "replied": ReplyReceived(1, Reread(5, 9), RereadReply(RECORD.encode())),
}


def shows(text: str) -> list[str]:
    # The chain is a hash over the salt: it tells nothing, and its bytes may be any.
    text = re.sub("0x[0-9a-f]+|\\.py:[0-9]+", "", text.replace(repr(RECORD.chain), ""))
    return [sign for sign in TELLTALE if sign in text]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_way_to_show_it_shows_the_card(holder: str, way: str) -> None:
    text = WAYS[way](HOLDERS[holder])
    assert text
    assert not shows(text), text


def test_opening_is_the_only_way() -> None:
    assert SealedCard(CARD).open() == CARD
    assert isinstance(EVENT, ShoeCardRead)
    assert (EVENT.card.open(), EVENT.body.open(), EVENT.shoe, EVENT.pos) == (CARD, BODY, 7, 211)


def test_all_cards_look_the_same() -> None:
    cards = [SealedCard(card) for card in range(52)]
    looks = {(repr(one), str(one), f"{one:5d}", one.__sizeof__(), bool(one)) for one in cards}
    assert [look[-1] for look in looks] == [True]


def test_equal_cards_are_not_equal() -> None:
    one, other = SealedCard(CARD), SealedCard(CARD)
    assert one == copy.copy(one)
    assert one != other
    assert one != CARD  # type: ignore[comparison-overlap]
    assert len({one, other, copy.copy(one), copy.deepcopy(one)}) == 2
    ways: list[Callable[[Any], object]] = [int, float, complex, range, hex, chr, abs]
    for way in ways:
        with pytest.raises(TypeError):
            way(one)
    for compare in ("__lt__", "__le__", "__gt__", "__ge__"):
        assert getattr(one, compare)(other) is NotImplemented


@pytest.mark.parametrize(
    "one", [SealedCard(CARD), Sealed(BODY), EVENT], ids=["card", "body", "event"]
)
def test_it_cannot_be_carried_away(one: object) -> None:
    encoders: list[Callable[[object], object]] = [
        *(partial(pickle.dumps, protocol=number) for number in range(pickle.HIGHEST_PROTOCOL + 1)),
        msgspec.json.encode,
        msgspec.msgpack.encode,
        msgspec.to_builtins,
        json.dumps,
    ]
    for encode in encoders:
        with pytest.raises(TypeError) as problem:
            encode(one)
        assert not shows(str(problem.value))


def test_it_has_nothing_to_look_into() -> None:
    card = SealedCard(CARD)
    with pytest.raises(TypeError):
        vars(card)
    assert not shows(repr([getattr(card, name) for name in dir(card) if name != "open"]))
    own = [name for name in dir(card) if not name.startswith("__")]
    assert "open" in own
    for name in (*own, "other"):
        with pytest.raises(SealBroken):
            setattr(card, name, lambda: 1)
        with pytest.raises(SealBroken):
            delattr(card, name)
    assert card.open() == CARD
    with pytest.raises(AttributeError):
        card.__dict__  # noqa: B018


def test_logs_do_not_hold_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for holder in HOLDERS.values():
        logging.getLogger("test").warning("read %s %r", holder, holder, extra={"card": holder})
    assert not shows(caplog.text)
    for render in (
        structlog.processors.JSONRenderer(),
        structlog.processors.KeyValueRenderer(),
        structlog.dev.ConsoleRenderer(colors=False),
    ):
        for holder in HOLDERS.values():
            line = render(None, "info", {"event": "read", "card": holder, "all": [holder]})
            assert not shows(str(line)), line


def test_tracebacks_do_not_hold_it() -> None:
    def deal(card: SealedCard, event: Any, record: EventRecord) -> None:
        raise ValueError(f"{card} {event} {record}", card, event, record)

    try:
        deal(SealedCard(CARD), EVENT, RECORD)
    except ValueError as problem:
        told = traceback.TracebackException.from_exception(problem, capture_locals=True)
        text = "".join(told.format())
        assert "SealedCard(...)" in text
        # Line numbers of this file are no cards.
        assert not shows("".join(line for line in text.splitlines() if "line " not in line))
        console = Console(file=io.StringIO(), width=200)
        console.print(problem, EVENT, RECORD)
        assert isinstance(console.file, io.StringIO)
        assert not shows(console.file.getvalue())


def test_queues_and_tasks_do_not_hold_it() -> None:
    async def waiting(event: object) -> None:
        await asyncio.sleep(3600)

    async def main() -> str:
        queue: asyncio.Queue[Any] = asyncio.Queue()
        for holder in HOLDERS.values():
            queue.put_nowait(holder)
        task = asyncio.create_task(waiting(EVENT))
        future = asyncio.get_running_loop().create_future()
        future.set_result(RECORD)
        await asyncio.sleep(0)
        text = "".join(map(repr, (queue, *HOLDERS.values(), task, future)))
        task.cancel()
        return text.replace(repr(id(task)), "").replace(hex(id(queue)), "")

    text = asyncio.run(main())
    assert [sign for sign in ("salty", "card=37", "DUPLICATE") if sign in text] == []


def test_a_bad_reread_says_nothing_of_what_came() -> None:
    whole = bytearray(RECORD.encode())
    assert reread_record(RereadReply(bytes(whole)), 5, 9).open() == RECORD
    with pytest.raises(RereadProblem) as problem:
        reread_record(RereadReply(bytes(whole)), 5, 8)
    assert not shows(str(problem.value).replace("8 of 5", ""))
    whole[30] = 60  # the card's byte: no card of 52
    with pytest.raises(RereadProblem) as problem:
        reread_record(RereadReply(bytes(whole)), 5, 9)
    assert "60" not in str(problem.value)
    assert (problem.value.__cause__, problem.value.__suppress_context__) == (None, True)
