"""What was found in a segment, and where: kept apart from who looks, who may be several."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.decode import UNREADABLE
from controller.audit.format.records import Place
from controller.audit.read.scan import Scanned
from controller.audit.verify.facts import MOST_FINDINGS
from controller.audit.verify.finding import Finding


class Glance(Struct, frozen=True, gc=False):
    """What a finding needs of a record."""

    utc: int = 0
    mono: int = 0
    round: int = 0


_glance: Final = msgspec.json.Decoder(Glance).decode


def glanced(record: bytes) -> Glance:
    """Zeros where it is no record."""
    try:
        return _glance(record)
    except UNREADABLE:
        return Glance()


class Found:
    """The findings of one segment, and the record that is looked at now."""

    def __init__(self, number: int, base: int, scanned: Scanned) -> None:
        """`base`: seq of the last record before the segment."""
        self._number, self._base, self._scanned = number, base, scanned
        self.index = 0
        """Of the record at hand, from 0."""
        self.findings: list[Finding] = []
        self.more = 0
        """Findings beyond those."""

    @property
    def seq(self) -> int:
        """That the record at hand must have."""
        return self._base + 1 + self.index

    @property
    def record(self) -> bytes:
        return self._scanned.records[self.index]

    @property
    def place(self) -> Place:
        return Place(self._number, self._scanned.offsets[self.index], self.seq)

    def at(self) -> Finding:
        """The place of the record at hand, and nothing found yet."""
        place = self.place
        since = glanced(self._scanned.records[self.index - 1]).utc if self.index else 0
        turn = glanced(self.record).round
        return Finding(place.segment, place.offset, place.seq, turn, "", since)

    def say(self, what: str) -> None:
        """Something is wrong with the record at hand."""
        if len(self.findings) < MOST_FINDINGS:
            self.findings.append(replace(self.at(), what=what))
        else:
            self.more += 1

    def say_at_the_end(self, what: str) -> None:
        """Something is wrong with what stands behind the last record."""
        scanned = self._scanned
        self.index = len(scanned.records) - 1
        since = glanced(self.record).utc
        at = replace(self.at(), offset=scanned.end, seq=scanned.where.seq + 1, since=since)
        self.findings.append(replace(at, what=what))
