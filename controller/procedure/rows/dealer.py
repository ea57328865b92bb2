"""The dealer's hand: the reveal of the hole card, the draws, and the settlement."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import CardDrawn, Go, HoleRevealed
from controller.procedure.model.felt import fresh, times_seen, to_dealer
from controller.procedure.model.game import Game
from controller.procedure.model.payments import settlement
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import WAITING, State, Step
from controller.rules.cards import VALUE, Card
from controller.rules.hands import is_blackjack, plus
from controller.rules.payouts import dealer_draws

# The hole card turned over


def hole_card(s: State, e: HoleRevealed) -> Card:
    """Returns the card that the floor confirmed, or the shoe's reading if it was not in doubt."""
    return e.card if s.read < 0 else s.read


def agrees_with_check(s: State, e: HoleRevealed) -> bool:
    return s.checked is None or s.checked == is_blackjack(s.dealer[0], hole_card(s, e))


def hole_is_fresh(g: Game, s: State, e: HoleRevealed) -> bool:
    return s.read >= 0 or times_seen(s, e.card) < g.decks


def _reveals(g: Game, s: State, e: HoleRevealed) -> bool:
    return hole_is_fresh(g, s, e) and agrees_with_check(s, e)


def _revealed(g: Game, s: State, e: HoleRevealed) -> State:
    card = hole_card(s, e)
    total, soft = plus(s.dealer_total, s.dealer_soft, card)
    return replace(
        s,
        dealer=(*s.dealer, card),
        dealer_total=total,
        dealer_soft=soft,
        hole="",
        seen=s.seen if s.read >= 0 else s.seen + (1 << 4 * card),
        read=-1,
    )


def _late_more(g: Game, s: State, e: CardDrawn) -> bool:
    return fresh(g, s, e) and s.late > 1


def _late_last(g: Game, s: State, e: CardDrawn) -> bool:
    return fresh(g, s, e) and s.late == 1


def _late_card(g: Game, s: State, e: CardDrawn) -> State:
    late = to_dealer(s, e)
    return replace(late, late=s.late - 1, up=s.up or VALUE[e.card])


# The dealer's hand


def depends(g: Game, s: State) -> bool:
    """Whether a hand or Buster wager on the felt depends on the dealer's cards."""
    takes_blackjacks = g.can_push and g.waits_for_settlement
    for hand in s.hands:
        if not hand.out and (takes_blackjacks or not hand.natural):
            return True
    for seat in s.seats:
        if seat.buster or seat.toke_buster:
            return True
    return False


def _must_draw(g: Game, s: State) -> bool:
    return dealer_draws(g.options, s.dealer_total, soft=s.dealer_soft)


def _draws(g: Game, s: State, e: Go) -> bool:
    return _must_draw(g, s) and depends(g, s)


def _settles(g: Game, s: State, e: Go) -> bool:
    return not _draws(g, s, e) and on_the_felt(s)


def _only_shown(g: Game, s: State, e: Go) -> bool:
    return not _draws(g, s, e) and not on_the_felt(s)


def on_the_felt(s: State) -> bool:
    """Whether a wager is unsettled."""
    for hand in s.hands:
        if not hand.out:
            return True
    for seat in s.seats:
        if seat.buster or seat.toke_buster or seat.insurance:
            return True
    return False


def _settlement(g: Game, s: State, e: Go) -> State:
    return replace(s, due=settlement(g, s), after=Step.CLEARING)


def _draw(g: Game, s: State, e: CardDrawn) -> State:
    return to_dealer(s, e)


ROWS = (
    Row(
        "reveal_hole",
        (Step.REVEAL,),
        HoleRevealed,
        Step.DEALER_EVALUATE,
        "The dealer turns the hole card over.",
        when=_reveals,
        do=_revealed,
        rule=(
            "classic.dealer1",
            "classic.deal4",
        ),
    ),
    Row(
        "late_card",
        (Step.DEALER_LATE,),
        CardDrawn,
        Step.DEALER_LATE,
        "The dealer gets a card that was missed; another one follows.",
        when=_late_more,
        do=_late_card,
    ),
    Row(
        "late_last_card",
        (Step.DEALER_LATE,),
        CardDrawn,
        Step.DEALER_EVALUATE,
        "The dealer has the cards that were missed.",
        when=_late_last,
        do=_late_card,
    ),
    Row(
        "dealer_must_draw",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.DEALER_CARD,
        "A hand or a Buster wager depends on the dealer's hand, and its total must draw.",
        when=_draws,
        rule=(
            "classic.dealer2",
            "classic.dealer3",
            "classic.rule1",
            "maxtime.6",
            "sf21x.intro2",
            "mega.1",
            "mega.buster5",
            "mega.buster6",
        ),
    ),
    Row(
        "dealer_card",
        (Step.DEALER_CARD,),
        CardDrawn,
        Step.DEALER_EVALUATE,
        "The dealer draws a card.",
        when=fresh,
        do=_draw,
        rule=("classic.dealer2",),
    ),
    Row(
        "settle",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.PAYING,
        "The dealer's hand is complete: insurance that won is paid first, then what lies on the "
        "felt is settled in the house's order, hand by hand, with the seat's Buster and toke "
        "bets.",
        when=_settles,
        do=_settlement,
        rule=(
            "classic.dealer4",
            "classic.dealer5",
            "classic.intro1",
            "classic.play3",
            "classic.wagers2",
            "classic.insurance3",
            "maxtime.6",
            "sf21x.13a",
            "sf21x.13b",
            "mega.6",
            "mega.7",
            "mega.7note",
            "mega.9",
            "mega.pay2",
            "mega.pay3",
            "mega.pay4",
            "mega.pay5",
            "mega.pay6",
            "mega.buster2",
            "mega.buster3",
            "mega.buster4",
            "mega.toke2",
            "mega.deal4",
            "sf21x.4a",
            "sf21x.4a3",
            "sf21x.7a",
            "maxtime.1d",
            "mega.intro2",
            "mega.3",
            "mega.8",
        ),
    ),
    Row(
        "hole_only_shown",
        (Step.DEALER_EVALUATE,),
        Go,
        Step.CLEARING,
        "Nothing on the felt depends on the dealer: the hole card is only shown.",
        when=_only_shown,
    ),
)


REFUSALS = (
    Refusal(
        "no_reveal_now",
        tuple(step for step in WAITING if step is not Step.REVEAL),
        HoleRevealed,
        "the hole card stays face down now",
    ),
)
