"""What waits at the table's loop: each with who asked, and how they are answered."""

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
"""Something that happens, made of what the table knows when its turn has come. What it raises is
told to whoever asked, and nothing has happened."""


ANOTHER_CARD: Final = "another card"
"""What stands in the record of a card that lies face down and was said to be one that it is not."""


class TableStopped(Exception):
    """Nothing can be recorded, so nothing happens at this table. Says why, and what to do."""


class TableClosing(TableStopped):
    """The table is closing."""


class QueueFull(Exception):
    """So much waits at the table that this was not taken."""


class InputRejected(Exception):
    """The rules or the record cannot take it: nothing has happened, and that stands in the
    record."""

    what = ""
    """What it is there; empty: whose it was."""


class RequestResult(Struct, frozen=True):
    """Something that stands in the record, and what came of it."""

    appended: tuple[ChainPosition, ...]
    entries: tuple[RecordEntry, ...]
    answered: tuple[EventAnswer, ...]
    state: State


class LoopStart(Struct, frozen=True):
    """What a table begins with."""

    now: TableSnapshot = TableSnapshot()
    seq: int = 0
    """Of the record's last entry."""
    repeated: Prompt | None = None
    """A payment that was shown before this start."""
    waits: str = ""
    """Why nobody may do anything until first() has been recorded, and all is safe."""


class LoopRequest(Struct, frozen=True):
    make: InputFactory
    answer: asyncio.Future[RequestResult]
    cursor: DeviceCursor | None = None
    settled: Callable[[bool], None] = lambda recorded: None
    """Told once whether it stands in the record, before anything else is."""
    whose: Literal["person", "device", "changes", "note"] = "person"
    """A person's act, what a device tells, how devices stand, or words for the record."""
    anyway: bool = False
    """Taken also while nothing could be recorded: it finds out whether that is over."""
    first: bool = False
    """Taken before all acts."""


class HoldNames(Struct, frozen=True):
    """The holds that are on, each with what it is called."""

    holds: tuple[Hold, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def top(self) -> str:
        """The one that is ruled on; empty where nothing is held."""
        return self.names[-1] if self.names else ""

    def after(self, holds: tuple[Hold, ...], seq: int) -> HoldNames:
        """With those that are on after this entry of the record. A hold that was touched is
        another case: what was signed for is not what stands there now."""
        same = 0
        for old, new in zip(self.holds, holds, strict=False):
            if old is not new:
                break
            same += 1
        names = (_name(seq, depth) for depth in range(same, len(holds)))
        return HoldNames(holds, (*self.names[:same], *names))


def _name(seq: int, depth: int) -> str:
    """By the entry that brought it; several may come with one."""
    return f"hold {seq}" if depth == 0 else f"hold {seq} on {depth}"
