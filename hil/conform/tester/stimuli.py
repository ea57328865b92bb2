"""Requests that make records, for every class of devices, and what restores a device.

An interrupted run leaves queued cards, a running shuffle, a pressed button, a full ring, or an
armed power cut. None of them is a fault of the device. What cannot be undone before the timeout is
left: the requests that it prevents report it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    InjectDefect,
    LetGo,
    Load,
    MoveCover,
    MoveDoor,
    Press,
    ServiceSwitch,
)
from firmware_protocol.messages import (
    DEBOUNCE_MS,
    MAX_SEAT,
    Abort,
    AbortReply,
    Arm,
    ArmReply,
    ButtonMask,
    Capabilities,
    DeviceState,
    Loaded,
    Lock,
    LockReply,
    LockState,
    Refusal,
    Refused,
    ResumeMode,
    ResumeReply,
    Selftest,
)
from firmware_protocol.tablelink import NO_CHAIN
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemFinding, ItemSkipped, RequestDenied
from hil.conform.tester.session import ReceivedRecord, RingCursor, TesterSession

_T = TypeVar("_T")
EVERY_BUTTON: Final = ButtonMask(sum(ButtonMask))
TOKEN: Final = 0x5A17
_DECKS: Final = 6
_IN_DECK: Final = {"full_52": 52, "spanish_48": 48}
_LOAD_MS: Final = 10_000
_HELD_MS: Final = 60
_DWELL_MS: Final = 40
_TTL_MS: Final = 60_000
DRAIN_MS: Final = 20_000
"""Timeout until the device is idle; drawing 70 cards takes 8 s."""
_LOOK_MS: Final = 250


async def make_ready(bench: ConformBench, session: TesterSession) -> None:
    """Prepare the device so that requests make records: loaded and unlocked, or armed."""
    await ACTIONS[bench.profile].ready(bench, session)


async def ready_session(bench: ConformBench) -> TesterSession:
    """A session with a device that is ready, and whose records so far have arrived."""
    session = await bench.session()
    await make_ready(bench, session)
    await bench.pause(200)
    return session


async def make_records(bench: ConformBench, count: int) -> int:
    """Make at least `count` records in a session that is ready. Returns the number."""
    return await ACTIONS[bench.profile].make(bench, count)


def count_for_operator(bench: ConformBench, count: int) -> int:
    """`count`, or fewer if a person makes them."""
    return count if bench.operator.exact else min(count, 4)


def settle_ms(count: int) -> int:
    """Timeout for making and sending so many records."""
    return 2000 + 400 * count


# --- shoe -----------------------------------------------------------------------------------


async def load_cards(bench: ConformBench, session: TesterSession, request: Load) -> Loaded:
    """Load cards. Returns the event."""
    mark = len(session.accepted)
    await bench.request(request)
    expected = "LOADED after the cover closed"
    loaded = await session.until_event(Loaded, _LOAD_MS, expected, mark)
    bench.stock = len(request.cards) or request.decks * _IN_DECK[request.kind]
    return loaded


async def unlock(bench: ConformBench, session: TesterSession) -> None:
    if bench.has(Capabilities.LOCK):
        reply = await session.demand(Lock(LockState.OPEN), LockReply)
        bench.require(reply.state is LockState.OPEN, "LOCK_REPLY OPEN")


async def _shoe_ready(bench: ConformBench, session: TesterSession) -> None:
    if bench.stock < 100:
        await load_cards(bench, session, Load(decks=_DECKS))
    await unlock(bench, session)


async def _draw(bench: ConformBench, count: int) -> int:
    bench.stock -= count
    await bench.request(Draw(count=count, dwell_ms=_DWELL_MS))
    return count


# --- shuffler -------------------------------------------------------------------------------


async def _nothing(bench: ConformBench, session: TesterSession) -> None:
    pass


async def _doors(bench: ConformBench, count: int) -> int:
    """Open and close the door; at the end it is closed."""
    for _ in range((count + 1) // 2):
        await bench.request(MoveDoor(open=True))
        await bench.request(MoveDoor(open=False))
    return (count + 1) // 2 * 2


# --- station --------------------------------------------------------------------------------


async def arm(
    bench: ConformBench,
    session: TesterSession,
    *,
    mask: ButtonMask = EVERY_BUTTON,
    token: int = TOKEN,
    ttl: int = _TTL_MS,
) -> None:
    seat = await find_seat(bench, session)
    await session.demand(Arm(seat, mask, token, ttl), ArmReply)


async def find_seat(bench: ConformBench, session: TesterSession) -> int:
    """Find a seat of the station by trial."""
    for seat in range(1, MAX_SEAT + 1):
        none_of_it = Arm(seat, ButtonMask(0), 0, 0)
        if not bench.seat and isinstance(await session.ask(none_of_it), ArmReply):
            bench.seat = seat
    bench.require(bench.seat, f"ARM_REPLY for one of the seats 1 to {MAX_SEAT}")
    return bench.seat


async def _presses(bench: ConformBench, count: int) -> int:
    """Each press makes two records; the last one follows the answer to the request."""
    for _ in range((count + 1) // 2):
        await bench.request(Press(seat=bench.seat, button="hit", held_ms=_HELD_MS))
        await bench.pause(_HELD_MS + 4 * DEBOUNCE_MS)
    return (count + 1) // 2 * 2


class ClassActions(Struct, frozen=True):
    """What the tester does with a class of devices."""

    ready: Callable[[ConformBench, TesterSession], Awaitable[None]]
    make: Callable[[ConformBench, int], Awaitable[int]]
    probe: Callable[[ConformBench, TesterSession], Awaitable[object]]
    """Raises RequestDenied while the device accepts no request."""
    defect: InjectDefect
    """A defect that SELFTEST finds."""
    moves: tuple[ControlRequest, ...] = ()
    """Open and close the cover or the door."""
    restore: tuple[ControlRequest, ...] = ()
    """Requests that undo what an interrupted run has left."""


ACTIONS: Final[dict[Profile, ClassActions]] = {
    "shoe": ClassActions(
        _shoe_ready,
        _draw,
        lambda bench, session: load_cards(bench, session, Load(decks=_DECKS)),
        InjectDefect(code="reader"),
        moves=(MoveCover(open=True), MoveCover(open=False)),
        restore=(MoveCover(open=False),),
    ),
    "shuffler": ClassActions(
        _nothing,
        _doors,
        lambda bench, _: make_records(bench, 2),
        InjectDefect(code="sensor"),
        moves=(MoveDoor(open=True), MoveDoor(open=False)),
        restore=(MoveDoor(open=False),),
    ),
    "station": ClassActions(
        arm,
        _presses,
        _nothing,
        InjectDefect(code="sensor"),
        restore=tuple(LetGo(seat=seat, button="hit") for seat in range(1, MAX_SEAT + 1)),
    ),
}


# --- fields of describe, which a maker's own simulator may not have ---------------------------


async def described(bench: ConformBench, path: str, kind: type[_T]) -> _T:
    """A field of the answer to `describe`. Raises ItemSkipped if it has no such field."""
    found: Any = await bench.request(Describe())
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, kind):
        raise ItemSkipped(f"a device whose 'describe' has {path}")
    return found


async def undo(bench: ConformBench) -> None:
    """Undo earlier requests. It needs no session, since the device may not be paired yet."""
    if not bench.operator.exact:
        return
    await bench.try_request(ServiceSwitch(on=False))
    await bench.try_request(replace(ACTIONS[bench.profile].defect, on=False))
    # Only a power cut cancels an armed one. It is denied if the power is off already.
    with suppress(ItemSkipped):
        with suppress(RequestDenied):
            await bench.request(CutPower())
        await bench.wait_for_restart()
    for request in ACTIONS[bench.profile].restore:
        await bench.try_request(request)


async def drain(bench: ConformBench) -> None:
    """Acknowledge all records, and wait until the device is ready for requests."""
    deadline = bench.wire.now() + DRAIN_MS * 1000
    with suppress(ItemFinding, ItemSkipped):  # the items report it
        session = await bench.session()
        await _until_idle(bench, session, deadline)
        if bench.operator.exact:
            await _until_free(bench, session, deadline)


async def recover(bench: ConformBench) -> None:
    """Undo and drain, between two items."""
    await bench.reset()
    try:
        await undo(bench)
        if not bench.unpaired:
            await drain(bench)
    except ItemFinding:
        return  # No answer after the power cut; the following items report it.
    finally:
        bench.requested = False


async def _until_idle(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """Wait until no shuffle and no self-test runs and the ring has space."""
    busy = DeviceState.RUNNING | DeviceState.FULL
    while (state := (await session.check_alive()).state) & busy and bench.wire.now() < deadline:
        if DeviceState.RUNNING in state:
            await session.demand(Abort(), AbortReply)
        await bench.pause(_LOOK_MS)
    reply = await session.ask(Selftest())
    while isinstance(reply, Refused) and reply.why is Refusal.BUSY and bench.wire.now() < deadline:
        await bench.pause(_LOOK_MS)
        reply = await session.ask(Selftest())


async def _until_free(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """Wait until the device accepts a request."""
    while True:
        try:
            await ACTIONS[bench.profile].probe(bench, session)
        except RequestDenied:
            if bench.wire.now() >= deadline:
                return
            await bench.pause(_LOOK_MS)
        else:
            return


async def unacknowledged(
    bench: ConformBench, session: TesterSession, count: int
) -> list[ReceivedRecord]:
    """At least `count` records that the device has sent and that are not acknowledged. An exact
    operator makes them. Otherwise a RESUME from an earlier position returns old ones, if the ring
    still has them; a real host needs dual control for that."""
    if bench.operator.exact:
        return await _made(bench, session, count)
    ring = await session.learn()
    if ring.head - ring.oldest >= count:
        return await _rewound(bench, session, ring, count)
    if "activity" not in bench.operator.can:
        raise ItemSkipped("activity, since the ring has no old records: --control or --ask")
    await session.resume(RingCursor(ring.epoch, ring.head, ring.chain))
    return await _made(bench, session, count)


async def _made(bench: ConformBench, session: TesterSession, count: int) -> list[ReceivedRecord]:
    await make_ready(bench, session)
    await bench.pause(200)
    session.holding = True
    mark = len(session.records)
    return await wait_for_records(bench, session, mark, await make_records(bench, count))


async def _rewound(
    bench: ConformBench, session: TesterSession, ring: ResumeReply, count: int
) -> list[ReceivedRecord]:
    session.holding = True
    mark = len(session.records)
    before = RingCursor(ring.epoch, ring.head - count - 1, NO_CHAIN)
    await session.resume(before, ResumeMode.ADOPT)
    # One more than needed: a later RESUME starts from its chain.
    found = await wait_for_records(bench, session, mark, count + 1)
    session.accept(found[0].record)
    session.ack()
    return found[1:]


async def wait_for_records(
    bench: ConformBench, session: TesterSession, mark: int, count: int
) -> list[ReceivedRecord]:
    """Wait for `count` different records after `mark`; returns the first arrival of each."""

    def first() -> list[ReceivedRecord] | None:
        found: dict[int, ReceivedRecord] = {}
        for one in session.records[mark:]:
            found.setdefault(one.record.seq, one)
        return list(found.values()) if len(found) >= count else None

    return await bench.wait_for(first, settle_ms(count), f"{count} records")
