"""Effects of waiting steps: one prompt, the stations' lamps and buttons, the locks.

They are functions of the state alone, so that a restart shows the same again. Results are cached by
key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from msgspec.structs import replace

from controller.procedure.model.effects import (
    Effect,
    Lamp,
    Prompt,
    ShoeLock,
    Shuffler,
    Stations,
    Tell,
)
from controller.procedure.model.felt import discards, expected, next_spare, top
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.holds import applicable
from controller.procedure.model.payments import tucks
from controller.procedure.model.state import Due, State, Step
from controller.procedure.rows import (
    closed_to_this_round,
    max_insurance,
    may_take_even_money,
    seat_asked,
)
from controller.rules.hands import CHOICES, Hand, ace_and_ten, plus

_ONE_OF_EACH: Final = tuple(range(10))
"""A card of each value: the ace to the ten of one suit."""


def bonuses_near(g: Game, s: State) -> tuple[str, ...]:
    """Returns the instant winners that one more card can make of the hand in turn."""
    hand = s.hands[s.turn]
    pays = g.options.instant
    if hand.doubles or (hand.split and not pays.on_split) or hand.total >= 21:
        return ()
    count = len(hand.cards) + 1
    totals = {plus(hand.total, hand.soft, card)[0] for card in _ONE_OF_EACH}
    near = []
    if pays.cards_21 is not None and count >= pays.cards_21 and 21 in totals:
        near.append("instant21")
    if pays.cards_count is not None and count >= pays.cards_count and min(totals) < 21:
        near.append("instant6")
    return tuple(near)


Shows: TypeAlias = Callable[[Game, State], tuple[Effect, ...]]

LOCKED: Final = ShoeLock(True)
OPEN: Final = ShoeLock(False)
DARK: Final = Stations()
IDLE: Final = Shuffler(0)
_WORDS: Final = {
    mask: tuple(word for bit, word in CHOICES.items() if mask & bit) for mask in range(32)
}


def _rule(g: Game, tell: Tell) -> tuple[str, ...]:
    return g.tell_rules.get(tell, ())


def _fixed(tell: Tell, *more: Effect, to_floor: bool = False) -> Shows:
    """Returns the function of a step that always shows the same."""

    def show(g: Game, s: State) -> tuple[Effect, ...]:
        shown = g.shown(tell)
        if shown is None:
            prompt = Prompt(tell, "floor" if to_floor else "dealer", rule=_rule(g, tell))
            shown = g.keep(tell, (prompt, *(more or (DARK, LOCKED))))
        return shown

    return show


def _shuffle(g: Game, s: State) -> tuple[Effect, ...]:
    tell = Tell.CHANGE_DECKS if s.shoe.decks_out else Tell.SHUFFLE
    return (Prompt(tell, count=g.decks), DARK, LOCKED, IDLE)


def _shuffling(g: Game, s: State) -> tuple[Effect, ...]:
    return (Prompt(Tell.AWAIT_SHUFFLE, count=g.decks), DARK, LOCKED, Shuffler(g.decks))


def _loading(g: Game, s: State) -> tuple[Effect, ...]:
    behind = g.options.cut_behind
    return (Prompt(Tell.LOAD_SHOE, count=g.decks * 52, total=behind), DARK, LOCKED, IDLE)


def _burning(g: Game, s: State) -> tuple[Effect, ...]:
    return (Prompt(Tell.BURN, place="burn", count=s.burn), DARK, OPEN)


def bets_open(g: Game, s: State) -> tuple[str, ...]:
    """Returns the bets that may be placed on this round."""
    return tuple(bet for bet in BETS if bet in g.offered and not closed_to_this_round(g, s, bet))


def is_last_round(g: Game, s: State) -> bool:
    """Whether the round that wagers are placed for is the last of its shoe."""
    most = g.options.shuffle.max_rounds
    return s.shoe.rounds_left in (0, 1) or (most is not None and s.shoe.rounds + 1 >= most)


def _wagering(g: Game, s: State) -> tuple[Effect, ...]:
    seats = s.seats
    playing = seats[0].number if len(seats) == 1 else tuple([seat.number for seat in seats])
    last = is_last_round(g, s)
    key = (Step.WAGERING, playing, s.shoe.rounds == 0, last, s.spare)
    shown = g.shown(key)
    if shown is None:
        armed = tuple((number, ("bet",)) for number in range(1, g.seats + 1))
        lamps: tuple[tuple[int, Lamp], ...] = tuple((seat.number, "accepted") for seat in seats)
        prompt = Prompt(
            Tell.TAKE_WAGERS,
            place="spare" if s.spare is not None else "",
            amount=g.options.limits.table_payout or 0,
            choices=bets_open(g, s),
            count=len(seats),
            warn="last_round" if last else "",
            rule=_rule(g, Tell.TAKE_WAGERS),
        )
        lock = OPEN if seats and s.spare is None else LOCKED
        shown = g.keep(key, (prompt, Stations(armed, lamps), lock))
    return shown


def _card(g: Game, s: State) -> tuple[Effect, ...]:
    """The prompt for a card: where it goes, and whether it is the one beside the shoe."""
    step = s.step
    spare = s.spare if s.spare is None else next_spare(s)
    if step is Step.DEALING:
        place = s.places[s.dealt]
        turn = place.turn
        nth = len(s.hands[turn].cards) if turn >= 0 else len(s.dealer)
        key: object = (place.kind, place.seat, nth, spare)
    elif step is Step.HAND_CARD:
        hand = s.hands[s.turn]
        key = (step, hand.seat, hand.number, len(hand.cards), spare)
    else:
        key = (step, s.dealer_total, s.dealer_soft, len(s.dealer), spare)
    shown = g.shown(key)
    if shown is None:
        shown = g.keep(key, _card_prompt(g, s))
    return shown


def _card_prompt(g: Game, s: State) -> tuple[Effect, ...]:
    place = expected(s)
    if place is None:
        return (DARK, LOCKED)
    spare = next_spare(s)
    tell = Tell.DEAL if spare is None else Tell.LAY_SPARE
    warn = ""
    if spare is not None:
        warn = "entered" if spare.entered else "exposed" if spare.exposed else ""
    prompt = Prompt(
        tell,
        seat=place.seat,
        hand=place.hand if place.kind == "hand" else -1,
        place=place.kind,
        total=s.dealer_total if place.kind == "dealer" else 0,
        soft=place.kind == "dealer" and s.dealer_soft,
        count=_nth(s),
        warn=warn,
        rule=_rule(g, tell),
    )
    return (prompt, DARK, OPEN if spare is None else LOCKED, IDLE)


def _nth(s: State) -> int:
    """Returns the number of the next card in its hand, from 1."""
    if s.step is Step.HAND_CARD:
        return len(s.hands[s.turn].cards) + 1
    if s.step is Step.DEALING:
        place = s.places[s.dealt]
        return len(s.hands[place.turn].cards) + 1 if place.turn >= 0 else len(s.dealer) + 1
    return len(s.dealer) + 1


def _asking(seat: int, g: Game, *choices: str) -> Stations:
    return Stations(((seat, choices),) if g.buttons else (), ((seat, "asked"),))


def _naturals(g: Game, s: State) -> tuple[Effect, ...]:
    hand = s.hands[s.turn]
    prompt = Prompt(
        Tell.ASK_NATURAL,
        seat=hand.seat,
        hand=hand.number,
        stake=hand.wager,
        choices=("take_pay", "decline_pay"),
    )
    return (prompt, _asking(hand.seat, g, "take_pay", "decline_pay"), LOCKED)


def _insurance(g: Game, s: State) -> tuple[Effect, ...]:
    seat = seat_asked(s)
    choices: tuple[str, ...] = ("decline",)
    if may_take_even_money(g, s, seat.number):
        choices = ("even_money", *choices)
    if max_insurance(g, seat) > 0:
        choices = ("insure", *choices)
    prompt = Prompt(
        Tell.ASK_INSURANCE,
        seat=seat.number,
        stake=seat.main,
        amount=max_insurance(g, seat),
        odds=g.options.insurance.pays,
        choices=choices,
        rule=_rule(g, Tell.ASK_INSURANCE),
    )
    return (prompt, _asking(seat.number, g, *choices), LOCKED)


def _insurance_confirm(g: Game, s: State) -> tuple[Effect, ...]:
    seat = seat_asked(s)
    prompt = Prompt(
        Tell.CONFIRM_INSURANCE,
        seat=seat.number,
        stake=seat.main,
        amount=s.asking,
        chips=g.chips_for(s.asking),
        choices=("confirm", "withdraw"),
        rule=_rule(g, Tell.CONFIRM_INSURANCE),
    )
    return (prompt, _asking(seat.number, g, "withdraw"), LOCKED)


def _turn(g: Game, s: State) -> tuple[Effect, ...]:
    hand = s.hands[s.turn]
    count = len(hand.cards)
    flags = (hand.soft, hand.split, hand.doubles, s.spare is not None and s.spare.exposed)
    key = (hand.seat, hand.number, hand.total, count, s.legal, hand.wager, flags)
    shown = g.shown(key)
    if shown is None:
        choices = _WORDS[s.legal]
        if flags[3]:
            choices = (*choices, "refuse_card")
        prompt = Prompt(
            Tell.DECIDE,
            seat=hand.seat,
            hand=hand.number,
            stake=hand.wager,
            choices=choices,
            near=bonuses_near(g, s),
            total=hand.total,
            soft=hand.soft,
            count=count,
            rule=_rule(g, Tell.DECIDE),
        )
        armed = ((hand.seat, choices),) if g.buttons else ()
        shown = g.keep(key, (prompt, Stations(armed, ((hand.seat, "turn"),)), LOCKED))
    return shown


def _double_warning(g: Game, hand: Hand) -> str:
    if hand.total != 21:
        return ""
    counts_one = g.options.double.ace_is_one_with_ten and ace_and_ten(hand)
    return "ace_one" if counts_one else "doubles_21"


def _confirm(g: Game, s: State) -> tuple[Effect, ...]:
    hand = s.hands[s.turn]
    doubling = s.step is Step.DOUBLE_CONFIRM
    tell = Tell.CONFIRM_DOUBLE if doubling else Tell.CONFIRM_SPLIT
    amount = s.asking if doubling else hand.wager
    prompt = Prompt(
        tell,
        seat=hand.seat,
        hand=hand.number,
        stake=hand.wager,
        amount=amount,
        chips=g.chips_for(amount),
        choices=("confirm", "withdraw"),
        total=hand.total,
        soft=hand.soft,
        count=hand.doubles + 1,
        warn=_double_warning(g, hand) if doubling else "",
        rule=_rule(g, tell),
    )
    return (prompt, _asking(hand.seat, g, "withdraw"), LOCKED)


def payment_prompt(g: Game, due: Due, *, floor: bool, tuck: bool) -> Prompt:
    """Returns the prompt for the next payment: reason, odds, amount and chips."""
    if floor:
        tell = Tell.FLOOR_FIRST
    elif due.returned > due.stake:
        tell = Tell.PAY
    else:
        tell = Tell.COLLECT if due.returned == 0 else Tell.GIVE_BACK
    amount = due.moves
    return Prompt(
        tell,
        "floor" if floor else "dealer",
        due.seat,
        due.hand,
        due.bet,
        due.why,
        due.stake,
        amount,
        due.odds,
        g.chips_for(amount),
        (),
        (),
        due.cards,
        warn="tuck" if tuck else "",
        rule=g.pay_rules(due.bet, due.why, due.outcome),
    )


def _paying(g: Game, s: State) -> tuple[Effect, ...]:
    due = s.due[0]
    floor = due.floor and not s.approved
    won = due.returned > due.stake
    lamps = g.won_lamps(due.seat) if won else DARK
    return (payment_prompt(g, due, floor=floor, tuck=tucks(s, due)), lamps, LOCKED)


def _held(g: Game, s: State) -> tuple[Effect, ...]:
    held = top(s)
    open_ways = tuple(way for way in held.options if applicable(s, held, way))
    prompt = Prompt(
        Tell.RULE,
        "floor",
        seat=held.seat,
        why=held.what.value,
        place=held.detail,
        choices=tuple(way.value for way in open_ways),
        cards=(held.card,) if held.card >= 0 else (),
        warn="two_people" if any(g.needs_two(held.what, way) for way in open_ways) else "",
        rule=_rule(g, Tell.RULE),
    )
    return (prompt, _all_fault(g), LOCKED, IDLE)


def _all_fault(g: Game) -> Stations:
    lamps: tuple[tuple[int, Lamp], ...] = tuple((n, "fault") for n in range(1, g.seats + 1))
    return Stations((), lamps)


def _stopped(tell: Tell, *, to_floor: bool = False) -> Shows:
    """The prompt of a step that an irregularity leads to."""

    def show(g: Game, s: State) -> tuple[Effect, ...]:
        held = top(s)
        prompt = Prompt(
            tell,
            "floor" if to_floor else "dealer",
            seat=held.seat,
            why=held.what.value,
            place=held.detail,
            cards=(held.card,) if held.card >= 0 else (),
            count=s.burn,
            rule=_rule(g, tell),
        )
        return (prompt, _all_fault(g), LOCKED, IDLE)

    return show


def _refill(g: Game, s: State) -> tuple[Effect, ...]:
    prompt, *others = _stopped(Tell.REFILL)(g, s)
    assert isinstance(prompt, Prompt)
    stations, lock, _ = others
    return (replace(prompt, count=discards(g, s)), stations, lock, Shuffler(g.decks))


SHOWS: Final[dict[Step, Shows]] = {
    Step.CLOSED: _fixed(Tell.OPEN_TABLE, DARK, LOCKED, IDLE, to_floor=True),
    Step.SHUFFLE_NEEDED: _shuffle,
    Step.SHUFFLING: _shuffling,
    Step.LOADING: _loading,
    Step.BURNING: _burning,
    Step.WAGERING: _wagering,
    Step.DEALING: _card,
    Step.NATURALS: _naturals,
    Step.INSURANCE: _insurance,
    Step.INSURANCE_CONFIRM: _insurance_confirm,
    Step.INSURANCE_CLOSE: _fixed(Tell.CLOSE_INSURANCE),
    Step.CHECK: _fixed(Tell.CHECK_HOLE),
    Step.TURN: _turn,
    Step.DOUBLE_CONFIRM: _confirm,
    Step.SPLIT_CONFIRM: _confirm,
    Step.HAND_CARD: _card,
    Step.DEALER_LATE: _card,
    Step.REVEAL: _fixed(Tell.REVEAL),
    Step.DEALER_CARD: _card,
    Step.PAYING: _paying,
    Step.CLEARING: _fixed(Tell.CLEAR),
    Step.HELD: _held,
    Step.CARD_ENTRY: _stopped(Tell.ENTER_CARD),
    Step.CARD_CONFIRM: _stopped(Tell.CONFIRM_CARD, to_floor=True),
    Step.DEVICE: _stopped(Tell.AWAIT_DEVICE),
    Step.FELT: _stopped(Tell.CONFIRM_FELT),
    Step.REFILL: _refill,
    Step.RELIEF_BURN: _burning,
}
