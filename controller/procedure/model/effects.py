"""Effects of a decision: prompts, lamps, locks, and facts for the record.

Prompts, lamps and locks are absolute, so that showing them again is idempotent. Facts report what
has happened and drive nothing.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

from msgspec import Struct

from controller.procedure.model.state import Outcome
from controller.rules.cards import Card
from controller.rules.money import Amount, Odds


class Effect(Struct, frozen=True, gc=False, tag=True, omit_defaults=True):
    """What follows from an event. Fields that have their default are not encoded."""


class Tell(Enum):
    """What a prompt asks of whom. The words are in `words`."""

    OPEN_TABLE = "open_table"
    SHUFFLE = "shuffle"
    AWAIT_SHUFFLE = "await_shuffle"
    CHANGE_DECKS = "change_decks"
    LOAD_SHOE = "load_shoe"
    BURN = "burn"
    TAKE_WAGERS = "take_wagers"
    DEAL = "deal"
    LAY_SPARE = "lay_spare"
    ASK_NATURAL = "ask_natural"
    ASK_INSURANCE = "ask_insurance"
    CONFIRM_INSURANCE = "confirm_insurance"
    CLOSE_INSURANCE = "close_insurance"
    CHECK_HOLE = "check_hole"
    DECIDE = "decide"
    CONFIRM_DOUBLE = "confirm_double"
    CONFIRM_SPLIT = "confirm_split"
    REVEAL = "reveal"
    PAY = "pay"
    COLLECT = "collect"
    GIVE_BACK = "give_back"
    FLOOR_FIRST = "floor_first"
    CLEAR = "clear"
    RULE = "rule"
    ENTER_CARD = "enter_card"
    CONFIRM_CARD = "confirm_card"
    AWAIT_DEVICE = "await_device"
    CONFIRM_FELT = "confirm_felt"
    REFILL = "refill"

    __hash__ = object.__hash__


class Prompt(Effect, frozen=True, gc=False):
    """One instruction. Which fields are filled depends on `tell`."""

    tell: Tell
    to: Literal["dealer", "floor"] = "dealer"
    seat: int = 0
    hand: int = -1
    place: str = ""
    """Where the next card goes."""
    why: str = ""
    stake: Amount = 0
    amount: Amount = 0
    odds: Odds | None = None
    chips: tuple[tuple[int, str], ...] = ()
    choices: tuple[str, ...] = ()
    near: tuple[str, ...] = ()
    """What one more card can make of the hand."""
    cards: tuple[Card, ...] = ()
    total: int = 0
    soft: bool = False
    count: int = 0
    warn: str = ""
    rule: tuple[str, ...] = ()
    """The clauses of the game's sheet that ask for it."""


Lamp: TypeAlias = Literal["dark", "turn", "asked", "accepted", "won", "attention", "fault"]


class Stations(Effect, frozen=True, gc=False):
    """Every station's buttons and lamp: those not named are disarmed and dark."""

    armed: tuple[tuple[int, tuple[str, ...]], ...] = ()
    lamps: tuple[tuple[int, Lamp], ...] = ()


class ShoeLock(Effect, frozen=True, gc=False):
    """The shoe is to be locked or open."""

    locked: bool = True


class Shuffler(Effect, frozen=True, gc=False):
    """The shuffler is to have `decks` in work; 0: nothing."""

    decks: int = 0


class Fact(Effect, frozen=True, gc=False):
    pass


class BankCounted(Fact, frozen=True, gc=False):
    """Counted and counted again, both counts the same."""

    bank: Amount
    by: str
    second: str


class WagersLocked(Fact, frozen=True, gc=False):
    """A round has begun: no wager may change. `total`: all wagers that lie on the felt."""

    round: int
    total: Amount
    cap: Amount | None = None
    """The house's cap on a round's winnings, shown before the first card; it cuts no payment."""


class Settled(Fact, frozen=True, gc=False):
    """A hand or a bet is settled: paid, collected or given back."""

    round: int
    seat: int
    hand: int
    bet: str
    outcome: Outcome
    odds: Odds | None
    stake: Amount
    returned: Amount
    why: str
    instant: bool
    """Before the hole card was turned over."""
    cards: tuple[Card, ...] = ()


class Tucked(Fact, frozen=True, gc=False):
    """The busted hand's cards lie face up under the seat's live Buster wager."""

    seat: int
    hand: int
    cards: tuple[Card, ...]


class Burned(Fact, frozen=True, gc=False):
    """A card was burned."""

    card: Card = -1
    """Its face where it was seen."""


class Discarded(Fact, frozen=True, gc=False):
    """A card went to the discard rack unused. `card` is -1 if its face was not seen."""

    card: Card = -1


class DecksOut(Fact, frozen=True, gc=False):
    """The decks go out of play."""


class SeatDead(Fact, frozen=True, gc=False):
    """A seat is out of the round; its wagers go back."""

    seat: int


class Told(Fact, frozen=True, gc=False):
    """The floor or surveillance is notified of an irregularity."""

    who: Literal["floor", "surveillance"]
    what: str
    seat: int = 0
    detail: str = ""


class Ruled(Fact, frozen=True, gc=False):
    """The floor, or the jurisdiction, has ruled on an irregularity."""

    what: str
    way: str
    by: str
    second: str = ""


class RoundVoid(Fact, frozen=True, gc=False):
    """The round is void: what is not settled goes back."""

    round: int
    reason: str
    by: str
    second: str


class Corrected(Fact, frozen=True, gc=False):
    """A wrong payment was corrected."""

    round: int
    seat: int
    hand: int
    bet: str
    paid: Amount
    due: Amount
    by: str
    second: str


class RoundOver(Fact, frozen=True, gc=False):
    """The round is over: the felt is clear."""

    round: int
    won: Amount
