"""What people do, as they send it: an event of the procedure without its people, or one of the few
acts behind which the vault or a device stands.

    {"type": "Paid", "amount": 500}          {"type": "CheckHole"}

Who does it, and who is the second person, is who has signed for it, never what a message says.
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
    back_suspicions,
    by_hand,
    card_destination,
    card_suspicions,
    card_turned,
    doubt_of,
    is_duplicate,
)
from controller.table.loop.requests import ANOTHER_CARD, InputFactory, InputRejected

MAX_NUMBER: Final = 2**53
"""No number of an act is as large, so that any program can read it."""
MAX_TEXT: Final = 500
"""Characters of a text."""
MAX_WRONG_CARDS: Final[Mapping[Role, int]] = MappingProxyType({"dealer": 2, "floor": 4})
"""Cards that may be said of one that lies face down and that it is not, the floor's among them,
before the dealer is not asked any more, and the floor is not. After all of them it is one of 48."""


class BadAct(ValueError):
    """What was sent is no act. Says what is allowed."""


class CaseChanged(BadAct):
    """Another case stands before the floor than the one that was signed for."""

    def __init__(self) -> None:
        super().__init__("the table has moved on since this was signed for: look, sign again")


class NotDealing(BadAct):
    """Whoever dealt when it was sent deals no more, or at another screen."""

    def __init__(self) -> None:
        super().__init__("whoever sent this does not deal here any more")


class WrongCard(BadAct, InputRejected):
    """Somebody has said which card it is that nobody has seen, and it is another one. That stands
    in the record: nobody tries one card after the other unseen."""

    what = ANOTHER_CARD

    def __init__(self, who: str) -> None:
        what = f"the shoe has read another card than {who} says"
        super().__init__(f"{what}: look again, or call the floor")


class TooManyWrongCards(BadAct, InputRejected):
    """So many cards were said that it is not: nobody looks whether it is this one."""

    def __init__(self, who: str, *, floor: bool) -> None:
        todo = "it stays face down, or the floor voids the round" if floor else "the floor says it"
        super().__init__(f"{who} is not asked which card it is any more, after wrong ones: {todo}")


class ShufflerReports(BadAct, InputRejected):
    """Somebody has said that the cards are shuffled, where the shuffler says so and counts them.
    That stands in the record."""

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
"""Events that only the controller brings, the vault knows of, or the shoe tells."""
BY_PEOPLE: Final = tuple(kind for kind in EVENTS if kind not in NOT_BY_PEOPLE)
ROLES: Final = ("dealer", "floor", "surveillance", "technician")

if TYPE_CHECKING:
    PersonEvent: TypeAlias = Event
else:  # told apart by their type when they are read
    PersonEvent = reduce(or_, BY_PEOPLE)

_BY_NAME: Final = {kind.__name__: kind for kind in BY_PEOPLE}
NAMES: Final = tuple(sorted((*_BY_NAME, *(kind.__name__ for kind in BY_VAULT))))
"""Of all acts."""


def read_act(
    sent: Mapping[str, Any], actor: Actor, ear: IntakeContext, *, second: Actor | None = None
) -> InputFactory:
    """What was sent, as something to be done with what the table knows then. BadAct."""
    if actor.role not in ROLES:
        raise BadAct(f"a {actor.role} sends no acts; allowed: {', '.join(ROLES)}")
    name = _name(sent)
    by_vault = VAULT_ACTS.get(name)
    if by_vault is not None:
        _check_vault_act(name, sent, second)
        return lambda now: by_vault(now, actor, ear)
    event = _event(_BY_NAME[name], sent, actor, second)
    by_device = DEVICE_ACTS.get(type(event))
    if by_device is not None:
        return lambda now: by_device(now, event, ear)
    return lambda now: TableInput((event,))


def kind_of(sent: Mapping[str, Any]) -> type[Event] | None:
    """Which event it would bring, whoever does it; None where the vault knows. BadAct."""
    name = _name(sent)
    if name in VAULT_ACTS:
        _check_vault_act(name, sent, None)
        return None
    return type(_event(_BY_NAME[name], sent, _ANYBODY, None))


def _name(sent: Mapping[str, Any]) -> str:
    name = sent.get("type")
    if not isinstance(name, str) or name not in NAMES:
        told = f"{name!r}" if isinstance(name, str) and len(name) <= 40 else "of this type"
        raise BadAct(f"there is no act {told}; allowed: {', '.join(NAMES)}")
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

# What is asked for before its time, or by somebody who may not, is refused without the vault being
# asked: a refusal is recorded, and is the same whatever the card is.


def _may(ear: IntakeContext, kind: type[Event], actor: Actor) -> bool:
    return actor.role in ear.game.who.get(kind, ())


def _check(now: TableSnapshot, actor: Actor, ear: IntakeContext) -> TableInput:
    s = now.state
    due = s.step is Step.CHECK and _may(ear, e.HoleChecked, actor)
    return TableInput((e.HoleChecked(actor, due and ear.vault.makes_blackjack(s.hole, s.up)),))


def _reveal(now: TableSnapshot, actor: Actor, ear: IntakeContext) -> TableInput:
    """What is odd about the card is looked at now that everybody sees it."""
    s = now.state
    if s.step is not Step.REVEAL or not _may(ear, e.HoleRevealed, actor):
        return TableInput((e.HoleRevealed(actor, -1, ""),))
    card, opening = ear.vault.reveal(s.hole)
    shown = e.HoleRevealed(actor, card, opening)
    if s.read >= 0:  # it lies there since, and people have read it from the felt
        return TableInput((shown,))
    read = ear.vault.read(s.hole).open()
    seen = card_turned(ear, s.round, s.hole, read)
    doubt = doubt_of(ear, read)
    if doubt is not None:
        return TableInput((doubt, *back_suspicions(ear, now.recall, read)), notes=(seen,))
    events = (shown, *card_suspicions(ear, now.recall, read))
    return TableInput(events, notes=(seen,), twin=is_duplicate(read))


def _lay(now: TableSnapshot, actor: Actor, ear: IntakeContext) -> TableInput:
    """Face down where the hole card is due, else face up."""
    s, spare = now.state, _spare_due(now.state)
    if spare is None:
        raise BadAct("no card that lies beside the shoe is due now")
    if spare.card >= 0:
        return TableInput((e.CardDrawn(actor, spare.card, spare=True),))
    if hole_is_next(s):
        return TableInput((e.HoleDealt(actor, spare.commitment, spare=True),))
    if not _may(ear, e.CardDrawn, actor):
        raise BadAct("the dealer lays the card that lies beside the shoe")
    read = ear.vault.read(spare.commitment).open()
    seen = card_turned(ear, s.round, spare.commitment, read)
    doubt = doubt_of(ear, read)
    if doubt is not None:
        return TableInput((doubt, *back_suspicions(ear, now.recall, read)), notes=(seen,))
    events = (e.CardDrawn(actor, read.card, spare=True), *card_suspicions(ear, now.recall, read))
    return TableInput(events, notes=(seen,), twin=is_duplicate(read))


def _spare_due(s: State) -> Spare | None:
    """The card beside the shoe, where one is to be laid now."""
    due = card_destination(s) in ("face_up", "hole", "instead_of_hole")
    first = s.step is Step.WAGERING and bool(s.seats)
    return next_spare(s) if due or first else None


def _exposed(now: TableSnapshot, event: e.ErrorCardExposed, ear: IntakeContext) -> TableInput:
    """The card that people saw is the one that the shoe read, or they look again. Not for ever:
    each answer tells who did not see it something about it."""
    spare = now.state.spare
    if spare is None or spare.card >= 0 or not ear.vault.has(spare.commitment):
        return TableInput((event,))
    if now.state.step not in SHOE_IN_PLAY or not _may(ear, e.ErrorCardExposed, event.actor):
        return TableInput((event,))
    if ear.vault.wrong(spare.commitment) >= MAX_WRONG_CARDS[event.actor.role]:
        raise TooManyWrongCards(event.actor.name, floor=event.actor.role == "floor")
    if not ear.vault.is_said(spare.commitment, event.card):
        raise WrongCard(event.actor.name)
    read = ear.vault.read(spare.commitment).open()
    return TableInput((event,), notes=(card_turned(ear, now.state.round, spare.commitment, read),))


def _shuffled(now: TableSnapshot, event: e.ShuffleDone, ear: IntakeContext) -> TableInput:
    """A count that the shuffler has not told yet cannot be passed over."""
    theirs = now.state.step in WORKING and _may(ear, e.ShuffleDone, event.actor)
    if theirs and not by_hand(ear, now):
        raise ShufflerReports
    return TableInput((event,))


DEVICE_ACTS: Final[
    Mapping[type[Event], Callable[[TableSnapshot, Any, IntakeContext], TableInput]]
] = MappingProxyType({e.ErrorCardExposed: _exposed, e.ShuffleDone: _shuffled})
"""What people say of something that a device knows too."""
VAULT_ACTS: Final[Mapping[str, Callable[[TableSnapshot, Actor, IntakeContext], TableInput]]] = (
    MappingProxyType({"CheckHole": _check, "RevealHole": _reveal, "LaySpare": _lay})
)
