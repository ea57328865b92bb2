"""Holds: how an irregularity stops the procedure, and the ways to continue."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from controller.procedure.model.effects import Effect, Told
from controller.procedure.model.events import Event, PaymentCorrected, Withdrawn
from controller.procedure.model.felt import hole_is_next, tally, times_seen, top
from controller.procedure.model.game import Game
from controller.procedure.model.row import Row, When
from controller.procedure.model.state import OPEN, Hold, Spare, State, Step
from controller.rules.cards import Card
from controller.rules.irregularities import WAYS, Irregularity, Way

HOLDING = (
    Step.HELD,
    Step.CARD_ENTRY,
    Step.CARD_CONFIRM,
    Step.DEVICE,
    Step.FELT,
    Step.REFILL,
    Step.RELIEF_BURN,
)
"""Steps that an irregularity leads to."""


CARD_STEPS = (Step.DEALING, Step.HAND_CARD, Step.DEALER_LATE, Step.DEALER_CARD)
"""Steps of a round that take a card face up."""


BEFORE = (Step.SHUFFLE_NEEDED, Step.SHUFFLING, Step.LOADING)


IN_ROUND = tuple(
    step for step in OPEN if step not in (*BEFORE, *HOLDING, Step.BURNING, Step.WAGERING)
)


STOPPED = (Step.HELD, Step.CARD_ENTRY, Step.CARD_CONFIRM, Step.DEVICE, Step.FELT)
"""Steps at which the table is stopped. A card that leaves the shoe then is out of play."""
NO_CARD = tuple(step for step in IN_ROUND if step not in CARD_STEPS)
"""Steps of a round in which no card may come."""


SHOE_IN_PLAY = (*IN_ROUND, Step.WAGERING, Step.BURNING)


_TOLD_TO_SURVEILLANCE = frozenset(
    {Irregularity.DECK_SUSPECT, Irregularity.HOLE_MISMATCH, Irregularity.UNKNOWN_CARD}
)


def stopped_at(s: State) -> Step:
    """Returns the step that waits below the holds that stop the table, or the current step."""
    step = s.step
    for held in reversed(s.holds):
        if step not in STOPPED:
            break
        step = held.back
    return step


def _may_enter_card(s: State, hold: Hold) -> bool:
    """The hole card lies face down and cannot be read from the felt. Nor may a card be known before
    the wagers are placed."""
    hole_next = hold.back is Step.DEALING and s.places[s.dealt].kind == "hole"
    return not hole_next and (bool(s.seats) or hold.back is not Step.WAGERING)


def _leaves_felt(s: State, hold: Hold) -> bool:
    """At the reveal the card in doubt is the hole card, which stays on the felt."""
    return hold.back is not Step.REVEAL or hold.what is not Irregularity.CARD_UNREADABLE


def _in_deal(s: State, hold: Hold) -> bool:
    return hold.back is Step.DEALING


def may_reopen_insurance(s: State, hold: Hold) -> bool:
    """Whether a seat that has answered may be asked again: before the check, if it was not paid."""
    if hold.back not in (Step.INSURANCE, Step.INSURANCE_CLOSE, Step.CHECK):
        return False
    answered = any(seat.number == hold.seat and seat.answer for seat in s.seats)
    paid_even = any(
        seat.number == hold.seat and seat.answer == "even_money" for seat in s.seats
    ) and any(hand.seat == hold.seat and hand.out for hand in s.hands)
    return answered and not paid_even


_APPLICABLE: Final[dict[Way, Callable[[State, Hold], bool]]] = {
    Way.ENTER_CARD: _may_enter_card,
    Way.VOID: lambda s, hold: bool(s.hands),
    Way.BURN: _leaves_felt,
    Way.DISCARD: _leaves_felt,
    Way.USE_NEXT: lambda s, hold: s.spare is None,
    # Before the first two cards lie no published rule says how it is dealt on.
    Way.DEAL_ON: lambda s, hold: s.spare is None and hold.back in (*NO_CARD, *CARD_STEPS[1:]),
    Way.REOPEN_INSURANCE: may_reopen_insurance,
    Way.DEALER_LAST: _in_deal,
    Way.DEAD_HAND: _in_deal,
    Way.SECOND_CARD_LAST: _in_deal,
}
"""When a way can be taken; all others always can."""


def applicable(s: State, hold: Hold, way: Way) -> bool:
    """Whether the way can be taken from the step at which the hold was made."""
    return way not in _APPLICABLE or _APPLICABLE[way](s, hold)


def fires_at_once(g: Game, s: State, new: Hold, way: Way) -> bool:
    """Whether the way is taken without a ruling: it is open and needs no two-person approval."""
    alone = way is Way.ENTER_CARD or not g.needs_two(new.what, way)
    return alone and applicable(s, new, way)


def hold(g: Game, s: State, new: Hold) -> State:
    """Returns the state with the hold `new`, its way chosen as the jurisdiction rules."""
    what = new.what
    ruling = g.jurisdiction.ruling(what)
    ways = ruling.options or WAYS[what]
    options = tuple(way for way in ways if applicable(s, new, way))
    chosen: Way | None = ruling.way
    if ruling.way is Way.FLOOR_DECIDES or not fires_at_once(g, s, new, ruling.way):
        chosen = None
        options = options or tuple(way for way in WAYS[what] if applicable(s, new, way))
    new = replace(new, chosen=chosen, options=options)
    return replace(s, holds=(*s.holds, new))


HOLE_DUPLICATE = "the hole card is a duplicate"


def identify_card(s: State, held: Hold) -> State:
    """Returns the state with the hold's card identified, on its place or beside the shoe."""
    unreadable = held.what is Irregularity.CARD_UNREADABLE
    if held.back is Step.REVEAL and (unreadable or held.detail == HOLE_DUPLICATE):
        return replace(s, read=held.card)
    at = replace(s, step=held.back)
    on_its_place = held.back in (*CARD_STEPS, Step.WAGERING) and not hole_is_next(at)
    if not s.hands and not (on_its_place and s.seats):
        return s  # no wager may follow a known card: it goes to the discard rack
    # If no card was due it lies beside the shoe with its face known.
    return replace(s, spare=Spare(card=held.card, exposed=not on_its_place, entered=on_its_place))


def spare_left(s: State) -> Spare | None:
    """Returns the spare card that a round leaves; one whose face is known will be burned."""
    if s.spare is None or not s.spare.entered:
        return s.spare
    return replace(s.spare, exposed=True, entered=False)


def report_hold(g: Game, s: State, e: Event, after: State) -> tuple[Effect, ...]:
    held = top(after)
    floor = Told("floor", held.what.value, held.seat, held.detail)
    if held.what not in _TOLD_TO_SURVEILLANCE:
        return (floor,)
    return (floor, Told("surveillance", held.what.value, held.seat, held.detail))


def seen_once_more(s: State, card: Card) -> int:
    return tally(s, card) if times_seen(s, card) < 15 else s.seen


def holds_for(what: Irregularity) -> Callable[[Game, State, Any], State]:
    """Returns an act that makes a hold with the seat and the reason of the event."""

    def do(g: Game, s: State, e: Event) -> State:
        detail = getattr(e, "why", "") or str(getattr(e, "which", ""))
        return hold(g, s, Hold(what, s.step, seat=getattr(e, "seat", 0), detail=detail))

    return do


_FOUND_RULES = {
    "shuffle_short_or_long": ("maxtime.intro1",),
    "shoe_short_or_long": ("maxtime.intro1", "mega.intro4"),
    "unknown_card": ("mega.intro4",),
    "entered_card_unknown": ("mega.intro4",),
    "another_card_unknown": ("mega.intro4",),
}
"""Clauses of the sheets that an irregularity's row carries out."""


def found(
    name: str,
    at: tuple[Step, ...],
    event: type[Event],
    text: str,
    do: Callable[[Game, State, Any], State],
    when: When | None = None,
    why: str = "",
) -> Row:
    """Returns a row that detects an irregularity."""
    return Row(
        name,
        at,
        event,
        Step.RULING,
        text,
        when,
        do,
        report_hold,
        None,
        why,
        _FOUND_RULES.get(name, ()),
    )


TAKEN: Final[Mapping[str, Irregularity]] = MappingProxyType(
    {
        Withdrawn.__name__: Irregularity.CANNOT_COVER,
        PaymentCorrected.__name__: Irregularity.WRONG_PAYMENT,
    }
)
"""By the type of the accepted event."""
REFUSED: Final[Mapping[str, Irregularity]] = MappingProxyType(
    {
        "late_wager": Irregularity.LATE_WAGER,
        "first_card_is_out": Irregularity.LATE_WAGER,
        "without_main": Irregularity.LATE_WAGER,
    }
)
"""By the id of the refusal; the first card closes the wagers."""
