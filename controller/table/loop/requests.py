"""Requests of the table loop: what waits in its queue, and the results and errors of requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.audit.format.records import ChainPosition, DeviceCursor, RecordEntry
from controller.procedure.model.effects import Prompt
from controller.procedure.model.state import Hold, State
from controller.table.intake import EventAnswer, TableInput, TableSnapshot

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

    now: TableSnapshot = TableSnapshot()
    seq: int = 0
    """Sequence number of the record's last entry."""
    repeated: Prompt | None = None
    """A payment that was shown before the restart."""
    waits: str = ""
    """Why acts are rejected until first() has been recorded; empty if they are not."""


class LoopRequest(Struct, frozen=True):
    """A request in the queue."""

    make: InputFactory
    answer: asyncio.Future[RequestResult]
    cursor: DeviceCursor | None = None
    settled: Callable[[bool], None] = lambda recorded: None
    """Called exactly once with whether it was recorded, before `answer` is set. Called also if the
    waiting task was cancelled."""
    whose: Literal["person", "device", "changes", "note"] = "person"
    """An act of a person, a device event, changes of device faults, or an entry for the record."""
    anyway: bool = False
    """Processed also while the table is stopped: tests whether it can record again."""
    first: bool = False
    """Processed before all acts."""


class HoldNames(Struct, frozen=True):
    """The current holds, each with a name that identifies the case."""

    holds: tuple[Hold, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def top(self) -> str:
        """The name of the hold that is ruled on; empty without holds."""
        return self.names[-1] if self.names else ""

    def after(self, holds: tuple[Hold, ...], seq: int) -> HoldNames:
        """The names after the record's entry `seq`. A changed hold gets a new name, so that an
        approval for the former case does not apply to it."""
        same = 0
        for old, new in zip(self.holds, holds, strict=False):
            if old is not new:
                break
            same += 1
        names = (
            f"hold {seq}" if depth == 0 else f"hold {seq} on {depth}"
            for depth in range(same, len(holds))
        )
        return HoldNames(holds, (*self.names[:same], *names))
