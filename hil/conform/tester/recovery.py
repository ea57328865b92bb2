"""A device brought to rest: what an item that did not come to its end has left there is undone.

A run that was broken off leaves cards that are still being drawn, a shuffle that runs, a button
that is held, a full ring, a power cut that waits for its moment. None of it says anything about the
device. Whatever cannot be undone in time is left: the hands that it stops then say so by name.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from msgspec.structs import replace

from firmware_protocol.conformance import Profile
from firmware_protocol.device.control import (
    ControlRequest,
    CoverHand,
    CutPower,
    DoorHand,
    LetGo,
    Load,
    ServiceSwitch,
)
from firmware_protocol.messages.codec import Reply
from firmware_protocol.messages.enums import DeviceState, Refusal, ResumeMode
from firmware_protocol.messages.limits import MAX_SEAT
from firmware_protocol.messages.registry import Abort, AbortReply, Refused, ResumeReply, Selftest
from firmware_protocol.tablelink.plaintext import NO_CHAIN
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemFinding, ItemSkipped, RequestDenied
from hil.conform.tester.heard import ReceivedRecord, RingCursor
from hil.conform.tester.session import TesterSession
from hil.conform.tester.stimuli import AILING, load, make, ready, settle_ms

DRAIN_MS: Final = 20_000
"""How long a device may take to come to rest: a hand that draws 70 cards needs 8 s."""
_LOOK_MS: Final = 250
_DECKS: Final = 6


async def undo(bench: ConformBench) -> None:
    """Have hands take back what hands did. It needs no session: pairing may come after it."""
    if not bench.operator.exact:
        return
    await bench.try_hand(ServiceSwitch(on=False))
    await bench.try_hand(replace(AILING[bench.profile], on=False))
    # Nothing else ends a cut that waits for its moment. Where it is refused, power is off already.
    try:
        await bench.hand(CutPower())
        await bench.back()
    except RequestDenied:
        await bench.back()
    except ItemSkipped:
        pass
    for hand in _LEFT[bench.profile]:
        await bench.try_hand(hand)


async def drain(bench: ConformBench) -> None:
    """Acknowledge what waits, and wait until the device is ready for what items do to it."""
    deadline = bench.wire.now() + DRAIN_MS * 1000
    try:
        session = await bench.session()
        await _until_idle(bench, session, deadline)
        if bench.operator.exact:
            await _until_free(bench, session, deadline)
    except (ItemFinding, ItemSkipped):
        return  # an item finds it too, and says it under its own name


async def to_rest(bench: ConformBench) -> None:
    """All of it, between two items."""
    await bench.fresh()
    try:
        await undo(bench)
        if not bench.unpaired:
            await drain(bench)
    except ItemFinding:
        return  # it does not come back after a power cut: every further item will say so
    finally:
        bench.handled = False


async def _until_idle(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """No shuffle runs, the ring has room, and no self-test is under way."""
    busy = DeviceState.RUNNING | DeviceState.FULL
    while (state := (await session.lives()).state) & busy and bench.wire.now() < deadline:
        if DeviceState.RUNNING in state:
            await session.demand(Abort(), AbortReply)
        await bench.pause(_LOOK_MS)
    while _is_busy(await session.ask(Selftest())) and bench.wire.now() < deadline:
        await bench.pause(_LOOK_MS)


def _is_busy(reply: Reply) -> bool:
    return isinstance(reply, Refused) and reply.why is Refusal.BUSY


async def _until_free(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """A hand is let at the device."""
    while True:
        try:
            await _PROBE[bench.profile](bench, session)
        except RequestDenied:
            if bench.wire.now() >= deadline:
                return
            await bench.pause(_LOOK_MS)
        else:
            return


async def _load(bench: ConformBench, session: TesterSession) -> None:
    await load(bench, session, Load(decks=_DECKS))


async def _door(bench: ConformBench, session: TesterSession) -> None:
    await make(bench, 2)


async def _nothing(bench: ConformBench, session: TesterSession) -> None:
    pass


_LEFT: Final[dict[Profile, tuple[ControlRequest, ...]]] = {
    "shoe": (CoverHand(open=False),),
    "shuffler": (DoorHand(open=False),),
    "station": tuple(LetGo(seat=seat, button="hit") for seat in range(1, MAX_SEAT + 1)),
}
_PROBE: Final[dict[Profile, Callable[[ConformBench, TesterSession], Awaitable[None]]]] = {
    "shoe": _load,
    "shuffler": _door,
    "station": _nothing,
}


async def on_their_way(
    bench: ConformBench, session: TesterSession, count: int
) -> list[ReceivedRecord]:
    """At least so many records that the device has sent and that nobody has acknowledged; the
    session holds. A hand makes them; where that is a person's, or where there is none, a RESUME
    from further back brings old ones, if the ring still has them (two people would have to agree,
    were it a real host)."""
    if bench.operator.exact:
        return await _made(bench, session, count)
    ring = await session.learn()
    if ring.head - ring.oldest >= count:
        return await _rewound(bench, session, ring, count)
    if "activity" not in bench.operator.can:
        raise ItemSkipped("activity, for the ring keeps no old records: --control or --ask")
    await session.resume(RingCursor(ring.epoch, ring.head, ring.chain))
    return await _made(bench, session, count)


async def _made(bench: ConformBench, session: TesterSession, count: int) -> list[ReceivedRecord]:
    await ready(bench, session)
    await bench.pause(200)
    session.holding = True
    mark = len(session.records)
    made = await make(bench, count)
    return await arrived(bench, session, mark, made)


async def _rewound(
    bench: ConformBench, session: TesterSession, ring: ResumeReply, count: int
) -> list[ReceivedRecord]:
    session.holding = True
    mark = len(session.records)
    before = RingCursor(ring.epoch, ring.head - count - 1, NO_CHAIN)
    await session.resume(before, ResumeMode.ADOPT)
    # One more than wanted: its chain is what a later RESUME starts from.
    found = await arrived(bench, session, mark, count + 1)
    session.accept(found[0].record)
    session.ack()
    return found[1:]


async def arrived(
    bench: ConformBench, session: TesterSession, mark: int, count: int
) -> list[ReceivedRecord]:
    """So many different records that came since, each as it came first, in order."""

    def first() -> list[ReceivedRecord] | None:
        found: dict[int, ReceivedRecord] = {}
        for one in session.records[mark:]:
            found.setdefault(one.record.seq, one)
        return list(found.values()) if len(found) >= count else None

    got = await bench.until(first, settle_ms(count))
    if got is None:
        raise bench.finding(f"{count} records")
    return got
