"""The state of a table: one frozen value, a fold over the events.

It contains the face-up cards, the wagers and whose turn it is. Of the hole card it has only the
commitment and the one bit of the check.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.rules.cards import Card
from controller.rules.hands import Hand
from controller.rules.irregularities import Irregularity, Way
from controller.rules.money import Amount, Odds


class Step(Enum):
    """The current step. Steps of PASSING continue automatically; all others wait for an event."""

    CLOSED = "closed"
    SHUFFLE_NEEDED = "shuffle_needed"
    SHUFFLING = "shuffling"
    LOADING = "loading"
    BURNING = "burning"
    WAGERING = "wagering"
    DEALING = "dealing"
    NATURALS = "naturals"
    INSURANCE = "insurance"
    INSURANCE_CONFIRM = "insurance_confirm"
    INSURANCE_CLOSE = "insurance_close"
    CHECK = "check"
    TURN = "turn"
    DOUBLE_CONFIRM = "double_confirm"
    SPLIT_CONFIRM = "split_confirm"
    HAND_CARD = "hand_card"
    DEALER_LATE = "dealer_late"
    REVEAL = "reveal"
    DEALER_CARD = "dealer_card"
    PAYING = "paying"
    CLEARING = "clearing"
    HELD = "held"
    CARD_ENTRY = "card_entry"
    CARD_CONFIRM = "card_confirm"
    DEVICE = "device"
    FELT = "felt"
    REFILL = "refill"
    RELIEF_BURN = "relief_burn"

    AFTER_DEAL = "after_deal"
    OFFER = "offer"
    NEXT_ASKED = "next_asked"
    AFTER_CHECK = "after_check"
    NEXT_HAND = "next_hand"
    EVALUATE = "evaluate"
    DEALER_EVALUATE = "dealer_evaluate"
    PAID_UP = "paid_up"
    NEXT_ROUND = "next_round"
    RULING = "ruling"
    RESUMING = "resuming"

    # Members are singletons: hashing them by identity is several times faster than by name.
    __hash__ = object.__hash__


PASSING: Final = (
    Step.AFTER_DEAL,
    Step.OFFER,
    Step.NEXT_ASKED,
    Step.AFTER_CHECK,
    Step.NEXT_HAND,
    Step.EVALUATE,
    Step.DEALER_EVALUATE,
    Step.PAID_UP,
    Step.NEXT_ROUND,
    Step.RULING,
    Step.RESUMING,
)
WAITING: Final = tuple(step for step in Step if step not in PASSING)
"""In the order of play; rows that fire at every step list the steps in it."""

PlaceKind: TypeAlias = Literal["hand", "up", "hole", "dealer", "burn"]


class Place(Struct, frozen=True, gc=False):
    """Where the next card goes. `turn` is the index into the state's hands, -1 for the dealer."""

    kind: PlaceKind
    seat: int = 0
    hand: int = 0
    turn: int = -1


class Seat(Struct, frozen=True, gc=False):
    """A seat's wagers on the felt. A bet that is settled is gone, main and insurance are 0."""

    number: int
    main: Amount = 0
    """The main wager as it was placed."""
    bets: tuple[tuple[str, Amount], ...] = ()
    """Side bets and tokens that lie on the felt: name and amount."""
    insurance: Amount = 0
    """The insurance wager."""
    answer: Literal["", "insured", "even_money", "declined"] = ""
    """The seat's answer to the insurance offer."""

    def amount(self, bet: str) -> Amount:
        """The amount of a bet by its name; 0 if there is none."""
        for name, amount in self.bets:
            if name == bet:
                return amount
        if bet == "main":
            return self.main
        return self.insurance if bet == "insurance" else 0

    def with_amount(self, bet: str, amount: Amount) -> Seat:
        """Returns the seat with another amount of a bet; 0 takes it off the felt."""
        if bet == "main":
            return replace(self, main=amount)
        if bet == "insurance":
            return replace(self, insurance=amount)
        bets = {**dict(self.bets), bet: amount}
        return replace(self, bets=tuple((name, one) for name, one in bets.items() if one))


Outcome: TypeAlias = Literal[
    "blackjack",
    "even_money",
    "instant21",
    "instant6",
    "win",
    "lose",
    "push",
    "surrender",
    "void",
]


class Due(Struct, frozen=True, gc=False):
    """One payment, collection or return that the dealer is to make."""

    seat: int
    turn: int
    """The hand's index into the state's hands; -1 for a side bet."""
    hand: int
    """The hand's number at its seat; -1 for a side bet."""
    bet: str
    outcome: Outcome
    odds: Odds | None
    stake: Amount
    returned: Amount
    """Stake and winnings paid to the player."""
    why: str
    cards: tuple[Card, ...] = ()
    floor: bool = False
    """The floor must see it first."""

    @property
    def moves(self) -> Amount:
        """The amount that the dealer moves: winnings paid, a wager collected or given back."""
        if self.returned > self.stake:
            return self.returned - self.stake
        return self.returned or self.stake


class Shoe(Struct, frozen=True, gc=False):
    """The shoe since its last shuffle."""

    loaded: bool = False
    rounds: int = 0
    """Rounds dealt since the shuffle."""
    rounds_left: int = -1
    """Rounds that may still start after the cut card is out; -1 before."""
    decks_out: bool = False
    """The decks are out of play: they may not come back."""


class Spare(Struct, frozen=True, gc=False):
    """A card beside the shoe that must be the next one used."""

    commitment: str = ""
    card: Card = -1
    """Its face, or -1 if it was not seen."""
    exposed: bool = False
    """It was seen out of turn: players may refuse it."""
    entered: bool = False
    """It lies on its place already; the floor has confirmed what it is."""


class Hold(Struct, frozen=True, gc=False):
    """An irregularity that stopped the procedure, and the step at which to continue."""

    what: Irregularity
    back: Step
    chosen: Way | None = None
    """None: the floor has yet to rule."""
    options: tuple[Way, ...] = ()
    seat: int = 0
    card: Card = -1
    commitment: str = ""
    detail: str = ""
    device: str = ""
    """The missing device."""
    by: str = ""
    """Who entered the card."""
    ruled_by: str = ""
    ruled_with: str = ""
    """Who ruled, and the second person; empty where the jurisdiction did."""


class State(Struct, frozen=True, gc=False, tag_field="format", tag=2):
    """The state after a decision, in the form of this number; the first form has none."""

    step: Step = Step.CLOSED
    round: int = 0
    shoe: Shoe = Shoe()
    seen: int = 0
    """How often each card of this shoe was seen, four bits a card; used to find duplicates only."""
    seats: tuple[Seat, ...] = ()
    hands: tuple[Hand, ...] = ()
    dealer: tuple[Card, ...] = ()
    """The dealer's cards that lie face up, in the order of the hand."""
    dealer_total: int = 0
    dealer_soft: bool = False
    up: int = 0
    """The value of the dealer's up card; 0 without one."""
    hole: str = ""
    """The commitment of the hole card while it lies face down."""
    checked: bool | None = None
    """The result of the check; None before it, or if there is none."""
    places: tuple[Place, ...] = ()
    dealt: int = 0
    """How many of `places` have their card."""
    turn: int = 0
    """The hand in turn, an index into `hands`."""
    legal: int = 0
    """The choices of the hand in turn."""
    verdict: int = 0
    """The verdict of the last card on the hand in turn."""
    asked: int = 0
    """The seat that is asked, an index into `seats`."""
    asking: Amount = 0
    """The chips of a requested insurance or double, until the dealer confirms them."""
    due: tuple[Due, ...] = ()
    after: Step = Step.CLEARING
    """The next step when nothing is due any more."""
    approved: bool = False
    """The floor has seen the first payment due."""
    won: Amount = 0
    """Winnings paid in this round."""
    burn: int = 0
    """Cards still to burn."""
    late: int = 0
    """Cards that the dealer missed and receives after the players."""
    quiet: tuple[int, ...] = ()
    """Seats that decide and draw no more this round: their hands stand."""
    spare: Spare | None = None
    read: Card = -1
    """The hole card as the dealer read it from the felt and the floor confirmed it."""
    holds: tuple[Hold, ...] = ()
    lost: tuple[str, ...] = ()
    """Devices that are disconnected."""
    closing: bool = False


OPEN = tuple(step for step in Step if step in WAITING and step is not Step.CLOSED)
"""Every step of an open table that waits for something."""


def elsewhere(*taken: Step) -> tuple[Step, ...]:
    """Returns the waiting steps but these."""
    return tuple(step for step in WAITING if step not in taken)
