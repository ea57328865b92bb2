"""A second book of each round, compared with the procedure, and the rules that it applies.

The book is written from the events alone. The rules are written straight from the rule texts and
share nothing with controller.rules: slow, plain and without a state machine, they say what was due,
given the felt at the end of a round.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import floor
from typing import Final, NamedTuple

from controller.procedure.model import events
from controller.procedure.model.effects import RoundOver, RoundVoid, SeatDead, Settled, WagersLocked
from controller.procedure.model.events import Event
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.hands import Hand
from controller.rules.money import Money, Odds
from controller.rules.options import Options

ACE_AND_TEN: Final = {1, 10}


class Owed(NamedTuple):
    """What becomes of one wager."""

    outcome: str
    odds: str | None
    stake: int
    returned: int


# Cards


def pips(card: int) -> int:
    """Ace 1, picture cards 10."""
    return min(card % 13 + 1, 10)


def total(cards: Sequence[int], *, ace_is_one: bool = False) -> tuple[int, bool]:
    """The best total, and whether an ace counts 11 in it."""
    low = sum(map(pips, cards))
    soft = 1 in map(pips, cards) and low + 10 <= 21 and not ace_is_one
    return (low + 10, True) if soft else (low, False)


def hand_total(hand: Hand) -> int:
    """An ace and a ten that were doubled count the ace as one for good.

    Each double brings one card; the last one may be confirmed and its card still to come.
    """
    dealt = set(map(pips, hand.cards[:2])) == ACE_AND_TEN
    as_one = hand.doubles > 0 and dealt and len(hand.cards) - hand.doubles <= 2
    return total(hand.cards, ace_is_one=as_one)[0]


def blackjack(cards: Sequence[int]) -> bool:
    return len(cards) == 2 and set(map(pips, cards)) == ACE_AND_TEN


def diamonds(cards: Sequence[int]) -> bool:
    return all(card // 13 == 1 for card in cards)


# Choices


def legal_choices(o: Options, hand: Hand, hands_of_seat: int) -> set[str]:
    """What the unbusted hand in turn may do."""
    words = {"stand"}
    count, points = len(hand.cards), hand_total(hand)
    split_ace = hand.split and pips(hand.cards[0]) == 1
    if points < 21 and not hand.doubles and not (split_ace and o.split.aces_one_card):
        words.add("hit")
    if _may_double(o, hand, count, points, split_ace=split_ace):
        words.add("double")
    if _may_split(o, hand, count, hands_of_seat, split_ace=split_ace):
        words.add("split")
    dealt = count == 2 and not hand.split and not hand.doubles
    if o.surrender.when == "any_time" or (o.surrender.when == "first_two" and dealt):
        words.add("surrender")
    return words


def _may_double(o: Options, hand: Hand, count: int, points: int, *, split_ace: bool) -> bool:
    double = o.double
    if hand.doubles:
        return hand.doubles < double.times and points <= double.max_total
    if hand.split and (not double.after_split or (split_ace and o.split.aces_one_card)):
        return False
    if double.on == "two_cards" and count != 2:
        return False
    return points <= double.max_total or (double.ace_is_one_with_ten and blackjack(hand.cards))


def _may_split(o: Options, hand: Hand, count: int, hands_of_seat: int, *, split_ace: bool) -> bool:
    if count != 2 or hand.doubles or hands_of_seat >= o.split.max_hands:
        return False
    one, other = hand.cards
    alike = one % 13 == other % 13 if o.split.match == "rank" else pips(one) == pips(other)
    return alike and not (split_ace and not o.split.aces_again)


def stands_by_itself(o: Options, hand: Hand, hands_of_seat: int) -> bool:
    """A hand of 21 or less that is not asked any more after a card came to it."""
    open_to_it = legal_choices(o, hand, hands_of_seat) - {"stand"}
    if hand_total(hand) == 21 and not hand.doubles:
        open_to_it.discard("surrender")
    return not open_to_it


def instant_winner(o: Options, hand: Hand) -> str | None:
    if hand.doubles or (hand.split and not o.instant.on_split):
        return None
    count, points, pays = len(hand.cards), hand_total(hand), o.instant
    if points == 21:
        enough = pays.pays_21 is not None and count >= (pays.cards_21 or 99)
        return "instant21" if enough else None
    enough = pays.pays_count is not None and count >= (pays.cards_count or 99)
    return "instant6" if enough and points < 21 else None


# Money


def rounded(money: Money, amount: Fraction) -> int:
    units = amount / money.unit
    if money.rounding == "floor":
        return floor(units) * money.unit
    if money.rounding == "ceil":
        return -floor(-units) * money.unit
    return floor(units + Fraction(1, 2)) * money.unit


def pay(money: Money, stake: int, outcome: str, odds: Odds | None) -> Owed:
    if odds is not None:
        won = rounded(money, Fraction(stake * odds.pays, odds.on))
        return Owed(outcome, str(odds), stake, stake + won)
    back = {"lose": 0, "push": stake, "surrender": rounded(money, Fraction(stake, 2))}
    return Owed(outcome, None, stake, back[outcome])


# The dealer


def dealer_stops(o: Options, cards: Sequence[int]) -> bool:
    points, soft = total(cards)
    return points > 17 or (points == 17 and not (soft and o.dealer.soft_17 == "hit"))


def dealer_pushes(o: Options, cards: Sequence[int]) -> bool:
    points = total(cards)[0]
    least = o.dealer.push_bust_cards
    return (points == 22 and o.dealer.push_22) or (points > 21 and 0 < least <= len(cards))


# The end of a round


class Felt(NamedTuple):
    """A seat at the end of a round: its hands, what it said, and what it had placed."""

    hands: tuple[Hand, ...]
    surrendered: frozenset[int]
    """Numbers of its hands that were given up."""
    even_money: bool
    bets: dict[str, int]


def owed(o: Options, seat: Felt, dealer: Sequence[int]) -> Iterator[tuple[str, int, Owed]]:
    """Every wager of the seat: which bet, which hand (-1: none), what becomes of it."""
    for hand in seat.hands:
        outcome, odds = _main(o, seat, hand, dealer)
        due = pay(o.money, hand.wager, outcome, odds)
        if outcome == "surrender" and hand.doubles and o.surrender.of_doubled == "original_bet":
            due = due._replace(returned=hand.wager - hand.bet)
        due = _unchecked(o, seat, hand, dealer, due)
        yield "main", hand.number, due
        if hand.number == 0 and seat.bets.get("toke_main"):
            # A toke rides on the seat's first hand at its own size.
            toke = pay(o.money, seat.bets["toke_main"], due.outcome, odds)
            word = "lose" if due.outcome == "surrender" else due.outcome
            simple = word in ("win", "lose", "push")
            yield "toke_main", -1, toke._replace(outcome=word if simple else "win")
    for bet, odds in _side_odds(o, seat, dealer).items():
        if seat.bets.get(bet):
            yield bet, -1, pay(o.money, seat.bets[bet], "win" if odds else "lose", odds)


def _side_odds(o: Options, seat: Felt, dealer: Sequence[int]) -> dict[str, Odds | None]:
    first = seat.hands[0]
    dealt = first.cards[:2]
    lucky = blackjack(dealt) and not first.split and diamonds(dealt)
    table, count = o.bonus.buster.pays or {}, len(dealer)
    bust = total(dealer)[0] > 21 and bool(table)
    to_one = table.get(min(count, max(table))) if bust else None
    buster = Odds(to_one, 1) if to_one else None
    return {
        "insurance": o.insurance.pays if blackjack(dealer) else None,
        "diamond": Odds(o.bonus.diamond.pays or 0, 1) if lucky else None,
        "buster": buster,
        "toke_buster": buster,
    }


def _main(o: Options, seat: Felt, hand: Hand, dealer: Sequence[int]) -> tuple[str, Odds | None]:
    if hand.natural:
        return _natural(o, seat, hand, dealer)
    if hand.number in seat.surrendered:
        return "surrender", None
    points = hand_total(hand)
    if points > 21:
        return "lose", None
    instant = instant_winner(o, hand) if len(hand.cards) > 2 else None
    if instant is not None:
        return instant, o.instant.pays_21 if instant == "instant21" else o.instant.pays_count
    if blackjack(dealer):
        return "lose", None
    if dealer_pushes(o, dealer):
        return "push", None
    theirs = total(dealer)[0]
    if theirs > 21 or points > theirs:
        return "win", o.wins.pays_21 if points == 21 else Odds(1, 1)
    return ("push" if points == theirs else "lose"), None


def _natural(o: Options, seat: Felt, hand: Hand, dealer: Sequence[int]) -> tuple[str, Odds | None]:
    if seat.even_money:
        return "even_money", Odds(1, 1)
    up = pips(dealer[0])
    first = up == 10 and o.blackjack.ten_up == "pay_first"
    if blackjack(dealer) and o.blackjack.tie == "push" and not first:
        return "push", None
    if o.blackjack.paid == "at_settlement" and dealer_pushes(o, dealer):
        return "push", None
    diamond = o.blackjack.pays_diamonds
    suited = diamond is not None and diamonds(hand.cards)
    return "blackjack", diamond if suited else o.blackjack.pays


def _unchecked(o: Options, seat: Felt, hand: Hand, dealer: Sequence[int], due: Owed) -> Owed:
    """A dealer's blackjack that no check could find takes the original bet only, if so ruled."""
    seen = ("A" if pips(dealer[0]) == 1 else "T") in o.dealer.peek
    if o.dealer.no_peek_takes != "original_bets" or seen or not blackjack(dealer):
        return due
    if hand.natural or due.outcome != "lose" or hand_total(hand) > 21:
        return due
    busted = any(hand_total(each) > 21 for each in seat.hands)
    unresolved = [h for h in seat.hands if hand_total(h) <= 21 and not instant_winner(o, h)]
    if busted or unresolved[0].number != hand.number:
        return due._replace(outcome="push", returned=hand.wager)
    return due._replace(returned=hand.wager - hand.bet)


def dealer_has_to_draw(o: Options, seats: Sequence[Felt], dealer: Sequence[int]) -> bool:
    """Something on the felt still depends on the dealer's hand after the hole card."""
    can_push = o.dealer.push_22 or o.dealer.push_bust_cards > 0
    for seat in seats:
        if seat.bets.get("buster") or seat.bets.get("toke_buster"):
            return True
        for hand in seat.hands:
            if hand.natural:
                # One that no check could settle is settled when the hole card lies there.
                late = o.blackjack.paid == "at_settlement"
                if late and can_push and not seat.even_money:
                    return True
            elif hand.number not in seat.surrendered and hand_total(hand) <= 21:
                won = instant_winner(o, hand) if len(hand.cards) > 2 else None
                if won is None:
                    return True
    return False


_SIDE: Final = (*BETS[1:], "insurance")


class Broken(AssertionError):
    """What the procedure did with wagers, cards or hands is not what the rules say."""


class Ledger:
    """Watches a table. `finished` counts rounds, `clean` those in which nothing went wrong."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.finished = self.clean = self.voided = 0
        self.outcomes: Counter[str] = Counter()
        self._forget()

    def _forget(self) -> None:
        self._placed: Counter[tuple[int, str]] = Counter()
        self._settled: list[Settled] = []
        self._surrendered: set[tuple[int, int]] = set()
        self._bets: dict[tuple[int, str], int] = {}
        self._even: set[int] = set()
        self._began = False
        self._void = False
        self._smooth = True

    def __call__(self, before: State, event: Event, answer: Decision | Refused) -> None:
        if isinstance(answer, Refused):
            return
        s = answer.state
        if s.holds or s.spare or s.quiet or s.late or s.step is Step.CLOSED:
            self._smooth = False
        self._note_event(before, event, s)
        for effect in answer.effects:
            if type(effect) is WagersLocked:
                self._lock(before)
            elif type(effect) is Settled:
                self._settle(before, effect)
            elif type(effect) is SeatDead:
                self._smooth = False
            elif type(effect) is RoundVoid:
                self._void = True
            elif type(effect) is RoundOver:
                self._close(before, effect)

    def _must(self, held: bool, what: str, *shown: object) -> None:
        if not held:
            raise Broken(f"{what}: {shown}")

    # What is placed

    def _lock(self, s: State) -> None:
        self._began = True
        self._settled.clear()  # wagers that a void gave back before the deal
        self._placed.clear()
        for seat in s.seats:
            for bet in BETS:
                amount: int = seat.amount(bet)
                if amount:
                    self._placed[seat.number, bet] += amount
                    self._bets[seat.number, bet] = amount

    def _note_event(self, s: State, event: Event, after: State) -> None:
        if isinstance(event, events.Confirmed):
            if s.step is Step.INSURANCE_CONFIRM:
                seat = s.seats[s.asked].number
                # What the player asked for, whatever happened since.
                self._must(s.asking > 0, "insurance of nothing is confirmed", seat, s)
                self._placed[seat, "insurance"] += s.asking
                self._bets[seat, "insurance"] = s.asking
            else:
                hand = s.hands[s.turn]
                stake = s.asking if s.step is Step.DOUBLE_CONFIRM else hand.wager
                self._must(stake > 0, "nothing is staked", hand, s)
                self._placed[hand.seat, "main"] += stake
        elif isinstance(event, events.Surrender):
            self._surrendered.add((event.seat, event.hand))
        elif isinstance(event, events.EvenMoney):
            self._even.add(event.seat)
        elif isinstance(event, events.FloorRuled):
            # What a seat said of insurance, it may be asked once more.
            self._even -= {seat.number for seat in after.seats if not seat.answer}

    # What is settled

    def _settle(self, s: State, due: Settled) -> None:
        self._settled.append(due)
        self.outcomes[due.outcome] += 1
        self._must(due.stake > 0 and due.returned >= 0, "a wager of nothing is settled", due)
        if due.outcome == "void":
            self._must(due.returned == due.stake, "a void gives back another amount", due)
            self._must(due.odds is None, "a void has odds", due)
        if not self._began:
            placed = next(x for x in s.seats if x.number == due.seat).amount(due.bet)
            self._must(placed == due.stake, "another amount comes back before the deal", due)

    def _close(self, s: State, over: RoundOver) -> None:
        self._must(not s.due and not s.holds, "the felt is cleared over a payment or a hold", s)
        for hand in s.hands:
            self._must(hand.out and hand.done, "a hand is left on the felt", hand, s)
        for seat in s.seats:
            left = {bet: seat.amount(bet) for bet in _SIDE if seat.amount(bet)}
            self._must(not left, "a side bet is left on the felt", seat.number, left)
        won = sum(max(0, due.returned - due.stake) for due in self._settled)
        self._must(won == over.won, "the round's winnings", won, over)
        if self._began:
            self._balance(s)
            self.finished += 1
            self.voided += self._void
            if self._smooth and not self._void:
                self.clean += 1
                self._by_the_rules(s)
        self._forget()

    def _balance(self, s: State) -> None:
        stakes: Counter[tuple[int, str]] = Counter()
        hands: Counter[tuple[int, int]] = Counter()
        for due in self._settled:
            stakes[due.seat, due.bet] += due.stake
            if due.bet == "main":
                hands[due.seat, due.hand] += 1
        self._must(stakes == self._placed, "stakes settled, wagers placed", stakes, self._placed)
        self._must(all(n == 1 for n in hands.values()), "a hand is settled twice", hands)
        if not self._void:
            back = [due for due in self._settled if due.why == "void"]
            self._must(not back, "wagers go back, and nothing is void", back)

    # What the rules say

    def _by_the_rules(self, s: State) -> None:
        o, dealer = self.game.options, s.dealer
        seats = {seat.number: self._felt(s, seat.number) for seat in s.seats}
        found = {
            (due.seat, due.bet, due.hand): (
                due.outcome,
                None if due.odds is None else str(due.odds),
                due.stake,
                due.returned,
            )
            for due in self._settled
        }
        wanted = {
            (number, bet, hand): tuple(due)
            for number, felt in seats.items()
            for bet, hand, due in owed(o, felt, dealer)
        }
        if found != wanted:
            wrong = {key: (found.get(key), wanted.get(key)) for key in found.keys() | wanted.keys()}
            differ = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
            raise Broken(f"(found, wanted): {differ}; {s}; {o}")
        self._dealer_by_the_rules(s, list(seats.values()))

    def _dealer_by_the_rules(self, s: State, seats: list[Felt]) -> None:
        o, dealer = self.game.options, s.dealer
        self._must(len(dealer) >= 2, "the hole card was never shown", s)
        for count in range(2, len(dealer)):
            drew = not dealer_stops(o, dealer[:count])
            self._must(drew, "the dealer drew on a standing total", dealer)
        if dealer_has_to_draw(o, seats, dealer):
            self._must(dealer_stops(o, dealer), "the dealer stopped too early", dealer, s)
        else:
            self._must(len(dealer) == 2, "the dealer drew for nobody", dealer, s)

    def _felt(self, s: State, seat: int) -> Felt:
        hands: tuple[Hand, ...] = tuple(hand for hand in s.hands if hand.seat == seat)
        lost = frozenset(hand for number, hand in self._surrendered if number == seat)
        given_up = frozenset(
            hand.number
            for hand in hands
            if hand.number in lost and instant_winner(self.game.options, hand) is None
        )
        bets = {bet: amount for (number, bet), amount in self._bets.items() if number == seat}
        return Felt(hands, given_up, seat in self._even, bets)
