"""The felt as it lies before the dealer: hands, bets, whose turn it is, where the next card goes.

A card that lies face down has no name here; of the shoe nothing is taken.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from controller.procedure.model.felt import expected
from controller.procedure.model.game import Game
from controller.procedure.model.state import Place, Seat, State, Step
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand, is_blackjack
from controller.screens.common.felt_svg import DOWN
from controller.screens.console.text import HouseTerms

_BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster", "insurance")
_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD, Step.NATURALS)
_ASKS: Final = (Step.INSURANCE, Step.INSURANCE_CONFIRM)


class FeltHand(Struct, frozen=True):
    cards: tuple[str, ...]
    total: str
    wager: str
    turn: bool
    next: bool
    """The next card goes to it."""
    due: bool
    """It is paid, taken or given back now."""
    tags: tuple[str, ...]
    words: str


class FeltSeat(Struct, frozen=True):
    number: int
    name: str
    plays: bool
    bets: tuple[tuple[str, str], ...]
    """What lies there, bet by bet, but for the main wager of a hand."""
    hands: tuple[FeltHand, ...]
    asked: bool
    words: str


class Felt(Struct, frozen=True):
    name: str
    """Of the dealer's place."""
    dealer: tuple[str, ...]
    """The last may lie face down."""
    dealer_total: str
    dealer_next: bool
    seats: tuple[FeltSeat, ...]
    spare: str
    """The card beside the shoe; nothing where there is none."""
    beside: str
    """What that place is called."""
    next: str
    """What the place of the next card is called."""
    words: tuple[str, ...]
    """For who does not see it."""


def felt_of(s: State, game: Game, tongue: HouseTerms) -> Felt:
    dealer = _names(s.dealer)
    if s.hole:
        dealer = (*dealer, DOWN)
    place = expected(s)
    spare = s.spare
    lies = "" if spare is None else NAMES[spare.card] if spare.card >= 0 else DOWN
    by_number = {seat.number: seat for seat in s.seats}
    numbers = range(1, max(game.seats, *by_number, 1) + 1)
    seats = tuple(_seat(s, number, by_number.get(number), place, tongue) for number in numbers)
    texts = tongue.texts
    total = _total(s.dealer_total, s.dealer_soft, s.dealer, tongue)
    felt = Felt(
        texts("console.felt.dealer"),
        dealer,
        total,
        place is not None and place.kind in ("up", "hole", "dealer"),
        seats,
        lies,
        texts("console.felt.beside"),
        texts("console.felt.next"),
        (),
    )
    said = (
        [f"{felt.name}: {_listed(dealer, tongue)}{f', {total}' if total else ''}"] if dealer else []
    )
    said += [seat.words for seat in seats if seat.plays]
    said += [f"{felt.beside}: {_listed((lies,), tongue)}"] if lies else []
    return replace(felt, words=tuple(said) or (texts("console.felt.nothing"),))


def _seat(s: State, number: int, seat: Seat | None, place: Place | None, t: HouseTerms) -> FeltSeat:
    name = t.seat(number)
    if seat is None:
        return FeltSeat(number, name, False, (), (), False, "")
    dealt = [(turn, hand) for turn, hand in enumerate(s.hands) if hand.seat == number]
    hands = tuple(_hand(s, turn, one, place, t) for turn, one in dealt if _lies(one, seat))
    bets = tuple(
        (t.bet(bet), t.amount(getattr(seat, bet)))
        for bet in _BETS
        if getattr(seat, bet) and not (bet == "main" and dealt)
    )
    asked = s.step in _ASKS and s.asked < len(s.seats) and s.seats[s.asked].number == number
    side = s.step is Step.PAYING and bool(s.due) and s.due[0].turn < 0 and s.due[0].seat == number
    said = [hand.words for hand in hands] + [f"{bet} {amount}" for bet, amount in bets]
    said += [t.texts("console.felt.asked")] if asked else []
    return FeltSeat(number, name, True, bets, hands, asked or side, f"{name}: {'; '.join(said)}")


def _lies(hand: Hand, seat: Seat) -> bool:
    """It is on the felt: in play, or tucked under the seat's Buster wager."""
    return not hand.out or (hand.busted and seat.buster > 0)


def _hand(s: State, turn: int, hand: Hand, place: Place | None, t: HouseTerms) -> FeltHand:
    marks = {
        "blackjack": len(hand.cards) == 2 and not hand.split and is_blackjack(*hand.cards),
        "bust": hand.busted,
        "doubled": hand.doubles > 0,
        "tucked": hand.out,
    }
    tags = tuple(t.texts(f"console.tag.{tag}") for tag, holds in marks.items() if holds)
    total = _total(hand.total, hand.soft, hand.cards, t)
    mine = s.step in _TURNS and turn == s.turn
    comes = place is not None and place.kind == "hand" and place.turn == turn
    due = s.step is Step.PAYING and bool(s.due) and s.due[0].turn == turn
    wager = t.amount(hand.wager)
    said = [
        _listed(_names(hand.cards), t),
        total,
        t.texts("console.felt.wager", amount=wager),
        *tags,
    ]
    said += [t.texts("console.felt.turn")] if mine else []
    said += [t.texts("console.felt.next")] if comes else []
    words = ", ".join(filter(None, said))
    return FeltHand(_names(hand.cards), total, wager, mine, comes, due, tags, words)


def _names(cards: tuple[Card, ...]) -> tuple[str, ...]:
    return tuple(NAMES[card] for card in cards)


def _listed(names: tuple[str, ...], t: HouseTerms) -> str:
    said = [
        t.texts("console.felt.down") if one == DOWN else t.card(NAMES.index(one)) for one in names
    ]
    return ", ".join(said) or t.texts("console.felt.no_cards")


def _total(total: int, soft: bool, cards: tuple[Card, ...], t: HouseTerms) -> str:
    if not cards:
        return ""
    return t.texts("console.term.soft", total=total) if soft and total < 21 else str(total)
