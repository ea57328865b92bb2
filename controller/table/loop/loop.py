"""The table's loop: one consumer, the only writer of what the table knows.

Whatever happens comes here: a device's event, a person's act, something for the record alone. Each
is decided by the procedure, recorded, and only then true: the state moves, whoever waits is
answered, and whoever shows or carries out is told.

    table = Table(taking, book.append, now, show=outlets.want)
    task = asyncio.create_task(table.run())
    done = await table.act(lambda now: Heard((Paid(dealer),)))
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeAlias

import structlog
from msgspec.structs import replace

from controller.audit.errors import LogFailed, RetryLater
from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.records import CONTROLLER as BY_CONTROLLER
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.procedure.engine import RowFault
from controller.procedure.model.effects import Effect
from controller.procedure.model.state import State
from controller.table.intake import (
    AppliedInput,
    Applier,
    DeviceSource,
    TableInput,
    device_input,
    face_down,
)
from controller.table.loop.requests import (
    InputFactory,
    InputRejected,
    LoopRequest,
    LoopStart,
    QueueFull,
    RequestResult,
    TableClosing,
    TableStopped,
)
from controller.table.memory import DeviceFault, TableDisplay, prompt_of
from drivers.devices import DeviceEvent

MAX_WAITING: Final = 64
"""Acts and words for the record that may wait. A table has a few at once; more means that it stands
still."""
MAX_DEVICES: Final = 32
"""Room beside them for what devices tell, each one thing at a time."""
SLOW_AFTER: Final = 3.0
"""Seconds that the record may take. After them nothing more is let out of the shoe until it is
there: a disk that stalls may not come back."""
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError)
"""What the rules fail with over an event that cannot be: a seat, hand or amount that nobody has."""
_UNWRITABLE: Final = (TypeError, ValueError, OverflowError)
_CLOSING: Final = "the table is closing"

_log: Final = structlog.get_logger("table")

Append: TypeAlias = Callable[..., Awaitable[tuple[ChainPosition, ...]]]
"""Records entries, all or none: `audit.book.Book.append`. On the disk on return."""


class TableLoop:
    """One table."""

    def __init__(
        self,
        taking: Applier,
        append: Append,
        start: LoopStart,
        *,
        show: Callable[[TableDisplay], None],
        told: Callable[[RequestResult], None] = lambda done: None,
    ) -> None:
        """`show` is told what is to be seen and done at the table now, absolutely; `told` of each
        thing that was recorded."""
        self._taking = taking
        self._ear = taking.ear
        self._append = append
        self.now = taking.begins(start.now)
        self.seq = start.seq
        """Of the last entry of this table that is on the disk."""
        self._show = show
        self._told = told
        self._repeated = start.repeated
        self._queue: asyncio.Queue[LoopRequest | None] = asyncio.Queue(MAX_WAITING + MAX_DEVICES)
        self._item: LoopRequest | None = None
        self._closing = False
        self._slow = False
        """People were told that the record is."""
        self._since: float | None = None
        """When the record was given what it has not answered yet."""
        self.stopped: Exception | None = None
        """Why nothing can be recorded now."""
        self.goes_on = asyncio.Event()
        """Set while something can be recorded."""
        self.goes_on.set()
        self._waits = start.waits
        self.shown = self._shown(taking.shows(self.state))

    @property
    def state(self) -> State:
        return self.now.state

    @property
    def waits(self) -> float:
        """Seconds for which the record has not answered."""
        return 0.0 if self._since is None else asyncio.get_running_loop().time() - self._since

    @property
    def waiting(self) -> int:
        """Things that wait for their turn."""
        return self._queue.qsize()

    # --- what comes -----------------------------------------------------------------------

    async def heard(
        self,
        told: DeviceEvent,
        source: DeviceSource,
        settled: Callable[[bool], None] = lambda recorded: None,
    ) -> RequestResult:
        """A device has told something; on the disk on return. Stopped."""
        ear = self._ear
        return await self._put(
            LoopRequest(
                lambda now: device_input(ear, now, told, source),
                self._future(),
                source.cursor,
                settled,
                "device",
            )
        )

    async def act(self, make: InputFactory) -> RequestResult:
        """A person, or the controller itself, does something. Stopped, Full, CannotTake; what
        `make` raises. Giving up before its turn has come calls it off."""
        return await self._put_if_room(LoopRequest(make, self._future()))

    async def record(self, entry: RecordEntry) -> RequestResult:
        """Something for the record alone. Stopped, Full, CannotTake."""
        return await self._put_if_room(LoopRequest(_note(entry), self._future(), whose="note"))

    async def first(self, heard: TableInput) -> RequestResult:
        """What is to be recorded before anybody may do anything. Stopped."""
        item = LoopRequest(lambda now: heard, self._future(), first=True)
        return await self._put(item)

    def later(self, entry: RecordEntry) -> None:
        """The same where nobody can wait. What cannot be recorded is dropped."""
        item = LoopRequest(_note(entry), self._future(), whose="note")
        item.answer.add_done_callback(_drop)
        if self._closing or self._queue.qsize() >= MAX_WAITING:
            _log.warning("not recorded: the table is busy", kind=entry.kind)
            item.answer.cancel()
        else:
            self._queue.put_nowait(item)

    async def changes(
        self, wrong: tuple[DeviceFault, ...] = (), right: tuple[DeviceFault, ...] = ()
    ) -> None:
        """Devices stand otherwise. Where nothing can be recorded the procedure is told later."""
        item = LoopRequest(
            lambda now: TableInput(wrong=wrong, right=right), self._future(), whose="changes"
        )
        await self._put(item)

    async def try_again(self, text: str) -> bool:
        """Whether the record takes something again: these words. All goes on then."""
        note = _note(RecordEntry("note", BY_CONTROLLER, {"text": text}))
        item = LoopRequest(note, self._future(), whose="note", anyway=True)
        try:
            await self._put(item)
        except TableStopped:
            return False
        return True

    async def close(self) -> None:
        """What waits is done; then run() ends."""
        if not self._closing:
            self._closing = True
            await self._queue.put(None)

    async def _put_if_room(self, item: LoopRequest) -> RequestResult:
        if self._queue.qsize() >= MAX_WAITING:
            item.answer.cancel()
            raise QueueFull(f"{MAX_WAITING} things wait at the table")
        return await self._put(item)

    async def _put(self, item: LoopRequest) -> RequestResult:
        if self._closing:
            item.answer.cancel()
            item.settled(False)
            raise TableClosing(_CLOSING)
        try:
            await self._queue.put(item)
        except asyncio.CancelledError:
            item.settled(False)
            raise
        return await item.answer

    def _future(self) -> asyncio.Future[RequestResult]:
        return asyncio.get_running_loop().create_future()

    # --- the one consumer -----------------------------------------------------------------

    async def run(self) -> None:
        """Until close(), or until it is cancelled: what waits then is answered with Stopped."""
        self._show(self.shown)
        try:
            while (item := await self._queue.get()) is not None:
                self._item = item
                await self._take(item)
                self._item = None
        finally:
            self._closing = True
            while not self._queue.empty():
                waiting = self._queue.get_nowait()
                if waiting is not None:
                    waiting.settled(False)
                    _fail(waiting, TableClosing(_CLOSING))
            if self._item is not None:
                _fail(self._item, TableClosing(_CLOSING))

    async def _take(self, item: LoopRequest) -> None:
        if item.answer.done():  # whoever asked has given up
            item.settled(False)
            return
        if self.stopped is not None and not item.anyway:
            self._turn_away(item, self.stopped)
            return
        if self._waits and item.whose == "person" and not item.first:
            self._turn_away(item, TableStopped(self._waits))
            return
        taken = self._decide(item)
        if isinstance(taken, Exception):
            await self._cannot(item, taken)
            return
        try:
            appended = await self._record(taken.entries)
        except (LogFailed, RetryLater) as problem:
            self._stop(problem)
            self._turn_away(item, problem)
            return
        except _UNWRITABLE as problem:
            why = InputRejected(f"it cannot be recorded: {type(problem).__name__}")
            await self._cannot(item, why)
            return
        was_stopped = self.stopped is not None
        self._is_true(item, taken, appended)
        if was_stopped:
            # What has changed meanwhile is told now.
            await self._take(LoopRequest(lambda now: TableInput(), self._future(), whose="changes"))

    async def _record(self, entries: tuple[RecordEntry, ...]) -> tuple[ChainPosition, ...]:
        if not entries:
            return ()
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        slow = loop.call_later(SLOW_AFTER, self._is_slow)
        try:
            return await self._append(*entries)
        finally:
            slow.cancel()
            self._since = None

    def _is_slow(self) -> None:
        _log.warning("the record is slow", seconds=SLOW_AFTER)
        self._slow = True
        if self.stopped is None:
            self.shown = replace(self.shown, stopped="the record is slow: wait", soon=True)
            self._show(self.shown)

    def _decide(self, item: LoopRequest) -> AppliedInput | Exception:
        """What comes of it, or why it cannot be."""
        try:
            heard = item.make(self.now)
        except (LookupError, ValueError, SealProblem) as problem:
            return problem
        try:
            return self._taking.take(self.now, heard, item.cursor)
        except _CANNOT as problem:
            names = ", ".join(type(event).__name__ for event in heard.events)
            # Its own words may hold anything.
            return InputRejected(f"the rules cannot take {names}: {type(problem).__name__}")

    async def _cannot(self, item: LoopRequest, problem: Exception) -> None:
        """Whoever asked is told, and nothing has happened. But what a device tells has happened:
        where that cannot be taken nobody knows how the table stands."""
        item.settled(False)
        device = item.whose in ("device", "changes")
        if device:
            self._stop(problem)
        if device or isinstance(problem, InputRejected):
            what = problem.what if isinstance(problem, InputRejected) else ""
            data = {"what": what or item.whose, "detail": str(problem)}
            fault = RecordEntry("fault", BY_CONTROLLER, data)
            with suppress(LogFailed, RetryLater):  # it stops as it is
                told = await self._record((replace(fault, round=self.now.state.round),))
                self.seq = told[-1].seq
        _fail(item, problem)

    def _is_true(
        self, item: LoopRequest, taken: AppliedInput, appended: tuple[ChainPosition, ...]
    ) -> None:
        item.settled(True)
        if item.first:
            self._waits = ""
        self.now = taken.now
        if appended:
            self.seq = appended[-1].seq
        self._ear.vault.forget(face_down(taken.now.state))
        effects, slow = taken.effects, self._slow
        self._slow = False
        if effects is None and (item.first or slow):
            effects = self._taking.shows(self.state)
        if effects is not None:
            self.shown = self._shown(effects)
        if self.stopped is not None:
            self._go_on()
        elif effects is not None:
            self._show(self.shown)
        self._told(RequestResult(appended, taken.entries, taken.answered, taken.now.state))
        if not item.answer.done():
            item.answer.set_result(
                RequestResult(appended, taken.entries, taken.answered, self.now.state)
            )

    # --- nothing can be recorded ----------------------------------------------------------

    def _turn_away(self, item: LoopRequest, problem: Exception) -> None:
        item.settled(False)
        if item.whose == "changes":  # it is so all the same, and is told when all goes on
            heard = item.make(self.now)
            after = self.now.troubles.after(heard.wrong, heard.right)
            self.now = replace(self.now, troubles=after)
            if not item.answer.done():
                item.answer.set_result(RequestResult((), (), (), self.state))
            return
        _fail(item, TableStopped(str(problem)))

    def _stop(self, problem: Exception) -> None:
        """Lamps safe, shoe locked: nothing that happens now would be in the record."""
        if self.stopped is None:
            _log.error("stopped", why=str(problem))
            self.stopped = problem
            self.shown = replace(self.shown, stopped=str(problem), soon=False)
            self._show(self.shown)
            self.goes_on.clear()

    def fail(self, failed: LogFailed) -> None:
        """Nothing can be recorded any more: told by who writes the record."""
        self._stop(failed)

    @property
    def may_go_on(self) -> bool:
        """Whether that what stops the table can be over by itself."""
        return isinstance(self.stopped, RetryLater)

    def _go_on(self) -> None:
        _log.info("going on")
        self.stopped = None
        self.shown = replace(self.shown, stopped=self._waits, soon=bool(self._waits))
        self._show(self.shown)
        self.goes_on.set()

    # --- what is seen ---------------------------------------------------------------------

    def _shown(self, effects: tuple[Effect, ...]) -> TableDisplay:
        prompt = prompt_of(effects)
        again = prompt is not None and prompt == self._repeated
        if not again and not self.now.state.holds:
            self._repeated = None
        soon = self.stopped is None and bool(self._waits)
        stopped = self._waits if self.stopped is None else str(self.stopped)
        return TableDisplay(self.seq, self.now.state, effects, self.now.arms, again, stopped, soon)


def _note(entry: RecordEntry) -> InputFactory:
    return lambda now: TableInput(notes=(replace(entry, round=now.state.round),))


def _fail(item: LoopRequest, problem: Exception) -> None:
    if not item.answer.done():
        item.answer.set_exception(problem)


def _drop(answer: asyncio.Future[RequestResult]) -> None:
    """Nobody waits for it."""
    if not answer.cancelled() and answer.exception() is not None:
        _log.warning("not recorded", why=str(answer.exception()))
