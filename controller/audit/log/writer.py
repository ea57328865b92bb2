"""Thread-safe, asynchronous log writer with group commit.

  writer = LogWriter(log)
  positions = await writer.append(entry)       # durable now
  positions = writer.submit(entry).result(10)  # the same from a thread
  await writer.close()

Entries that are queued together share one sync. A checkpoint follows an entry that asks for one,
and any other entry within a second.
"""

from __future__ import annotations

import asyncio
import errno
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Final, TypeAlias

from msgspec import Struct

from controller.audit.errors import AppendTimeout, LogFailed, RecordProblem, RetryLater, WriterBusy
from controller.audit.format.records import OWN, ChainPosition, Kind, RecordEntry, encode
from controller.audit.format.validation import BadData, WrongData, check_data, check_plain
from controller.audit.log.log import EncodedEntry, EntryTooLarge, Log

MAX_QUEUED: Final = 1024
"""Queue limit; a table queues a few batches, so more means that the disk has stopped."""
MAX_BATCH_BYTES: Final = 256 * 1024
"""Limit of a group commit: bytes of records that share a sync."""
MAX_INTEGER: Final = 2**63 - 1
"""Maximum of integers in a record."""
DECIDED: Final[frozenset[Kind]] = frozenset(("decision", "refusal"))
"""Kinds with typed `data`, which needs no validation."""
APPEND_TIMEOUT: Final = 60.0
"""Seconds until append() times out; disks are known to stall for 30."""
CLOSE_TIMEOUT: Final = 30.0
"""Seconds for the last write at shutdown."""
CHECKPOINT_RETRY_DELAY: Final = 1.0
"""Seconds until a checkpoint is retried after a full disk."""

Together: TypeAlias = tuple[ChainPosition, ...]
_Loop: TypeAlias = asyncio.AbstractEventLoop
_Waits: TypeAlias = "Future[Together] | asyncio.Future[Together]"


class _Group(Struct, eq=False):
    """Entries that are appended atomically, and the future of a thread or an event loop."""

    entries: list[EncodedEntry]
    size: int
    waits: _Waits
    loop: _Loop | None = None
    """The event loop that waits; None for a thread."""

    def answer(self, answer: Together | Exception) -> None:
        """Resolve the future; for a loop's future, called in that loop."""
        waits = self.waits
        if isinstance(waits, Future) and not waits.set_running_or_notify_cancel():
            return  # cancelled by the waiting thread
        if waits.done():
            return
        if isinstance(answer, Exception):
            waits.set_exception(answer)
        else:
            waits.set_result(answer)


_Answers: TypeAlias = list[tuple[_Group, Together | Exception]]


def _deliver(answers: _Answers) -> None:
    for group, answer in answers:
        group.answer(answer)


def _answer(answers: _Answers) -> None:
    """Deliver results, waking each loop once."""
    for loop in {group.loop for group, _ in answers}:
        theirs = [one for one in answers if one[0].loop is loop]
        if loop is None:
            _deliver(theirs)
        else:
            with suppress(RuntimeError):  # the loop has ended, so no task waits there
                loop.call_soon_threadsafe(_deliver, theirs)


class LogWriter:
    """The only writer of a table's record: one thread with a queue. Thread-safe."""

    def __init__(self, log: Log, failed: Callable[[LogFailed], None] | None = None) -> None:
        """`failed` is a callback for the first LogFailed; it runs in the writer's thread, or in the
        loop in which an append timed out."""
        self.log = log
        """For queries only, never to write."""
        self._on_failure = failed
        self._failed: LogFailed | None = None
        self._closed = False
        self._waiting: SimpleQueue[_Group | None] = SimpleQueue()
        self._lock = Lock()
        """Guards the queue against submissions after shutdown."""
        self._batch: Sequence[_Group] = ()
        """The batch that is being written."""
        self._sign_after = 0.0
        self._thread = Thread(target=self._work, name="record", daemon=True)
        self._thread.start()

    @property
    def failed(self) -> LogFailed | None:
        """Why nothing is recorded any more."""
        return self._failed

    def submit(self, *entries: RecordEntry) -> Future[Together]:
        """Queue entries to be appended in order and atomically. The future returns their positions
        once they are durable, or raises RetryLater (nothing was written) or LogFailed. The caller
        chooses the timeout.

        Raises WriterBusy, LogFailed; BadData, TypeError and ValueError for entries that cannot be
        encoded.
        """
        answer: Future[Together] = Future()
        self._put(self._group(entries, answer))
        return answer

    async def append(self, *entries: RecordEntry) -> Together:
        """Submit entries and wait until they are durable. Cancelling the wait does not cancel the
        append.

        Raises AppendTimeout after APPEND_TIMEOUT: the entries may be durable or not, so every later
        append fails too. A record that contains them is one that a crash at this moment could have
        left.
        """
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Together] = loop.create_future()
        self._put(self._group(entries, answer, loop))
        timer = loop.call_later(APPEND_TIMEOUT, self._time_out, answer)
        try:
            return await answer
        finally:
            timer.cancel()

    def _time_out(self, answer: asyncio.Future[Together]) -> None:
        if answer.done():  # in this same turn of the loop
            return
        late = TimeoutError(f"the disk has not answered for {APPEND_TIMEOUT:g} s")
        self._fail(AppendTimeout(self.log.record, late))
        answer.set_exception(self._closed_error())

    def _put(self, group: _Group) -> None:
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if self._closed:
                raise self._closed_error()
            if self._waiting.qsize() >= MAX_QUEUED:
                raise WriterBusy(
                    self.log.record,
                    f"{MAX_QUEUED} entries wait to be recorded",
                    "hold the table until its disk is quick again; nothing was written of this",
                )
            self._waiting.put(group)

    def _closed_error(self) -> LogFailed:
        return self._failed or LogFailed(self.log.record, OSError(errno.EBADF, "it is closed"))

    async def close(self) -> None:
        """Append what is queued, then close the record with a checkpoint. Raises LogFailed."""
        await asyncio.get_running_loop().run_in_executor(None, self.close_now)

    def close_now(self) -> None:
        """Blocking close() for a thread without a loop."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._waiting.put(None)
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            raise LogFailed(
                self.log.record,
                OSError(errno.ETIMEDOUT, f"it has not closed within {CLOSE_TIMEOUT:g} s"),
            )
        if self._failed is not None:
            raise self._failed

    # --- in the thread --------------------------------------------------------------------

    def _work(self) -> None:
        try:
            going = True
            while going:
                self._batch, going = self._wait()
                if self._batch:
                    self._record(self._batch)
                self._sign_if_due(self._batch)
                self._batch = ()
        finally:
            # Also after a bug: every future gets an answer, and the failure is reported.
            bug = sys.exc_info()[1]
            if bug is not None:
                self._fail(LogFailed(self.log.record, bug))
            self._end()

    def _wait(self) -> tuple[list[_Group], bool]:
        """The next batch and whether to continue; an empty batch when a checkpoint is due."""
        try:
            first = self._waiting.get(timeout=self._checkpoint_delay())
        except Empty:
            return [], True
        groups: list[_Group] = []
        size = 0
        while first is not None:
            groups.append(first)
            size += first.size
            if size >= MAX_BATCH_BYTES or self._waiting.empty():
                return groups, True
            first = self._waiting.get()
        return groups, False

    def _checkpoint_delay(self) -> float | None:
        """Seconds until the next checkpoint or its retry; None if none is due."""
        if self._failed is not None:
            return None
        due = self.log.checkpoint_due_in()
        return due if due is None else max(due, self._sign_after - time.monotonic())

    def _record(self, groups: Sequence[_Group]) -> None:
        """Append a batch; group by group if it is too large as a whole."""
        if self._failed is not None:
            _answer([(group, self._failed) for group in groups])
            return
        try:
            made = self.log.write_ready([one for group in groups for one in group.entries])
        except LogFailed as failed:
            _answer([(group, failed) for group in groups])
            self._fail(failed)
        except RetryLater as refused:
            # All groups, or a later entry could be recorded before an earlier one.
            _answer([(group, refused) for group in groups])
        except EntryTooLarge as refused:
            if len(groups) == 1:
                _answer([(groups[0], refused)])
                return
            for group in groups:
                self._record([group])
        else:
            late = self.failed
            if late is not None:  # an append of the batch has timed out, so its result is unknown
                _answer([(group, late) for group in groups])
                return
            answers: _Answers = []
            at = 0
            for group in groups:
                end = at + len(group.entries)
                answers.append((group, tuple(made[at:end])))
                at = end
            _answer(answers)

    def _sign_if_due(self, groups: Sequence[_Group]) -> None:
        delay = self._checkpoint_delay()
        if delay is None:
            return
        asked = any(one.entry.sign for group in groups for one in group.entries)
        if not asked and delay > 0:
            return
        try:
            self.log.sign()
        except RetryLater:
            self._sign_after = time.monotonic() + CHECKPOINT_RETRY_DELAY
        except LogFailed as failed:
            self._fail(failed)

    def _fail(self, failed: LogFailed) -> None:
        with self._lock:
            if self._failed is not None:
                return
            self._failed = failed
        if self._on_failure is not None:
            self._on_failure(failed)

    def _end(self) -> None:
        try:
            if self._failed is None:
                self.log.close()
            else:
                self.log.release()
        except LogFailed as failed:
            self._fail(failed)
        except (RecordProblem, EntryTooLarge) as problem:
            # no space for the final records; all others are durable
            self._fail(LogFailed(self.log.record, problem))
        with self._lock:
            self._closed = True
            left = list(self._batch)
            while not self._waiting.empty():
                group = self._waiting.get()
                if group is not None:
                    left.append(group)
        _answer([(group, self._closed_error()) for group in left])

    # --- in the thread that submits -------------------------------------------------------

    def _group(
        self, entries: Sequence[RecordEntry], waits: _Waits, loop: _Loop | None = None
    ) -> _Group:
        """Encode in the caller's thread, so that bad data fails only its submitter."""
        if not entries:
            raise ValueError("nothing to record")
        made = []
        size = 0
        for one in entries:
            _check(one)
            ready = self.log.ready(one)
            if one.kind not in DECIDED:
                _check_kind(one)
            size += len(ready.rest)
            made.append(ready)
        return _Group(made, size, waits, loop)


def _check(one: RecordEntry) -> None:
    """Raise BadData or ValueError; encoding raises TypeError."""
    if one.kind in OWN:
        raise ValueError(f"a {one.kind} is written by the record itself")
    if not (0 <= one.round <= MAX_INTEGER and 0 <= one.cause <= MAX_INTEGER):
        raise ValueError(f"round {one.round}, cause {one.cause}; allowed: 0 to 2^63 - 1")
    check_plain(one.data)


def _check_kind(one: RecordEntry) -> None:
    """Raise BadData."""
    try:
        unknown = check_data(one.kind, encode(one.data))
    except WrongData as wrong:
        raise BadData(f"is none of a {one.kind}: {wrong}") from None
    if unknown:
        raise BadData(f"is none of a {one.kind}: it has {unknown}")
