"""Texts of the published procedure: its parts, steps and events."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from typing import Final, NamedTuple

from controller.procedure.model.events import Event
from controller.procedure.model.row import Row
from controller.procedure.model.state import WAITING, Step


class Part(Enum):
    """The parts of the procedure, in the order of play."""

    OPENING = "Opening, shuffle and closing"
    WAGERS = "Wagers"
    DEAL = "The deal"
    CHECK = "Blackjacks, insurance and the check"
    TURNS = "The players' turns"
    DEALER = "The dealer"
    SETTLEMENT = "Payments and the end of the round"
    IRREGULAR = "When things go wrong"
    RULINGS = "Rulings and ways on"


class StepWords(NamedTuple):
    part: Part
    words: str


STEPS: Final[dict[Step, StepWords]] = {
    Step.CLOSED: StepWords(Part.OPENING, "table closed"),
    Step.SHUFFLE_NEEDED: StepWords(Part.OPENING, "shuffle needed"),
    Step.SHUFFLING: StepWords(Part.OPENING, "shuffle under way"),
    Step.LOADING: StepWords(Part.OPENING, "shoe to be loaded"),
    Step.BURNING: StepWords(Part.OPENING, "cards to be burned"),
    Step.WAGERING: StepWords(Part.WAGERS, "wagers open"),
    Step.DEALING: StepWords(Part.DEAL, "initial deal"),
    Step.AFTER_DEAL: StepWords(Part.CHECK, "deal complete"),
    Step.NATURALS: StepWords(Part.CHECK, "blackjack asked"),
    Step.OFFER: StepWords(Part.CHECK, "deal paid"),
    Step.INSURANCE: StepWords(Part.CHECK, "seat asked for insurance"),
    Step.INSURANCE_CONFIRM: StepWords(Part.CHECK, "insurance chips awaited"),
    Step.NEXT_ASKED: StepWords(Part.CHECK, "seat has answered"),
    Step.INSURANCE_CLOSE: StepWords(Part.CHECK, "insurance to be closed"),
    Step.CHECK: StepWords(Part.CHECK, "hole card to be checked"),
    Step.AFTER_CHECK: StepWords(Part.CHECK, "no dealer's blackjack"),
    Step.NEXT_HAND: StepWords(Part.TURNS, "next hand looked for"),
    Step.TURN: StepWords(Part.TURNS, "hand in turn"),
    Step.DOUBLE_CONFIRM: StepWords(Part.TURNS, "double chips awaited"),
    Step.SPLIT_CONFIRM: StepWords(Part.TURNS, "split chips awaited"),
    Step.HAND_CARD: StepWords(Part.TURNS, "card to the hand"),
    Step.EVALUATE: StepWords(Part.TURNS, "hand evaluated"),
    Step.REVEAL: StepWords(Part.DEALER, "hole card to be turned"),
    Step.DEALER_LATE: StepWords(Part.DEALER, "dealer's missed cards"),
    Step.DEALER_EVALUATE: StepWords(Part.DEALER, "dealer's hand evaluated"),
    Step.DEALER_CARD: StepWords(Part.DEALER, "card to the dealer"),
    Step.PAYING: StepWords(Part.SETTLEMENT, "payments due"),
    Step.PAID_UP: StepWords(Part.SETTLEMENT, "all paid"),
    Step.CLEARING: StepWords(Part.SETTLEMENT, "cards to be picked up"),
    Step.NEXT_ROUND: StepWords(Part.SETTLEMENT, "round over"),
    Step.RULING: StepWords(Part.RULINGS, "way on looked up"),
    Step.HELD: StepWords(Part.RULINGS, "held for the floor"),
    Step.CARD_ENTRY: StepWords(Part.RULINGS, "card to be entered"),
    Step.CARD_CONFIRM: StepWords(Part.RULINGS, "entered card to be confirmed"),
    Step.DEVICE: StepWords(Part.RULINGS, "device awaited"),
    Step.FELT: StepWords(Part.RULINGS, "felt to be compared"),
    Step.REFILL: StepWords(Part.RULINGS, "discards to be loaded"),
    Step.RELIEF_BURN: StepWords(Part.RULINGS, "new dealer to burn"),
    Step.RESUMING: StepWords(Part.RULINGS, "stop lifted"),
}

EVENTS: Final[dict[str, str]] = {
    "Go": "by itself",
    "TableOpened": "the table is opened",
    "TableClosed": "the table is to close",
    "ShuffleCalled": "a shuffle is called",
    "ShuffleStarted": "the shuffle begins",
    "ShuffleDone": "the shuffle is done",
    "ShoeLoaded": "the shoe is loaded",
    "DecksChanged": "other decks are on the table",
    "CardBurned": "a card is burned",
    "CutCardSeen": "the cut card comes out",
    "DealerRelieved": "another dealer takes the table over",
    "WagerPlaced": "a wager is placed or changed",
    "WagerRemoved": "a wager is taken back",
    "CardDrawn": "a card comes face up",
    "HoleDealt": "a card is dealt face down",
    "HoleChecked": "the hole card is checked",
    "HoleRevealed": "the hole card is turned over",
    "Hit": "the hand hits",
    "Stand": "the hand stands",
    "Double": "the hand doubles",
    "Split": "the hand splits",
    "Surrender": "the hand surrenders",
    "SpareRefused": "the exposed card is refused",
    "Insure": "the seat wants insurance",
    "EvenMoney": "the seat takes even money",
    "Decline": "the seat declines",
    "InsuranceClosed": "insurance is closed aloud",
    "PayTaken": "the blackjack's pay is taken",
    "PayDeclined": "the blackjack's pay is declined",
    "Confirmed": "the chips are confirmed",
    "Withdrawn": "the chips are withdrawn",
    "Paid": "a payment is made",
    "AllPaid": "every payment is made",
    "PaymentApproved": "the floor passes a payment",
    "PaymentCorrected": "a payment is corrected",
    "Cleared": "the felt is cleared",
    "FaceUpCardFound": "a card lies face up in the shoe",
    "ErrorCardDrawn": "a card is drawn in error, face down",
    "ErrorCardExposed": "a card drawn in error is seen",
    "DealerCardMissed": "the dealer's own card was missed",
    "ShoeRanOut": "the shoe runs out",
    "SeatMissed": "a seat got no cards",
    "SeatShorted": "a seat got one card only",
    "CardUnreadable": "a card cannot be read",
    "CardMisread": "a card was read as another one",
    "CardEntered": "a card is entered from the felt",
    "CardConfirmed": "the entered card is confirmed",
    "CardRejected": "the entered card is rejected",
    "DeckSuspect": "the decks are suspect",
    "UnknownCardDrawn": "a joker or unknown card comes",
    "HoleExposed": "the hole card is exposed early",
    "HoleUnchecked": "the hole card was not checked",
    "PlayedOutOfTurn": "a hand is played out of turn",
    "InsuranceDisputed": "insurance is disputed",
    "MisdealCalled": "a misdeal is called",
    "FloorCalled": "the floor is called",
    "PlayerAbsent": "a player left or does not answer",
    "DeviceLost": "a device is lost",
    "DeviceBack": "a device is back",
    "CountersAccepted": "a device's counters are accepted",
    "ControllerRestarted": "the controller restarts",
    "FeltConfirmed": "the felt is confirmed",
    "FloorRuled": "the floor rules",
    "RoundVoided": "the round is voided",
}

_PART_OF_EVENT: Final = {
    "CutCardSeen": Part.OPENING,
    "TableClosed": Part.OPENING,
    "ShuffleCalled": Part.OPENING,
    "DealerRelieved": Part.IRREGULAR,
    "SpareRefused": Part.IRREGULAR,
    "PlayerAbsent": Part.IRREGULAR,
    "DeviceLost": Part.IRREGULAR,
    "DeviceBack": Part.IRREGULAR,
    "RoundVoided": Part.IRREGULAR,
    "PaymentCorrected": Part.IRREGULAR,
}
"""Events that belong to one part at every step."""

AFTER_RULINGS: Final = frozenset(
    {
        "deal_last_card",
        "deal_hole_early",
        "quiet_hand_stands",
        "players_done_dealer_late",
        "late_card",
        "late_last_card",
    }
)
"""Rows of play that follow only from a ruling or a player who left."""


def event_words(event: type[Event]) -> str:
    name = event.__name__
    return EVENTS.get(name) or re.sub(r"(?<!^)(?=[A-Z])", " ", name).lower()


def part_of(row: Row) -> Part:
    own = STEPS[row.at[0]].part
    if own is Part.RULINGS and len(row.at) == 1:
        return own
    if row.event.__name__ in _PART_OF_EVENT:
        return _PART_OF_EVENT[row.event.__name__]
    return Part.IRREGULAR if row.to is Step.RULING or row.id in AFTER_RULINGS else own


# --- sets of steps ----------------------------------------------------------------------------

_ORDER: Final = {step: place for place, step in enumerate(STEPS)}
_AMID: Final = (Part.DEAL, Part.CHECK, Part.TURNS, Part.DEALER, Part.SETTLEMENT)


def _waiting(*parts: Part) -> frozenset[Step]:
    return frozenset(step for step in WAITING if STEPS[step].part in parts)


_BETWEEN: Final = _waiting(Part.OPENING, Part.WAGERS) - {Step.CLOSED}
_SETS: Final = (
    ("every step", frozenset(WAITING)),
    ("every step of an open table", frozenset(WAITING) - {Step.CLOSED}),
    ("every step of a round", _waiting(*_AMID)),
    ("every step between rounds", _BETWEEN),
    ("every step of a stop", _waiting(Part.RULINGS)),
    ("every step between and in rounds", _BETWEEN | _waiting(*_AMID)),
)
_MAX_LISTED: Final = 4


def steps_words(steps: Iterable[Step], known: frozenset[Step]) -> str:
    """Returns steps as text, in the order of play; `known`: the steps of the game."""
    here = frozenset(steps) & known
    listed = _listed(here)
    if len(here) <= _MAX_LISTED:
        return listed
    apart = [(name, (within & known) - here, here - within) for name, within in _SETS]
    name, without, beside = min(apart, key=lambda each: len(each[1]) + len(each[2]))
    if len(without) + len(beside) >= len(here):
        return listed
    words = name
    if without:
        words += f" except {_listed(without)}"
    if beside:
        words += f"; also {_listed(beside)}" if without else f" and at {_listed(beside)}"
    return words


def _listed(steps: frozenset[Step]) -> str:
    return ", ".join(STEPS[step].words for step in in_order(steps))


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Returns the distinct steps, in the order of play."""
    return tuple(sorted(frozenset(steps), key=_ORDER.__getitem__))
