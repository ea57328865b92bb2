"""Whether cards come as they lie in new decks: what is caught, and how seldom for nothing."""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.procedure.model import events
from controller.rules.cards import DECK, RANK, SUIT, Card
from controller.table.memory import EMPTY_MEMORY, card_order
from controller.table.memory.card_order import (
    DECK_ORDERS,
    FALSE_ALARMS,
    MAX_GAP,
    MAX_POSITIONS,
    NEIGHBOURS,
    sequence_of,
)
from tests.support.table.simulated.serving import DEALER

SHOES = (1, 2, 6, 8)


def lying(cards: Sequence[Card], first: int = 1) -> list[tuple[int, Card]]:
    return list(enumerate(cards, first))


def found(faces: Iterable[tuple[int, Card]]) -> str | None:
    return card_order.sequence_of(faces).order


def suspicious(faces: Iterable[tuple[int, Card]]) -> bool:
    return found(faces) is not None


def shuffled(decks: int, rng: Random) -> list[Card]:
    cards = list(DECK) * decks
    rng.shuffle(cards)
    return cards


# --- what is caught ---------------------------------------------------------------------------

NEW = list(DECK)
RIBBON = [*range(26, 52), *reversed(range(26))]
"""Two suits from the ace up, two from the king down."""
BY_RANK = sorted(DECK, key=lambda card: (RANK[card], SUIT[card]))


@pytest.mark.parametrize(
    "cards",
    [
        NEW,
        NEW[::-1],
        RIBBON,
        RIBBON[::-1],
        BY_RANK,
        BY_RANK[::-1],
        NEW[30:] + NEW[:30],
        NEW * 6,
        NEW * 2 + NEW[::-1] * 4,
        BY_RANK * 6,
        sorted(DECK * 6, key=lambda card: RANK[card]),
        sorted(DECK * 6, key=lambda card: (SUIT[card], card * 29 % 53)),
    ],
    ids=[
        "new",
        "reversed",
        "new deck with kings inside",
        "the same reversed",
        "by rank",
        "by rank reversed",
        "cut",
        "six new decks",
        "some of six reversed",
        "six by rank",
        "six sorted by rank",
        "six sorted by suit",
    ],
)
def test_decks_that_were_not_shuffled(cards: list[Card]) -> None:
    assert suspicious(lying(cards))
    # Soon: no more than a quarter of a deck, or half of one that is in no strict order.
    assert suspicious(lying(cards[:26]))


@pytest.mark.parametrize("decks", SHOES)
def test_a_batch_among_shuffled_cards(decks: int) -> None:
    """One deck was not in the shuffle."""
    rng = Random(decks)
    for _ in range(20):
        cards = shuffled(decks, rng)
        at = rng.randrange(len(cards))
        assert suspicious(lying([*cards[:at], *NEW[13:33], *cards[at:]]))


def test_cards_that_nobody_saw_do_not_hide_it() -> None:
    """The burned card and a hole card are not known, nor are two in a row."""
    seen = [(place, card) for place, card in lying(NEW[:14]) if place not in (1, 6, 10, 11)]
    assert suspicious(seen)
    assert not suspicious(lying(NEW[:6]))


def test_the_order_in_which_they_were_seen_does_not_matter() -> None:
    """A hole card is turned over after the cards that followed it."""
    faces = lying(NEW[:9])
    Random(1).shuffle(faces)
    assert suspicious(faces)


def test_a_shuffle_that_was_too_short() -> None:
    """Riffled twice, the order of six decks can still be seen."""
    rng = Random(5)
    assert all(suspicious(lying(riffled(list(DECK) * 6, 2, rng))) for _ in range(50))
    assert not any(suspicious(lying(riffled(list(DECK) * 6, 9, rng))) for _ in range(50))


def riffled(cards: list[Card], times: int, rng: Random) -> list[Card]:
    """Cut by chance, and let fall by chance from either half."""
    for _ in range(times):
        cut = sum(rng.random() < 0.5 for _ in cards)
        halves = [cards[:cut][::-1], cards[cut:][::-1]]
        cards = []
        while any(halves):
            left, right = map(len, halves)
            cards.append(halves[rng.random() * (left + right) >= left].pop())
    return cards


# --- and what is not --------------------------------------------------------------------------


def test_it_rings_for_less_than_one_shoe_in_a_million() -> None:
    assert FALSE_ALARMS < 1e-6


@pytest.mark.parametrize("decks", SHOES)
def test_well_shuffled_shoes(decks: int) -> None:
    rng = Random(f"well {decks}")
    assert not any(suspicious(lying(shuffled(decks, rng))) for _ in range(400))


@pytest.mark.parametrize("which", DECK_ORDERS, ids=lambda one: one.name)
@pytest.mark.parametrize("decks", SHOES)
def test_runs_are_as_seldom_as_is_said(which: card_order.DeckOrder, decks: int) -> None:
    """The bound that is reckoned with holds for shorter runs, which can be counted."""
    rng = Random(f"{which.name} {decks}")
    rounds, runs, least = 300, 0, 3
    for _ in range(rounds):
        cards, run = shuffled(decks, rng), 0
        for one, other in pairwise(cards):
            run = run + 1 if which.follows(one, other, 1) else 0
            runs += run >= least
    places = rounds * 52 * decks
    bound = places * which.chance**least
    # Within three standard deviations above it, and as many more as a rare thing may come.
    assert runs <= bound + 3 * bound**0.5 + 3


@pytest.mark.parametrize("decks", SHOES)
def test_neighbours_are_as_seldom_as_is_said(decks: int) -> None:
    rng = Random(f"neighbours {decks}")
    rounds = 400
    count = sum(
        SUIT[one] == SUIT[other] and abs(RANK[one] - RANK[other]) == 1
        for _ in range(rounds)
        for one, other in pairwise(shuffled(decks, rng))
    )
    pairs = rounds * (52 * decks - 1)
    assert count / pairs <= NEIGHBOURS
    assert 52 * max(SHOES) == MAX_POSITIONS


def test_nothing_and_one_card_are_no_order() -> None:
    assert found([]) is None
    assert found([(3, 17)]) is None
    assert found([(3, 17), (3, 18)]) is None


RANKS_TOGETHER = sorted(DECK, key=lambda card: RANK[card])
BEGINNINGS = (list(DECK), list(DECK)[::-1], RANKS_TOGETHER * 2, RANKS_TOGETHER[::-1], [0] * 60)


def asked(faces: Iterable[tuple[int, Card]]) -> str | None:
    """The same in plain words: each order is asked of each two cards. Neighbours aside."""
    runs = [0] * len(DECK_ORDERS)
    for (place, one), (next_place, other) in pairwise(sorted(dict(faces).items())):
        gap = next_place - place
        for at, order in enumerate(DECK_ORDERS):
            follows = gap <= MAX_GAP and order.follows(one, other, gap)
            runs[at] = runs[at] + 1 if follows else 0
            if runs[at] >= order.run:
                return order.name
    return None


def share_of_neighbours(faces: Iterable[tuple[int, Card]]) -> float:
    pairs = [
        (one, other)
        for (place, one), (after, other) in pairwise(sorted(dict(faces).items()))
        if after - place == 1
    ]
    near = sum(SUIT[a] == SUIT[b] and abs(RANK[a] - RANK[b]) == 1 for a, b in pairs)
    return near / len(pairs) if pairs else 0.0


@given(
    st.sampled_from(BEGINNINGS),
    st.integers(0, 40),
    st.lists(st.tuples(st.integers(0, 51), st.sampled_from(DECK)), max_size=20),
    st.sets(st.integers(1, 120), max_size=30),
)
def test_it_says_the_same(
    cards: list[Card], first: int, others: list[tuple[int, Card]], unseen: set[int]
) -> None:
    lie = cards[first:] + cards[:first]
    for place, card in others:
        lie[place % len(lie)] = card
    faces = [(place, card) for place, card in enumerate(lie, 1) if place not in unseen]
    said = sequence_of(faces).order
    if said == "too many neighbours":
        assert asked(faces) is None
        assert share_of_neighbours(faces) > NEIGHBOURS
    else:
        assert said == asked(faces)


SEEN = st.builds(
    lambda pos, card: {"what": "CardSeen", "pos": pos, "card": card, "back": 0},
    st.integers(1, 30),
    st.integers(0, 51),
)
BACK = st.builds(lambda pos: {"what": "CardRetracted", "pos": pos}, st.integers(1, 30))


@given(st.lists(SEEN | BACK | st.sampled_from(["misread", "confirmed"]), max_size=40))
def test_how_the_cards_lie_is_known_whatever_happened(happened: list[Any]) -> None:
    """A card that comes before others, one that goes back, one that was another: they lie as they
    would if all were looked at anew."""
    known = EMPTY_MEMORY
    for what in happened:
        if what == "misread":
            known = known.after_event(events.CardMisread(DEALER), ())
        elif what == "confirmed":
            known = replace(known, entered=7).after_event(events.CardConfirmed(DEALER), ())
        else:
            known = known.after_note(what)
        assert known.sequence == sequence_of((face.pos, face.card) for face in known.faces)
