"""Retirements held against what is left of a record: it begins where the last of them ends.

As soon as the note of a retirement stands, the record begins behind it: what lies there yet of the
segments before is left over from a removal that was cut short.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from controller.audit.format.merkle import Hash
from controller.audit.format.notes import VerifierKey
from controller.audit.format.notes_forms import NoteProblem
from controller.audit.read.retirements import (
    Before,
    Card,
    Changed,
    Kept,
    Retirement,
    before,
    kept_in,
)
from controller.audit.read.retirements import in_words as told
from controller.audit.verify.facts import Edge
from controller.audit.verify.finding import Finding

_OTHER = "begins otherwise than what was retired ends"


class Retirements:
    """All of one record."""

    def __init__(self, record: Path, there: Sequence[int]) -> None:
        """`there`: its segments."""
        self.kept: list[Kept] = kept_in(record)
        self._last = self.kept[-1] if self.kept else None
        ends = 0 if self._last is None or self._last.said is None else self._last.number
        over = [number for number in there if number <= ends]
        cut = bool(over) and (there[0] > 1 or over[-1] != ends) and len(over) < len(there)
        self.left = [number for number in there if not cut or number > ends]
        """The segments that are the record."""
        self.over = over
        """Those that were to be removed."""
        self.joins = 0 < ends == self.left[0] - 1
        """The record begins behind the last retirement."""
        self.before: Before | None = None
        """What they come to, once they were held against the record, and rightly."""

    @property
    def last(self) -> Retirement | None:
        return None if self._last is None else self._last.said

    @property
    def sizes(self) -> set[int]:
        """Roots to be looked at where all is still here."""
        return set() if self.last is None else {self.last.records[1]}

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(told(one.said) for one in self.kept if one.said is not None)

    @property
    def down(self) -> tuple[Card | None, tuple[Card, ...]]:
        """The cards that lie face down where the record begins."""
        return (self.last.hole, self.last.drawn) if self.joins and self.last else (None, ())

    @property
    def tails(self) -> set[str]:
        found = [one.said.tails for one in self.kept if one.said is not None]
        return {name for names in found for name in names}

    @property
    def remarks(self) -> Iterator[str]:
        if self.over and self._last is not None:
            first, last = self.over[0], self.over[-1]
            yield (
                f"segments {first} to {last} are left of what {self._last.name} tells of: "
                "`holecard audit retire` with its case removes them"
            )

    def hold(
        self, origin: str, key: str, begins: Edge | None, roots: dict[int, Hash], last: int
    ) -> Iterator[Finding]:
        """What is wrong with them. `key`: the table's, as the record names it; `begins`: how the
        first segment does, as far as it can be read; `last`: the record's last seq."""
        if self._last is None:
            return
        try:
            found = before(self.kept, origin, VerifierKey.parse(key))
        except (Changed, NoteProblem) as problem:
            yield Finding(self._last.number, 0, 0, 0, str(problem), 0)
            return
        size = found.where.seq
        same = roots.get(size, found.roots[size]) == found.roots[size]
        if self.joins and begins is not None:
            same = (begins.where, begins.frontier) == (found.where, found.frontier)
        if not same:
            yield Finding(found.segment + 1, 0, size + 1, 0, f"the record {_OTHER}", 0)
            return
        if found.signed > last:
            what = f"cut off: {self._last.name} tells of {found.signed} records, {last} are here"
            yield Finding(found.segment + 1, 0, last + 1, 0, what, 0)
            return
        self.before = found
