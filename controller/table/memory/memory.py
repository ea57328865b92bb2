"""What the table remembers beside the procedure's state: made anew from the record after a start.

Of cards it knows those that lie or lay face up, with their places in the shoe, and nothing else: no
count is kept of them, and nobody asks it what is left in the shoe.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import Record
from controller.audit.replay import decode_decision
from controller.procedure.model import events
from controller.procedure.model.effects import DecksOut, Discarded, Effect, RoundVoid, Ruled, Told
from controller.procedure.model.events import Event
from controller.rules.cards import Card
from controller.rules.irregularities import Irregularity, Way
from controller.table.memory.card_order import NO_CARDS, CardSequence, sequence_of

Suspicion: TypeAlias = Literal["duplicate", "foreign_back", "short", "long", "factory_order"]


class SeenCard(Struct, frozen=True, gc=False):
    """A card that was seen."""

    pos: int
    """Its position in the loading, from 1."""
    card: Card
    back: int = 0


_UNKNOWN: Final = SeenCard(0, -1)


def _lying(faces: Iterable[SeenCard]) -> CardSequence:
    return sequence_of((face.pos, face.card) for face in faces)


_GONE: Final = frozenset(
    (what.value, way.value)
    for what in (Irregularity.CARD_UNREADABLE, Irregularity.UNKNOWN_CARD)
    for way in (Way.DISCARD, Way.BURN)
)
"""Rulings after which nobody reads the card from the felt."""


class TableMemory(Struct, frozen=True):
    """Beside the state."""

    discarding: int = 0
    """Cards found face up at the shoe's mouth that are still to be pulled out, and not used."""
    loading: int = 0
    """The shoe's number of the loading; 0: not known."""
    count: int = 0
    """Cards that were loaded, the cut card aside; 0: not known."""
    again: bool = False
    """They are of the batch that was in play already: those of a shoe that ran out in a round."""
    last: int = 0
    """The highest position that is known to have left the shoe."""
    cut: bool = False
    """One of them was the cut card's."""
    closed: bool = False
    """No card of this loading is dealt any more, and what was seen of it has been counted."""
    faces: tuple[SeenCard, ...] = ()
    """Cards of this loading that were seen, in the order in which that was."""
    lying: CardSequence = NO_CARDS
    """The same, by their positions."""
    back: int = 0
    """The maker's number of their backs; 0: not seen yet."""
    former: int = 0
    """That of the batch before."""
    twin: bool = False
    """The shoe has seen a card more often than its decks hold it. Which other one it means may lie
    face down, so nobody is told before that is turned over."""
    shuffling: bool = False
    """The shuffler has begun and not ended: a door that is open is in its way."""
    alarmed: frozenset[Suspicion] = frozenset()
    """What people were told of this loading, and need not be told again."""
    unsure: tuple[SeenCard, ...] = ()
    """Cards that came and are not known for sure. The last one is read from the felt first; its
    position is 0 until it is told."""
    entered: Card = -1
    """What the dealer has read of the last one; the floor is to confirm it."""

    # --- what happens ---------------------------------------------------------------------

    def decided(self, event: Event, effects: tuple[Effect, ...]) -> TableMemory:
        """The procedure has taken an event."""
        known = self._effected(event, effects)
        match event:
            case events.DecksChanged() | events.TableOpened():
                return TableMemory(loading=known.loading, shuffling=known.shuffling)
            case events.ShuffleStarted():
                # What was to be pulled out went into the shuffle with all others.
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

    def _effected(self, event: Event, effects: tuple[Effect, ...]) -> TableMemory:
        known = self
        for effect in effects:
            if isinstance(effect, Discarded) and isinstance(event, events.FaceUpCardFound):
                known = replace(known, discarding=known.discarding + 1)
            elif isinstance(effect, Told) and effect.what == Irregularity.DECK_SUSPECT.value:
                known = known.told_of(event)
            elif isinstance(effect, DecksOut):
                known = replace(known, back=0, former=0, unsure=())
            elif isinstance(effect, RoundVoid):
                known = replace(known, unsure=())
            elif isinstance(effect, Ruled) and (effect.what, effect.way) in _GONE:
                known = replace(known, unsure=known.unsure[:-1])
        return known

    def told_of(self, event: Event) -> TableMemory:
        """People know that the decks are not what they should be."""
        why: Suspicion = event.why if isinstance(event, events.DeckSuspect) else "duplicate"
        twin = self.twin and why != "duplicate"
        return replace(self, alarmed=self.alarmed | {why}, twin=twin)

    def told(self, data: Any) -> TableMemory:
        """A device has told something that stands in the record."""
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
        """Where the card lay that is not known for sure, if that is the one."""
        if not self.unsure or self.unsure[-1].pos:
            return self
        return replace(self, unsure=(*self.unsure[:-1], SeenCard(pos, -1, back)))

    def _misread(self) -> TableMemory:
        """What was seen last is another card than the shoe took it for."""
        if not self.faces:
            return replace(self, unsure=(*self.unsure, _UNKNOWN))
        last = replace(self.faces[-1], card=-1)
        faces = self.faces[:-1]
        return replace(self, faces=faces, lying=_lying(faces), unsure=(*self.unsure, last))

    def _confirmed(self) -> TableMemory:
        """It is seen as what it is on the felt, not as what the shoe took it for."""
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
        """One more card was seen."""
        return replace(self, faces=(*self.faces, face), lying=self.lying_with(face))

    def lying_with(self, face: SeenCard) -> CardSequence:
        """How they lie with one more card. One that comes behind them all asks nothing of the
        others: so it is as quick at the end of a shoe as it is at its beginning."""
        if face.pos > self.lying.place:
            return self.lying.then(face.pos, face.card)
        return _lying((*self.faces, face))

    def _retracted(self, pos: int) -> TableMemory:
        faces = tuple(face for face in self.faces if face.pos < pos)
        return replace(self, faces=faces, lying=_lying(faces), last=min(self.last, pos - 1))

    # --- questions ------------------------------------------------------------------------

    def foreign(self, back: int, backs: tuple[int, ...]) -> bool:
        """Whether a card with this back does not belong to the batch that is dealt. 0 is no
        back: the shoe has not recognised it, or does not look."""
        if not back:
            return False
        if backs and back not in backs:
            return True
        if self.back:
            return back != self.back
        return len(backs) > 1 and back == self.former


EMPTY_MEMORY: Final = TableMemory()


def memory_from(records: Iterable[Record]) -> TableMemory:
    """What these records come to: those of the last segment, which is as far as it goes back.
    Records of other code are passed over where they cannot be read."""
    known = EMPTY_MEMORY
    for record in records:
        if record.kind == "decision":
            try:
                made = decode_decision(record.data)
            except msgspec.DecodeError:
                continue
            known = known.decided(made.event, made.effects)
        elif record.kind == "device":
            known = known.told(msgspec.json.decode(record.data))
    return known
