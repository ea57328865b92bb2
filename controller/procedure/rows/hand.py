"""The card for the hand in turn, its verdict, and a player who has left."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import CardDrawn, Go
from controller.procedure.model.felt import fresh, in_hand, put
from controller.procedure.model.game import Game
from controller.procedure.model.payments import for_verdict
from controller.procedure.model.row import Row, When
from controller.procedure.model.state import State, Step
from controller.rules.hands import Verdict
from controller.rules.options import Options


def _is(*verdicts: Verdict) -> When:
    def guard(g: Game, s: State, e: Go) -> bool:
        return s.verdict in verdicts

    return guard


def _stands(g: Game, s: State, e: Go) -> State:
    return replace(s, hands=put(s, s.turn, replace(s.hands[s.turn], done=True)))


def _due_at_once(g: Game, s: State, e: Go) -> State:
    return replace(s, due=for_verdict(g, s), after=Step.NEXT_HAND)


def _instants(o: Options) -> bool:
    return o.instant.pays_21 is not None or o.instant.pays_count is not None


ROWS = (
    Row(
        "hand_card",
        (Step.HAND_CARD,),
        CardDrawn,
        Step.EVALUATE,
        "The card is dealt face up to the hand in turn.",
        when=fresh,
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
        rule=(
            "maxtime.intro3",
            "maxtime.5d",
        ),
    ),
    Row(
        "stands_by_itself",
        (Step.EVALUATE,),
        Go,
        Step.NEXT_HAND,
        "The hand stands by itself: 21, nothing left to decide, or its player decides no more.",
        when=_is(Verdict.STANDS),
        do=_stands,
    ),
    Row(
        "busts",
        (Step.EVALUATE,),
        Go,
        Step.PAYING,
        "More than 21: the wager and the cards are collected at once; at a seat with a live "
        "Buster wager the cards are tucked under it, face up.",
        when=_is(Verdict.BUST),
        do=_due_at_once,
        rule=(
            "classic.play2",
            "mega.deal5",
            "sf21x.10a",
        ),
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
)


REFUSALS = ()
