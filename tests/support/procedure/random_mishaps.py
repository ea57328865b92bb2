"""What goes wrong at a table, told truthfully: the card that is named is the card that came."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol, TypeAlias, get_args

from controller.games import DEALER, FLOOR, SECOND, SHOE
from controller.procedure.model import events
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK, Card

_DEVICES: Final[tuple[events.Device, ...]] = get_args(events.Device)
STATION: Final = Actor("device", "station")


class Luck(Protocol):
    """What a mishap asks of the table that it befalls."""

    @property
    def game(self) -> Game: ...
    @property
    def state(self) -> State: ...
    def chance(self, of: float) -> bool: ...
    def below(self, most: int) -> int: ...
    def a_seat(self) -> int: ...
    def draw(self) -> Card: ...
    def hide(self, card: Card) -> str: ...
    def face(self, commitment: str) -> Card: ...


Mishap: TypeAlias = Callable[[Luck], Event]


def _card(make: Callable[[Card], Event]) -> Mishap:
    def mishap(t: Luck) -> Event:
        card = t.draw()
        return make(card) if card >= 0 else events.ShoeRanOut(SHOE)

    return mishap


def _hidden(t: Luck) -> Event:
    card = t.draw()
    return events.ErrorCardDrawn(SHOE, t.hide(card)) if card >= 0 else events.ShoeRanOut(SHOE)


def _once_too_often(t: Luck) -> Event:
    """A card that the decks do not hold any more, where one was seen as often as they hold it."""
    seen, decks = t.state.seen, t.game.decks
    gone = [card for card in DECK if (seen >> 4 * card) & 15 >= decks]
    return events.CardDrawn(SHOE, gone[t.below(len(gone))] if gone else t.below(52))


def _seen_after_all(t: Luck) -> Event:
    spare = t.state.spare
    if spare is None or spare.card >= 0:
        return _hidden(t)
    return events.ErrorCardExposed(DEALER, t.face(spare.commitment))


def _late_wager(t: Luck) -> Event:
    return events.WagerPlaced(DEALER, t.a_seat(), "main", 100)


def _wager_back(t: Luck) -> Event:
    return events.WagerRemoved(DEALER, t.a_seat(), "main")


def _lost(t: Luck) -> Event:
    device = _DEVICES[t.below(len(_DEVICES))]
    return events.DeviceLost(Actor("device", device), device, "no answer")


def _correct(t: Luck) -> Event:
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
    _late_wager,
    lambda t: events.UnknownCardDrawn(SHOE),
    lambda t: events.CardMisread(DEALER),
    lambda t: events.CardMisread(DEALER),
)
_CARD_DUE: Final[tuple[Mishap, ...]] = (
    _card(lambda card: events.FaceUpCardFound(DEALER, card)),
    lambda t: events.ShoeRanOut(SHOE),
    lambda t: events.ShoeRanOut(SHOE),
    lambda t: events.CardUnreadable(SHOE, "smudged"),
    _once_too_often,
)
_NO_CARD_DUE: Final[tuple[Mishap, ...]] = (
    _card(lambda card: events.CardDrawn(SHOE, card)),
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
    _wager_back,
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


def mishap(t: Luck) -> Event:
    """Something that can go wrong where the table stands."""
    if t.chance(0.06):
        return _RARE[t.below(len(_RARE))](t)
    here = _MISHAPS[t.state.step]
    return here[t.below(len(here))](t)
