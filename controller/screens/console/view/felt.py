"""The felt as the dealer's console shows it, in the house's words."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from controller.procedure.model.felt import expected
from controller.procedure.model.game import Game
from controller.procedure.model.state import Place, Seat, State, Step
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand
from controller.screens.common.felt import (
    DOWN,
    Felt,
    FeltHand,
    FeltSeat,
    bets_at,
    dealers_cards,
    hands_at,
    is_asked,
    names_of,
    spare_card,
    tags_of,
)
from controller.screens.console.text import HouseTerms

_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD, Step.NATURALS)
_ASKS: Final = (Step.INSURANCE, Step.INSURANCE_CONFIRM)


def felt_of(s: State, game: Game, terms: HouseTerms) -> Felt:
    place, texts = expected(s), terms.texts
    by_number = {seat.number: seat for seat in s.seats}
    numbers = range(1, max(game.seats, *by_number, 1) + 1)
    felt = Felt(
        texts("console.felt.dealer"),
        dealers_cards(s),
        _total(s.dealer_total, s.dealer_soft, s.dealer, terms),
        tuple(_seat(s, number, by_number.get(number), place, terms) for number in numbers),
        spare_card(s),
        texts("console.felt.beside"),
        place is not None and place.kind in ("up", "hole", "dealer"),
    )
    said = [seat.words for seat in felt.seats if seat.plays]
    if felt.dealer:
        cards = ", ".join(filter(None, (_listed(felt.dealer, terms), felt.dealer_total)))
        said.insert(0, f"{felt.name}: {cards}")
    said += [f"{felt.beside}: {_listed((felt.spare,), terms)}"] if felt.spare else []
    return replace(felt, words=tuple(said) or (texts("console.felt.nothing"),))


def _seat(s: State, number: int, seat: Seat | None, place: Place | None, t: HouseTerms) -> FeltSeat:
    name = t.seat(number)
    if seat is None:
        return FeltSeat(number, name)
    hands = tuple(_hand(s, turn, one, place, t) for turn, one in hands_at(s, seat))
    bets = tuple((t.bet(bet), t.amount(amount)) for bet, amount in bets_at(s, seat))
    asked = s.step in _ASKS and is_asked(s, seat)
    side = s.step is Step.PAYING and bool(s.due) and s.due[0].turn < 0 and s.due[0].seat == number
    marked = asked or side or any(hand.turn or hand.next for hand in hands)
    said = [hand.words for hand in hands] + [f"{bet} {amount}" for bet, amount in bets]
    said += [t.texts("console.felt.asked")] if asked else []
    return FeltSeat(number, name, True, bets, hands, marked, f"{name}: {'; '.join(said)}")


def _hand(s: State, turn: int, hand: Hand, place: Place | None, t: HouseTerms) -> FeltHand:
    tags = tuple(t.texts(f"console.tag.{tag}") for tag in tags_of(hand))
    total = _total(hand.total, hand.soft, hand.cards, t)
    mine = s.step in _TURNS and turn == s.turn
    comes = place is not None and place.kind == "hand" and place.turn == turn
    due = s.step is Step.PAYING and bool(s.due) and s.due[0].turn == turn
    cards, wager = names_of(hand.cards), t.amount(hand.wager)
    said = [_listed(cards, t), total, t.texts("console.felt.wager", amount=wager), *tags]
    said += [t.texts("console.felt.turn")] if mine else []
    said += [t.texts("console.felt.next")] if comes else []
    return FeltHand(cards, total, wager, tags, mine, comes, due, ", ".join(filter(None, said)))


def _listed(names: tuple[str, ...], t: HouseTerms) -> str:
    said = [
        t.texts("console.felt.down") if one == DOWN else t.card(NAMES.index(one)) for one in names
    ]
    return ", ".join(said) or t.texts("console.felt.no_cards")


def _total(total: int, soft: bool, cards: tuple[Card, ...], t: HouseTerms) -> str:
    if not cards:
        return ""
    return t.texts("console.term.soft", total=total) if soft and total < 21 else str(total)
