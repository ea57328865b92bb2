"""Repairs a deal that went to wrong places: the same cards on the right places."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.felt import lay
from controller.procedure.model.state import Place, State
from controller.rules.cards import Card
from controller.rules.hands import Hand


def cards_dealt(s: State) -> tuple[Card, ...]:
    """Returns the cards dealt so far, in the order in which they left the shoe."""
    given = [0] * len(s.hands)
    dealer = 0
    cards: list[Card] = []
    for place in s.places[: s.dealt]:
        if place.turn >= 0:
            cards.append(s.hands[place.turn].cards[given[place.turn]])
            given[place.turn] += 1
        else:
            cards.append(s.dealer[dealer])
            dealer += 1
    return tuple(cards)


def _fits(s: State, places: tuple[Place, ...]) -> tuple[Place, ...] | None:
    """Returns the places if the cards dealt so far fit on them, else None."""
    if s.hole or s.dealt > len(places):
        return None
    face_up = all(place.kind != "hole" for place in places[: s.dealt])
    return places if face_up else None


def lays_without(s: State, seat: int) -> tuple[Place, ...] | None:
    """Returns the places if the seat got no cards, or None if that is impossible."""
    if not any(place.seat == seat for place in s.places):
        return None
    left = tuple(place for place in s.places if place.seat != seat)
    if not any(place.kind == "hand" for place in left):
        return None
    return _fits(s, left)


def second_last(s: State, seat: int) -> tuple[Place, ...] | None:
    """Returns the places if the seat gets its second card after all others."""
    turns = [index for index, place in enumerate(s.places) if place.seat == seat]
    if len(turns) < 2 or turns[1] == len(s.places) - 1:
        return None
    second = s.places[turns[1]]
    left = (*s.places[: turns[1]], *s.places[turns[1] + 1 :], second)
    return _fits(s, left)


def missed_places(s: State, which: int) -> tuple[Place, ...] | None:
    """Returns the places if the dealer gets the cards from the first (1) or second (2) one last."""
    kinds = ("up", "hole") if which == 1 else ("hole",)
    if not any(place.kind == kinds[0] for place in s.places):
        return None
    return _fits(s, tuple(place for place in s.places if place.kind not in kinds))


def laid_again(s: State, places: tuple[Place, ...]) -> State:
    """Returns the state with the same cards on `places`."""
    cards = cards_dealt(s)
    bare = replace(
        s,
        places=places,
        dealt=0,
        dealer=(),
        dealer_total=0,
        dealer_soft=False,
        up=0,
        hands=tuple(
            Hand(hand.seat, hand.wager, hand.bet, done=hand.done, out=hand.out) for hand in s.hands
        ),
    )
    for place, card in zip(places, cards, strict=False):
        bare = lay(bare, place, card, s.seen, s.spare)
    return bare
