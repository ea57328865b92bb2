"""How a hold is lifted: the card entered, the device back, the felt compared; and on it goes."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.effects import Effect, Ruled
from controller.procedure.events import (
    CardBurned,
    CardConfirmed,
    CardEntered,
    CardRejected,
    CountersAccepted,
    DeviceBack,
    FeltConfirmed,
    Go,
    PlayerAbsent,
    ShoeLoaded,
)
from controller.procedure.felt import second_person, tally, times_seen, top
from controller.procedure.game import Game
from controller.procedure.holds import elsewhere
from controller.procedure.row import Refusal, Row
from controller.procedure.rows_hand import plays
from controller.procedure.rows_insurance import seat_asked
from controller.procedure.rows_stop import came_back
from controller.procedure.rows_table import burned, burned_one, last_to_burn, more_to_burn
from controller.procedure.rows_ways import with_top
from controller.procedure.states import WAITING, Spare, State, Step


def _may_enter(g: Game, s: State, e: CardEntered) -> bool:
    return times_seen(s, e.card) < g.decks


def _entered(g: Game, s: State, e: CardEntered) -> State:
    return with_top(s, replace(top(s), card=e.card))


def _card_confirmed(g: Game, s: State, e: CardConfirmed) -> State:
    card = top(s).card
    return replace(s, seen=tally(s, card), spare=Spare(card=card, entered=True))


def _agrees(g: Game, s: State, e: DeviceBack) -> bool:
    return e.agrees and top(s).device == e.device


def _disagrees(g: Game, s: State, e: DeviceBack) -> bool:
    return not _agrees(g, s, e)


def _accepts(g: Game, s: State, e: CountersAccepted) -> bool:
    return second_person(e, e.second)


def _taken_back(g: Game, s: State, e: CountersAccepted) -> State:
    return replace(s, lost=tuple(device for device in s.lost if device != top(s).device))


def _accepted_fact(g: Game, s: State, e: CountersAccepted, after: State) -> tuple[Effect, ...]:
    second = e.second.name if e.second else ""
    return (Ruled(top(s).what.value, "counters_accepted", e.actor.name, second),)


def _refills(g: Game, s: State, e: ShoeLoaded) -> bool:
    return 0 < e.count <= g.decks * 52 - len(_on_felt(s))


def _on_felt(s: State) -> tuple[int, ...]:
    cards = list(s.dealer)
    for hand in s.hands:
        if not hand.out:
            cards += hand.cards
    return tuple(cards)


def _refilled(g: Game, s: State, e: ShoeLoaded) -> State:
    seen = 0
    for card in _on_felt(s):
        seen += 1 << 4 * card
    return replace(s, seen=seen, shoe=replace(s.shoe, rounds_left=0))


def _resumed(g: Game, s: State, e: Go) -> State:
    return replace(s, holds=s.holds[:-1])


def _back_to(step: Step) -> Row:
    return Row(
        f"resume_{step.value}",
        (Step.RESUMING,),
        Go,
        step,
        "The procedure goes on where it was stopped.",
        when=lambda g, s, e: top(s).back is step,
        do=_resumed,
    )


def _absent_asked(g: Game, s: State, e: PlayerAbsent) -> bool:
    return seat_asked(s).number == e.seat


def _absent_declines(g: Game, s: State, e: PlayerAbsent) -> State:
    seats = tuple(
        replace(seat, answer="declined") if seat.number == e.seat else seat for seat in s.seats
    )
    quiet = s.quiet if e.seat in s.quiet else (*s.quiet, e.seat)
    return replace(s, seats=seats, quiet=quiet, asking=0)


ROWS = (
    Row(
        "enter_card",
        (Step.CARD_ENTRY,),
        CardEntered,
        Step.CARD_CONFIRM,
        "The dealer has entered the card; the floor is to confirm it.",
        _may_enter,
        _entered,
        why="the dealer enters a card that the decks still hold",
    ),
    Row(
        "confirm_card",
        (Step.CARD_CONFIRM,),
        CardConfirmed,
        Step.RESUMING,
        "The floor has confirmed the card: it goes to its place.",
        do=_card_confirmed,
    ),
    Row(
        "reject_card",
        (Step.CARD_CONFIRM,),
        CardRejected,
        Step.CARD_ENTRY,
        "The floor reads another card: the dealer enters it again.",
    ),
    Row(
        "device_agrees",
        (Step.DEVICE,),
        DeviceBack,
        Step.FELT,
        "The device is back, the same one, and its counters agree: now the felt.",
        _agrees,
        came_back,
    ),
    Row(
        "device_disagrees",
        (Step.DEVICE,),
        DeviceBack,
        Step.DEVICE,
        "Another device, or its counters do not agree: the table stays stopped.",
        _disagrees,
    ),
    Row(
        "accept_counters",
        (Step.DEVICE,),
        CountersAccepted,
        Step.FELT,
        "Two people take the device as it is: now the felt.",
        _accepts,
        _taken_back,
        effects=_accepted_fact,
        why="the floor and a second person take back a device that does not agree",
    ),
    Row(
        "confirm_felt",
        (Step.FELT,),
        FeltConfirmed,
        Step.RESUMING,
        "The cards on the felt are those on the screen.",
    ),
    Row(
        "refill",
        (Step.REFILL,),
        ShoeLoaded,
        Step.RESUMING,
        "The shuffled discards are in the shoe; the round is finished, then all is shuffled.",
        _refills,
        _refilled,
        why="more cards than the discards can be: count again",
    ),
    Row(
        "relief_burn_more",
        (Step.RELIEF_BURN,),
        CardBurned,
        Step.RELIEF_BURN,
        "A card is burned; another one follows.",
        more_to_burn,
        burned_one,
        burned,
    ),
    Row(
        "relief_burn_last",
        (Step.RELIEF_BURN,),
        CardBurned,
        Step.RESUMING,
        "The last card to burn is burned.",
        last_to_burn,
        burned_one,
        burned,
    ),
    Row(
        "player_left_when_asked",
        (Step.INSURANCE, Step.INSURANCE_CONFIRM),
        PlayerAbsent,
        Step.NEXT_ASKED,
        "The seat that is asked is empty: no insurance, and its hand will stand.",
        _absent_asked,
        _absent_declines,
    ),
    *(
        Row(
            f"player_left_at_{step.value}",
            (step,),
            PlayerAbsent,
            step,
            "The player left: no insurance, and the hand will stand.",
            lambda g, s, e: (
                not _absent_asked(g, s, e) and plays(s, e.seat) and e.seat not in s.quiet
            ),
            _absent_declines,
            why="that seat has no hand, or is known to be gone",
        )
        for step in (Step.INSURANCE, Step.INSURANCE_CONFIRM)
    ),
    *(_back_to(step) for step in Step if step in WAITING and step is not Step.CLOSED),
)

_ABSENT_AT = (
    Step.TURN,
    Step.DOUBLE_CONFIRM,
    Step.SPLIT_CONFIRM,
    Step.DEALING,
    Step.CHECK,
    Step.HAND_CARD,
    Step.PAYING,
    Step.INSURANCE,
    Step.INSURANCE_CONFIRM,
    Step.INSURANCE_CLOSE,
)

REFUSALS = (
    Refusal(
        "no_card_to_enter", elsewhere(Step.CARD_ENTRY), CardEntered, "no card is to be entered now"
    ),
    *(
        Refusal(
            "no_card_to_confirm", elsewhere(Step.CARD_CONFIRM), event, "no card is to be confirmed"
        )
        for event in (CardConfirmed, CardRejected)
    ),
    Refusal(
        "no_device_waited_for",
        elsewhere(Step.DEVICE),
        CountersAccepted,
        "no device is waited for",
    ),
    Refusal(
        "felt_not_asked",
        elsewhere(Step.FELT),
        FeltConfirmed,
        "the felt is not to be compared now",
    ),
    Refusal(
        "nobody_waits_for_player",
        elsewhere(*_ABSENT_AT),
        PlayerAbsent,
        "no hand waits for a player now",
    ),
)
