"""What the table remembers beside the procedure's state; rebuilt from the record after a restart.

It stores the cards that were seen face up, with their positions in the shoe. It keeps no count of
them, and nothing computes which cards are left in a live shoe. When the shoe is emptied for a
shuffle, runs out, or the table closes, they are compared once with the cards of the decks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import Record, RecordActor, RecordEntry
from controller.audit.replay import decode_decision
from controller.procedure.model import events
from controller.procedure.model.effects import DecksOut, Discarded, Effect, RoundVoid, Ruled, Told
from controller.procedure.model.events import Event
from controller.rules.cards import Card
from controller.rules.irregularities import Irregularity, Way
from controller.table.memory.card_order import NO_CARDS, CardSequence, sequence_of

Suspicion: TypeAlias = Literal["duplicate", "foreign_back", "short", "long", "factory_order"]


class SeenCard(Struct, frozen=True, gc=False):
    """A card that was seen face up."""

    pos: int
    """Its position in the loading, from 1."""
    card: Card
    back: int = 0


_UNKNOWN: Final = SeenCard(0, -1)


def _sequence(faces: Iterable[SeenCard]) -> CardSequence:
    return sequence_of((face.pos, face.card) for face in faces)


_GONE: Final = frozenset(
    (what.value, way.value)
    for what in (Irregularity.CARD_UNREADABLE, Irregularity.UNKNOWN_CARD)
    for way in (Way.DISCARD, Way.BURN)
)
"""Rulings after which the card is not read from the felt."""


class TableMemory(Struct, frozen=True):
    """Immutable; every update returns a new value."""

    discarding: int = 0
    """Cards found face up in the shoe's mouth that still have to be pulled out and discarded."""
    loading: int = 0
    """The shoe's number of the loading; 0: unknown."""
    count: int = 0
    """Number of cards that were loaded, without the cut card; 0: unknown."""
    again: bool = False
    """They are of the batch that was in play before: the shoe ran out in a round."""
    last: int = 0
    """The highest position known to have left the shoe."""
    cut: bool = False
    """One of the positions up to `last` was the cut card's."""
    closed: bool = False
    """No further card of this loading is dealt, and its seen cards have been counted."""
    faces: tuple[SeenCard, ...] = ()
    """The cards of this loading that were seen, in that order."""
    sequence: CardSequence = NO_CARDS
    """The same cards by position."""
    back: int = 0
    """The maker's number of their backs; 0: unknown."""
    former: int = 0
    """The back of the batch before."""
    twin: bool = False
    """The shoe reported a duplicate card. The other one may lie face down, so the suspicion is not
    reported before that one is turned over."""
    shuffling: bool = False
    """The shuffler has started and not finished: an open door is a fault."""
    alarmed: frozenset[Suspicion] = frozenset()
    """Suspicions that were already reported for this loading."""
    unsure: tuple[SeenCard, ...] = ()
    """Cards whose value is uncertain. The last one is read from the felt first; its position is 0
    until the shoe reports it."""
    entered: Card = -1
    """The value that the dealer entered for the last one, before the floor confirms it."""

    # --- updates --------------------------------------------------------------------------

    def after_event(self, event: Event, effects: tuple[Effect, ...]) -> TableMemory:
        """Returns the memory after the procedure accepted an event."""
        known = self._after_effects(event, effects)
        match event:
            case events.DecksChanged() | events.TableOpened():
                return TableMemory(loading=known.loading, shuffling=known.shuffling)
            case events.ShuffleStarted():
                # Cards that were still to be pulled out went into the shuffle.
                return replace(known, discarding=0)
            case events.CardUnreadable() | events.UnknownCardDrawn() if (
                event.actor.role == "device"
            ):
                return replace(known, unsure=(*known.unsure, _UNKNOWN))
            case events.CardMisread():
                return known._misread()
            case events.CardEntered():
                return replace(known, entered=event.card)
            case events.CardConfirmed():
                return known._confirmed()
            case _:
                return known

    def _after_effects(self, event: Event, effects: tuple[Effect, ...]) -> TableMemory:
        known = self
        for effect in effects:
            if isinstance(effect, Discarded) and isinstance(event, events.FaceUpCardFound):
                known = replace(known, discarding=known.discarding + 1)
            elif isinstance(effect, Told) and effect.what == Irregularity.DECK_SUSPECT.value:
                known = known._suspected(event)
            elif isinstance(effect, DecksOut):
                known = replace(known, back=0, former=0, unsure=())
            elif isinstance(effect, RoundVoid):
                known = replace(known, unsure=())
            elif isinstance(effect, Ruled) and (effect.what, effect.way) in _GONE:
                known = replace(known, unsure=known.unsure[:-1])
        return known

    def _suspected(self, event: Event) -> TableMemory:
        """A suspicion about the decks was reported."""
        why: Suspicion = event.why if isinstance(event, events.DeckSuspect) else "duplicate"
        twin = self.twin and why != "duplicate"
        return replace(self, alarmed=self.alarmed | {why}, twin=twin)

    def after_note(self, data: Any) -> TableMemory:
        """Returns the memory after a note about a device was recorded, with this `data`."""
        match data.get("what"):
            case "ShoeLoaded":
                again = bool(data.get("again"))
                return TableMemory(
                    loading=data["shoe"],
                    count=data["count"],
                    again=again,
                    back=self.back if again else 0,
                    former=self.former if again else self.back or self.former,
                    shuffling=self.shuffling,
                )
            case "ShuffleStarted" | "ShuffleDone" | "CountWrong" as what:
                return replace(self, shuffling=what == "ShuffleStarted")
            case "Faulted" if data["code"] == "aborted":
                return replace(self, shuffling=False)
            case "ShoeInventory":
                return replace(self, closed=True)
            case "CardSeen":
                return self._seen(data)
            case "CardRetracted":
                return self._retracted(data["pos"])
            case "ShoeCardRead" | "ReadFailed" | "CutCardCame" if "pos" in data:
                pulled = max(self.discarding - bool(data.get("discarded")), 0)
                cut = self.cut or data["what"] == "CutCardCame"
                last = max(self.last, data["pos"])
                known = replace(self, last=last, discarding=pulled, cut=cut)
                return known if data["what"] == "CutCardCame" else known._placed(data["pos"], 0)
            case _:
                return self

    def _placed(self, pos: int, back: int) -> TableMemory:
        """Set the position of the uncertain card, unless it is known."""
        if not self.unsure or self.unsure[-1].pos:
            return self
        return replace(self, unsure=(*self.unsure[:-1], SeenCard(pos, -1, back)))

    def _misread(self) -> TableMemory:
        """The shoe read the last card wrong."""
        if not self.faces:
            return replace(self, unsure=(*self.unsure, _UNKNOWN))
        last = replace(self.faces[-1], card=-1)
        faces = self.faces[:-1]
        return replace(self, faces=faces, sequence=_sequence(faces), unsure=(*self.unsure, last))

    def _confirmed(self) -> TableMemory:
        """The value that was read from the felt replaces that of the shoe."""
        if not self.unsure:
            return self
        *others, card = self.unsure
        known = replace(self, unsure=tuple(others), entered=-1)
        if not card.pos or self.entered < 0:
            return known
        return known.with_face(replace(card, card=self.entered))

    def _seen(self, data: Any) -> TableMemory:
        placed = self._placed(data["pos"], data["back"])
        if placed is not self:
            back = self.back or data["back"]
            return replace(placed, back=back, last=max(self.last, data["pos"]))
        known = self.with_face(SeenCard(data["pos"], data["card"], data["back"]))
        return replace(known, back=self.back or data["back"], last=max(self.last, data["pos"]))

    def with_face(self, face: SeenCard) -> TableMemory:
        """Returns the memory with one more seen card."""
        return replace(self, faces=(*self.faces, face), sequence=self.sequence_with(face))

    def sequence_with(self, face: SeenCard) -> CardSequence:
        """The sequence with one more card. O(1) for a card behind all others, so that it takes as
        long at the end of a shoe as at its beginning."""
        if face.pos > self.sequence.place:
            return self.sequence.then(face.pos, face.card)
        return _sequence((*self.faces, face))

    def _retracted(self, pos: int) -> TableMemory:
        faces = tuple(face for face in self.faces if face.pos < pos)
        return replace(self, faces=faces, sequence=_sequence(faces), last=min(self.last, pos - 1))

    # --- questions ------------------------------------------------------------------------

    def foreign(self, back: int, backs: tuple[int, ...]) -> bool:
        """Whether a card with this back does not belong to the batch in play. `back` is 0 if the
        shoe did not recognise it."""
        if not back:
            return False
        if backs and back not in backs:
            return True
        if self.back:
            return back != self.back
        return len(backs) > 1 and back == self.former


EMPTY_MEMORY: Final = TableMemory()


def memory_from(records: Iterable[Record]) -> TableMemory:
    """Rebuild the memory from records. Decisions of other code that cannot be read are skipped."""
    known = EMPTY_MEMORY
    for record in records:
        if record.kind == "decision":
            try:
                made = decode_decision(record)
            except msgspec.DecodeError:
                continue
            known = known.after_event(made.event, made.effects)
        elif record.kind == "device":
            known = known.after_note(msgspec.json.decode(record.data))
    return known


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
