"""What is worked out once for every two cards says the same as asking for each of them."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from controller.rules.cards import DECK, RANK, SUIT, Card
from controller.table.order import LONGEST_GAP, NEIGHBOURS, ORDERS, found

RANKS_TOGETHER = sorted(DECK, key=lambda card: RANK[card])
BEGINNINGS = (list(DECK), list(DECK)[::-1], RANKS_TOGETHER * 2, RANKS_TOGETHER[::-1], [0] * 60)


def asked(faces: Iterable[tuple[int, Card]]) -> str | None:
    """The same in plain words: each order is asked of each two cards. Neighbours aside."""
    runs = [0] * len(ORDERS)
    for (place, one), (next_place, other) in pairwise(sorted(dict(faces).items())):
        gap = next_place - place
        for at, order in enumerate(ORDERS):
            follows = gap <= LONGEST_GAP and order.follows(one, other, gap)
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
    lying = cards[first:] + cards[:first]
    for place, card in others:
        lying[place % len(lying)] = card
    faces = [(place, card) for place, card in enumerate(lying, 1) if place not in unseen]
    said = found(faces)
    if said == "too many neighbours":
        assert asked(faces) is None
        assert share_of_neighbours(faces) > NEIGHBOURS
    else:
        assert said == asked(faces)
