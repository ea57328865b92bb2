"""Release of holds: a card is entered, a device is back, the felt is compared, play resumes."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.irregularities.rulings import void_round, with_top
from controller.procedure.irregularities.stops import came_back, may_void, void_fact
from controller.procedure.model.effects import Effect, Ruled
from controller.procedure.model.events import (
    CardBurned,
    CardConfirmed,
    CardEntered,
    CardRejected,
    CountersAccepted,
    DeviceBack,
    FeltConfirmed,
    Go,
    RoundVoided,
    ShoeLoaded,
    ShuffleDone,
    ShuffleStarted,
    UnknownCardDrawn,
)
from controller.procedure.model.felt import (
    discards,
    name_of,
    next_seat,
    on_felt,
    returned,
    second_person,
    tally,
    times_seen,
    top,
)
from controller.procedure.model.game import Game
from controller.procedure.model.holds import found, hold, holds_for, identify_card
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import WAITING, Hold, State, Step, elsewhere
from controller.procedure.rows import (
    BETWEEN,
    burned,
    burned_one,
    complete,
    last_to_burn,
    more_to_burn,
    no_shuffler,
    shut,
)
from controller.rules.irregularities import Irregularity


def _may_enter(g: Game, s: State, e: CardEntered) -> bool:
    return times_seen(s, e.card) < g.decks


def _entered(g: Game, s: State, e: CardEntered) -> State:
    return with_top(s, replace(top(s), card=e.card, by=e.actor.name))


def _is_no_card(g: Game, s: State, e: UnknownCardDrawn) -> bool:
    """Whether a person reports that there is no card to enter; never for the hole card."""
    return e.actor.role != "device" and top(s).back is not Step.REVEAL


def _hold_no_card(g: Game, s: State, e: UnknownCardDrawn) -> State:
    """Replaces the hold that requested the card: there is no other card to read."""
    bare = replace(s, holds=s.holds[:-1])
    back = top(s).back
    seat = next_seat(replace(s, step=back))
    return hold(g, bare, Hold(Irregularity.UNKNOWN_CARD, back, seat=seat))


def _another_confirms(g: Game, s: State, e: CardConfirmed) -> bool:
    return e.actor.name != top(s).by


def _card_confirmed(g: Game, s: State, e: CardConfirmed) -> State:
    held = top(s)
    return identify_card(replace(s, seen=tally(s, held.card)), held)


def _agrees(g: Game, s: State, e: DeviceBack) -> bool:
    return e.agrees and top(s).device == e.device


def _waited_for(s: State) -> bool:
    """Whether the hold below waits for a device that is still lost."""
    return s.holds[-2].device in s.lost


def _accepts(g: Game, s: State, e: CountersAccepted) -> bool:
    return second_person(e, e.second)


def _accepted_fact(g: Game, s: State, e: CountersAccepted, after: State) -> tuple[Effect, ...]:
    return (Ruled(top(s).what.value, "counters_accepted", e.actor.name, name_of(e.second)),)


def _refills(g: Game, s: State, e: ShoeLoaded) -> bool:
    return e.count == discards(g, s)


def _refilled(g: Game, s: State, e: ShoeLoaded) -> State:
    seen = 0
    known = () if s.spare is None or s.spare.card < 0 else (s.spare.card,)
    for card in (*on_felt(s), *known):
        seen += 1 << 4 * card
    return replace(s, seen=seen, shoe=replace(s.shoe, rounds_left=0))


def _resumed(g: Game, s: State, e: Go) -> State:
    return replace(s, holds=s.holds[:-1])


def _closes_now(s: State) -> bool:
    """Whether the table closes now: no round, no wager, and the floor has requested it."""
    return s.closing and not s.seats and len(s.holds) == 1 and top(s).back in BETWEEN


def _back_to(step: Step) -> Row:
    return Row(
        f"resume_{step.value}",
        (Step.RESUMING,),
        Go,
        step,
        "The procedure goes on where it was stopped.",
        when=lambda g, s, e: top(s).back is step and not _closes_now(s),
        do=_resumed,
    )


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
    found(
        "entered_card_unknown",
        (Step.CARD_ENTRY,),
        UnknownCardDrawn,
        "The card that was to be entered is a joker, or none of the 52.",
        _hold_no_card,
        _is_no_card,
    ),
    found(
        "another_card_unknown",
        (Step.CARD_ENTRY,),
        UnknownCardDrawn,
        "Another card came, a joker or none of the 52.",
        holds_for(Irregularity.UNKNOWN_CARD),
        lambda g, s, e: not _is_no_card(g, s, e),
    ),
    Row(
        "confirm_card",
        (Step.CARD_CONFIRM,),
        CardConfirmed,
        Step.RESUMING,
        "The floor has confirmed the card: it goes to its place.",
        when=_another_confirms,
        do=_card_confirmed,
        why="somebody else than the one who entered the card confirms it",
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
        lambda g, s, e: not _agrees(g, s, e),
        came_back,
    ),
    Row(
        "accept_counters",
        (Step.DEVICE,),
        CountersAccepted,
        Step.FELT,
        "Two people take the device as it is: now the felt.",
        _accepts,
        lambda g, s, e: returned(s, top(s).device),
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
        why="the discards are all cards but those on the felt: count again",
    ),
    Row(
        "refill_shuffle",
        (Step.REFILL,),
        ShuffleStarted,
        Step.REFILL,
        "The discards are being shuffled.",
        lambda g, s, e: not no_shuffler(g, s, e),
    ),
    Row(
        "refill_shuffled",
        (Step.REFILL,),
        ShuffleDone,
        Step.REFILL,
        "The discards are shuffled, none is missing or too many: cut and load them.",
        complete,
    ),
    Row(
        "void_round_at_refill",
        (Step.REFILL,),
        RoundVoided,
        Step.RESUMING,
        "The floor voids the round with a second person in place of finishing it with the "
        "discards, as where the shoe was not empty: every unresolved wager goes back, and all "
        "cards are shuffled before the next round.",
        may_void,
        void_round,
        void_fact,
        why="the floor voids a round with a reason and a second person",
        rule=("classic.rule8",),
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
    *(_back_to(step) for step in WAITING if step not in (Step.CLOSED, Step.DEVICE)),
    Row(
        "close_when_lifted",
        (Step.RESUMING,),
        Go,
        Step.CLOSED,
        "The table was to be closed: it closes now.",
        lambda g, s, e: _closes_now(s),
        lambda g, s, e: shut(s),
    ),
    Row(
        "device_still_gone",
        (Step.RESUMING,),
        Go,
        Step.DEVICE,
        "A device is still waited for.",
        lambda g, s, e: top(s).back is Step.DEVICE and _waited_for(s),
        _resumed,
    ),
    Row(
        "device_there_again",
        (Step.RESUMING,),
        Go,
        Step.FELT,
        "The device that was waited for came back meanwhile: now the felt.",
        lambda g, s, e: top(s).back is Step.DEVICE and not _waited_for(s),
        _resumed,
    ),
    # A player who has left is skipped.
    *(
        _back_to(step)
        for step in (
            Step.NEXT_HAND,
            Step.NEXT_ASKED,
            Step.AFTER_DEAL,
            Step.AFTER_CHECK,
            Step.NEXT_ROUND,
        )
    ),
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
)
