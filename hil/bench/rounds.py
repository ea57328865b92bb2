"""Rounds of one seat: through the rows, beside a peer, and in two processes.

The peer is PyPI's blackjack21, which has no procedure, prompts or record, on classic rules.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from random import Random
from typing import Any, Final

from controller.games import unburned_game
from controller.procedure.engine import LiveTable, Procedure
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND
from controller.sim.par import BLOCK, BlockPlayer, ParPlan, ordered_tallies, workers
from controller.sim.play import Play, PlaySetup, Stepper, Strategy, basic, stakes_for
from hil.bench.measure import (
    Contestant,
    Figure,
    NotMeasured,
    Pace,
    Samples,
    Section,
    by_turns,
    contest,
    seconds,
)

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
GAME: Final = "classic"
"""The game of the peer, and of the two processes."""
_SEED: Final = 21
_DECKS: Final = 6
_MAX_HANDS: Final = 4
_JOBS: Final = 2
_BLOCKS: Final = range(4)
"""Played in each slice."""
_SPINS: Final = 2_000_000


# --- the rows ---------------------------------------------------------------------------------


def rounds_of(name: str, table: Callable[[str], Stepper]) -> Contestant:
    """Returns a contestant that plays rounds by basic strategy, each with a new shuffle."""
    stepper = table(name)
    setup = PlaySetup(1, stakes_for(stepper.game, side=False))
    play = Play(stepper, basic(name), setup, Random(_SEED).random)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            play.round()

    return run


def through_rows(name: str) -> Procedure:
    return Procedure(unburned_game(name, {}, "bench"))


def through_transitions(name: str) -> LiveTable:
    return LiveTable(unburned_game(name, {}, "bench"))


def _rows(pace: Pace) -> Samples:
    return contest({name: rounds_of(name, through_rows) for name in GAMES}, pace)


def _transitions(pace: Pace) -> Samples:
    contestants: dict[str, Contestant] = {}
    for name in GAMES:
        contestants[f"{name}.rows"] = rounds_of(name, through_rows)
        contestants[name] = rounds_of(name, through_transitions)
    return contest(contestants, pace)


ROWS: Final = Section(
    "rounds a second through the rows, one seat, basic strategy",
    _rows,
    tuple(Figure(name, name, "rounds/s", name) for name in GAMES),
)
TRANSITIONS: Final = Section(
    "the same rows, picked by the live table's machine",
    _transitions,
    tuple(
        figure
        for name in GAMES
        for figure in (
            Figure(name, name, "rounds/s", name),
            Figure(
                f"{name}.ratio", f"{name}, beside the dictionary", "times", f"{name} : {name}.rows"
            ),
        )
    ),
)


# --- a peer -----------------------------------------------------------------------------------


class _PeerCards:
    """The peer's cards, drawn as in our simulation: a random one of the remaining cards."""

    def __init__(self, deck: list[Any], random: Callable[[], float]) -> None:
        self._cards = deck
        self._random = random
        self._left = len(deck)

    def __len__(self) -> int:
        return self._left

    def shuffle(self) -> None:
        self._left = len(self._cards)

    def draw_card(self) -> Any:
        self._left = last = self._left - 1
        cards = self._cards
        index = int(self._random() * (last + 1))
        card = cards[index]
        cards[index] = cards[last]
        cards[last] = card
        return card


def peer() -> Contestant:
    """Returns a contestant that plays at the peer's table with the same strategy."""
    from blackjack21 import DEFAULT_SUITS, Deck, Table
    from blackjack21.utils import calculate_hand

    cards = _PeerCards(list(Deck(DEFAULT_SUITS, count=_DECKS)), Random(_SEED).random)
    table = Table([("seat-1", 2)], cards, hit_soft_17=True, on_round_reset=cards.shuffle)
    strategy = basic(GAME)

    def run(rounds: int) -> None:
        for _ in range(rounds):
            table.start_game()
            while (hand := table.current_hand) is not None:
                _decide(table, hand, strategy, calculate_hand)

    return run


def _decide(table: Any, hand: Any, strategy: Strategy, calculate_hand: Any) -> None:
    cards = hand._cards  # the hand's iterator would only slow it down
    total, soft = calculate_hand(cards)
    count = len(cards)
    hands = len(table.current_player.hands)
    pair, legal = 0, HIT | STAND
    if count == 2:
        legal |= DOUBLE
        if cards[0].value == cards[1].value:
            pair = cards[0].value % 10 or 10  # an ace is 11 there and 1 here
            legal |= SPLIT if hands < _MAX_HANDS else 0
    up = table.dealer_visible_hand[0].value % 10 or 10
    bit = strategy.choose(total, soft, count, pair, 0, hands > 1, up, legal)
    if bit == HIT:
        table.hit()
    elif bit == STAND:
        table.stand()
    elif bit == DOUBLE:
        table.double_down()
    else:
        table.split()


def _peer_version() -> str:
    try:
        return version("blackjack21")
    except PackageNotFoundError:
        return ""


def _beside_peer(pace: Pace) -> Samples:
    if not _peer_version():
        raise NotMeasured("blackjack21 is not installed: it comes with the bench extra")
    return contest({"holecard": rounds_of(GAME, through_rows), "peer": peer()}, pace)


PEER: Final = Section(
    "beside a library without procedure, prompts or record",
    _beside_peer,
    (
        Figure("holecard", f"holecard, {GAME}", "rounds/s", "holecard"),
        Figure("peer", f"blackjack21 {_peer_version()}", "rounds/s", "peer"),
        Figure("ratio", "holecard beside blackjack21", "times", "holecard : peer", at_least=0.4),
    ),
)


# --- two processes ----------------------------------------------------------------------------


def spin(turns: int) -> int:
    """Compute on one core, without memory or I/O."""
    total = 0
    for each in range(turns):
        total += each
    return total


def _rate(count: int, run: Callable[[], object]) -> float:
    return count / seconds(run)


def _jobs(pace: Pace) -> Samples:
    if len(os.sched_getaffinity(0)) < _JOBS:
        raise NotMeasured("there is but one core here")
    rounds = len(_BLOCKS) * BLOCK
    plan = ParPlan(
        game=GAME,
        settings={},
        options=unburned_game(GAME, {}, "bench").options,
        strategy=basic(GAME),
        seats=1,
        rounds=rounds,
        seed=_SEED,
        cut=False,
        side=False,
    )
    with workers(plan, _JOBS) as pool:
        player = BlockPlayer(plan)
        list(ordered_tallies(pool, _BLOCKS, _JOBS))  # warms up
        contestants: dict[str, Callable[[], object]] = {
            "two": lambda: list(ordered_tallies(pool, _BLOCKS, _JOBS)),
            "one": lambda: [player.play(block) for block in _BLOCKS],
            "idle_two": lambda: list(pool.map(spin, [_SPINS] * _JOBS)),
            "idle_one": lambda: [spin(_SPINS) for _ in range(_JOBS)],
        }
        rates = {name: partial(_rate, rounds, run) for name, run in contestants.items()}
        return by_turns(rates, max(2, pace.slices // 2))


JOBS: Final = Section(
    "two processes beside one, by the wall's clock",
    _jobs,
    (
        Figure("one", f"{GAME} with its figures, --jobs 1", "rounds/s", "one"),
        Figure("two", f"{GAME} with its figures, --jobs 2", "rounds/s", "two"),
        Figure(
            "machine", "empty loops: what the machine gives two now", "times", "idle_two : idle_one"
        ),
        Figure("ratio", f"--jobs {_JOBS} beside --jobs 1", "times", "two : one", at_least=1.8),
    ),
)
