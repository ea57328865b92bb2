"""Simulated rounds: the dealer follows the procedure, the players a strategy.

Every event goes through step(), all effects are made, and the record of a round is stored until the
next one. The hole card is in a vault, outside the procedure.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from typing import Final, Protocol, TypeAlias

from msgspec import Struct

from controller.errors import UsageProblem
from controller.games import DEALER, FLOOR, SECOND, SHOE, player, wagering
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import (
    Actor,
    AllPaid,
    Bet,
    Cleared,
    Confirmed,
    CutCardSeen,
    Decline,
    Double,
    EvenMoney,
    Event,
    Hit,
    InsuranceClosed,
    Insure,
    Paid,
    PaymentApproved,
    PayTaken,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    Split,
    Stand,
    Surrender,
    TableOpened,
    WagerPlaced,
)
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import VALUE, Card
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER
from controller.rules.options import Limit, Options
from controller.sim.play.shoe import HoleVault, RandomShoe, SimulatedVault, refill
from controller.sim.play.strategy import Strategy

# Stakes: amounts that every payout divides without rounding

SIDE_BETS: Final[tuple[Bet, ...]] = ("diamond", "buster")
"""The side bets that are simulated; toke bets ride on the others."""


class Stakes(Struct, frozen=True):
    """The wagers of every seat."""

    main: int
    first_round: tuple[tuple[Bet, int], ...]
    """On the first round after a shuffle."""
    later: tuple[tuple[Bet, int], ...]

    def of(self, bet: Bet) -> int:
        return dict(self.first_round).get(bet, 0)


def stakes_for(game: Game, *, side: bool) -> Stakes:
    """Returns the smallest such stakes within the limits, with side bets if `side`."""
    options = game.options
    bets: tuple[Bet, ...] = tuple(bet for bet in SIDE_BETS if side and bet in game.offered)
    main = _within(_even(options), options.limits.main, "main")
    amounts: list[tuple[Bet, int]] = [("main", main)]
    amounts += [(bet, _within(game.money.unit, game.limits[bet], bet, main)) for bet in bets]
    once = options.bonus.diamond.first_round_only is True
    later = tuple((bet, stake) for bet, stake in amounts if not (once and bet == "diamond"))
    return Stakes(main, tuple(amounts), later)


def _even(o: Options) -> int:
    """Returns a wager that all odds divide, also if it is halved for surrender or insurance."""
    odds = (
        o.blackjack.pays,
        o.blackjack.pays_diamonds,
        o.wins.pays_21,
        o.instant.pays_21,
        o.instant.pays_count,
        o.insurance.pays,
    )
    return 2 * o.money.unit * lcm(*(each.on for each in odds if each is not None))


def _within(even: int, limit: Limit, bet: Bet, wanted: int = 1) -> int:
    """Returns the smallest multiple of `even` within the limits, at least `wanted` if possible."""
    step = lcm(even, limit.step or 1)
    least = limit.min or 1
    most = limit.max
    low = -(-least // step) * step
    high = low if most is None else most // step * step
    if most is not None and low > high:
        raise UsageProblem(
            f"limits.{bet}",
            f"no wager from {least} to {most} can be paid without rounding",
            f"limits with a multiple of {step} between them",
        )
    stake = max(low, -(-wanted // step) * step)
    return stake if most is None else min(stake, high)


# Rounds

RoundRecord: TypeAlias = list[tuple[Event, tuple[str, ...], tuple[Effect, ...]]]
"""A round as a table records it: event, rows, effects."""

CLEARED: Final = Cleared(DEALER)
ALL_PAID: Final = AllPaid(DEALER)
_PAID: Final = Paid(DEALER)
_APPROVED: Final = PaymentApproved(FLOOR)
_CONFIRMED: Final = Confirmed(DEALER)
_CLOSED: Final = InsuranceClosed(DEALER)
_CUT_CARD: Final = CutCardSeen(SHOE)
_RAN_OUT: Final = ShoeRanOut(SHOE)
_CALLED: Final = ShuffleCalled(DEALER)
_STARTED: Final = ShuffleStarted(DEALER)
_SHUFFLED: Final = ShuffleDone(DEALER)
_OPENED: Final = TableOpened(FLOOR, 0, SECOND)
_MAX_EVENTS: Final = 1_000


class Stepper(Protocol):
    """An engine: `Procedure`, or the live table's machine."""

    @property
    def game(self) -> Game: ...

    def step(self, s: State, e: Event, /) -> Decision | Refused: ...


class RoundStuck(Exception):
    """The procedure refuses an expected event, or the round does not end."""


class PlaySetup(Struct, frozen=True):
    """The seats, their stakes, and how the shoe is dealt."""

    seats: int
    stakes: Stakes
    cut: bool = False
    """A shoe is dealt to the cut card; else every round has a fresh shuffle."""


_Act: TypeAlias = Callable[[State], Event]


class Play:
    """Plays rounds sequentially."""

    def __init__(
        self,
        table: Stepper,
        strategy: Strategy,
        setup: PlaySetup,
        random: Callable[[], float],
        *,
        vault: HoleVault | None = None,
        start: State | None = None,
    ) -> None:
        """`start`: the state of a table without a loaded shoe, which is then loaded by its rows.
        Without it the first round starts with a loaded shoe, and so does every round if the shoe
        is not dealt to the cut card."""
        if start is not None and (start.shoe.loaded or not setup.cut):
            raise ValueError("a table goes on by its rows from an empty shoe, to the cut card")
        game = table.game
        self.record: RoundRecord = []
        self._vault = vault = SimulatedVault() if vault is None else vault
        self._step = table.step
        self._choose = strategy.choose
        self._insures = strategy.insurance
        self._evens = strategy.even_money and game.options.even_money.offered
        self._shoe = RandomShoe(game.decks, random)
        self._cards = game.decks * 52
        self._money = game.money
        self._cut = setup.cut
        self._cut_at = game.options.cut_behind if setup.cut else -1
        self._start = wagering() if start is None else start
        self._state = self._start
        self._placed = 0
        self._hole_at = 2 * setup.seats + 1
        self._drawn, self._dealt = vault.drawn, vault.dealt
        numbers = range(1, setup.seats + 1)
        self._wagers_first = _wagers(setup.stakes.first_round, numbers)
        self._wagers_later = _wagers(setup.stakes.later, numbers)
        self._voices = tuple(voice(game, seat) for seat in range(setup.seats + 1))
        self._decisions = tuple(
            tuple(_decisions(actor, seat, hand) for hand in range(game.options.split.max_hands))
            for seat, actor in enumerate(self._voices)
        )
        self._acts = self._acts_by_step()

    def _acts_by_step(self) -> dict[Step, _Act]:
        """What is done at each step that waits."""
        vault = self._vault
        return {
            Step.WAGERING: self._wager,
            Step.DEALING: self._deal,
            Step.HAND_CARD: self._draw,
            Step.DEALER_CARD: self._draw,
            Step.TURN: self._decide,
            Step.PAYING: pay,
            Step.CLEARING: lambda s: CLEARED,
            Step.REVEAL: lambda s: vault.revealed(),
            Step.CHECK: lambda s: vault.checked(s.dealer[0]),
            Step.DOUBLE_CONFIRM: lambda s: _CONFIRMED,
            Step.SPLIT_CONFIRM: lambda s: _CONFIRMED,
            Step.INSURANCE: self._answer,
            Step.INSURANCE_CONFIRM: lambda s: _CONFIRMED,
            Step.INSURANCE_CLOSE: lambda s: _CLOSED,
            Step.NATURALS: self._take_pay,
            Step.CLOSED: lambda s: _OPENED,
            Step.SHUFFLE_NEEDED: lambda s: _STARTED,
            Step.SHUFFLING: lambda s: _SHUFFLED,
            Step.LOADING: self._load,
            Step.BURNING: self._burn,
            Step.REFILL: self._refill,
        }

    @property
    def hole(self) -> Card:
        """The hole card of the last round."""
        return self._vault.hole

    def round(self) -> State:
        """Play a round. Returns the state before the felt is cleared; raises RoundStuck."""
        acts, step, record = self._acts, self._step, self.record
        record.clear()
        keep = record.append
        self._placed = 0
        s = self._state
        for _ in range(_MAX_EVENTS):
            event = acts[s.step](s)
            answer = step(s, event)
            if isinstance(answer, Refused):
                raise RoundStuck(f"{type(event).__name__} at {s.step.value}: {answer.why}")
            keep((event, answer.rows, answer.effects))
            if event is CLEARED:
                if self._cut:
                    self._state = answer.state
                else:
                    self._shoe.shuffle()
                return s
            s = answer.state
        raise RoundStuck(f"no end after {_MAX_EVENTS} events, at {s.step.value}")

    # Wagers and cards

    def _wager(self, s: State) -> Event:
        wagers = self._wagers_later if s.shoe.rounds else self._wagers_first
        placed = self._placed
        if placed < len(wagers):
            if placed == 0 and self._shoe.left == 0:
                return _CALLED
            self._placed = placed + 1
            return wagers[placed]
        return self._draw(s)

    def _deal(self, s: State) -> Event:
        if s.dealt != self._hole_at:
            return self._draw(s)
        if self._shoe.left <= self._cut_at and s.shoe.rounds_left < 0:
            return _CUT_CARD
        if not self._shoe.left:
            return _RAN_OUT
        return self._dealt(self._shoe.draw())

    def _draw(self, s: State) -> Event:
        shoe = self._shoe
        left = shoe.left
        if left <= self._cut_at and s.shoe.rounds_left < 0:
            return _CUT_CARD
        return self._drawn(shoe.draw()) if left else _RAN_OUT

    def _burn(self, s: State) -> Event:
        return self._vault.burned(self._shoe.draw())

    def _load(self, s: State) -> Event:
        self._shoe.shuffle()
        return ShoeLoaded(DEALER, self._cards)

    def _refill(self, s: State) -> Event:
        """The shoe ran out in the round, which is finished with the discards."""
        refill(self._shoe, s, self._vault.hole)
        return ShoeLoaded(DEALER, self._shoe.left)

    # Decisions

    def _decide(self, s: State) -> Event:
        hand = s.hands[s.turn]
        cards = hand.cards
        count = len(cards)
        pair = 0
        if count == 2 and VALUE[cards[0]] == VALUE[cards[1]]:
            pair = VALUE[cards[0]]
        bit = self._choose(
            hand.total, hand.soft, count, pair, hand.doubles, hand.split, s.up, s.legal
        )
        return self._decisions[hand.seat][hand.number][bit]

    def _answer(self, s: State) -> Event:
        seat = s.seats[s.asked]
        number = seat.number
        actor = self._voices[number]
        if self._evens and _waiting_blackjack(s, number):
            return EvenMoney(actor, number)
        if self._insures:
            return Insure(actor, number, self._money.max_within(seat.main, 2))
        return Decline(actor, number)

    def _take_pay(self, s: State) -> Event:
        seat = s.hands[s.turn].seat
        return PayTaken(self._voices[seat], seat)


def voice(game: Game, seat: int) -> Actor:
    """Returns the actor of a player's decisions: the dealer, if they are hand signals."""
    return DEALER if game.options.decisions.by == "signals" else player(seat)


def pay(s: State) -> Event:
    """Returns the event that pays everything due, or the next step if the floor must approve."""
    for due in s.due:
        if due.floor:
            return _PAID if s.approved or not s.due[0].floor else _APPROVED
    return ALL_PAID


def _waiting_blackjack(s: State, seat: int) -> bool:
    return any(hand.seat == seat and hand.natural and not hand.out for hand in s.hands)


def _wagers(stakes: tuple[tuple[Bet, int], ...], seats: range) -> tuple[WagerPlaced, ...]:
    return tuple(
        WagerPlaced(player(seat), seat, bet, amount) for seat in seats for bet, amount in stakes
    )


def _decisions(actor: Actor, seat: int, hand: int) -> dict[int, Event]:
    """Returns a hand's decisions by the bit that the strategy chooses."""
    return {
        HIT: Hit(actor, seat, hand),
        STAND: Stand(actor, seat, hand),
        DOUBLE: Double(actor, seat, hand),
        SPLIT: Split(actor, seat, hand),
        SURRENDER: Surrender(actor, seat, hand),
    }
