"""The API's state for one table: screens, cached views, running requests, surveillance.

Also the reasons of the table and of devices for rejecting a request, as problems of the API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import msgspec
import structlog
from msgspec import Struct, field

from controller.api.contract.errors import Problem
from controller.api.contract.messages import Health, LinkShown
from controller.api.contract.view import (
    DeviceShown,
    TableIdentity,
    View,
    ViewInput,
    dealer_of,
    view_of,
)
from controller.api.service.screens import ScreenRegistry, ScreenSession
from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.records import Moment, RecordEntry
from controller.audit.replay import record_actor
from controller.config import TableConfig
from controller.people import PeopleDesk, SignInSession
from controller.procedure.prompts import MoneyFormat
from controller.table.loop import (
    BadAct,
    CaseChanged,
    InputRejected,
    NotDealing,
    QueueFull,
    TableParts,
    TableStopped,
)
from controller.table.memory import NotInVault
from controller.table.running import RunningTable
from drivers.devices import LinkState
from drivers.keys import TwoPeopleNeeded
from drivers.session import NothingHeld, StoreFailed

INTERVAL: Final = 60.0
"""Seconds for which one recorded look covers all others at the same screen."""
RECORD_TIMEOUT: Final = 10.0
"""Seconds for a look to be recorded."""
LOOKS: Final = "looks"


class SurveillanceLog:
    """Records that surveillance looks at the table, before anything is shown.

    Each stream is one look. Repeated requests of one screen are recorded once a minute."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds."""
        self._served = served
        self._clock = clock
        self._last: WeakKeyDictionary[ScreenSession, tuple[str, float]] = WeakKeyDictionary()
        """Badge and time of the last recorded look, by screen."""
        self._locks: WeakKeyDictionary[ScreenSession, asyncio.Lock] = WeakKeyDictionary()
        """One request of a screen records its look; concurrent ones wait for it."""

    async def record_look(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        """Record the look durably if surveillance is signed in at the screen and a record is due.

        Raises Problem if it cannot be recorded within RECORD_TIMEOUT: then nothing may be shown."""
        if self._due(screen) is None:
            return
        try:
            async with asyncio.timeout(RECORD_TIMEOUT):
                async with self._locks.setdefault(screen, asyncio.Lock()):
                    await self._record(screen, at)
        except TimeoutError:
            raise Problem(
                503,
                "not_recorded",
                f"nothing was recorded within {RECORD_TIMEOUT:g} s: nothing is shown without it",
                wait=1,
            ) from None

    async def _record(self, screen: ScreenSession, at: Literal["table", "stream"]) -> None:
        session = self._due(screen)
        if session is None:
            return
        data = {"what": LOOKS, "badge": session.badge, "screen": screen.name, "at": at}
        entry = RecordEntry("person", record_actor(session.actor), data)
        with table_problems():
            await self._served.table.record(entry)
        self._last[screen] = (session.badge, self._clock())

    def _due(self, screen: ScreenSession) -> SignInSession | None:
        """Returns the session whose look is to be recorded, if any."""
        session = screen.signed_in(self._served.desk, "surveillance")
        if session is None:
            return None
        last = self._last.get(screen)
        due = last is None or last[0] != session.badge or self._clock() - last[1] >= INTERVAL
        return session if due else None


class CachedView(Struct, frozen=True):
    view: View
    body: bytes
    """The view, encoded."""


class ViewCache:
    """The view of one table, made and encoded once for each change, for all clients; and the
    callbacks that are notified when it may have changed."""

    def __init__(self, served: ServedTable) -> None:
        self._served = served
        self._identity = table_identity(served.table.parts)
        self._input: ViewInput | None = None
        self._cached: CachedView | None = None
        self._callbacks: list[Callable[[], None]] = []
        served.table.add_display_listener(self.notify)

    def now(self) -> CachedView:
        """Returns the current view; the same object while nothing has changed."""
        moment = self._served.moment()
        current = self._current(moment.quality)
        if self._cached is None or current != self._input:
            view = view_of(self._identity, current, moment.utc)
            self._input, self._cached = current, CachedView(view, encode(view))
        return self._cached

    def health(self) -> Health:
        table = self._served.table
        stopped = table.shown.stopped
        links = tuple(
            LinkShown(one.device, one.serial, one.state, one.held, one.why if one.held else "")
            for one in devices_of(table)
        )
        ready = not stopped and all(one.state == LinkState.READY.value for one in links)
        space = table.space
        return Health(
            self._identity.table,
            ready,
            stopped,
            table.table.seq,
            links,
            space.problem,
            space.minutes,
        )

    def notify(self) -> None:
        """Call the callbacks: the view may have changed."""
        for callback in self._callbacks:
            callback()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the view may have changed. It must not block."""
        self._callbacks.append(callback)

    def _current(self, quality: str) -> ViewInput:
        table = self._served.table
        return ViewInput(
            table.shown,
            dealer_of(self._served.desk.standing),
            devices_of(table),
            table.shuffle_problem,
            table.by_hand,
            table.table.seq,
            quality,
            table.witness,
            table.space,
        )


def devices_of(table: RunningTable) -> tuple[DeviceShown, ...]:
    found = []
    for serial, one in table.devices.supervised.items():
        supervisor = one.supervisor
        held = "" if supervisor.held is None else supervisor.held.verdict.name.lower()
        state, why = supervisor.state.value, supervisor.why
        found.append(DeviceShown(one.config.device, serial, state, why, held))
    return tuple(found)


def table_identity(parts: TableParts) -> TableIdentity:
    what, game = parts.what, parts.game
    if not isinstance(what, TableConfig):
        return TableIdentity(parts.name, game.name, game.title)
    money = MoneyFormat(what.currency.symbol, what.currency.minor_digits)
    return TableIdentity(parts.name, game.name, what.title, money)


encode: Final = msgspec.json.Encoder().encode


class ServedTable(Struct, frozen=True):
    """A running table with what requests need beside it. Create it in the table's event loop."""

    table: RunningTable
    desk: PeopleDesk
    """One that records through `table.record`."""
    moment: Callable[[], Moment]
    """Reads the clocks."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at shutdown: streams end, and requests that change anything are rejected."""


_NOT_KNOWN: Final = "the card that lies face down is not known: call the floor"


class Rejection(NamedTuple):
    """How an exception of the table or of a device is answered."""

    status: int
    code: str
    what: str = ""
    """Empty: the text of the exception."""
    allowed: str = ""
    wait: int = 0


_REJECTIONS: Final[Mapping[type[Exception], Rejection]] = MappingProxyType(
    {
        TableStopped: Rejection(503, "stopped"),
        QueueFull: Rejection(429, "full", wait=1),
        InputRejected: Rejection(409, "cannot_take"),
        NotDealing: Rejection(403, "no_dealer", allowed="POST /api/v1/sign-in, and then this"),
        CaseChanged: Rejection(409, "moved_on"),
        BadAct: Rejection(400, "no_act"),
        NotInVault: Rejection(409, "not_known", _NOT_KNOWN),
        SealProblem: Rejection(409, "not_known", _NOT_KNOWN),
        TwoPeopleNeeded: Rejection(403, "same_person"),
        NothingHeld: Rejection(409, "nothing_held"),
        StoreFailed: Rejection(503, "not_kept"),
    }
)


@contextmanager
def table_problems() -> Iterator[None]:
    """Turn the reasons why the table or a device rejects a request into a Problem."""
    try:
        yield
    except tuple(_REJECTIONS) as problem:
        kind = next(kind for kind in type(problem).__mro__ if kind in _REJECTIONS)
        status, code, what, allowed, wait = _REJECTIONS[kind]
        raise Problem(status, code, what or str(problem), allowed, wait=wait) from None


TIMEOUT: Final = 30.0
"""Seconds until a client gets 503; its request continues."""
MAX_TASKS: Final = 128
"""Requests that may run at once."""

_log: Final = structlog.get_logger("api")
_T = TypeVar("_T")


class ShieldedTasks:
    """Runs requests to completion even if the client disconnects, so that no act is left half done.

    At most MAX_TASKS run at once. A client gets 503 after the timeout while its task continues."""

    def __init__(self, timeout: float = TIMEOUT) -> None:
        self._timeout = timeout
        self._tasks: set[asyncio.Task[Any]] = set()

    def __len__(self) -> int:
        return len(self._tasks)

    async def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Returns the result. Raises Problem if too many tasks run, or on timeout."""
        if len(self._tasks) >= MAX_TASKS:
            work.close()
            raise Problem(429, "busy", "too much is asked at once", wait=1)
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        done, _ = await asyncio.wait({task}, timeout=self._timeout)
        if not done:
            raise Problem(
                503,
                "no_answer",
                f"no answer within {self._timeout:g} s: it may still be done, so look first",
                "GET /api/v1/table shows whether it was",
            )
        return task.result()

    def _done(self, task: asyncio.Task[Any]) -> None:
        """Log the exception of a task even if no client waits for it any more."""
        self._tasks.discard(task)
        problem = None if task.cancelled() else task.exception()
        if problem is not None and not isinstance(problem, Problem):
            _log.error("a fault", exc_info=problem)


class TableApi:
    """Everything that requests to one table share."""

    def __init__(self, served: ServedTable, clock: Callable[[], float]) -> None:
        """`clock`: monotonic seconds, for idle timeouts."""
        self.served = served
        self.screens = ScreenRegistry(clock)
        self.views = ViewCache(served)
        self.tasks = ShieldedTasks()
        self.surveillance = SurveillanceLog(served, clock)
