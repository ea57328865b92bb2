"""Rulings: what the floor may rule, what each does, repaired deals, and wagers given back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from controller.procedure.model.effects import (
    Burned,
    DecksOut,
    Discarded,
    Effect,
    RoundVoid,
    Ruled,
    SeatDead,
)
from controller.procedure.model.events import Event, FloorRuled, Go
from controller.procedure.model.felt import (
    lay,
    name_of,
    seat_index,
    seat_of,
    second_person,
    top,
    with_seat,
)
from controller.procedure.model.game import Game
from controller.procedure.model.holds import applicable, identify_card, seen_once_more, spare_left
from controller.procedure.model.payments import given_back, refunds, refunds_of
from controller.procedure.model.row import Refusal, Row, When
from controller.procedure.model.state import Hold, Place, Spare, State, Step, elsewhere
from controller.procedure.rows import mark_naturals
from controller.rules.cards import Card
from controller.rules.hands import Hand, is_blackjack
from controller.rules.irregularities import Irregularity, Way


def cards_dealt(s: State) -> tuple[Card, ...]:
    """Returns the cards dealt so far, in the order in which they left the shoe."""
    given = [0] * len(s.hands)
    dealer = 0
    cards: list[Card] = []
    for place in s.places[: s.dealt]:
        if place.turn >= 0:
            cards.append(s.hands[place.turn].cards[given[place.turn]])
            given[place.turn] += 1
        else:
            cards.append(s.dealer[dealer])
            dealer += 1
    return tuple(cards)


def _fits(s: State, places: tuple[Place, ...]) -> tuple[Place, ...] | None:
    """Returns the places if the cards dealt so far fit on them, else None."""
    if s.hole or s.dealt > len(places):
        return None
    face_up = all(place.kind != "hole" for place in places[: s.dealt])
    return places if face_up else None


def lays_without(s: State, seat: int) -> tuple[Place, ...] | None:
    """Returns the places if the seat got no cards, or None if that is impossible."""
    if not any(place.seat == seat for place in s.places):
        return None
    left = tuple(place for place in s.places if place.seat != seat)
    if not any(place.kind == "hand" for place in left):
        return None
    return _fits(s, left)


def second_last(s: State, seat: int) -> tuple[Place, ...] | None:
    """Returns the places if the seat gets its second card after all others."""
    turns = [index for index, place in enumerate(s.places) if place.seat == seat]
    if len(turns) < 2 or turns[1] == len(s.places) - 1:
        return None
    second = s.places[turns[1]]
    left = (*s.places[: turns[1]], *s.places[turns[1] + 1 :], second)
    return _fits(s, left)


def missed_places(s: State, which: int) -> tuple[Place, ...] | None:
    """Returns the places if the dealer gets the cards from the first (1) or second (2) one last."""
    kinds = ("up", "hole") if which == 1 else ("hole",)
    if not any(place.kind == kinds[0] for place in s.places):
        return None
    return _fits(s, tuple(place for place in s.places if place.kind not in kinds))


def laid_again(s: State, places: tuple[Place, ...]) -> State:
    """Returns the state with the same cards on `places`."""
    cards = cards_dealt(s)
    bare = replace(
        s,
        places=places,
        dealt=0,
        dealer=(),
        dealer_total=0,
        dealer_soft=False,
        up=0,
        hands=tuple(
            Hand(hand.seat, hand.wager, hand.bet, done=hand.done, out=hand.out) for hand in s.hands
        ),
    )
    for place, card in zip(places, cards, strict=False):
        bare = lay(bare, place, card, s.seen, s.spare)
    return bare


_OUTLIVE_VOID = frozenset(
    {Irregularity.DECK_SUSPECT, Irregularity.UNKNOWN_CARD, Irregularity.DEALER_RELIEVED}
)
"""Holds that survive a void; all others concern the round."""


def _ended(s: State, back: Step, outlive: frozenset[Irregularity]) -> tuple[Hold, ...]:
    """Returns the remaining holds, the last to be released first, then the step `back`."""
    deeper = tuple(held for held in s.holds[:-1] if held.what in outlive)
    first, *rest = (*deeper, top(s))
    return (replace(first, back=back), *rest)


def void_round(g: Game, s: State, e: Event) -> State:
    """Gives unresolved wagers back; needs no device.

    A lost shoe holds the next round instead, and an empty shoe is shuffled before it.
    """
    dues = refunds(g, s, "void")
    empty = any(held.what is Irregularity.SHOE_RAN_OUT for held in s.holds)
    return replace(
        s,
        due=dues,
        after=Step.CLEARING,
        shoe=replace(s.shoe, rounds_left=0) if empty else s.shoe,
        holds=_ended(s, Step.PAYING if dues else Step.CLEARING, _OUTLIVE_VOID),
        asking=0,
        approved=False,
        spare=spare_left(s),
    )


def decks_out(g: Game, s: State, e: Go) -> State:
    """Takes the decks out of play with all steps that need them; gives wagers on the felt back."""
    shoe = replace(s.shoe, loaded=False, decks_out=True)
    dues = refunds(g, s, "void")
    after = Step.CLEARING if s.hands else Step.NEXT_ROUND
    bare = replace(s, shoe=shoe, asking=0, approved=False, spare=None, burn=0)
    holds = _ended(s, Step.PAYING if dues else after, frozenset())
    return replace(bare, due=dues, after=after, holds=holds)


def with_top(s: State, held: Hold) -> State:
    return replace(s, holds=(*s.holds[:-1], held))


# The floor rules


def _may_rule(g: Game, s: State, e: FloorRuled) -> bool:
    held = top(s)
    if e.way not in held.options or not applicable(s, held, e.way):
        return False
    return not g.needs_two(held.what, e.way) or second_person(e, e.second)


def _ruled(g: Game, s: State, e: FloorRuled) -> State:
    return with_top(
        s, replace(top(s), chosen=e.way, ruled_by=e.actor.name, ruled_with=name_of(e.second))
    )


def _ruled_fact(g: Game, s: State, e: FloorRuled, after: State) -> tuple[Effect, ...]:
    return (Ruled(top(s).what.value, e.way.value, e.actor.name, name_of(e.second)),)


# What a ruling does. Each way ends in RESUMING, which returns to the step of the hold.


def _chosen(way: Way, *but: Irregularity) -> When:
    def guard(g: Game, s: State, e: Go) -> bool:
        held = top(s)
        return held.chosen is way and held.what not in but

    return guard


def _relief_burn(g: Game, s: State, e: Go) -> bool:
    held = top(s)
    return held.chosen is Way.BURN and held.what is Irregularity.DEALER_RELIEVED


def _resume(g: Game, s: State, e: Go) -> State:
    """Resumes play unchanged; a card that was in doubt counts as what it shows."""
    held = top(s)
    settled = held.back is Step.PAYING and s.after is Step.CLEARING
    if held.card < 0 or settled or held.back is Step.CLEARING:
        return s
    if held.what is Irregularity.HOLE_MISMATCH:
        shown = replace(s, checked=is_blackjack(s.dealer[0], held.card))
        # Reported as a blackjack but is none: no hand has played yet, so play starts.
        return with_top(shown, replace(held, back=Step.AFTER_CHECK)) if s.checked else shown
    if held.what is Irregularity.DECK_SUSPECT and s.spare is None:
        return identify_card(replace(s, seen=seen_once_more(s, held.card)), held)
    return s


def _dealer_last(g: Game, s: State, e: Go) -> State:
    which = int(top(s).detail)
    places = missed_places(s, which)
    if places is None:
        return s
    again = replace(laid_again(s, places), late=3 - which)
    if again.dealt < len(places):
        return again
    return with_top(mark_naturals(again), replace(top(s), back=Step.AFTER_DEAL))


def _dead_hand(g: Game, s: State, e: Go) -> State:
    """Continues the deal without the seat, after its wagers are given back."""
    number = top(s).seat
    places = lays_without(s, number)
    seat = seat_of(s, number)
    if places is None or seat is None:
        return s
    again = laid_again(s, places)
    hands = tuple(replace(hand, done=True) if hand.seat == number else hand for hand in again.hands)
    dead = with_top(replace(again, hands=hands), replace(top(s), back=Step.PAYING))
    dues = refunds_of(g, dead, seat, "dead_hand")
    if dead.dealt < len(places):
        return replace(dead, due=dues, after=Step.DEALING)
    return replace(mark_naturals(dead), due=dues, after=Step.AFTER_DEAL)


def _second_last(g: Game, s: State, e: Go) -> State:
    places = second_last(s, top(s).seat)
    return s if places is None else laid_again(s, places)


def _void_fact(g: Game, s: State, e: Go, after: State) -> tuple[Effect, ...]:
    """The fact of a void, also if the jurisdiction ruled it without the floor."""
    held = top(s)
    by = held.ruled_by or g.jurisdiction.name
    return (RoundVoid(s.round, held.what.value, by, held.ruled_with),) if s.hands else ()


def _decks_out_fact(g: Game, s: State, e: Go, after: State) -> tuple[Effect, ...]:
    return (DecksOut(), *_void_fact(g, s, e, after))


def _reopen(g: Game, s: State, e: Go) -> State:
    """Asks the seat again, after its insurance is given back."""
    seat = seat_of(s, top(s).seat)
    if seat is None:
        return s
    asked = replace(s, seats=with_seat(s, replace(seat, answer="")), asking=0)
    asked = replace(asked, asked=seat_index(s, seat.number))
    if not seat.insurance:
        return with_top(asked, replace(top(s), back=Step.INSURANCE))
    dues = (given_back(seat, "insurance", "asked_again"),)
    paying = replace(asked, due=dues, after=Step.INSURANCE)
    return with_top(paying, replace(top(s), back=Step.PAYING))


def _stand_hand(g: Game, s: State, e: Go) -> State:
    """Skips the seat: it makes no decision any more, and its hands stand in turn."""
    held = top(s)
    quiet = replace(s, quiet=(*s.quiet, held.seat))
    if _is_asked(s, held):
        quiet = with_top(replace(quiet, asking=0), replace(held, back=_passed_over(s, held.back)))
    return quiet


def _is_asked(s: State, held: Hold) -> bool:
    """Whether the table waits for the seat that left."""
    if held.back in (Step.INSURANCE, Step.INSURANCE_CONFIRM):
        return s.seats[s.asked].number == held.seat
    turns = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.NATURALS)
    return held.back in turns and s.hands[s.turn].seat == held.seat


def _passed_over(s: State, back: Step) -> Step:
    if back is Step.NATURALS:
        return Step.AFTER_DEAL if s.checked is None else Step.AFTER_CHECK
    asked = (Step.INSURANCE, Step.INSURANCE_CONFIRM)
    return Step.NEXT_ASKED if back in asked else Step.NEXT_HAND


def _device_gone(g: Game, s: State, e: Go) -> bool:
    held = top(s)
    return held.chosen is Way.DEVICE_CHECK and held.device in s.lost


def _device_there(g: Game, s: State, e: Go) -> bool:
    held = top(s)
    return held.chosen is Way.DEVICE_CHECK and held.device not in s.lost


def _way(
    name: str,
    way: Way,
    to: Step,
    text: str,
    do: Callable[[Game, State, Any], State] | None = None,
    effects: Callable[[Game, State, Any, State], tuple[Effect, ...]] | None = None,
    when: When | None = None,
) -> Row:
    return Row(f"way_{name}", (Step.RULING,), Go, to, text, when or _chosen(way), do, effects)


ROWS: tuple[Row, ...] = (
    Row(
        "floor_decides",
        (Step.RULING,),
        Go,
        Step.HELD,
        "No rule gives the way on: the table is held until the floor has ruled.",
        lambda g, s, e: top(s).chosen is None,
        rule=("classic.rule8",),
    ),
    Row(
        "floor_rules",
        (Step.HELD,),
        FloorRuled,
        Step.RULING,
        "The floor rules, with a second person where the house asks for one; the ruling is final.",
        _may_rule,
        _ruled,
        _ruled_fact,
        why="the floor rules, one of the ways that are open, with a second person where asked",
        rule=("classic.rule8",),
    ),
    _way(
        "discard",
        Way.DISCARD,
        Step.RESUMING,
        "The card is not used: it goes to the discard rack.",
        None,
        lambda g, s, e, after: (Discarded(top(s).card),),
    ),
    _way(
        "use_next",
        Way.USE_NEXT,
        Step.RESUMING,
        "The card that nobody saw is the next card and must be used.",
        lambda g, s, e: replace(s, spare=Spare(commitment=top(s).commitment)),
    ),
    _way(
        "deal_on",
        Way.DEAL_ON,
        Step.RESUMING,
        "The exposed card is the next one; a player may refuse it and draws no more this round.",
        lambda g, s, e: replace(s, spare=Spare(card=top(s).card, exposed=True)),
    ),
    _way(
        "burn",
        Way.BURN,
        Step.RESUMING,
        "The card is burned.",
        None,
        lambda g, s, e, after: (Burned(top(s).card),),
        _chosen(Way.BURN, Irregularity.DEALER_RELIEVED),
    ),
    _way(
        "relief_burn",
        Way.BURN,
        Step.RELIEF_BURN,
        "The new dealer burns as the house says.",
        lambda g, s, e: replace(s, burn=g.options.burn.on_dealer),
        None,
        _relief_burn,
    ),
    _way(
        "dealer_last",
        Way.DEALER_LAST,
        Step.RESUMING,
        "The players are finished first, then the dealer gets the cards that were missed.",
        _dealer_last,
    ),
    _way(
        "reshuffle",
        Way.RESHUFFLE,
        Step.REFILL,
        "The discards are shuffled, cut and loaded, and the round is finished with them.",
    ),
    _way(
        "dead_hand",
        Way.DEAD_HAND,
        Step.RESUMING,
        "The seat's hand is dead; its wagers go back and it is in again next round.",
        _dead_hand,
        lambda g, s, e, after: (SeatDead(top(s).seat),),
    ),
    _way(
        "second_card_last",
        Way.SECOND_CARD_LAST,
        Step.RESUMING,
        "The seat gets its second card after everyone else's.",
        _second_last,
    ),
    _way(
        "enter_card",
        Way.ENTER_CARD,
        Step.CARD_ENTRY,
        "The dealer enters the card from the felt.",
    ),
    _way(
        "decks_out",
        Way.DECKS_OUT,
        Step.RESUMING,
        "The decks are out of play; every unresolved wager goes back.",
        decks_out,
        _decks_out_fact,
    ),
    _way(
        "resume",
        Way.RESUME,
        Step.RESUMING,
        "Play goes on as it stands; a card that was in doubt counts as what it shows.",
        _resume,
    ),
    _way(
        "void",
        Way.VOID,
        Step.RESUMING,
        "The round is void: every unresolved wager goes back.",
        void_round,
        _void_fact,
    ),
    _way(
        "stand_hand",
        Way.STAND_HAND,
        Step.RESUMING,
        "The seat's hands stand and its wagers stay.",
        _stand_hand,
    ),
    _way(
        "reopen_insurance",
        Way.REOPEN_INSURANCE,
        Step.RESUMING,
        "The seat is asked for insurance once more; what lay on the line goes back before.",
        _reopen,
    ),
    _way(
        "device_check",
        Way.DEVICE_CHECK,
        Step.DEVICE,
        "Dealing stops until the device is back, is the same one, and its counters agree.",
        when=_device_gone,
    ),
    _way(
        "device_there",
        Way.DEVICE_CHECK,
        Step.FELT,
        "The device came back while the floor was asked: now the felt.",
        when=_device_there,
    ),
    _way(
        "felt_check",
        Way.FELT_CHECK,
        Step.FELT,
        "The dealer compares the felt with the screen.",
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "nothing_to_rule",
        elsewhere(Step.HELD),
        FloorRuled,
        "nothing waits for a ruling: call the floor first",
    ),
)
