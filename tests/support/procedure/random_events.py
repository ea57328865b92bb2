"""Any event at all, well typed and otherwise as wrong as can be; and mishaps of a table.

An event is made field by field from what its class declares, so that a new event is fuzzed as soon
as it exists, and a field of a new name is noticed.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    TypeAlias,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec.structs import fields

from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.engine import EVENTS
from controller.procedure.model import events
from controller.procedure.model.events import Actor, Device, Event, Role
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, Card
from controller.rules.irregularities import Way

if TYPE_CHECKING:
    from tests.support.procedure.random_table import RandomTable

Make: TypeAlias = Callable[[Random, State], Any]

ROLES: Final[tuple[Role, ...]] = get_args(Role)
_DEVICES: Final[tuple[Device, ...]] = get_args(Device)
_FAR_OUT: Final = (0, -1, 1, 2, 3, 49, 50, 51, 52, 53, 10**9, -(10**9), 2**63, 10**30, -(10**30))
_NEAR: Final = (1, 2, 5, 10, 25, 50, 100, 150, 500, 1000, 2500)
_TEXTS: Final = ("", "because", "{seat}", "{}", "shoe", "% s", "\N{SNOWMAN}", "x" * 300)
_STOPPED: Final = frozenset(
    {
        Step.HELD,
        Step.CARD_ENTRY,
        Step.CARD_CONFIRM,
        Step.DEVICE,
        Step.FELT,
        Step.REFILL,
        Step.RELIEF_BURN,
    }
)


def _seat(rng: Random, s: State) -> int:
    if s.hands and rng.random() < 0.5:
        return s.hands[min(s.turn, len(s.hands) - 1)].seat
    if s.seats and rng.random() < 0.7:
        return rng.choice(s.seats).number
    return rng.choice((0, 8, -1, 1, 2, 3, 4, 5, 6, 7, 10**12))


def _hand(rng: Random, s: State) -> int:
    if s.hands and rng.random() < 0.7:
        return s.hands[min(s.turn, len(s.hands) - 1)].number
    return rng.choice((0, 1, 2, 3, 4, -1, -5, 10**12))


def _amount(rng: Random, s: State) -> int:
    if s.due and rng.random() < 0.4:
        return s.due[0].moves
    if s.hands and rng.random() < 0.4:
        return s.hands[min(s.turn, len(s.hands) - 1)].wager
    if s.seats and rng.random() < 0.4:
        return rng.choice(s.seats).main // 2
    return rng.choice(_NEAR if rng.random() < 0.7 else _FAR_OUT)


def _card(rng: Random, s: State) -> int:
    if rng.random() < 0.3:
        if s.spare is not None and s.spare.card >= 0:
            return s.spare.card
        if s.holds and s.holds[-1].card >= 0:
            return s.holds[-1].card
        if s.dealer:
            return rng.choice(s.dealer)
    return rng.randrange(52)


def _commitment(rng: Random, s: State) -> str:
    if s.spare is not None and rng.random() < 0.7:
        return s.spare.commitment
    return rng.choice(("", "made-up", "another"))


def _way(rng: Random, s: State) -> Way:
    if s.holds and s.holds[-1].options and rng.random() < 0.8:
        return rng.choice(s.holds[-1].options)
    return rng.choice(tuple(Way))


def _second(rng: Random, s: State) -> Actor | None:
    draw = rng.random()
    if draw < 0.6:
        return SECOND
    return None if draw < 0.8 else rng.choice((FLOOR, DEALER, Actor("surveillance", "")))


def _among(values: tuple[Any, ...]) -> Make:
    return lambda rng, s: rng.choice(values)


# By the field's name, and else by its type.
_BY_NAME: Final[dict[str, Make]] = {
    "seat": _seat,
    "hand": _hand,
    "amount": _amount,
    "paid": _amount,
    "due": _amount,
    "bank": _amount,
    "counted_again": _amount,
    "count": _among((52, 104, 312, 416, 20, 40, *_FAR_OUT)),
    "missing": _among((0, 0, 0, *_FAR_OUT)),
    "extra": _among((0, 0, 0, *_FAR_OUT)),
    "round": lambda rng, s: rng.choice((s.round, s.round, 1, *_FAR_OUT)),
    "card": _card,
    "commitment": _commitment,
    "opening": _among(_TEXTS),
    "reason": _among(_TEXTS),
    "why": _among(_TEXTS),
    "bet": _among(("main", "insurance", "diamond", "buster", "toke_main", "")),
    "second": _second,
}
_BY_TYPE: Final[dict[object, Make]] = {
    bool: lambda rng, s: rng.random() < 0.5,
    Way: _way,
}


def _maker(event: type[Event], name: str, hint: object) -> Make:
    if get_origin(hint) is Literal:
        return _among(get_args(hint))
    make = _BY_NAME.get(name) or _BY_TYPE.get(hint)
    if make is None:
        raise TypeError(f"nobody knows how to make up {event.__name__}.{name}: {hint}")
    return make


def _recipe(event: type[Event]) -> tuple[Make, ...]:
    hints = get_type_hints(event)
    return tuple(
        _maker(event, field.name, hints[field.name])
        for field in fields(event)
        if field.name != "actor"
    )


_RECIPES: Final = {event: _recipe(event) for event in EVENTS}
_OPTIONAL: Final = {
    event: frozenset(
        index
        for index, field in enumerate(fields(event)[1:])
        if type(None) in get_args(get_type_hints(event)[field.name])
    )
    for event in EVENTS
}

# What ends a round before its time comes up less often, so that rounds are also played out.
_STOPS_A_ROUND: Final = frozenset(
    {
        "DeckSuspect",
        "FloorCalled",
        "HoleExposed",
        "HoleUnchecked",
        "PlayedOutOfTurn",
        "InsuranceDisputed",
        "MisdealCalled",
        "RoundVoided",
        "UnknownCardDrawn",
        "PlayerAbsent",
        "ControllerRestarted",
        "DeviceLost",
        "CardDrawn",
        "FaceUpCardFound",
        "ErrorCardDrawn",
        "CardUnreadable",
        "ShoeRanOut",
        "ShuffleCalled",
        "TableClosed",
    }
)
_SELDOM: Final = tuple(kind for kind in EVENTS if kind.__name__ in _STOPS_A_ROUND)
_OFTEN: Final = tuple(kind for kind in EVENTS if kind.__name__ not in _STOPS_A_ROUND)
_ACTORS: Final = {
    actor.role: actor
    for actor in (DEALER, FLOOR, SHOE, Actor("surveillance", "eye"), Actor("technician", "bench"))
}


def _kind(rng: Random, s: State) -> type[Event]:
    # A stopped table shows little of itself in a round: everything is tried on it evenly.
    if s.step in _STOPPED:
        return rng.choice(EVENTS)
    return rng.choice(_SELDOM if rng.random() < 0.12 else _OFTEN)


def _actor(rng: Random, game: Game, s: State, kind: type[Event]) -> Actor:
    if rng.random() < 0.85:
        return _by_role(rng, s, rng.choice(tuple(sorted(game.who[kind]))))
    return _by_role(rng, s, rng.choice(ROLES))


def _by_role(rng: Random, s: State, role: Role) -> Actor:
    """Somebody in that role; a player mostly of the seat that is in turn."""
    if role == "player":
        return player(_seat(rng, s))
    return _ACTORS[role]


def any_event(rng: Random, game: Game, s: State, kind: type[Event] | None = None) -> Event:
    """A well-typed event, of this kind if one is named, by somebody who may bring it or not."""
    kind = kind or _kind(rng, s)
    values = [
        None if index in _OPTIONAL[kind] and rng.random() < 0.3 else make(rng, s)
        for index, make in enumerate(_RECIPES[kind])
    ]
    return kind(_actor(rng, game, s, kind), *values)


# --- what goes wrong at a table, told truthfully: the card that is named is the card that came ---

STATION: Final = Actor("device", "station")


Mishap: TypeAlias = "Callable[[RandomTable], Event]"


def _with_card(make: Callable[[Card], Event]) -> Mishap:
    def mishap(t: RandomTable) -> Event:
        card = t.draw()
        return make(card) if card >= 0 else events.ShoeRanOut(SHOE)

    return mishap


def _hidden(t: RandomTable) -> Event:
    card = t.draw()
    return events.ErrorCardDrawn(SHOE, t.hide(card)) if card >= 0 else events.ShoeRanOut(SHOE)


def _once_too_often(t: RandomTable) -> Event:
    """A card that the decks do not hold any more, where one was seen as often as they hold it."""
    seen, decks = t.state.seen, t.game.decks
    gone = [card for card in DECK if (seen >> 4 * card) & 15 >= decks]
    return events.CardDrawn(SHOE, gone[t.below(len(gone))] if gone else t.below(52))


def _seen_after_all(t: RandomTable) -> Event:
    spare = t.state.spare
    if spare is None or spare.card >= 0:
        return _hidden(t)
    return events.ErrorCardExposed(DEALER, t.face(spare.commitment))


def _lost(t: RandomTable) -> Event:
    device = _DEVICES[t.below(len(_DEVICES))]
    return events.DeviceLost(Actor("device", device), device, "no answer")


def _correct(t: RandomTable) -> Event:
    s = t.state
    return events.PaymentCorrected(FLOOR, max(s.round, 1), t.a_seat(), 0, "main", 100, 150, SECOND)


_RARE: Final[tuple[Mishap, ...]] = (
    lambda t: events.DeckSuspect(DEALER, "foreign_back"),
    lambda t: events.FloorCalled(DEALER, t.a_seat()),
    lambda t: events.TableClosed(FLOOR, 1000, SECOND),
)
_ANY_TIME: Final[tuple[Mishap, ...]] = (
    lambda t: events.ControllerRestarted(Actor("device", "controller")),
    _lost,
    _lost,
    lambda t: events.DealerRelieved(Actor("dealer", "dealer-2")),
    lambda t: events.CutCardSeen(SHOE),
    _correct,
    lambda t: events.DeviceBack(STATION, "station", True),
)
_IN_ROUND: Final[tuple[Mishap, ...]] = (
    lambda t: events.HoleExposed(DEALER, t.a_seat()),
    lambda t: events.HoleUnchecked(DEALER),
    lambda t: events.PlayedOutOfTurn(DEALER, t.a_seat()),
    lambda t: events.InsuranceDisputed(DEALER, t.a_seat()),
    lambda t: events.MisdealCalled(DEALER),
    lambda t: events.PlayerAbsent(DEALER, t.a_seat()),
    lambda t: events.PlayerAbsent(DEALER, t.a_seat()),
    lambda t: events.RoundVoided(FLOOR, "the lights went out", SECOND),
    lambda t: events.WagerPlaced(DEALER, t.a_seat(), "main", 100),
    lambda t: events.UnknownCardDrawn(SHOE),
    lambda t: events.CardMisread(DEALER),
    lambda t: events.CardMisread(DEALER),
)
_CARD_DUE: Final[tuple[Mishap, ...]] = (
    _with_card(lambda card: events.FaceUpCardFound(DEALER, card)),
    lambda t: events.ShoeRanOut(SHOE),
    lambda t: events.ShoeRanOut(SHOE),
    lambda t: events.CardUnreadable(SHOE, "smudged"),
    _once_too_often,
)
_NO_CARD_DUE: Final[tuple[Mishap, ...]] = (
    _with_card(lambda card: events.CardDrawn(SHOE, card)),
    _hidden,
    _seen_after_all,
    _once_too_often,
)
_IN_DEAL: Final[tuple[Mishap, ...]] = (
    lambda t: events.SeatMissed(DEALER, t.a_seat()),
    lambda t: events.SeatShorted(DEALER, t.a_seat()),
    lambda t: events.DealerCardMissed(DEALER, 1),
    lambda t: events.DealerCardMissed(DEALER, 2),
)
_BEFORE_DEAL: Final[tuple[Mishap, ...]] = (
    *_NO_CARD_DUE,
    *_CARD_DUE,
    lambda t: events.WagerRemoved(DEALER, t.a_seat(), "main"),
    lambda t: events.ShuffleCalled(DEALER),
    lambda t: events.UnknownCardDrawn(SHOE),
)
_CARD_STEPS: Final = (Step.DEALING, Step.HAND_CARD, Step.DEALER_LATE, Step.DEALER_CARD)


def _of_step(step: Step) -> tuple[Mishap, ...]:
    if step is Step.WAGERING:
        return (*_ANY_TIME, *_BEFORE_DEAL)
    if step is Step.DEALING:
        return (*_ANY_TIME, *_IN_ROUND, *_CARD_DUE, *_IN_DEAL, *_IN_DEAL, _seen_after_all)
    if step in _CARD_STEPS:
        return (*_ANY_TIME, *_IN_ROUND, *_CARD_DUE, _seen_after_all)
    if step is Step.BURNING:
        return (*_ANY_TIME, _CARD_DUE[0], _seen_after_all)
    if step in (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING, Step.CLOSED):
        return _ANY_TIME
    return (*_ANY_TIME, *_IN_ROUND, *_NO_CARD_DUE, _CARD_DUE[-2])


_MISHAPS: Final = {step: _of_step(step) for step in Step}


def mishap(t: RandomTable) -> Event:
    """Something that can go wrong where the table stands."""
    if t.chance(0.06):
        return _RARE[t.below(len(_RARE))](t)
    here = _MISHAPS[t.state.step]
    return here[t.below(len(here))](t)
