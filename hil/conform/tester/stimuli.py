"""Requests that make records, for every class: drawing cards, moving a door, pressing a button."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device.control import (
    ControlRequest,
    Describe,
    Draw,
    InjectDefect,
    LetGo,
    Load,
    MoveCover,
    MoveDoor,
    Press,
)
from firmware_protocol.device.interfaces import Answer
from firmware_protocol.messages import (
    DEBOUNCE_MS,
    MAX_SEAT,
    Arm,
    ArmReply,
    ButtonMask,
    Capabilities,
    Loaded,
    Lock,
    LockReply,
    LockState,
)
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.session import TesterSession

_T = TypeVar("_T")
EVERY_BUTTON: Final = ButtonMask(sum(ButtonMask))
TOKEN: Final = 0x5A17
_DECKS: Final = 6
_LOAD_MS: Final = 10_000
_HELD_MS: Final = 60
_DWELL_MS: Final = 40
_TTL_MS: Final = 60_000


async def ready(bench: ConformBench, session: TesterSession) -> None:
    """Prepare the device so that requests make records: loaded and unlocked, or armed."""
    await ACTIONS[bench.profile].ready(bench, session)


async def ready_session(bench: ConformBench) -> TesterSession:
    """A session with a device that is ready, and whose records so far have arrived."""
    session = await bench.session()
    await ready(bench, session)
    await bench.pause(200)
    return session


async def make(bench: ConformBench, count: int) -> int:
    """Make at least `count` records in a session that is ready. Returns the number."""
    return await ACTIONS[bench.profile].make(bench, count)


def some(bench: ConformBench, count: int) -> int:
    """`count`, or fewer if a person makes them."""
    return count if bench.operator.exact else min(count, 4)


def settle_ms(count: int) -> int:
    """Timeout for making and sending so many records."""
    return 2000 + 400 * count


# --- shoe -----------------------------------------------------------------------------------


async def load(bench: ConformBench, session: TesterSession, request: Load) -> Loaded:
    """Load cards. Returns the event."""
    mark = len(session.kept)
    await bench.request(request)
    expected = "LOADED after the cover closed"
    loaded = await session.until_event(Loaded, _LOAD_MS, expected, mark)
    bench.stock = len(request.cards) or request.decks * 52
    return loaded


async def unlock(bench: ConformBench, session: TesterSession) -> None:
    if bench.has(Capabilities.LOCK):
        reply = await session.demand(Lock(LockState.OPEN), LockReply)
        bench.require(reply.state is LockState.OPEN, "LOCK_REPLY OPEN")


async def _shoe_ready(bench: ConformBench, session: TesterSession) -> None:
    if bench.stock < 100:
        await load(bench, session, Load(decks=_DECKS))
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


async def _probe_shoe(bench: ConformBench, session: TesterSession) -> None:
    await load(bench, session, Load(decks=_DECKS))


async def _probe_shuffler(bench: ConformBench, session: TesterSession) -> None:
    await make(bench, 2)


class ClassActions(Struct, frozen=True):
    """What the tester does with a class of devices."""

    ready: Callable[[ConformBench, TesterSession], Awaitable[None]]
    make: Callable[[ConformBench, int], Awaitable[int]]
    probe: Callable[[ConformBench, TesterSession], Awaitable[None]]
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
        _probe_shoe,
        InjectDefect(code="reader"),
        moves=(MoveCover(open=True), MoveCover(open=False)),
        restore=(MoveCover(open=False),),
    ),
    "shuffler": ClassActions(
        _nothing,
        _doors,
        _probe_shuffler,
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


def field(answer: Answer, path: str, kind: type[_T]) -> _T:
    """A field of the answer to `describe`. Raises ItemSkipped if it has no such field."""
    found: Any = answer
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, kind):
        raise ItemSkipped(f"a device whose 'describe' has {path}")
    return found


async def described(bench: ConformBench, path: str, kind: type[_T]) -> _T:
    return field(await bench.request(Describe()), path, kind)
