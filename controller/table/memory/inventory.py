"""The cards of a shoe that is closed, counted from those that were seen: never of one that is live.

While cards are dealt nobody asks what is left. When the shoe is emptied for a shuffle, runs out or
the table closes, what lay face up is held against what the decks hold, once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from controller.audit.format.records import RecordActor, RecordEntry
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.state import State, Step
from controller.rules.cards import Card
from controller.table.memory.memory import Suspicion, TableMemory

WHAT: Final = "ShoeInventory"


class Inventory(Struct, frozen=True):
    """What is known of one loading at its end."""

    loading: int
    out: int
    """Cards that left the shoe, the cut card aside."""
    seen: int
    """How many of them lay face up."""
    extra: tuple[Card, ...] = ()
    """Those seen more often than the decks hold them, each as often as it is too many: as many
    others are missing."""
    foreign: int = 0
    """Cards with another back than the first one."""
    missing: int = 0
    """Of a shoe that ran out: cards that were loaded and did not come."""
    beyond: int = 0
    """Cards that came and were not loaded."""

    @property
    def unseen(self) -> int:
        """Burned, not read, or put away face down."""
        return self.out - self.seen


def ends_loading(event: Event, before: State, after: State) -> bool:
    """No card of this loading is dealt any more."""
    match event:
        case events.ShoeRanOut():
            return True
        case events.ShuffleStarted():
            return before.step is Step.SHUFFLE_NEEDED
        case _:
            return before.step is not Step.CLOSED and after.step is Step.CLOSED


def inventory(known: TableMemory, decks: int, *, ran_out: bool) -> Inventory:
    """Of the loading that is over."""
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
    """What is wrong with the decks."""
    if found.extra:
        yield "duplicate"
    if found.foreign:
        yield "foreign_back"
    if found.missing:
        yield "short"
    if found.beyond:
        yield "long"


def inventory_entry(found: Inventory, round_: int) -> RecordEntry:
    """What is recorded of it."""
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
