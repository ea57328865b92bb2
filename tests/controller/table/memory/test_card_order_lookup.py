"""What is worked out once for every two cards says the same as asking for each of them; and what is
worked out card by card, as looking at all of them anew."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.procedure.model import events
from controller.rules.cards import DECK, RANK, SUIT, Card
from controller.table.memory import EMPTY_MEMORY
from controller.table.memory.card_order import DECK_ORDERS, MAX_GAP, NEIGHBOURS, sequence_of
from tests.support.table.simulated.simulated_table import DEALER

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
