"""The view of a table: one value, the same for every client.

It is made of the display, the device links and the dealer, without I/O. It contains face-up cards,
and only the commitment of a face-down one.
"""

from __future__ import annotations

from functools import reduce
from operator import attrgetter, or_
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import asdict

from controller.people import SignInState
from controller.people import dealer as who_deals
from controller.procedure.model import effects as f
from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.events import Device
from controller.procedure.model.state import Due, Hold, Place, Seat, Shoe, Spare, State, Step
from controller.procedure.prompts import MoneyFormat, say
from controller.rules.cards import Card
from controller.rules.hands import Hand
from controller.rules.money import Amount, Odds
from controller.table.memory import (
    NO_WITNESS,
    SPACE_LEFT,
    SpaceStatus,
    TableDisplay,
    WitnessStatus,
)

EFFECTS: Final[tuple[type[Effect], ...]] = (
    f.Prompt,
    f.Stations,
    f.ShoeLock,
    f.Shuffler,
    f.BankCounted,
    f.WagersLocked,
    f.Settled,
    f.Tucked,
    f.Burned,
    f.Discarded,
    f.DecksOut,
    f.SeatDead,
    f.Told,
    f.Ruled,
    f.RoundVoid,
    f.Corrected,
    f.RoundOver,
)

if TYPE_CHECKING:
    AnyEffect: TypeAlias = Effect
else:  # distinguished by their tag when decoded
    AnyEffect = reduce(or_, EFFECTS)


class PromptShown(Struct, frozen=True, gc=False, tag="Prompt"):
    """The instruction, field by field, and how the dealer reads it. No kind of prompt: what is
    shown is never taken for what the procedure said."""

    tell: Tell
    to: Literal["dealer", "floor"]
    seat: int
    hand: int
    place: str
    why: str
    stake: Amount
    amount: Amount
    odds: Odds | None
    chips: tuple[tuple[int, str], ...]
    choices: tuple[str, ...]
    near: tuple[str, ...]
    cards: tuple[Card, ...]
    total: int
    soft: bool
    count: int
    warn: str
    rule: tuple[str, ...]
    words: str


class StateShown(Struct, frozen=True, gc=False):
    """The procedure's state, field by field. A field that is not listed here is not published, for
    example the count of each card that was seen in this shoe."""

    step: Step
    round: int
    shoe: Shoe
    seats: tuple[Seat, ...]
    hands: tuple[Hand, ...]
    dealer: tuple[Card, ...]
    dealer_total: int
    dealer_soft: bool
    up: int
    hole: str
    checked: bool | None
    places: tuple[Place, ...]
    dealt: int
    turn: int
    legal: int
    verdict: int
    asked: int
    asking: Amount
    due: tuple[Due, ...]
    after: Step
    approved: bool
    won: Amount
    burn: int
    late: int
    quiet: tuple[int, ...]
    spare: Spare | None
    read: Card
    holds: tuple[Hold, ...]
    lost: tuple[str, ...]
    closing: bool


class DealerShown(Struct, frozen=True):
    """Who deals, and at which screen they have signed in."""

    badge: str
    name: str
    screen: str


class DeviceShown(Struct, frozen=True):
    """How a device is linked."""

    device: Device
    serial: str
    state: str
    why: str
    """As text."""
    held: str = ""
    """Why its log waits for two people who adopt it; empty while it does not."""


class RecordShown(Struct, frozen=True):
    """Length of the record, whether a witness has countersigned it lately, and its disk."""

    seq: int
    witnessed: int = 0
    """Records that a witness has countersigned; 0: no cosignature, or not checked yet."""
    unwitnessed: int = 0
    """Since when no witness has countersigned, in microseconds since 1970; 0 while that is not
    long ago. With `witnessed` 0 none ever has."""
    full: str = ""
    """Why the disk has no room for the next segment of the record; empty if it has."""
    minutes: int = 0
    """Minutes of play that can still be recorded then, as an estimate."""


class ClockShown(Struct, frozen=True):
    """The clock when this was made."""

    utc: int
    """Microseconds since 1970."""
    quality: str


class CurrencyShown(Struct, frozen=True):
    """How amounts are written: an amount of 150 with two minor digits is $1.50."""

    symbol: str
    minor_digits: int


class View(Struct, frozen=True):
    """All of it. Cards are numbers from 0 to 51: four suits (clubs, diamonds, hearts, spades) of
    thirteen ranks from the ace up; amounts are in the currency's smallest unit."""

    seq: int
    """The seq of the record that led to this display."""
    table: str
    game: str
    title: str
    currency: CurrencyShown
    step: Step
    prompt: PromptShown | None
    effects: tuple[AnyEffect, ...]
    state: StateShown
    stopped: str
    """Why no event can be recorded; empty if events can be."""
    soon: bool
    """`stopped` is temporary: the controller is starting, or its disk is slow."""
    again: bool
    """The payment was shown before a restart: it may have been made."""
    dealer: DealerShown | None
    devices: tuple[DeviceShown, ...]
    shuffle_problem: str
    """Why the expected shuffle may not have started; empty if it has."""
    by_hand: bool
    """The dealer reports the shuffle, since no shuffler does."""
    record: RecordShown
    clock: ClockShown


class TableIdentity(Struct, frozen=True):
    """What does not change at one table."""

    table: str
    game: str
    title: str
    money: MoneyFormat = MoneyFormat()


class ViewInput(Struct, frozen=True):
    """The input of a view. Equal inputs give equal views, except for the clock."""

    shown: TableDisplay
    dealer: DealerShown | None
    devices: tuple[DeviceShown, ...]
    shuffle_problem: str
    by_hand: bool
    seq: int
    """The seq of the last record."""
    quality: str
    """The quality of the clock."""
    witness: WitnessStatus = NO_WITNESS
    space: SpaceStatus = SPACE_LEFT


_shown: Final = attrgetter(*StateShown.__struct_fields__)


def view_of(named: TableIdentity, stands: ViewInput, utc: int) -> View:
    """Returns the view of this input at this time."""
    shown, money = stands.shown, named.money
    state = shown.state
    return View(
        shown.seq,
        named.table,
        named.game,
        named.title,
        CurrencyShown(money.symbol, money.minor_digits),
        state.step,
        _prompt(shown.prompt, state, money),
        shown.effects,
        StateShown(*_shown(state)),
        shown.stopped,
        shown.soon,
        shown.again,
        stands.dealer,
        stands.devices,
        stands.shuffle_problem,
        stands.by_hand,
        RecordShown(
            stands.seq,
            stands.witness.size,
            stands.witness.since,
            stands.space.problem,
            stands.space.minutes,
        ),
        ClockShown(utc, stands.quality),
    )


def prompt_of(shown: PromptShown) -> Prompt:
    """The prompt that is shown, as the procedure has it."""
    fields = asdict(shown)
    del fields["words"]
    return Prompt(**fields)


def _prompt(prompt: Prompt | None, state: State, money: MoneyFormat) -> PromptShown | None:
    if prompt is None:
        return None
    several = sum(hand.seat == prompt.seat for hand in state.hands) > 1
    return PromptShown(**asdict(prompt), words=say(prompt, money, several=several))


def dealer_of(standing: SignInState) -> DealerShown | None:
    found = who_deals(standing)
    return None if found is None else DealerShown(found.badge, found.name, found.screen)
