"""Parses the acts that people send: an event of the procedure without its actors, or one of the few
acts that need the vault or a device.

    {"type": "Paid", "amount": 500}          {"type": "CheckHole"}

The actors are those who authenticated for the act; a message never names them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from controller.procedure.engine import EVENTS
from controller.procedure.model import events as e
from controller.procedure.model.events import Actor, Event, Role
from controller.procedure.model.felt import hole_is_next, next_spare
from controller.procedure.model.holds import SHOE_IN_PLAY
from controller.procedure.model.state import Spare, State, Step
from controller.table.intake import (
    WORKING,
    IntakeContext,
    TableInput,
    TableSnapshot,
    by_hand,
    card_destination,
    turned_entry,
    turned_face_up,
)
from controller.table.loop.loop import ANOTHER_CARD, InputFactory, InputRejected

MAX_NUMBER: Final = 2**53
"""Exclusive limit for numbers of an act, so that any program can read them exactly."""
MAX_TEXT: Final = 500
"""Maximum length of a text in characters."""
MAX_WRONG_CARDS: Final[Mapping[Role, int]] = MappingProxyType({"dealer": 2, "floor": 4})
"""Wrong cards that may be named for a face-down card, by all roles together, before this role is
not allowed another try. After all of them 48 cards are still possible."""


class BadAct(ValueError):
    """The message is not a valid act. The text says what is allowed."""


class CaseChanged(BadAct):
    """The current case is not the one that was signed for."""

    def __init__(self) -> None:
        super().__init__("the table has moved on since this was signed for: look, sign again")


class NotDealing(BadAct):
    """The sender is no longer the dealer at this screen."""

    def __init__(self) -> None:
        super().__init__("whoever sent this does not deal here any more")


class WrongCard(BadAct, InputRejected):
    """A wrong card was named for a face-down card. Recorded, so that guessing leaves a trace."""

    what = ANOTHER_CARD

    def __init__(self, who: str) -> None:
        what = f"the shoe has read another card than {who} says"
        super().__init__(f"{what}: look again, or call the floor")


class TooManyWrongCards(BadAct, InputRejected):
    """Too many wrong cards were named: this one is not compared any more."""

    def __init__(self, who: str, *, floor: bool) -> None:
        todo = "it stays face down, or the floor voids the round" if floor else "the floor says it"
        super().__init__(f"{who} is not asked which card it is any more, after wrong ones: {todo}")


class ShufflerReports(BadAct, InputRejected):
    """A person reported the end of a shuffle that the shuffler counts and reports. Recorded."""

    what = "shuffled"

    def __init__(self) -> None:
        super().__init__(
            "the shuffler counts the cards and says when they are shuffled: wait for it, or look "
            "at it and ask for the shuffle again"
        )


class CheckHole(Struct, frozen=True, tag=True):
    """The dealer checks the hole card: the answer is one bit."""


class RevealHole(Struct, frozen=True, tag=True):
    """The dealer turns the hole card over."""


class LaySpare(Struct, frozen=True, tag=True):
    """The card beside the shoe is laid on its place."""


BY_VAULT: Final = (CheckHole, RevealHole, LaySpare)
NOT_BY_PEOPLE: Final = frozenset[type[Event]](
    {
        e.Go,
        e.HoleChecked,
        e.HoleRevealed,
        e.HoleDealt,
        e.DeviceLost,
        e.DeviceBack,
        e.ControllerRestarted,
        e.CardDrawn,
        e.CardBurned,
        e.CutCardSeen,
        e.ErrorCardDrawn,
        e.CardUnreadable,
    }
)
"""Events that only the controller, the vault or the shoe can bring."""
BY_PEOPLE: Final = tuple(kind for kind in EVENTS if kind not in NOT_BY_PEOPLE)
ROLES: Final = ("dealer", "floor", "surveillance", "technician")

if TYPE_CHECKING:
    PersonEvent: TypeAlias = Event
else:  # a tagged union for decoding
    PersonEvent = reduce(or_, BY_PEOPLE)

_BY_NAME: Final = {kind.__name__: kind for kind in BY_PEOPLE}
NAMES: Final = tuple(sorted((*_BY_NAME, *(kind.__name__ for kind in BY_VAULT))))
"""The names of all acts."""


def read_act(
    sent: Mapping[str, Any], actor: Actor, context: IntakeContext, *, second: Actor | None = None
) -> InputFactory:
    """Parse an act. Returns a function that makes the table input from the snapshot at the time
    when the act is processed. Raises BadAct."""
    if actor.role not in ROLES:
        raise BadAct(f"a {actor.role} sends no acts; allowed: {', '.join(ROLES)}")
    name = _name(sent)
    by_vault = VAULT_ACTS.get(name)
    if by_vault is not None:
        _check_vault_act(name, sent, second)
        return lambda now: by_vault(now, actor, context)
    event = _event(_BY_NAME[name], sent, actor, second)
    by_device = DEVICE_ACTS.get(type(event))
    if by_device is not None:
        return lambda now: by_device(now, event, context)
    return lambda now: TableInput((event,))


def kind_of(sent: Mapping[str, Any]) -> type[Event] | None:
    """The type of event that an act brings; None for acts of the vault. Raises BadAct."""
    name = _name(sent)
    if name in VAULT_ACTS:
        _check_vault_act(name, sent, None)
        return None
    return type(_event(_BY_NAME[name], sent, _ANYBODY, None))


def _name(sent: Mapping[str, Any]) -> str:
    name = sent.get("type")
    if not isinstance(name, str) or name not in NAMES:
        known = f"{name!r}" if isinstance(name, str) and len(name) <= 40 else "of this type"
        raise BadAct(f"there is no act {known}; allowed: {', '.join(NAMES)}")
    for people in _PEOPLE:
        if people in sent:
            raise BadAct(f"an act says nothing of its {people}: that is who has signed for it")
    return name


def _check_vault_act(name: str, sent: Mapping[str, Any], second: Actor | None) -> None:
    if len(sent) > 1 or second is not None:
        raise BadAct(f"{name} has no fields and no second person")


def _event(kind: type[Event], sent: Mapping[str, Any], actor: Actor, second: Actor | None) -> Event:
    name = kind.__name__
    fields = dict(sent)
    for field, value in fields.items():
        if isinstance(value, str) and (len(value) > MAX_TEXT or not value.isprintable()):
            raise BadAct(f"{name}: {field}: allowed: up to {MAX_TEXT} printable characters")
        if isinstance(value, int) and abs(value) >= MAX_NUMBER:
            raise BadAct(f"{name}: {field}: allowed: numbers below 2^53")
    if second is not None:
        if "second" not in kind.__struct_fields__:
            raise BadAct(f"{name} takes no second person")
        fields["second"] = msgspec.to_builtins(second)
    unknown = sorted(set(fields) - {"type"} - set(kind.__struct_fields__))
    if unknown:
        allowed = ", ".join(one for one in kind.__struct_fields__ if one not in _PEOPLE)
        raise BadAct(f"{name} has no {unknown[0]!r}; allowed: {allowed or 'no fields'}")
    fields["actor"] = msgspec.to_builtins(actor)
    try:
        event: Event = msgspec.convert(fields, PersonEvent)
    except msgspec.ValidationError as problem:
        raise BadAct(f"{name}: {problem}") from None
    card = getattr(event, "card", 0)
    if not 0 <= card < 52:
        raise BadAct(f"{name}: card: allowed: 0 to 51")
    return event


_PEOPLE: Final = ("actor", "second")
_ANYBODY: Final = Actor("dealer", "")

# An act at the wrong time or by the wrong role is refused without using the vault: the refusal is
# recorded, and must not depend on the card.


def _may(context: IntakeContext, kind: type[Event], actor: Actor) -> bool:
    return actor.role in context.game.who.get(kind, ())


def _check(now: TableSnapshot, actor: Actor, context: IntakeContext) -> TableInput:
    s = now.state
    due = s.step is Step.CHECK and _may(context, e.HoleChecked, actor)
    blackjack = due and context.vault.makes_blackjack(s.hole, s.up)
    return TableInput((e.HoleChecked(actor, blackjack),))


def _reveal(now: TableSnapshot, actor: Actor, context: IntakeContext) -> TableInput:
    """Checks of the card that need its value are made now that it is visible."""
    s = now.state
    if s.step is not Step.REVEAL or not _may(context, e.HoleRevealed, actor):
        return TableInput((e.HoleRevealed(actor, -1, ""),))
    card, opening = context.vault.reveal(s.hole)
    shown = e.HoleRevealed(actor, card, opening)
    if s.read >= 0:  # it lies face up already, and people have read it from the felt
        return TableInput((shown,))
    return turned_face_up(context, now, s.hole, shown)


def _lay(now: TableSnapshot, actor: Actor, context: IntakeContext) -> TableInput:
    """Face down if it becomes the hole card, else face up."""
    s, spare = now.state, _spare_due(now.state)
    if spare is None:
        raise BadAct("no card that lies beside the shoe is due now")
    if spare.card >= 0:
        return TableInput((e.CardDrawn(actor, spare.card, spare=True),))
    if hole_is_next(s):
        return TableInput((e.HoleDealt(actor, spare.commitment, spare=True),))
    if not _may(context, e.CardDrawn, actor):
        raise BadAct("the dealer lays the card that lies beside the shoe")
    card, _ = context.vault.reveal(spare.commitment)
    return turned_face_up(context, now, spare.commitment, e.CardDrawn(actor, card, spare=True))


def _spare_due(s: State) -> Spare | None:
    """The card beside the shoe, if it is due now."""
    due = card_destination(s) in ("face_up", "hole", "instead_of_hole")
    first = s.step is Step.WAGERING and bool(s.seats)
    return next_spare(s) if due or first else None


def _exposed(now: TableSnapshot, event: e.ErrorCardExposed, context: IntakeContext) -> TableInput:
    """A card that people name must be the one that the shoe read. The number of tries is limited:
    each answer reveals something to a person who did not see the card."""
    spare = now.state.spare
    if spare is None or spare.card >= 0 or not context.vault.has(spare.commitment):
        return TableInput((event,))
    if now.state.step not in SHOE_IN_PLAY or not _may(context, e.ErrorCardExposed, event.actor):
        return TableInput((event,))
    if context.vault.wrong(spare.commitment) >= MAX_WRONG_CARDS[event.actor.role]:
        raise TooManyWrongCards(event.actor.name, floor=event.actor.role == "floor")
    if not context.vault.matches(spare.commitment, event.card):
        raise WrongCard(event.actor.name)
    read = context.vault.read(spare.commitment).open()
    seen = turned_entry(context, now.state.round, spare.commitment, read)
    return TableInput((event,), notes=(seen,))


def _shuffled(now: TableSnapshot, event: e.ShuffleDone, context: IntakeContext) -> TableInput:
    """Rejected while the shuffler's own count is still to come."""
    theirs = now.state.step in WORKING and _may(context, e.ShuffleDone, event.actor)
    if theirs and not by_hand(context, now):
        raise ShufflerReports
    return TableInput((event,))


DEVICE_ACTS: Final[
    Mapping[type[Event], Callable[[TableSnapshot, Any, IntakeContext], TableInput]]
] = MappingProxyType({e.ErrorCardExposed: _exposed, e.ShuffleDone: _shuffled})
"""Acts that are compared with what a device reported."""
VAULT_ACTS: Final[Mapping[str, Callable[[TableSnapshot, Actor, IntakeContext], TableInput]]] = (
    MappingProxyType({"CheckHole": _check, "RevealHole": _reveal, "LaySpare": _lay})
)
