"""Irregularities of the shoe, the deal and single cards, and the holds that they make.

If the jurisdiction names the way, its row fires immediately; otherwise the floor rules first. A
misread card (the card on the felt is a different one than the screen shows) is rolled back from its
place, read from the felt, confirmed, and laid again, as long as nothing has followed from it; after
that the floor decides.
"""

from __future__ import annotations

from msgspec.structs import replace

from controller.procedure.irregularities.rulings import lays_without, missed_places, second_last
from controller.procedure.model.events import (
    LONGEST_COMMITMENT,
    CardDrawn,
    CardMisread,
    CardUnreadable,
    DealerCardMissed,
    ErrorCardDrawn,
    ErrorCardExposed,
    FaceUpCardFound,
    HoleRevealed,
    SeatMissed,
    SeatShorted,
    ShoeLoaded,
    ShoeRanOut,
    ShuffleDone,
    UnknownCardDrawn,
)
from controller.procedure.model.felt import hole_is_next, next_seat, put, times_seen
from controller.procedure.model.game import Game
from controller.procedure.model.holds import (
    CARD_STEPS,
    HOLE_DUPLICATE,
    NO_CARD,
    SHOE_IN_PLAY,
    STOPPED,
    found,
    hold,
    holds_for,
    seen_once_more,
)
from controller.procedure.model.payments import settlement
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import Hold, State, Step, elsewhere
from controller.procedure.rows import agrees_with_check, hole_card, hole_is_fresh, whole_shoe
from controller.rules.cards import Card
from controller.rules.hands import Hand, Verdict, before_last, total_of
from controller.rules.irregularities import Irregularity

# What the event reports


def _too_many(g: Game, s: State, e: CardDrawn) -> bool:
    """Whether the decks have no further copy of the card."""
    if e.spare and s.spare is not None and s.spare.card >= 0:
        return False
    return times_seen(s, e.card) >= g.decks


def _wrong_card_while_spare_waits(g: Game, s: State, e: CardDrawn) -> bool:
    return s.spare is not None and not e.spare and not _too_many(g, s, e) and not hole_is_next(s)


def _error_card(s: State) -> Irregularity:
    after_settlement = s.step is Step.CLEARING or (
        s.step is Step.PAYING and s.after is Step.CLEARING
    )
    return Irregularity.DEALER_OVERDREW if after_settlement else Irregularity.ERROR_CARD


def _exposed(s: State) -> Irregularity:
    found = _error_card(s)
    return Irregularity.ERROR_CARD_EXPOSED if found is Irregularity.ERROR_CARD else found


# What the rows do


def _hold_duplicate(g: Game, s: State, e: CardDrawn) -> State:
    return hold(g, s, Hold(Irregularity.DECK_SUSPECT, s.step, card=e.card, detail="duplicate"))


def _hold_extra(g: Game, s: State, e: CardDrawn) -> State:
    held = hold(g, s, Hold(_exposed(s), s.step, card=e.card))
    return replace(held, seen=seen_once_more(s, e.card))


def _hold_hidden(g: Game, s: State, e: ErrorCardDrawn) -> State:
    return hold(g, s, Hold(_error_card(s), s.step, commitment=e.commitment))


def _hold_exposed_spare(g: Game, s: State, e: ErrorCardExposed) -> State:
    if times_seen(s, e.card) >= g.decks:
        duplicate = Hold(Irregularity.DECK_SUSPECT, s.step, detail="duplicate")
        return hold(g, replace(s, spare=None), duplicate)
    bare = replace(s, spare=None, seen=seen_once_more(s, e.card))
    return hold(g, bare, Hold(_exposed(s), bare.step, card=e.card))


def _hold_face_up(g: Game, s: State, e: FaceUpCardFound) -> State:
    if times_seen(s, e.card) >= g.decks:
        return hold(g, s, Hold(Irregularity.DECK_SUSPECT, s.step, detail="duplicate"))
    held = hold(g, s, Hold(Irregularity.FACE_UP_CARD, s.step, card=e.card))
    return replace(held, seen=seen_once_more(s, e.card))


def _hold_hole_duplicate(g: Game, s: State, e: HoleRevealed) -> State:
    return hold(g, s, Hold(Irregularity.DECK_SUSPECT, s.step, card=e.card, detail=HOLE_DUPLICATE))


def _hold_mismatch(g: Game, s: State, e: HoleRevealed) -> State:
    return hold(g, s, Hold(Irregularity.HOLE_MISMATCH, s.step, card=hole_card(s, e)))


def _hold_count(g: Game, s: State, e: ShuffleDone) -> State:
    detail = f"{e.missing} missing, {e.extra} extra"
    return hold(g, s, Hold(Irregularity.DECK_SUSPECT, s.step, detail=detail))


def _hold_load(g: Game, s: State, e: ShoeLoaded) -> State:
    detail = f"{e.count} cards of {g.decks * 52}"
    return hold(g, s, Hold(Irregularity.DECK_SUSPECT, s.step, detail=detail))


# Guards


def _miscounted(g: Game, s: State, e: ShuffleDone) -> bool:
    return e.missing != 0 or e.extra != 0


def _wrong_load(g: Game, s: State, e: ShoeLoaded) -> bool:
    return not whole_shoe(g, e) and "shoe" not in s.lost


def _duplicate(g: Game, s: State, e: CardDrawn) -> bool:
    return not (e.spare and s.spare is None) and _too_many(g, s, e) and not hole_is_next(s)


def _extra_card(g: Game, s: State, e: CardDrawn) -> bool:
    return not e.spare and not _too_many(g, s, e)


def _no_wager(g: Game, s: State, e: CardDrawn) -> bool:
    return not s.seats and not e.spare and not _too_many(g, s, e)


def _second_card_at_wagering(g: Game, s: State, e: CardDrawn) -> bool:
    return bool(s.seats) and _wrong_card_while_spare_waits(g, s, e)


def _hole_mismatch(g: Game, s: State, e: HoleRevealed) -> bool:
    return hole_is_fresh(g, s, e) and not agrees_with_check(s, e)


def _sealed(g: Game, s: State, e: ErrorCardDrawn) -> bool:
    return 0 < len(e.commitment) <= LONGEST_COMMITMENT


def _seat_missed(g: Game, s: State, e: SeatMissed) -> bool:
    return lays_without(s, e.seat) is not None


def _seat_shorted(g: Game, s: State, e: SeatShorted) -> bool:
    return second_last(s, e.seat) is not None


def _dealer_missed(g: Game, s: State, e: DealerCardMissed) -> bool:
    return missed_places(s, e.which) is not None


_STANDING = tuple(step for step in STOPPED if step is not Step.CARD_ENTRY)
"""Of an unknown card at its entry see `release`."""


_AT_ONCE = ("bust", "instant21", "instant6")
"""Reasons for which a hand is paid or collected as soon as its card is laid."""


def taken_back(g: Game, s: State) -> State | None:
    """Returns the state before the last card, or None if something has followed from it."""
    if s.spare is not None:
        return None
    match s.step:
        case Step.DEALING:
            return _from_the_deal(s)
        case Step.TURN | Step.HAND_CARD | Step.REVEAL:
            return _from_the_hand(s, _drew_last(s))
        case Step.PAYING if s.due[0].why in _AT_ONCE and s.due[0].turn == s.turn:
            return _from_the_hand(replace(s, due=(), approved=False), s.turn)
        case Step.PAYING if s.due == settlement(g, s) and not _some_settled(g, s):
            return _from_the_dealer(replace(s, due=(), approved=False))
        case Step.DEALER_CARD:
            return _from_the_dealer(s)
        case _:
            return None


def _from_the_deal(s: State) -> State | None:
    place = s.places[s.dealt - 1] if s.dealt else None
    if place is None or place.kind == "hole":
        return None
    before = replace(s, dealt=s.dealt - 1)
    return _off_the_hand(before, place.turn) if place.turn >= 0 else _off_the_dealer(before)


def _drew_last(s: State) -> int:
    """Returns the hand that got the last card if no decision followed: the one in turn, or the one
    before it that stood automatically. Else -1."""
    stood = s.verdict == Verdict.STANDS
    match s.step:
        case Step.TURN if _drawn(s.hands[s.turn]):
            return s.turn
        case Step.REVEAL if stood and s.read < 0:
            return s.turn
        case Step.TURN if stood:
            return s.turn - 1
        case Step.HAND_CARD if stood and len(s.hands[s.turn].cards) < 2:
            return s.turn - 1
        case _:
            return -1


def _drawn(hand: Hand) -> bool:
    """Whether the hand has a card drawn after the deal or after its split."""
    return len(hand.cards) >= (2 if hand.split else 3)


def _from_the_hand(s: State, turn: int) -> State | None:
    if turn < 0 or s.hands[turn].out or not _drawn(s.hands[turn]):
        return None
    return _off_the_hand(replace(s, step=Step.HAND_CARD, turn=turn), turn)


def _some_settled(g: Game, s: State) -> bool:
    """Whether the settlement may have started. A busted hand was collected in turn; the state does
    not show whether its seat's Buster bet was settled."""
    tells = "buster" not in g.offered
    return any(hand.out and not (hand.busted and tells) for hand in s.hands)


def _from_the_dealer(s: State) -> State | None:
    if len(s.dealer) < 3:
        return None
    return _off_the_dealer(replace(s, step=Step.DEALER_CARD))


def _off_the_hand(s: State, turn: int) -> State | None:
    bare, card = before_last(s.hands[turn])
    return _unseen(replace(s, hands=put(s, turn, bare)), card)


def _off_the_dealer(s: State) -> State | None:
    *left, card = s.dealer
    total, soft = total_of(tuple(left))
    up = s.up if left else 0
    bare = replace(s, dealer=tuple(left), dealer_total=total, dealer_soft=soft, up=up)
    return _unseen(bare, card)


def _unseen(s: State, card: Card) -> State | None:
    """Returns the state with the card removed from the cards seen, or None if it was not seen."""
    return replace(s, seen=s.seen - (1 << 4 * card)) if times_seen(s, card) else None


def _hold_misread(g: Game, s: State, e: CardMisread) -> State:
    before = taken_back(g, s)
    if before is None:
        return s
    what, seat = Irregularity.CARD_UNREADABLE, next_seat(before)
    return hold(g, before, Hold(what, before.step, seat=seat, detail="misread"))


_AT = (
    Step.DEALING,
    Step.TURN,
    Step.HAND_CARD,
    Step.REVEAL,
    Step.PAYING,
    Step.DEALER_CARD,
)


ROWS: tuple[Row, ...] = (
    found(
        "face_up_card",
        (*CARD_STEPS, Step.WAGERING, Step.BURNING),
        FaceUpCardFound,
        "The next card lies face up in the shoe.",
        _hold_face_up,
    ),
    found(
        "duplicate_card",
        (*CARD_STEPS, *NO_CARD, *STOPPED, Step.WAGERING),
        CardDrawn,
        "The card was seen as often as the decks hold it already.",
        _hold_duplicate,
        _duplicate,
    ),
    found(
        "card_while_spare_waits",
        CARD_STEPS,
        CardDrawn,
        "A new card left the shoe though one that was drawn in error must be used first.",
        _hold_extra,
        _wrong_card_while_spare_waits,
        "the card that lies beside the shoe is another one",
    ),
    found(
        "card_not_expected",
        (*NO_CARD, *STOPPED),
        CardDrawn,
        "A card came face up when none was expected.",
        _hold_extra,
        _extra_card,
    ),
    found(
        "card_without_wagers",
        (Step.WAGERING,),
        CardDrawn,
        "A card came face up before any wager was placed.",
        _hold_extra,
        _no_wager,
    ),
    found(
        "second_card_at_wagering",
        (Step.WAGERING,),
        CardDrawn,
        "A new card left the shoe though one that was drawn in error must be used first.",
        _hold_extra,
        _second_card_at_wagering,
        "the card that lies beside the shoe is another one",
    ),
    found(
        "error_card",
        (*NO_CARD, *STOPPED, Step.WAGERING),
        ErrorCardDrawn,
        "A card left the shoe face down when none was expected.",
        _hold_hidden,
        _sealed,
        "a hidden card needs its commitment",
    ),
    found(
        "error_card_exposed",
        (*SHOE_IN_PLAY,),
        ErrorCardExposed,
        "The card that lay beside the shoe was seen after all.",
        _hold_exposed_spare,
        lambda g, s, e: s.spare is not None and s.spare.card < 0,
        "no hidden card lies beside the shoe",
    ),
    found(
        "dealer_card_missed",
        (Step.DEALING,),
        DealerCardMissed,
        "The dealer passed over one of the dealer's own cards.",
        holds_for(Irregularity.DEALER_CARD_MISSED),
        _dealer_missed,
        "that card of the dealer cannot have been missed: call a misdeal",
    ),
    found(
        "shoe_ran_out",
        CARD_STEPS,
        ShoeRanOut,
        "The shoe has no card left for the round.",
        holds_for(Irregularity.SHOE_RAN_OUT),
    ),
    found(
        "seat_missed",
        (Step.DEALING,),
        SeatMissed,
        "A seat was passed over and got no cards.",
        holds_for(Irregularity.SEAT_MISSED),
        _seat_missed,
        "that seat cannot have been missed: call a misdeal",
    ),
    found(
        "seat_shorted",
        (Step.DEALING,),
        SeatShorted,
        "A seat got only its first card.",
        holds_for(Irregularity.SEAT_SHORTED),
        _seat_shorted,
        "that seat cannot be one card short: call a misdeal",
    ),
    found(
        "card_unreadable",
        (*CARD_STEPS, Step.WAGERING, Step.REVEAL),
        CardUnreadable,
        "The shoe could not read the card, or not surely enough.",
        holds_for(Irregularity.CARD_UNREADABLE),
    ),
    found(
        "shuffle_short_or_long",
        (Step.SHUFFLING, Step.REFILL),
        ShuffleDone,
        "The shuffler counted a card missing or too many.",
        _hold_count,
        _miscounted,
    ),
    found(
        "shoe_short_or_long",
        (Step.LOADING,),
        ShoeLoaded,
        "The shoe does not hold what the decks of the game hold.",
        _hold_load,
        _wrong_load,
    ),
    found(
        "unknown_card",
        (*CARD_STEPS, *NO_CARD, *_STANDING, Step.WAGERING),
        UnknownCardDrawn,
        "A joker, or a card that is none of the 52.",
        holds_for(Irregularity.UNKNOWN_CARD),
    ),
    found(
        "hole_duplicate",
        (Step.REVEAL,),
        HoleRevealed,
        "The hole card was seen as often as the decks hold it already.",
        _hold_hole_duplicate,
        lambda g, s, e: not hole_is_fresh(g, s, e),
    ),
    found(
        "hole_mismatch",
        (Step.REVEAL,),
        HoleRevealed,
        "The hole card is not what the check said.",
        _hold_mismatch,
        _hole_mismatch,
    ),
    found(
        "card_misread",
        _AT,
        CardMisread,
        "The card that came last is another one than the screen shows: it is read from the felt.",
        _hold_misread,
        lambda g, s, e: taken_back(g, s) is not None,
        "something has followed from that card: call a misdeal",
    ),
)

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "hole_comes_face_down",
        (Step.DEALING,),
        CardDrawn,
        "the next card is the hole card: it comes face down",
        lambda g, s, e: hole_is_next(s),
        rule=("classic.deal3",),
    ),
    Refusal(
        "spare_not_wanted",
        (*NO_CARD, *STOPPED, Step.WAGERING),
        CardDrawn,
        "no card from beside the shoe is wanted now",
        lambda g, s, e: e.spare,
    ),
    Refusal(
        "no_card_expected",
        elsewhere(*CARD_STEPS, *NO_CARD, *STOPPED, Step.WAGERING),
        CardDrawn,
        "no card may leave the shoe now",
    ),
    Refusal(
        "no_face_up_card",
        elsewhere(*CARD_STEPS, Step.WAGERING, Step.BURNING),
        FaceUpCardFound,
        "no card is to be drawn now",
    ),
    Refusal(
        "no_error_card",
        elsewhere(*NO_CARD, *STOPPED, Step.WAGERING),
        ErrorCardDrawn,
        "a card is expected, or no shoe is in play",
    ),
    Refusal(
        "no_hidden_card",
        elsewhere(*SHOE_IN_PLAY),
        ErrorCardExposed,
        "no hidden card lies beside the shoe",
    ),
    *(
        Refusal("not_in_the_deal", elsewhere(Step.DEALING), event, "the deal is not under way")
        for event in (DealerCardMissed, SeatMissed, SeatShorted)
    ),
    Refusal(
        "no_card_wanted",
        elsewhere(*CARD_STEPS, Step.BURNING, Step.WAGERING, Step.RELIEF_BURN),
        ShoeRanOut,
        "no card is expected now",
    ),
    Refusal(
        "nothing_to_read",
        elsewhere(*CARD_STEPS, Step.WAGERING, Step.REVEAL),
        CardUnreadable,
        "no card is to be read now",
    ),
    Refusal(
        "no_unknown_card",
        elsewhere(*CARD_STEPS, *NO_CARD, *STOPPED, Step.WAGERING),
        UnknownCardDrawn,
        "no card may leave the shoe now",
    ),
    Refusal(
        "no_card_misread",
        elsewhere(*_AT),
        CardMisread,
        "no card that came last lies face up: call a misdeal",
    ),
)
