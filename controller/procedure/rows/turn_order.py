"""The order of turns: hand by hand in seat order, then the dealer."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import Go
from controller.procedure.model.felt import checked_first, hands_of, next_open, put
from controller.procedure.model.game import Game
from controller.procedure.model.row import Row
from controller.procedure.model.state import State, Step
from controller.rules.hands import choices
from controller.rules.options import Options


def _next_plays(g: Game, s: State, e: Go) -> bool:
    turn = next_open(s)
    if turn < 0:
        return False
    hand = s.hands[turn]
    return len(hand.cards) > 1 and hand.seat not in s.quiet


def _next_is_quiet(g: Game, s: State, e: Go) -> bool:
    turn = next_open(s)
    if turn < 0:
        return False
    hand = s.hands[turn]
    return hand.seat in s.quiet and (len(hand.cards) > 1 or _spare_refused(s))


def _spare_refused(s: State) -> bool:
    """Whether the next card is the one that the seat refused: its hands get none."""
    return s.spare is not None and s.spare.exposed


def _next_needs_card(g: Game, s: State, e: Go) -> bool:
    turn = next_open(s)
    if turn < 0:
        return False
    hand = s.hands[turn]
    return len(hand.cards) < 2 and not (hand.seat in s.quiet and _spare_refused(s))


def _players_done(g: Game, s: State, e: Go) -> bool:
    return s.late == 0 and next_open(s) < 0


def _dealer_is_late(g: Game, s: State, e: Go) -> bool:
    return s.late > 0 and next_open(s) < 0


def _turn_to(g: Game, s: State, e: Go) -> State:
    turn = next_open(s)
    hand = s.hands[turn]
    legal = choices(g.options, hand, hands_of(s, hand.seat))
    return replace(s, turn=turn, legal=checked_first(s, legal) if s.late else legal)


def _stands_quietly(g: Game, s: State, e: Go) -> State:
    turn = next_open(s)
    return replace(s, hands=put(s, turn, replace(s.hands[turn], done=True)))


def _card_to(g: Game, s: State, e: Go) -> State:
    return replace(s, turn=next_open(s))


def splits(o: Options) -> bool:
    return o.split.max_hands > 1


ROWS = (
    Row(
        "turn_to_hand",
        (Step.NEXT_HAND,),
        Go,
        Step.TURN,
        "The next hand in seat order is in turn, with exactly its legal choices.",
        when=_next_plays,
        do=_turn_to,
        rule=(
            "classic.play1",
            "maxtime.intro3",
        ),
    ),
    Row(
        "players_done",
        (Step.NEXT_HAND,),
        Go,
        Step.REVEAL,
        "The last hand has been played: the dealer turns the hole card over.",
        when=_players_done,
        rule=("classic.deal4", "classic.dealer1"),
    ),
    Row(
        "second_card_for_split",
        (Step.NEXT_HAND,),
        Go,
        Step.HAND_CARD,
        "A hand that came of a split gets its second card when its turn comes.",
        when=_next_needs_card,
        do=_card_to,
        needs=splits,
    ),
    Row(
        "quiet_hand_stands",
        (Step.NEXT_HAND,),
        Go,
        Step.NEXT_HAND,
        "The hand of a player who left, or draws no more, stands.",
        when=_next_is_quiet,
        do=_stands_quietly,
    ),
    Row(
        "players_done_dealer_late",
        (Step.NEXT_HAND,),
        Go,
        Step.DEALER_LATE,
        "The last hand has been played: the dealer gets the cards that were missed.",
        when=_dealer_is_late,
    ),
)


REFUSALS = ()
