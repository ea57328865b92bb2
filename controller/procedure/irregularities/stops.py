"""Stops of the table: disputes, voids, restarts, the relief of the dealer, and lost devices.

A lost device stops the table if it affects the outcome, immediately or when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from controller.procedure.model.effects import Corrected, Effect, RoundVoid, Told
from controller.procedure.model.events import (
    ControllerRestarted,
    DealerRelieved,
    DeckSuspect,
    Device,
    DeviceBack,
    DeviceLost,
    Disputed,
    Event,
    FloorCalled,
    Go,
    HoleExposed,
    HoleUnchecked,
    InsuranceDisputed,
    MisdealCalled,
    PaymentCorrected,
    PlayedOutOfTurn,
    PlayerAbsent,
    RoundVoided,
    ShoeLoaded,
    ShuffleStarted,
)
from controller.procedure.model.felt import name_of, returned, second_person, top
from controller.procedure.model.game import BETS, Game
from controller.procedure.model.holds import (
    BEFORE,
    HOLDING,
    IN_ROUND,
    found,
    hold,
    holds_for,
    report_hold,
    spare_left,
)
from controller.procedure.model.payments import refunds
from controller.procedure.model.row import Refusal, Row, When
from controller.procedure.model.state import OPEN, WAITING, Hold, State, Step, elsewhere
from controller.procedure.rows import another_round, fresh_felt, no_shoe, no_shuffler
from controller.rules.irregularities import Irregularity


def may_void(g: Game, s: State, e: RoundVoided) -> bool:
    return bool(e.reason) and second_person(e, e.second)


def _void_due(g: Game, s: State, e: RoundVoided) -> bool:
    return may_void(g, s, e) and bool(refunds(g, s, "void"))


def _void_nothing_due(g: Game, s: State, e: RoundVoided) -> bool:
    return may_void(g, s, e) and not refunds(g, s, "void")


def _voided(g: Game, s: State, e: RoundVoided) -> State:
    bare = replace(s, asking=0, approved=False, spare=spare_left(s), read=-1)
    return replace(bare, due=refunds(g, s, "void"), after=Step.CLEARING)


def void_fact(g: Game, s: State, e: RoundVoided, after: State) -> tuple[Effect, ...]:
    return (RoundVoid(s.round, e.reason, e.actor.name, name_of(e.second)),)


def _may_correct(g: Game, s: State, e: PaymentCorrected) -> bool:
    return (
        second_person(e, e.second)
        and 0 < e.round <= s.round
        and e.bet in (*BETS, "insurance")
        and e.paid != e.due
        and min(e.paid, e.due) >= 0
    )


def _corrected(g: Game, s: State, e: PaymentCorrected, after: State) -> tuple[Effect, ...]:
    who = e.actor.name
    return (Corrected(e.round, e.seat, e.hand, e.bet, e.paid, e.due, who, name_of(e.second)),)


def _relief_burns(g: Game, s: State, e: DealerRelieved) -> bool:
    return g.options.burn.on_dealer > 0 and s.spare is None


def _relief(g: Game, s: State, e: DealerRelieved) -> bool:
    return not (s.step is Step.WAGERING and _relief_burns(g, s, e))


def _relieved(g: Game, s: State, e: Event, after: State) -> tuple[Effect, ...]:
    return (Told("floor", Irregularity.DEALER_RELIEVED.value, 0, e.actor.name),)


_DISPUTES: tuple[tuple[str, type[Disputed], Irregularity, tuple[Step, ...], str], ...] = (
    (
        "hole_exposed",
        HoleExposed,
        Irregularity.HOLE_EXPOSED,
        IN_ROUND,
        "The hole card was seen before its time.",
    ),
    (
        "hole_unchecked",
        HoleUnchecked,
        Irregularity.HOLE_UNCHECKED,
        IN_ROUND,
        "Play went on before the hole card was checked.",
    ),
    (
        "out_of_turn",
        PlayedOutOfTurn,
        Irregularity.OUT_OF_TURN,
        IN_ROUND,
        "A hand was played out of its turn.",
    ),
    (
        "insurance_dispute",
        InsuranceDisputed,
        Irregularity.INSURANCE_DISPUTE,
        IN_ROUND,
        "A player disputes the insurance.",
    ),
    (
        "misdeal",
        MisdealCalled,
        Irregularity.MISDEAL,
        IN_ROUND,
        "The dealer calls a misdeal.",
    ),
    (
        "floor_called",
        FloorCalled,
        Irregularity.FLOOR_CALLED,
        OPEN,
        "The floor is called to the table.",
    ),
)


_PLAYERS_WANTED = tuple(
    step
    for step in IN_ROUND
    if step not in (Step.DEALER_LATE, Step.REVEAL, Step.DEALER_CARD, Step.CLEARING)
)
"""Steps of a round after which a player may have a decision left."""


def _plays(g: Game, s: State, e: PlayerAbsent) -> bool:
    return any(hand.seat == e.seat for hand in s.hands) and e.seat not in s.quiet


def _not_twice(what: Irregularity) -> When:
    """Whether the table is not held for the same reason already."""

    def guard(g: Game, s: State, e: Event) -> bool:
        return not s.holds or top(s).what is not what

    return guard


def _device_held(g: Game, s: State, e: DeviceLost) -> State:
    gone = replace(s, lost=_with(s.lost, e.device))
    return hold(g, gone, Hold(Irregularity.DEVICE_LOST, gone.step, detail=e.why, device=e.device))


def _with(lost: tuple[str, ...], device: str) -> tuple[str, ...]:
    return lost if device in lost else (*lost, device)


def _gone(g: Game, s: State, e: DeviceLost) -> State:
    return replace(s, lost=_with(s.lost, e.device))


def came_back(g: Game, s: State, e: DeviceBack) -> State:
    if not e.agrees:
        return s
    return returned(s, e.device)


def _waits_for(device: Device) -> Callable[[Game, State, Any], State]:
    """Returns a hold until the device that is needed now is connected."""

    def do(g: Game, s: State, e: ShoeLoaded | ShuffleStarted) -> State:
        return hold(g, s, Hold(Irregularity.DEVICE_LOST, s.step, device=device))

    return do


def _hold_for_shoe(g: Game, s: State, e: Go) -> State:
    """Holds the next round until the shoe is back; the round in which it was lost was voided."""
    return hold(
        g, fresh_felt(g, s, e), Hold(Irregularity.DEVICE_LOST, Step.WAGERING, device="shoe")
    )


def touches_outcome(g: Game, s: State, e: DeviceLost) -> bool:
    """Whether the lost device affects the next step. One that is behind always does, also if
    another device of its class was lost before."""
    step = s.holds[0].back if s.holds else s.step
    if step is Step.CLOSED:
        return False
    if e.behind:
        return True
    if e.device in s.lost:
        return False
    if e.device == "shoe":
        return step not in BEFORE
    if e.device == "shuffler":
        return step in BEFORE or s.step is Step.REFILL
    return g.options.decisions.by == "buttons" and bool(s.seats)


def _lost_aside(g: Game, s: State, e: DeviceLost, after: State) -> tuple[Effect, ...]:
    return (Told("floor", Irregularity.DEVICE_LOST.value, 0, f"{e.device}: {e.why}"),)


ROWS: tuple[Row, ...] = (
    found(
        "deck_suspect",
        OPEN,
        DeckSuspect,
        "The decks are not what they should be.",
        holds_for(Irregularity.DECK_SUSPECT),
    ),
    *(
        found(name, at, event, text, holds_for(what), _not_twice(what), "that is held already")
        for name, event, what, at, text in _DISPUTES
    ),
    found(
        "player_absent",
        _PLAYERS_WANTED,
        PlayerAbsent,
        "A player left, or does not answer.",
        holds_for(Irregularity.PLAYER_ABSENT),
        _plays,
        "that seat has no hand, or is known to be gone",
    ),
    found(
        "controller_restarted",
        OPEN,
        ControllerRestarted,
        "The controller was restarted: the step is the same, the felt is to be compared.",
        holds_for(Irregularity.RESTARTED),
    ),
    found(
        "dealer_relieved_and_burn",
        (Step.WAGERING,),
        DealerRelieved,
        "Another dealer takes the table over before the next round.",
        holds_for(Irregularity.DEALER_RELIEVED),
        _relief_burns,
        "a dealer relieves a dealer",
    ),
    *(
        Row(
            f"dealer_relieved_at_{step.value}",
            (step,),
            DealerRelieved,
            step,
            "Another dealer takes the table over; cards are burned for that between rounds only.",
            _relief,
            None,
            _relieved,
            why="a dealer relieves a dealer",
        )
        for step in OPEN
    ),
    Row(
        "void_round",
        IN_ROUND,
        RoundVoided,
        Step.PAYING,
        "The floor voids the round with a second person: every unresolved wager goes back.",
        _void_due,
        _voided,
        void_fact,
        why="the floor voids a round with a reason and a second person",
        rule=("classic.rule8",),
    ),
    Row(
        "void_round_nothing_due",
        IN_ROUND,
        RoundVoided,
        Step.CLEARING,
        "The floor voids the round with a second person; no wager is unresolved.",
        _void_nothing_due,
        _voided,
        void_fact,
        why="the floor voids a round with a reason and a second person",
    ),
    *(
        Row(
            f"correct_payment_at_{step.value}",
            (step,),
            PaymentCorrected,
            step,
            "The floor corrects a payment with a second person; both amounts are recorded.",
            _may_correct,
            None,
            _corrected,
            why="a correction is the floor's, with a second person, for a round that was dealt, "
            "and says two different amounts",
            rule=("classic.rule8",),
        )
        for step in WAITING
    ),
    Row(
        "shoe_still_lost",
        (Step.NEXT_ROUND,),
        Go,
        Step.RULING,
        "The shoe is still gone: no round begins without it.",
        lambda g, s, e: another_round(g, s) and "shoe" in s.lost,
        _hold_for_shoe,
        report_hold,
    ),
    found(
        "shuffler_gone_at_shuffle",
        (Step.SHUFFLE_NEEDED, Step.REFILL),
        ShuffleStarted,
        "The shuffler that is to shuffle is gone, or came back as another one.",
        _waits_for("shuffler"),
        no_shuffler,
    ),
    found(
        "shoe_gone_at_load",
        (Step.LOADING,),
        ShoeLoaded,
        "The shoe that is to be loaded is gone, or came back as another one.",
        _waits_for("shoe"),
        no_shoe,
    ),
    found(
        "device_lost",
        OPEN,
        DeviceLost,
        "A device that has a part in the outcome is gone.",
        _device_held,
        touches_outcome,
    ),
    *(
        Row(
            f"device_lost_aside_at_{step.value}",
            (step,),
            DeviceLost,
            step,
            "A device is gone that has no part in what happens now; the floor is told.",
            lambda g, s, e: not touches_outcome(g, s, e),
            _gone,
            _lost_aside,
            why="the device is in use, or was gone before",
        )
        for step in WAITING
    ),
    *(
        Row(
            f"device_back_at_{step.value}",
            (step,),
            DeviceBack,
            step,
            "A device is back that nothing waits for.",
            do=came_back,
        )
        for step in WAITING
        if step is not Step.DEVICE
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "nobody_waits_for_player",
        elsewhere(*_PLAYERS_WANTED),
        PlayerAbsent,
        "no hand waits for a player now",
    ),
    *(
        refusal
        for _, event, _, at, _ in _DISPUTES
        if at is IN_ROUND
        for refusal in (
            Refusal("held_already", HOLDING, event, "the table is held: that is ended first"),
            Refusal("no_round", elsewhere(*at, *HOLDING), event, "no round is under way"),
        )
    ),
    Refusal(
        "no_round_to_void", elsewhere(*IN_ROUND, Step.REFILL), RoundVoided, "no round to void now"
    ),
    *(
        Refusal("table_is_closed", (Step.CLOSED,), event, "the table is closed")
        for event in (DeckSuspect, FloorCalled, ControllerRestarted, DealerRelieved)
    ),
)
