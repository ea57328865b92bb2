"""What can happen at the table. Every event names its actor.

Facts are named in the past tense (`CardDrawn`), decisions as the player says them (`Hit`). A card
in an event is face up; a face-down card comes as a commitment, and its value is known only outside
the procedure.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from msgspec import Struct

from controller.rules.cards import Card
from controller.rules.irregularities import Way
from controller.rules.money import Amount

Role: TypeAlias = Literal["dealer", "floor", "player", "surveillance", "technician", "device"]
Bet: TypeAlias = Literal["main", "diamond", "buster", "toke_main", "toke_buster"]
LONGEST_COMMITMENT: Final = 256
"""Characters; a hash in hexadecimal has 64."""
Device: TypeAlias = Literal["shoe", "shuffler", "station"]


class Actor(Struct, frozen=True, gc=False, omit_defaults=True):
    """A person or a device that acts at the table."""

    role: Role
    name: str
    seat: int = 0
    """A player's seat."""


class Event(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """Something that happened, and who did it."""

    actor: Actor


class Go(Event, frozen=True, gc=False):
    """Sent by the engine only, to a state that continues without an event from outside."""


# The table and its shoe


class TableOpened(Event, frozen=True, gc=False):
    """The bank was counted by the actor, and again by the second person."""

    bank: Amount = 0
    second: Actor | None = None
    counted_again: Amount | None = None


class TableClosed(Event, frozen=True, gc=False):
    bank: Amount = 0
    second: Actor | None = None
    counted_again: Amount | None = None


class ShuffleCalled(Event, frozen=True, gc=False):
    """The house requests a shuffle before the next round."""


class ShuffleStarted(Event, frozen=True, gc=False):
    """The cards are in the shuffler, or in the dealer's hands."""


class ShuffleDone(Event, frozen=True, gc=False):
    missing: int = 0
    extra: int = 0


class ShoeLoaded(Event, frozen=True, gc=False):
    """Shuffled, cut and in the shoe, `count` cards."""

    count: int


class DecksChanged(Event, frozen=True, gc=False):
    """Other decks are on the table in place of those that went out of play."""

    second: Actor | None = None


class CardBurned(Event, frozen=True, gc=False):
    """A card left the shoe face down for the discard rack."""


class CutCardSeen(Event, frozen=True, gc=False):
    pass


class DealerRelieved(Event, frozen=True, gc=False):
    """`actor` takes the table over."""


# Wagers


class WagerPlaced(Event, frozen=True, gc=False):
    """`amount` replaces the former amount of the bet."""

    seat: int
    bet: Bet
    amount: Amount


class WagerRemoved(Event, frozen=True, gc=False):
    seat: int
    bet: Bet


# Cards


class CardDrawn(Event, frozen=True, gc=False):
    """A card came face up. `spare`: it is the one that lay beside the shoe, not a new one."""

    card: Card
    spare: bool = False


class HoleDealt(Event, frozen=True, gc=False):
    """The dealer's hole card lies face down; `commitment` binds its value without revealing it."""

    commitment: str
    spare: bool = False


class HoleChecked(Event, frozen=True, gc=False):
    """The answer of the check: one bit."""

    blackjack: bool


class HoleRevealed(Event, frozen=True, gc=False):
    """The hole card is turned over: `card` as the shoe read it, proved by `opening`. If the reading
    was in doubt, the card that the floor confirmed counts instead."""

    card: Card
    opening: str


# Decisions


class Decision(Event, frozen=True, gc=False):
    """A decision for a hand. The actor is its player, or the dealer who reads the signal."""

    seat: int
    hand: int


class Hit(Decision, frozen=True, gc=False):
    pass


class Stand(Decision, frozen=True, gc=False):
    pass


class Double(Decision, frozen=True, gc=False):
    """`amount` None: the same amount as the whole wager."""

    amount: Amount | None = None


class Split(Decision, frozen=True, gc=False):
    """`amount` None: the same amount as the hand's wager; any other amount is refused."""

    amount: Amount | None = None


class Surrender(Decision, frozen=True, gc=False):
    pass


class SpareRefused(Decision, frozen=True, gc=False):
    """The player refuses the exposed card; the seat draws no more this round."""


class Insure(Event, frozen=True, gc=False):
    seat: int
    amount: Amount


class EvenMoney(Event, frozen=True, gc=False):
    seat: int


class Decline(Event, frozen=True, gc=False):
    """No insurance, no even money."""

    seat: int


class InsuranceClosed(Event, frozen=True, gc=False):
    """The dealer said aloud that insurance is closed."""


class PayTaken(Event, frozen=True, gc=False):
    seat: int


class PayDeclined(Event, frozen=True, gc=False):
    """The blackjack's pay is declined: the hand is an ordinary 21 and may be doubled."""

    seat: int


class Confirmed(Event, frozen=True, gc=False):
    """The dealer sees the chips for the insurance, double or split."""


class Withdrawn(Event, frozen=True, gc=False):
    """The insurance, double or split is taken back, or cannot be covered."""


# Payments


class Paid(Event, frozen=True, gc=False):
    """The first payment due is made. `amount`: as declared, if the house requires that."""

    amount: Amount | None = None


class AllPaid(Event, frozen=True, gc=False):
    pass


class PaymentApproved(Event, frozen=True, gc=False):
    pass


class PaymentCorrected(Event, frozen=True, gc=False):
    """A payment of this or an earlier round was wrong; both amounts stand in the record."""

    round: int
    seat: int
    hand: int
    bet: str
    paid: Amount
    due: Amount
    second: Actor | None = None


class Cleared(Event, frozen=True, gc=False):
    """The felt is clear; the cards are in the discard rack."""


# When things go wrong


class FaceUpCardFound(Event, frozen=True, gc=False):
    """The next card lay face up in the shoe."""

    card: Card


class ErrorCardDrawn(Event, frozen=True, gc=False):
    """A card left the shoe when none was expected, and its face was not seen."""

    commitment: str


class ErrorCardExposed(Event, frozen=True, gc=False):
    """The face of the card that lay beside the shoe was seen after all."""

    card: Card


class DealerCardMissed(Event, frozen=True, gc=False):
    """The dealer passed over the first (1) or second (2) card of their own hand."""

    which: Literal[1, 2]


class ShoeRanOut(Event, frozen=True, gc=False):
    pass


class SeatMissed(Event, frozen=True, gc=False):
    """The seat got no cards; those dealt since lie one place further on."""

    seat: int


class SeatShorted(Event, frozen=True, gc=False):
    """The seat got only its first card."""

    seat: int


class CardUnreadable(Event, frozen=True, gc=False):
    """A failed read, or one below the confidence that the house asks for."""

    why: str


class CardMisread(Event, frozen=True, gc=False):
    """The last card on the felt is a different one than the screen shows."""


class CardEntered(Event, frozen=True, gc=False):
    """The dealer reads the card from the felt."""

    card: Card


class CardConfirmed(Event, frozen=True, gc=False):
    pass


class CardRejected(Event, frozen=True, gc=False):
    """The floor reads another card than the dealer entered."""


class DeckSuspect(Event, frozen=True, gc=False):
    why: Literal["duplicate", "foreign_back", "short", "long", "factory_order"]


class UnknownCardDrawn(Event, frozen=True, gc=False):
    """A joker, or a card outside the 52."""


class Disputed(Event, frozen=True, gc=False):
    """Something that the floor decides; `seat` is 0 if it concerns no particular seat."""

    seat: int = 0


class HoleExposed(Disputed, frozen=True, gc=False):
    pass


class HoleUnchecked(Disputed, frozen=True, gc=False):
    """Play continued before the hole card was checked."""


class PlayedOutOfTurn(Disputed, frozen=True, gc=False):
    pass


class InsuranceDisputed(Disputed, frozen=True, gc=False):
    pass


class MisdealCalled(Disputed, frozen=True, gc=False):
    pass


class FloorCalled(Disputed, frozen=True, gc=False):
    pass


class PlayerAbsent(Event, frozen=True, gc=False):
    """The player left, or does not answer."""

    seat: int


class DeviceLost(Event, frozen=True, gc=False):
    """A device is gone or cannot be used."""

    device: Device
    why: str
    behind: bool = False
    """The record ends before events that the device was told are stored: the table is held, at
    whichever step."""


class DeviceBack(Event, frozen=True, gc=False):
    """The device answers again. `agrees`: it is the same one and its counters fit the record."""

    device: Device
    agrees: bool


class CountersAccepted(Event, frozen=True, gc=False):
    """Two people take a device back whose identity or counters do not agree."""

    second: Actor | None = None


class ControllerRestarted(Event, frozen=True, gc=False):
    pass


class FeltConfirmed(Event, frozen=True, gc=False):
    """The cards on the felt are the cards on the screen."""


class FloorRuled(Event, frozen=True, gc=False):
    way: Way
    second: Actor | None = None


class RoundVoided(Event, frozen=True, gc=False):
    reason: str
    second: Actor | None = None
