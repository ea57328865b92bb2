"""What holds in every round: money, cards, hands, choices, and that both engines are one procedure.

The comparison of the engines is a short run; `make campaign` plays at least 20,000 rounds of each
game, until every row has fired.
"""

from collections import Counter
from functools import reduce
from operator import or_
from random import Random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import Struct

from controller.procedure.engine import EVENTS, LiveTable, Procedure
from controller.procedure.model import events
from controller.procedure.model.effects import Effect, Settled
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.holds import HOLDING
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import WAITING, State, Step
from controller.rules.hands import CHOICES
from controller.rules.irregularities import Irregularity
from tests.support.procedure.differential import compare
from tests.support.procedure.ledger import (
    Ledger,
    hand_total,
    instant_winner,
    legal_choices,
    stands_by_itself,
    total,
)
from tests.support.procedure.random_games import GAMES, some_game
from tests.support.procedure.random_table import RandomTable, answers, fresh

_GAMES_EACH: Final = 50
_ROUNDS: Final = 25
_DECISIONS: Final = (
    events.Hit,
    events.Stand,
    events.Double,
    events.Split,
    events.Surrender,
    events.SpareRefused,
)
_BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster", "insurance")


class Watchman:
    """Looks at every state that a table reaches."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self._doubted = False
        """The floor let a card stay that the decks do not hold."""

    def __call__(self, before: State, event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Refused):
            return
        s = answer.state
        if "way_resume" in answer.rows and before.holds:
            self._doubted |= before.holds[-1].what is Irregularity.DECK_SUSPECT
        self._doubted &= s.seen > 0
        self._hands(s)
        self._cards(s)
        self._money(s)
        assert (s.step in HOLDING) == bool(s.holds), s
        if isinstance(event, _DECISIONS):
            hand = before.hands[before.turn]
            assert not hand.done, before
            assert not hand.out, before
        if s.step is Step.TURN and before.step is not Step.TURN:
            self._turn(s)
        if "stands_by_itself" in answer.rows and isinstance(event, events.CardDrawn):
            self._stood(s, before)

    def _hands(self, s: State) -> None:
        numbers: dict[int, list[int]] = {}
        for hand in s.hands:
            numbers.setdefault(hand.seat, []).append(hand.number)
            assert hand.total == hand_total(hand), hand
            assert not hand.out or hand.done, hand
        for seat, found in numbers.items():
            assert found == list(range(len(found))), (seat, s.hands)
            assert len(found) <= self.game.options.split.max_hands, s.hands
        assert (s.dealer_total, s.dealer_soft) == total(s.dealer), s

    def _cards(self, s: State) -> None:
        on_felt = Counter(s.dealer)
        for hand in s.hands:
            if not hand.out:
                on_felt.update(hand.cards)
        if s.spare is not None and s.spare.card >= 0:
            on_felt[s.spare.card] += 1
        for card, count in on_felt.items():
            seen = (s.seen >> 4 * card) & 15
            assert count <= seen, (card, s)
            assert self._doubted or count <= self.game.decks, (card, s)

    def _money(self, s: State) -> None:
        unit = self.game.money.unit
        for seat in s.seats:
            amounts: list[int] = [seat.amount(bet) for bet in _BETS]
            assert all(amount >= 0 and amount % unit == 0 for amount in amounts), seat
            assert 2 * seat.insurance <= seat.main, seat
            # While a void gives the wagers back before the deal, the main one goes first.
            assert seat.main or s.due or not any(amounts), seat
        for hand in s.hands:
            assert 0 < hand.bet <= hand.wager <= hand.bet << hand.doubles, hand
            assert hand.doubles <= self.game.options.double.times, hand
        for due in s.due:
            assert due.stake > 0, due
            assert due.returned >= 0, due
        assert (s.step is Step.PAYING) <= bool(s.due), s

    def _turn(self, s: State) -> None:
        hand = s.hands[s.turn]
        of_seat = sum(each.seat == hand.seat for each in s.hands)
        offered = {word for bit, word in CHOICES.items() if s.legal & bit}
        legal = legal_choices(self.game.options, hand, of_seat)
        if s.late and s.up in (0, 1, 10):
            legal.discard("surrender")  # nobody could check yet
        assert offered == legal, (s, self.game.options)
        assert hand_total(hand) <= 21, s
        assert len(hand.cards) >= 2, s

    def _stood(self, s: State, before: State) -> None:
        hand = s.hands[before.turn]
        of_seat = sum(each.seat == hand.seat for each in s.hands)
        gone = hand.seat in s.quiet
        assert gone or stands_by_itself(self.game.options, hand, of_seat), (hand, s)
        assert instant_winner(self.game.options, hand) is None or len(hand.cards) < 3, hand


def _watched(seed: str, name: str, rounds: int) -> Ledger:
    """Plays the rounds under a watchman and a second book; both raise what they find."""
    game, what = some_game(Random(seed), name)
    ledger, watchman = Ledger(game), Watchman(game)

    def watch(before: State, event: Event, answer: Decision | Refused) -> None:
        try:
            watchman(before, event, answer)
            ledger(before, event, answer)
        except AssertionError as wrong:
            raise AssertionError(f"seed {seed!r}: {what}: {event}: {wrong}") from wrong

    RandomTable(Procedure(game), seed, watch=watch).play(rounds)
    return ledger


@pytest.mark.parametrize("name", GAMES)
def test_every_round_balances_and_keeps_the_rules(name: str) -> None:
    outcomes: Counter[str] = Counter()
    ledgers = [_watched(f"invariants {name} {k}", name, _ROUNDS) for k in range(_GAMES_EACH)]
    assert sum(one.clean for one in ledgers) > sum(one.finished for one in ledgers) // 3
    assert any(one.voided for one in ledgers)
    for ledger in ledgers:
        outcomes += ledger.outcomes
    assert {"win", "lose", "push", "blackjack", "void"} <= set(outcomes)


@given(seed=st.integers(), name=st.sampled_from(GAMES))
# A doubled ace and ten, whose next card was misread.
@example(seed=56_464_226_725_294_702_592, name="classic")
def test_any_seed_at_all(seed: int, name: str) -> None:
    _watched(f"any {seed}", name, 3)


@pytest.mark.parametrize("name", GAMES)
def test_paying_one_by_one_is_paying_all(name: str) -> None:
    """`AllPaid` settles what as many `Paid` settle, in the same order, to the same state."""
    compared = 0
    for number in range(_GAMES_EACH // 2):
        seed = f"all at once {name} {number}"
        game, _ = some_game(Random(seed), name)
        procedure = Procedure(game)
        for s, event, answer in answers(game, seed, _ROUNDS // 2):
            if not isinstance(event, events.AllPaid) or isinstance(answer, Refused):
                continue
            facts: list[Effect] = []
            state = s
            for _ in s.due:
                one = procedure.step(state, events.Paid(event.actor))
                assert isinstance(one, Decision), (seed, one)
                state = one.state
                facts += [effect for effect in one.effects if isinstance(effect, Settled)]
            assert state == answer.state, seed
            assert facts == [fact for fact in answer.effects if isinstance(fact, Settled)], seed
            compared += 1
    assert compared > 20


# Both engines, and what survives being written down

_RECORDED_GAMES: Final = 12
_RECORDED_ROUNDS: Final = 15
_COMPARED: Final = 600
"""Rounds of each game."""


def _leaves(kind: type[Any]) -> list[type[Any]]:
    below = kind.__subclasses__()
    return [leaf for each in below for leaf in _leaves(each)] or [kind]


_ANY_EVENT: Final[Any] = reduce(or_, EVENTS)
_ANY_EFFECT: Final[Any] = reduce(or_, _leaves(Effect))


@pytest.mark.parametrize("name", GAMES)
def test_a_record_of_events_gives_back_every_state_and_what_it_shows(name: str) -> None:
    steps: set[Step] = set()
    for number in range(_RECORDED_GAMES):
        seed = f"recovery {name} {number}"
        game, what = some_game(Random(seed), name)
        procedure = Procedure(game)
        engines = procedure, Procedure(fresh(game)), LiveTable(fresh(game))
        s = State()
        for _, event, decision in answers(game, seed, _RECORDED_ROUNDS):
            if isinstance(decision, Refused):
                continue
            read = _written_and_read(event, _ANY_EVENT)
            shown = procedure.shows(decision.state)
            for engine in engines:
                assert engine.step(s, read) == decision, f"{seed}: {what}: {event}"
                assert engine.shows(decision.state) == shown, f"{seed}: {what}: {event}"
            assert decision.effects[-len(shown) :] == shown != (), f"{seed}: {what}: {event}"
            s = _written_and_read(decision.state, State)
            for effect in decision.effects:
                _written_and_read(effect, _ANY_EFFECT)
            steps.add(s.step)
    # Hardly any game asks a blackjack first, and a shoe seldom runs out.
    assert len(steps) >= len(WAITING) - 5, set(WAITING) - steps


def _written_and_read(value: Struct, kind: Any) -> Any:
    read = msgspec.json.decode(msgspec.json.encode(value), type=kind)
    assert read == value
    return read


@pytest.mark.parametrize("name", GAMES)
def test_both_engines_answer_alike(name: str) -> None:
    compared = compare(name, _COMPARED, seed=f"differential {name}")
    assert compared.rounds >= _COMPARED
    assert compared.refused > compared.rounds // 4
