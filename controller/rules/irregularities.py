"""Irregularities at the table, and the ways to continue that a house can rule.

The jurisdiction's file selects the way. Each irregularity has a closed set of ways: those for which
the procedure has rows.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct


class Irregularity(Enum):
    FACE_UP_CARD = "face_up_card"
    ERROR_CARD = "error_card"
    ERROR_CARD_EXPOSED = "error_card_exposed"
    DEALER_OVERDREW = "dealer_overdrew"
    DEALER_CARD_MISSED = "dealer_card_missed"
    SHOE_RAN_OUT = "shoe_ran_out"
    SEAT_MISSED = "seat_missed"
    SEAT_SHORTED = "seat_shorted"
    CARD_UNREADABLE = "card_unreadable"
    DECK_SUSPECT = "deck_suspect"
    WRONG_PAYMENT = "wrong_payment"
    HOLE_EXPOSED = "hole_exposed"
    HOLE_UNCHECKED = "hole_unchecked"
    OUT_OF_TURN = "out_of_turn"
    INSURANCE_DISPUTE = "insurance_dispute"
    MISDEAL = "misdeal"
    DEVICE_LOST = "device_lost"
    RESTARTED = "restarted"
    PLAYER_ABSENT = "player_absent"
    CANNOT_COVER = "cannot_cover"
    HOLE_MISMATCH = "hole_mismatch"
    UNKNOWN_CARD = "unknown_card"
    LATE_WAGER = "late_wager"
    DEALER_RELIEVED = "dealer_relieved"
    FLOOR_CALLED = "floor_called"

    __hash__ = object.__hash__


class Way(Enum):
    """A way to continue after an irregularity."""

    FLOOR_DECIDES = "floor_decides"
    DISCARD = "discard"
    USE_NEXT = "use_next"
    DEAL_ON = "deal_on"
    BURN = "burn"
    DEALER_LAST = "dealer_last"
    RESHUFFLE = "reshuffle"
    DEAD_HAND = "dead_hand"
    SECOND_CARD_LAST = "second_card_last"
    ENTER_CARD = "enter_card"
    DECKS_OUT = "decks_out"
    CORRECT = "correct"
    RESUME = "resume"
    VOID = "void"
    REOPEN_INSURANCE = "reopen_insurance"
    DEVICE_CHECK = "device_check"
    FELT_CHECK = "felt_check"
    STAND_HAND = "stand_hand"
    WITHDRAW = "withdraw"
    REFUSE = "refuse"

    __hash__ = object.__hash__


_I, _W = Irregularity, Way

WAYS: Final[dict[Irregularity, tuple[Way, ...]]] = {
    _I.FACE_UP_CARD: (_W.DISCARD, _W.VOID),
    _I.ERROR_CARD: (_W.USE_NEXT, _W.BURN, _W.VOID),
    _I.ERROR_CARD_EXPOSED: (_W.DEAL_ON, _W.BURN, _W.VOID),
    _I.DEALER_OVERDREW: (_W.BURN,),
    _I.DEALER_CARD_MISSED: (_W.DEALER_LAST, _W.VOID),
    _I.SHOE_RAN_OUT: (_W.RESHUFFLE, _W.VOID),
    _I.SEAT_MISSED: (_W.DEAD_HAND, _W.VOID),
    _I.SEAT_SHORTED: (_W.SECOND_CARD_LAST, _W.VOID),
    _I.CARD_UNREADABLE: (_W.ENTER_CARD, _W.BURN, _W.VOID),
    _I.DECK_SUSPECT: (_W.DECKS_OUT, _W.RESUME),
    _I.WRONG_PAYMENT: (_W.CORRECT,),
    _I.HOLE_EXPOSED: (_W.RESUME, _W.VOID),
    _I.HOLE_UNCHECKED: (_W.RESUME, _W.VOID),
    _I.OUT_OF_TURN: (_W.RESUME, _W.VOID),
    _I.INSURANCE_DISPUTE: (_W.RESUME, _W.REOPEN_INSURANCE, _W.VOID),
    _I.MISDEAL: (_W.VOID, _W.RESUME),
    _I.DEVICE_LOST: (_W.DEVICE_CHECK, _W.VOID),
    _I.RESTARTED: (_W.FELT_CHECK, _W.VOID),
    _I.PLAYER_ABSENT: (_W.STAND_HAND, _W.RESUME, _W.VOID),
    _I.CANNOT_COVER: (_W.WITHDRAW,),
    _I.HOLE_MISMATCH: (_W.RESUME, _W.VOID, _W.DECKS_OUT),
    _I.UNKNOWN_CARD: (_W.DECKS_OUT, _W.ENTER_CARD, _W.DISCARD),
    _I.LATE_WAGER: (_W.REFUSE,),
    _I.DEALER_RELIEVED: (_W.BURN, _W.RESUME),
    _I.FLOOR_CALLED: (_W.RESUME, _W.VOID),
}
"""The ways that can be ruled for each; FLOOR_DECIDES (of those listed) is open to all of them."""


FIXED: Final = frozenset({_I.CANNOT_COVER, _I.LATE_WAGER, _I.WRONG_PAYMENT})
"""Irregularities whose only way is in the rows: there is no hold and nothing else can be ruled."""


TWO_PEOPLE: Final = (_W.VOID.value, _W.CORRECT.value, "pairing", "counters")
"""Acts that need two-person approval in every house; a house may only add to them."""


class Ruling(Struct, frozen=True, forbid_unknown_fields=True):
    """A jurisdiction's ruling on one irregularity: the way, or the ways the floor may choose."""

    way: Way
    options: tuple[Way, ...] = ()
    two_people: bool = False
    text: str = ""


class Jurisdiction(Struct, frozen=True, forbid_unknown_fields=True):
    """The rulings of a jurisdiction on all irregularities."""

    name: str
    title: str
    source: str
    ways: dict[str, Ruling]
    """By the name of the irregularity."""
    rounds_after_cut: int = 1
    """Rounds dealt after the one in which the cut card came out."""
    declare_payments: bool = False
    """The dealer declares each payment and the controller compares the amount."""
    two_people: tuple[str, ...] = (*TWO_PEOPLE, Way.DECKS_OUT.value)
    """Acts that need two-person approval: TWO_PEOPLE, and those that the house adds."""

    def ruling(self, what: Irregularity) -> Ruling:
        return self.ways[what.value]
