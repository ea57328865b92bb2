"""The players' turns, hand by hand: decisions, chips to confirm, cards and their verdicts."""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.model.events import (
    CardDrawn,
    Confirmed,
    Decision,
    Double,
    Go,
    Hit,
    SpareRefused,
    Split,
    Stand,
    Surrender,
    Withdrawn,
)
from controller.procedure.model.felt import checked_first, fresh, hands_of, in_hand, next_open, put
from controller.procedure.model.game import Game
from controller.procedure.model.payments import for_hand, for_verdict
from controller.procedure.model.row import Refusal, Row, When
from controller.procedure.model.state import State, Step, elsewhere
from controller.rules.hands import (
    CHOICES,
    DOUBLE,
    HIT,
    SPLIT,
    STAND,
    SURRENDER,
    Verdict,
    choices,
    doubled,
    plus,
)
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
    return hand.seat in s.quiet and (len(hand.cards) > 1 or _spare_is_exposed(s))


def _spare_is_exposed(s: State) -> bool:
    """Whether the next card is the one that the seat refused: its hands get none."""
    return s.spare is not None and s.spare.exposed


def _next_needs_card(g: Game, s: State, e: Go) -> bool:
    turn = next_open(s)
    if turn < 0:
        return False
    hand = s.hands[turn]
    return len(hand.cards) < 2 and not (hand.seat in s.quiet and _spare_is_exposed(s))


def _turn_to(g: Game, s: State, e: Go) -> State:
    turn = next_open(s)
    hand = s.hands[turn]
    legal = choices(g.options, hand, hands_of(s, hand.seat))
    return replace(s, turn=turn, legal=checked_first(s, legal) if s.late else legal)


def _stands_quietly(g: Game, s: State, e: Go) -> State:
    turn = next_open(s)
    return replace(s, hands=put(s, turn, replace(s.hands[turn], done=True)))


def splits(o: Options) -> bool:
    return o.split.max_hands > 1


def in_turn(s: State, e: Decision) -> bool:
    hand = s.hands[s.turn]
    return e.hand == hand.number and e.seat == hand.seat


def _may_hit(g: Game, s: State, e: Hit) -> bool:
    return bool(s.legal & HIT) and in_turn(s, e)


def _may_stand(g: Game, s: State, e: Stand) -> bool:
    return bool(s.legal & STAND) and in_turn(s, e)


def _may_double(g: Game, s: State, e: Double) -> bool:
    return bool(s.legal & DOUBLE) and in_turn(s, e) and not _bad_stake(g, s, e)


def _bad_stake(g: Game, s: State, e: Double) -> bool:
    """Whether a double's stake is invalid: above the wager, or below it if that is not allowed."""
    wager = s.hands[s.turn].wager
    if e.amount is None or e.amount == wager:
        return False
    less = g.options.double.for_less and 0 < e.amount < wager
    return not less or e.amount % g.money.unit != 0


def _may_split(g: Game, s: State, e: Split) -> bool:
    return bool(s.legal & SPLIT) and in_turn(s, e) and not _uneven_split(g, s, e)


def _uneven_split(g: Game, s: State, e: Split) -> bool:
    return e.amount is not None and e.amount != s.hands[s.turn].wager


def _may_surrender(g: Game, s: State, e: Surrender) -> bool:
    return bool(s.legal & SURRENDER) and in_turn(s, e)


def _stood(g: Game, s: State, e: Stand | Go) -> State:
    return replace(s, hands=put(s, s.turn, replace(s.hands[s.turn], done=True)))


def _ask_double(g: Game, s: State, e: Double) -> State:
    return replace(s, asking=e.amount or s.hands[s.turn].wager)


def _doubled(g: Game, s: State, e: Confirmed) -> State:
    return replace(s, hands=put(s, s.turn, doubled(s.hands[s.turn], s.asking)), asking=0)


def _split(g: Game, s: State, e: Confirmed) -> State:
    """Splits hand i: the second card becomes hand i+1, later hands of the seat move up."""
    turn = s.turn
    hand = s.hands[turn]
    first, second = hand.cards
    (total_1, soft_1), (total_2, soft_2) = plus(0, False, first), plus(0, False, second)
    low = replace(hand, split=True, cards=(first,), total=total_1, soft=soft_1)
    high = replace(low, number=hand.number + 1, cards=(second,), total=total_2, soft=soft_2)
    later = tuple(
        replace(other, number=other.number + 1) if other.seat == hand.seat else other
        for other in s.hands[turn + 1 :]
    )
    return replace(s, hands=(*s.hands[:turn], low, high, *later))


def _surrendered(g: Game, s: State, e: Surrender) -> State:
    dues = for_hand(g, s, s.turn, "surrender", None, "surrender")
    return replace(s, due=dues, after=Step.NEXT_HAND)


def _own_hand(g: Game, s: State, e: Withdrawn) -> bool:
    return e.actor.role != "player" or e.actor.seat == s.hands[s.turn].seat


# The exposed card


def _may_refuse_spare(g: Game, s: State, e: SpareRefused) -> bool:
    return s.spare is not None and s.spare.exposed and in_turn(s, e)


def _spare_refused(g: Game, s: State, e: SpareRefused) -> State:
    hand = replace(s.hands[s.turn], done=True)
    return replace(s, hands=put(s, s.turn, hand), quiet=(*s.quiet, e.seat))


def _decision_detail(g: Game, s: State, e: Decision) -> dict[str, str]:
    hand = s.hands[s.turn]
    legal = [word for bit, word in CHOICES.items() if s.legal & bit]
    return {
        "seat": str(e.seat),
        "hand": str(e.hand + 1),
        "turn_seat": str(hand.seat),
        "turn_hand": str(hand.number + 1),
        "legal": ", ".join(legal) if s.step is Step.TURN else "no decision",
        "wager": g.say_amount(hand.wager),
    }


_TURN = (Step.TURN,)
_CONFIRMING = (Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM)
_DECISIONS = (Hit, Stand, Double, Split, Surrender)


def _is(*verdicts: Verdict) -> When:
    def guard(g: Game, s: State, e: Go) -> bool:
        return s.verdict in verdicts

    return guard


def _due_at_once(g: Game, s: State, e: Go) -> State:
    return replace(s, due=for_verdict(g, s), after=Step.NEXT_HAND)


def _instants(o: Options) -> bool:
    return o.instant.pays_21 is not None or o.instant.pays_count is not None


ROWS: tuple[Row, ...] = (
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
        when=lambda g, s, e: s.late == 0 and next_open(s) < 0,
        rule=("classic.deal4", "classic.dealer1"),
    ),
    Row(
        "second_card_for_split",
        (Step.NEXT_HAND,),
        Go,
        Step.HAND_CARD,
        "A hand that came of a split gets its second card when its turn comes.",
        when=_next_needs_card,
        do=lambda g, s, e: replace(s, turn=next_open(s)),
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
        when=lambda g, s, e: s.late > 0 and next_open(s) < 0,
    ),
    Row(
        "hit",
        _TURN,
        Hit,
        Step.HAND_CARD,
        "The hand takes another card.",
        when=_may_hit,
        rule=("classic.play1", "classic.rule7"),
    ),
    Row(
        "stand",
        _TURN,
        Stand,
        Step.NEXT_HAND,
        "The hand draws no more.",
        when=_may_stand,
        do=_stood,
        rule=("classic.play1", "classic.rule7"),
    ),
    Row(
        "double",
        _TURN,
        Double,
        Step.DOUBLE_CONFIRM,
        "The hand wants one card more for its whole wager once again: the chips are to lie "
        "beside it.",
        when=_may_double,
        do=_ask_double,
        rule=(
            "classic.rule5",
            "classic.rule6",
            "mega.4",
            "maxtime.3a",
            "maxtime.3b",
            "sf21x.8",
            "sf21x.9a",
            "sf21x.9b",
            "classic.rule7",
        ),
    ),
    Row(
        "double_confirmed",
        (Step.DOUBLE_CONFIRM,),
        Confirmed,
        Step.HAND_CARD,
        "The dealer sees the chips: the double stands, and one card comes.",
        do=_doubled,
        rule=(
            "classic.locked2",
            "sf21x.9b",
            "maxtime.3b",
            "sf21x.8",
        ),
    ),
    Row(
        "split",
        _TURN,
        Split,
        Step.SPLIT_CONFIRM,
        "The pair is split into two hands: a wager equal to the hand's is to lie beside it.",
        when=_may_split,
        needs=splits,
        rule=(
            "classic.rule2",
            "classic.rule3",
            "mega.2",
            "maxtime.2",
            "sf21x.7",
            "classic.rule7",
        ),
    ),
    Row(
        "split_confirmed",
        (Step.SPLIT_CONFIRM,),
        Confirmed,
        Step.HAND_CARD,
        "The dealer sees the chips: the hands are parted, each with the same wager, and the first "
        "gets its second card. An ace and a ten make 21 there, not blackjack.",
        do=_split,
        needs=splits,
        rule=("classic.rule4", "classic.locked2", "maxtime.4b", "mega.3", "sf21x.7a"),
    ),
    Row(
        "withdrawn",
        _CONFIRMING,
        Withdrawn,
        Step.TURN,
        "Before the dealer confirms it the player may take the double or split back.",
        when=_own_hand,
        why="that is another seat's to take back",
        do=lambda g, s, e: replace(s, asking=0),
        rule=("classic.locked2",),
    ),
    Row(
        "surrender",
        _TURN,
        Surrender,
        Step.PAYING,
        "The player gives the hand up and gets half of it back, as the game counts it.",
        when=_may_surrender,
        do=_surrendered,
        needs=lambda o: o.surrender.when != "never",
        rule=("maxtime.4a", "maxtime.4b", "maxtime.4c", "sf21x.10", "sf21x.10a"),
    ),
    Row(
        "refuse_spare",
        _TURN,
        SpareRefused,
        Step.NEXT_HAND,
        "The player refuses the exposed card and draws no more this round.",
        when=_may_refuse_spare,
        do=_spare_refused,
        why="no exposed card is to be refused by this hand",
    ),
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
        do=_stood,
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

REFUSALS: tuple[Refusal, ...] = (
    *(
        Refusal(
            "not_in_turn",
            _TURN,
            event,
            "seat {seat} hand {hand} is not in turn: seat {turn_seat} hand {turn_hand} is",
            lambda g, s, e: not in_turn(s, e),
            _decision_detail,
        )
        for event in _DECISIONS
    ),
    Refusal(
        "double_stake",
        _TURN,
        Double,
        "seat {seat}: the double stakes the whole wager of {wager} once more, or less only where "
        "the game allows it",
        lambda g, s, e: bool(s.legal & DOUBLE) and _bad_stake(g, s, e),
        _decision_detail,
        rule=("maxtime.3a", "sf21x.9b"),
    ),
    Refusal(
        "split_stake",
        _TURN,
        Split,
        "seat {seat}: a split stakes {wager} on the second hand, no more and no less",
        lambda g, s, e: bool(s.legal & SPLIT) and _uneven_split(g, s, e),
        _decision_detail,
        rule=("classic.rule4",),
    ),
    *(
        Refusal(
            f"cannot_{CHOICES[bit]}",
            _TURN,
            event,
            f"seat {{seat}} hand {{hand}} may not {CHOICES[bit]}; it may: {{legal}}",
            None,
            _decision_detail,
            rule,
        )
        for event, bit, rule in (
            (Hit, HIT, ()),
            (Stand, STAND, ()),
            (Double, DOUBLE, ("maxtime.3a", "sf21x.9a")),
            (Split, SPLIT, ("maxtime.2", "sf21x.7", "mega.2", "classic.rule2")),
            (Surrender, SURRENDER, ("mega.5", "sf21x.10a")),
        )
    ),
    *(
        Refusal(
            "no_decision_now",
            elsewhere(Step.TURN),
            event,
            "no decision of a player is asked for now",
            rule=("maxtime.4d",) if event is Surrender else (),
        )
        for event in (*_DECISIONS, SpareRefused)
    ),
    *(
        Refusal(
            "nothing_to_confirm",
            elsewhere(*_CONFIRMING, Step.INSURANCE_CONFIRM),
            event,
            "nothing waits to be confirmed or withdrawn",
            rule=("classic.locked2",),
        )
        for event in (Confirmed, Withdrawn)
    ),
)
