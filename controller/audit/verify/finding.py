"""What is wrong with a record: where, and since when."""

from __future__ import annotations

from msgspec import Struct

from controller.audit.format.records import RecordPosition


class RecordFinding(Struct, frozen=True, order=True):
    """Something that a record must not have. They are ordered as they lie."""

    segment: int
    offset: int
    seq: int
    round: int
    what: str
    since: int
    """utc of the last record before it: all until then was as it must be."""

    @property
    def place(self) -> RecordPosition:
        return RecordPosition(self.segment, self.offset, self.seq)

    def __str__(self) -> str:
        return f"{self.place}, round {self.round}: {self.what}"
