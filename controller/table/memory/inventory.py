"""The inventory of a closed shoe, from the cards that were seen; never of a live shoe.

When the shoe is emptied for a shuffle, runs out, or the table closes, the cards that lay face up
are compared once with the cards of the decks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from controller.audit.format.records import RecordActor, RecordEntry
from controller.rules.cards import Card
from controller.table.memory.memory import Suspicion, TableMemory

WHAT: Final = "ShoeInventory"


class Inventory(Struct, frozen=True):
    """The count of one loading at its end."""

    loading: int
    out: int
    """Cards that left the shoe, without the cut card."""
    seen: int
    """Cards of these that lay face up."""
    extra: tuple[Card, ...] = ()
    """Cards seen more often than the decks contain them, repeated for each excess one. As many
    other cards are missing."""
    foreign: int = 0
    """Cards with a different back than the first one."""
    missing: int = 0
    """Cards that were loaded and did not come, if the shoe ran out."""
    beyond: int = 0
    """Cards that came and were not loaded."""

    @property
    def unseen(self) -> int:
        """Cards that were burned, not read, or put away face down."""
        return self.out - self.seen


def count_loading(known: TableMemory, decks: int, *, ran_out: bool) -> Inventory:
    """The inventory of the loading that has ended."""
    faces = {face.pos: face for face in known.faces}
    counts = Counter(face.card for face in faces.values())
    extra = tuple(card for card in sorted(counts) for _ in range(max(counts[card] - decks, 0)))
    foreign = sum(face.back not in (0, known.back) for face in faces.values())
    out = known.last - known.cut
    left = known.count - out if known.count else 0
    return Inventory(
        known.loading,
        out,
        len(faces),
        extra,
        foreign,
        max(left, 0) if ran_out else 0,
        max(-left, 0),
    )


def deck_suspicions(found: Inventory) -> Iterator[Suspicion]:
    """The suspicions about the decks that an inventory raises."""
    if found.extra:
        yield "duplicate"
    if found.foreign:
        yield "foreign_back"
    if found.missing:
        yield "short"
    if found.beyond:
        yield "long"


def inventory_entry(found: Inventory, round_: int) -> RecordEntry:
    """The record entry of an inventory."""
    data = {
        "what": WHAT,
        "shoe": found.loading,
        "out": found.out,
        "seen": found.seen,
        "unseen": found.unseen,
        "extra": list(found.extra),
        "foreign": found.foreign,
        "missing": found.missing,
        "beyond": found.beyond,
    }
    return RecordEntry("device", RecordActor("device", "shoe"), data, round_)
