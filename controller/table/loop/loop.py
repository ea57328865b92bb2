"""The table loop: one queue, one consumer, the only writer of the table's state.

Device events, acts of people and entries for the record are processed serially. Each is decided by
the procedure and appended to the record. Only when the append is durable, the new state is adopted,
the request is answered, and displays and devices are notified. A device's records are stored by the
same append: event and cursor in one write, and its supervisor acknowledges them afterwards.

    loop = TableLoop(applier, writer.append, start, show=outputs.show, on_result=log)
    task = asyncio.create_task(loop.run())
    done = await loop.act(lambda now: TableInput((Paid(dealer),)))
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from controller.audit.errors import LogFailed, RetryLater
from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.records import CONTROLLER as BY_CONTROLLER
from controller.audit.format.records import ChainPosition, DeviceCursor, RecordActor, RecordEntry
from controller.procedure.engine import RowFault
from controller.procedure.model.effects import Effect, Prompt
from controller.procedure.model.events import Device
from controller.procedure.model.state import State
from controller.table.intake import (
    AppliedInput,
    Applier,
    DeviceSource,
    EventAnswer,
    TableInput,
    TableSnapshot,
    device_input,
    face_down,
)
from controller.table.loop.unrecorded import UnrecordedEntries
from controller.table.memory import DeviceFault, TableDisplay, prompt_of
from drivers.devices import DeviceEvent
from drivers.session import RECENT, AdoptedRing
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink import EventRecord

InputFactory: TypeAlias = Callable[[TableSnapshot], TableInput]
"""Makes the input from the snapshot at the time when the request is processed. An exception is
raised to the caller, without side effects."""

ANOTHER_CARD: Final = "another card"
"""`what` of the record entry if a wrong card was named for a face-down card."""


class TableStopped(Exception):
    """Nothing can be recorded, so the table does nothing. The text says why, and what to do."""


class TableClosing(TableStopped):
    """The table is closing."""


class QueueFull(Exception):
    """Too many requests are waiting; this one was not accepted."""


class InputRejected(Exception):
    """The rules or the record cannot process the input. No side effects; the rejection is
    recorded."""

    what = ""
    """`what` of the record entry; empty: the kind of the request."""


class RequestResult(Struct, frozen=True):
    """The result of a request, which is durable."""

    appended: tuple[ChainPosition, ...]
    entries: tuple[RecordEntry, ...]
    answered: tuple[EventAnswer, ...]
    state: State


class LoopStart(Struct, frozen=True):
    """What the loop starts with."""

    now: TableSnapshot
    seq: int
    """Sequence number of the record's last entry."""
    repeated: Prompt | None = None
    """A payment that was shown before the restart."""
    blocked: str = ""
    """Why acts are rejected until first() has been recorded; empty if they are not."""


class LoopRequest(Struct, frozen=True):
    """A request in the queue."""

    make: InputFactory
    answer: asyncio.Future[RequestResult] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )
    cursor: DeviceCursor | None = None
    settled: Callable[[bool], None] = lambda recorded: None
    """Called exactly once with whether it was recorded, before `answer` is set. Called also if the
    waiting task was cancelled."""
    kind: Literal["person", "device", "changes", "note"] = "person"
    """An act of a person, a device event, changes of device faults, or an entry for the record."""
    anyway: bool = False
    """Processed also while the table is stopped: tests whether it can record again."""
    first: bool = False
    """Processed before all acts."""


MAX_WAITING: Final = 64
"""Limit of the queue for acts and entries. A working table has a few; more means that it hangs."""
MAX_DEVICES: Final = 32
"""Capacity beside them for device events: each device sends one at a time."""
SLOW_AFTER: Final = 3.0
"""Seconds that an append may take before the table is stopped until it has succeeded: a disk that
stalls may have failed."""
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError)
"""Errors of the rules for an impossible event: an unknown seat or hand, or a wrong amount."""
_UNWRITABLE: Final = (TypeError, ValueError, OverflowError)
_CLOSING: Final = "the table is closing"
ADOPTED: Final = "adopted"
"""`what` of the record entry of an adopted ring."""

_log: Final = structlog.get_logger("table")

Append: TypeAlias = Callable[..., Awaitable[tuple[ChainPosition, ...]]]
"""Appends entries atomically: `audit.log.LogWriter.append`. Durable on return."""


class TableLoop:
    """The loop of one table."""

    def __init__(
        self,
        applier: Applier,
        append: Append,
        start: LoopStart,
        *,
        show: Callable[[TableDisplay], None],
        on_result: Callable[[RequestResult], None],
        utc: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        """`show` is a callback for each new display, `on_result` for each durable result. Neither
        may block. `utc` returns microseconds since 1970."""
        self._applier = applier
        self._context = applier.context
        self.append = append
        self.now = applier.with_buttons(start.now)
        self.seq = start.seq
        """Sequence number of the last durable entry."""
        self._show = show
        self._on_result = on_result
        self._repeated = start.repeated
        self._queue: asyncio.Queue[LoopRequest | None] = asyncio.Queue(MAX_WAITING + MAX_DEVICES)
        self._item: LoopRequest | None = None
        self._closing = False
        self._slow = False
        """The display says that the record is slow."""
        self.unrecorded = UnrecordedEntries(utc)
        self._since: float | None = None
        """Start of the current append, as loop time."""
        self.stopped: Exception | None = None
        """Why nothing can be recorded; None while the table works."""
        self.working = asyncio.Event()
        """Set while the table works."""
        self.working.set()
        self._blocked = start.blocked
        self.shown = self._shown(applier.shows(self.state))

    @property
    def state(self) -> State:
        return self.now.state

    @property
    def append_seconds(self) -> float:
        """Seconds for which the current append has been running."""
        return 0.0 if self._since is None else asyncio.get_running_loop().time() - self._since

    @property
    def waiting(self) -> int:
        """Number of requests in the queue."""
        return self._queue.qsize()

    # --- requests -------------------------------------------------------------------------

    def device_event(
        self,
        event: DeviceEvent,
        source: DeviceSource,
        settled: Callable[[bool], None] = lambda recorded: None,
    ) -> asyncio.Future[RequestResult]:
        """Queue a device event. Raises QueueFull or TableClosing at once. The future is done
        when the event is durable; it raises TableStopped, or the error of an event that cannot be
        processed."""
        context = self._context
        item = LoopRequest(
            lambda now: device_input(context, now, event, source),
            cursor=source.cursor,
            settled=settled,
            kind="device",
        )
        return self._put(item)

    async def act(self, make: InputFactory) -> RequestResult:
        """Process an act of a person or of the controller. Raises TableStopped, QueueFull,
        InputRejected, and what `make` raises. Cancelling a waiting request withdraws it."""
        return await self._put(LoopRequest(make), MAX_WAITING)

    async def record(self, entry: RecordEntry) -> RequestResult:
        """Append an entry. Raises TableStopped, QueueFull, InputRejected."""
        return await self._put(LoopRequest(_note(entry), kind="note"), MAX_WAITING)

    async def first(self, given: TableInput) -> RequestResult:
        """Process the input that precedes all acts. Raises TableStopped."""
        return await self._put(LoopRequest(lambda now: given, first=True))

    def later(self, entry: RecordEntry) -> None:
        """Queue an entry without waiting. If it cannot be recorded, it is counted, and the count
        is recorded."""

        def settled(recorded: bool) -> None:
            if not recorded:
                self.unrecorded.add(entry)

        item = LoopRequest(_note(entry), settled=settled, kind="note")
        with suppress(QueueFull, TableClosing):
            self._put(item, MAX_WAITING).add_done_callback(_ignore_failure)

    async def change_faults(
        self, wrong: tuple[DeviceFault, ...] = (), right: tuple[DeviceFault, ...] = ()
    ) -> None:
        """Process changes of device faults. While the table is stopped they are only stored, and
        reported to the procedure when it works again."""
        given = TableInput(wrong=wrong, right=right)
        await self._put(LoopRequest(lambda now: given, kind="changes"))

    async def try_again(self, text: str) -> bool:
        """Try to record `text` while the table is stopped. Returns whether the table works
        again."""
        note = _note(RecordEntry("note", BY_CONTROLLER, {"text": text}))
        try:
            await self._put(LoopRequest(note, kind="note", anyway=True))
        except TableStopped:
            return False
        return True

    async def close(self) -> None:
        """Process the waiting requests, then end run()."""
        if not self._closing:
            self._closing = True
            await self._queue.put(None)

    def _put(
        self, item: LoopRequest, limit: int = MAX_WAITING + MAX_DEVICES
    ) -> asyncio.Future[RequestResult]:
        problem: Exception | None = None
        if self._closing:
            problem = TableClosing(_CLOSING)
        elif self._queue.qsize() >= limit:
            problem = QueueFull(f"{limit} things wait at the table")
        if problem is not None:
            item.answer.cancel()
            item.settled(False)
            raise problem
        self._queue.put_nowait(item)
        return item.answer

    # --- the one consumer -----------------------------------------------------------------

    async def run(self) -> None:
        """Process requests until close() or cancellation; the rest is answered with
        TableClosing."""
        self._show(self.shown)
        dropped = self.unrecorded
        try:
            while (item := await self._queue.get()) is not None:
                self._item = item
                await self._process(item)
                self._item = None
                pending = dropped.pending and self.stopped is None
                if pending and dropped.due(idle=self._queue.empty()):
                    await self._record_unrecorded()
            if dropped.pending:
                await self._record_unrecorded()
        finally:
            self._closing = True
            while not self._queue.empty():
                waiting = self._queue.get_nowait()
                if waiting is not None:
                    waiting.settled(False)
                    _fail(waiting, TableClosing(_CLOSING))
            if self._item is not None:
                _fail(self._item, TableClosing(_CLOSING))

    async def _process(self, item: LoopRequest) -> None:
        if item.answer.done():  # the caller was cancelled
            item.settled(False)
            return
        if self.stopped is not None and not item.anyway:
            self._reject(item, self.stopped)
            return
        if self._blocked and item.kind == "person" and not item.first:
            self._reject(item, TableStopped(self._blocked))
            return
        applied = self._decide(item)
        if isinstance(applied, Exception):
            await self._cannot_apply(item, applied)
            return
        try:
            appended = await self._record(applied.entries)
        except (LogFailed, RetryLater) as problem:
            self.fail(problem)
            self._reject(item, problem)
            return
        except _UNWRITABLE as problem:
            why = InputRejected(f"it cannot be recorded: {type(problem).__name__}")
            await self._cannot_apply(item, why)
            return
        was_stopped = self.stopped is not None
        self._adopt(item, applied, appended)
        if was_stopped:
            # Report changes of device faults that were stored while the table was stopped.
            await self._process(LoopRequest(lambda now: TableInput(), kind="changes"))

    async def _record(self, entries: tuple[RecordEntry, ...]) -> tuple[ChainPosition, ...]:
        if not entries:
            return ()
        loop = asyncio.get_running_loop()
        self._since = loop.time()
        slow = loop.call_later(SLOW_AFTER, self._is_slow)
        try:
            return await self.append(*entries)
        finally:
            slow.cancel()
            self._since = None

    async def _record_unrecorded(self) -> None:
        """Record how many entries were not recorded; they stay counted if that fails too."""
        entry, counts = self.unrecorded.entry(self.now.state.round), self.unrecorded
        if self.stopped is not None:  # at the end: what a full disk leaves may be enough
            with suppress(LogFailed, RetryLater):
                await self._record((entry,))
            return
        item = LoopRequest(
            lambda now: TableInput(notes=(entry,)),
            settled=lambda recorded: counts.recorded(entry.data) if recorded else None,
            kind="note",
        )
        item.answer.add_done_callback(_ignore_failure)
        await self._process(item)

    def _is_slow(self) -> None:
        _log.warning("the record is slow", seconds=SLOW_AFTER)
        self._slow = True
        if self.stopped is None:
            self.shown = replace(self.shown, stopped="the record is slow: wait", soon=True)
            self._show(self.shown)

    def _decide(self, item: LoopRequest) -> AppliedInput | Exception:
        """Apply the request to the snapshot; returns the exception if that is impossible."""
        try:
            given = item.make(self.now)
        except (LookupError, ValueError, SealProblem) as problem:
            return problem
        try:
            return self._applier.apply_input(self.now, given, item.cursor)
        except _CANNOT as problem:
            names = ", ".join(type(event).__name__ for event in given.events)
            # The exception's own text may contain a card.
            return InputRejected(f"the rules cannot take {names}: {type(problem).__name__}")

    async def _cannot_apply(self, item: LoopRequest, problem: Exception) -> None:
        """Raise the problem to the caller, without side effects. But a device event has happened:
        if it cannot be processed, the real state is unknown and the table stops."""
        item.settled(False)
        device = item.kind in ("device", "changes")
        if device:
            self.fail(problem)
        if device or isinstance(problem, InputRejected):
            what = problem.what if isinstance(problem, InputRejected) else ""
            data = {"what": what or item.kind, "detail": str(problem)}
            fault = RecordEntry("fault", BY_CONTROLLER, data)
            # The table has stopped already, or stops at the next append.
            with suppress(LogFailed, RetryLater):
                appended = await self._record((replace(fault, round=self.now.state.round),))
                self.seq = appended[-1].seq
        _fail(item, problem)

    def _adopt(
        self, item: LoopRequest, applied: AppliedInput, appended: tuple[ChainPosition, ...]
    ) -> None:
        item.settled(True)
        if item.first:
            self._blocked = ""
        self.now = applied.now
        if appended:
            self.seq = appended[-1].seq
        effects, slow = applied.effects, self._slow
        self._context.vault.forget(face_down(applied.now.state))
        self._slow = False
        if effects is None and (item.first or slow):
            effects = self._applier.shows(self.state)
        if effects is not None:
            self.shown = self._shown(effects)
        if self.stopped is not None:
            self._resume()
        elif effects is not None:
            self._show(self.shown)
        self._on_result(
            RequestResult(appended, applied.entries, applied.answered, applied.now.state)
        )
        if not item.answer.done():
            item.answer.set_result(
                RequestResult(appended, applied.entries, applied.answered, self.now.state)
            )

    # --- stopped --------------------------------------------------------------------------

    def _reject(self, item: LoopRequest, problem: Exception) -> None:
        item.settled(False)
        if item.kind == "changes":  # stored now, reported when the table works again
            given = item.make(self.now)
            self.now = replace(self.now, faults=self.now.faults.after(given.wrong, given.right))
            if not item.answer.done():
                item.answer.set_result(RequestResult((), (), (), self.state))
            return
        _fail(item, TableStopped(str(problem)))

    def fail(self, problem: Exception) -> None:
        """Stop the table: the devices become safe, since nothing can be recorded."""
        if self.stopped is None:
            _log.error("stopped", why=str(problem))
            self.stopped = problem
            self.shown = replace(self.shown, stopped=str(problem), soon=False)
            self._show(self.shown)
            self.working.clear()

    @property
    def can_resume(self) -> bool:
        """Whether the cause of the stop can end without a restart."""
        return isinstance(self.stopped, RetryLater)

    def _resume(self) -> None:
        _log.info("going on")
        self.stopped = None
        self.shown = replace(self.shown, stopped=self._blocked, soon=bool(self._blocked))
        self._show(self.shown)
        self.working.set()

    # --- display --------------------------------------------------------------------------

    def _shown(self, effects: tuple[Effect, ...]) -> TableDisplay:
        again = self._repeated is not None and prompt_of(effects) == self._repeated
        if not again and not self.now.state.holds:
            self._repeated = None
        soon = self.stopped is None and bool(self._blocked)
        stopped = self._blocked if self.stopped is None else str(self.stopped)
        return TableDisplay(self.seq, self.now.state, effects, self.now.arms, again, stopped, soon)


def _note(entry: RecordEntry) -> InputFactory:
    return lambda now: TableInput(notes=(replace(entry, round=now.state.round),))


def _fail(item: LoopRequest, problem: Exception) -> None:
    if not item.answer.done():
        item.answer.set_exception(problem)


def _ignore_failure(answer: asyncio.Future[RequestResult]) -> None:
    """Retrieve the error of an entry that no caller waits for; the entry is counted."""
    if not answer.cancelled():
        answer.exception()


# --- the store of the devices' records ------------------------------------------------------


class PositionUnknown(LookupError):
    """The stored position is unknown while an append is running."""


class StoredPosition(Struct, frozen=True):
    """The position of a device's log in the record when it was opened."""

    cursor: RecordCursor = NO_CURSOR
    recent: Mapping[int, bytes] = MappingProxyType({})


class DeviceRecordStore:
    """The record store of one device."""

    def __init__(
        self, table: TableLoop, device: Device, serial: str, position: StoredPosition
    ) -> None:
        self.device: Device = device
        self.serial = serial
        self._table = table
        self._cursor = position.cursor
        self._recent = dict(position.recent)
        self._adopted: AdoptedRing | None = None
        """The last adoption, if no record was stored since."""
        self._in_hand = 0
        """Number of records in the table's queue or in a running append."""

    # --- interface for the supervisor -----------------------------------------------------

    def cursor(self) -> RecordCursor:
        self._check_settled()
        return self._cursor

    def recent(self) -> Mapping[int, bytes]:
        self._check_settled()
        return MappingProxyType(self._recent)

    def store(self, record: EventRecord, event: DeviceEvent) -> Awaitable[object]:
        """Raises TableStopped, and ValueError for a record that does not follow the cursor."""
        self._check(record)
        source = DeviceSource(self.device, self._place(record))
        self._in_hand += 1
        return self._table.device_event(event, source, partial(self._settled, record))

    async def adopt(self, adoption: AdoptedRing) -> None:
        await self._table.record(_entry(self.serial, adoption))
        self._adopted = adoption
        self._recent = {}
        self._cursor = adoption.cursor or self._cursor

    @property
    def seq(self) -> int:
        """Sequence number of the last durable record."""
        return self._cursor.seq

    # --- position -------------------------------------------------------------------------

    def _check_settled(self) -> None:
        if self._in_hand:
            raise PositionUnknown(f"a record of {self.serial} is being appended")

    def _check(self, record: EventRecord) -> None:
        """A record must follow the cursor by one in the same epoch, or start at an adopted one."""
        self._check_settled()
        cursor, adopted = self._cursor, self._adopted
        if (
            adopted is not None
            and record.epoch == adopted.held.epoch
            and record.seq >= adopted.next
        ):
            return
        if not cursor.epoch and adopted is None:
            return
        if (record.epoch, record.seq) != (cursor.epoch, cursor.seq + 1):
            raise ValueError(f"record {record.seq} of {record.epoch} does not follow {cursor}")

    def _settled(self, record: EventRecord, recorded: bool) -> None:
        self._in_hand -= 1
        if not recorded:
            return
        if record.epoch != self._cursor.epoch:
            self._recent = {}
        self._adopted = None
        self._cursor = RecordCursor(record.epoch, record.seq, record.chain)
        self._recent[record.seq] = record.chain
        self._recent.pop(record.seq - RECENT, None)

    def _place(self, record: EventRecord) -> DeviceCursor:
        return DeviceCursor(
            self.serial, record.epoch, record.seq, record.chain.hex(), record.boot, record.t_us
        )


def _entry(serial: str, adoption: AdoptedRing) -> RecordEntry:
    """The record entry of an adoption. Only an adoption moves a device's cursor back."""
    held, at, cursor = adoption.held, adoption.cursor, None
    if at is not None:
        cursor = DeviceCursor(serial, at.epoch, at.seq, at.chain.hex())
    data = {
        "what": ADOPTED,
        "device": serial,
        "verdict": held.verdict.name.lower(),
        "epoch": held.epoch,
        "oldest": held.oldest,
        "head": held.head,
        "next": adoption.next,
        "acked": held.acked_seq,
        "two": list(adoption.by),
    }
    return RecordEntry("link", RecordActor("floor", adoption.by[0]), data, cursor=cursor, sign=True)
