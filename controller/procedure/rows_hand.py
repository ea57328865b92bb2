"""The card that comes to the hand in turn, what it makes of it, and the player who left."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.dues import for_verdict
from controller.procedure.effects import Effect, Told
from controller.procedure.events import CardDrawn, Go, PlayerAbsent
from controller.procedure.felt import fresh, in_hand, put
from controller.procedure.game import Game
from controller.procedure.row import Row, When
from controller.procedure.states import State, Step
from controller.rules.hands import Verdict
from controller.rules.options import Options


def _is(*verdicts: Verdict) -> When:
    def guard(g: Game, s: State, e: Go) -> bool:
        return s.verdict in verdicts

    return guard


def _takes(g: Game, s: State, e: CardDrawn) -> bool:
    return fresh(g, s, e)


def _stands(g: Game, s: State, e: Go) -> State:
    return replace(s, hands=put(s, s.turn, replace(s.hands[s.turn], done=True)))


def _due_at_once(g: Game, s: State, e: Go) -> State:
    return replace(s, due=for_verdict(g, s), after=Step.NEXT_HAND)


def _instants(o: Options) -> bool:
    return o.instant.pays_21 is not None or o.instant.pays_count is not None


def plays(s: State, seat: int) -> bool:
    return any(hand.seat == seat for hand in s.hands)


def _leaves_in_turn(g: Game, s: State, e: PlayerAbsent) -> bool:
    return s.hands[s.turn].seat == e.seat


def _leaves_out_of_turn(g: Game, s: State, e: PlayerAbsent) -> bool:
    return s.hands[s.turn].seat != e.seat and plays(s, e.seat) and e.seat not in s.quiet


def _quiet(g: Game, s: State, e: PlayerAbsent) -> State:
    return replace(s, quiet=(*s.quiet, e.seat), asking=0)


def _floor_told(g: Game, s: State, e: PlayerAbsent, after: State) -> tuple[Effect, ...]:
    return (Told("floor", "player_absent", e.seat),)


_TURN = (Step.TURN,)
_CONFIRMING = (Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM)


ROWS = (
    Row(
        "hand_card",
        (Step.HAND_CARD,),
        CardDrawn,
        Step.EVALUATE,
        "The card is dealt face up to the hand in turn.",
        when=_takes,
        do=in_hand,
        rule=("maxtime.3a", "sf21x.8", "classic.play1", "classic.intro2"),
    ),
    Row(
        "plays_on",
        (Step.EVALUATE,),
        Go,
        Step.TURN,
        "The hand may still be played.",
        when=_is(Verdict.PLAYS),
    ),
    Row(
        "stands_by_itself",
        (Step.EVALUATE,),
        Go,
        Step.NEXT_HAND,
        "The hand stands by itself: 21, or nothing left to decide.",
        when=_is(Verdict.STANDS),
        do=_stands,
        rule=("maxtime.5d", "sf21x.7a"),
    ),
    Row(
        "busts",
        (Step.EVALUATE,),
        Go,
        Step.PAYING,
        "More than 21: the wager is collected at once. Under a live Buster wager the cards are "
        "tucked, face up.",
        when=_is(Verdict.BUST),
        do=_due_at_once,
        rule=("classic.play2", "mega.deal5", "sf21x.10a"),
    ),
    Row(
        "instant_winner",
        (Step.EVALUATE,),
        Go,
        Step.PAYING,
        "An instant winner: the hand is paid before anything else and its cards are taken.",
        when=_is(Verdict.INSTANT_21, Verdict.INSTANT_COUNT),
        do=_due_at_once,
        needs=_instants,
        rule=(
            "maxtime.5a",
            "maxtime.5b",
            "maxtime.5c",
            "maxtime.5d",
            "sf21x.11",
            "sf21x.12",
            "sf21x.12a",
        ),
    ),
    Row(
        "player_left_in_turn",
        (*_TURN, *_CONFIRMING),
        PlayerAbsent,
        Step.NEXT_HAND,
        "The player left or does not answer: the hand stands, the wagers stay, the floor is told.",
        when=_leaves_in_turn,
        do=_quiet,
        effects=_floor_told,
    ),
    *(
        Row(
            f"player_left_at_{step.value}",
            (step,),
            PlayerAbsent,
            step,
            "The player left: the hands will stand, the wagers stay, the floor is told.",
            when=_leaves_out_of_turn,
            do=lambda g, s, e: replace(s, quiet=(*s.quiet, e.seat)),
            effects=_floor_told,
            why="that seat has no hand, is in turn, or is known to be gone",
        )
        for step in (*_TURN, *_CONFIRMING)
    ),
    *(
        Row(
            f"player_left_at_{step.value}",
            (step,),
            PlayerAbsent,
            step,
            "The player left: the hands will stand, the wagers stay, the floor is told.",
            when=lambda g, s, e: plays(s, e.seat) and e.seat not in s.quiet,
            do=lambda g, s, e: replace(s, quiet=(*s.quiet, e.seat)),
            effects=_floor_told,
            why="that seat has no hand, or is known to be gone",
        )
        for step in (
            Step.DEALING,
            Step.CHECK,
            Step.HAND_CARD,
            Step.PAYING,
            Step.INSURANCE_CLOSE,
        )
    ),
)


REFUSALS = ()
