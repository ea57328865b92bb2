"""A robot that acts as dealer, floor and players of a table.

It reads the prompt, the lamps and the devices, and never a card that lies face down. The table
runs in this process in simulated time, or is served by `holecard serve` behind its API.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, TypeAlias

from msgspec import Struct

from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.felt import on_felt
from controller.procedure.model.row import Refused
from controller.table.memory import TableDisplay
from firmware_protocol.device import Describe, Draw, Load, Press, Put
from hil.table.robots.surroundings import (
    DEVICE_INTERVAL,
    STANDING,
    PlayerChoice,
    TableSurroundings,
    button_of,
    card_of,
    chips,
    lit,
    mechanism,
    wire_name,
)
from hil.table.setup import until

__all__ = [
    "ACTS",
    "ROBOT_TIMEOUT",
    "DealerScreen",
    "MimicPlayers",
    "PlayerChoice",
    "Players",
    "Robot",
    "RobotOptions",
    "RobotStuck",
    "Who",
    "button_of",
    "card_of",
    "lit",
    "mechanism",
    "wire_name",
]

ROBOT_TIMEOUT: Final = 60.0
"""Timeout in seconds for anything that the table or a device does automatically."""
SHUFFLE: Final = 8.0
"""Timeout in seconds for a shuffle."""
_DOOR: Final = 0.1
"""Seconds that putting cards into the shuffler takes."""
Who: TypeAlias = Literal["dealer", "floor", "two"]
"""The dealer; the floor; the floor and a second person."""


class DealerScreen(Protocol):
    """The dealer's screen."""

    @property
    def shown(self) -> TableDisplay: ...
    async def act(self, name: str, fields: Mapping[str, Any], who: Who, /) -> Refused | None:
        """Send an act. Returns the refusal, None if the act was accepted."""

    async def shuffle_again(self) -> None:
        """Request the shuffle again from a shuffler that did not start."""


class Players(Protocol):
    """Decides for the players."""

    def wagers(self) -> list[tuple[int, str, int]]:
        """Returns seat, bet and amount of the next round's wagers; the bet STANDING is placed with
        the seat's button."""

    def choose(self, prompt: Prompt) -> PlayerChoice:
        """Returns the choice of the seat that is asked."""


class RobotStuck(AssertionError):
    """The robot cannot do what the table asks for."""


class RobotOptions(Struct, frozen=True):
    """Options of a robot."""

    buttons: bool = True
    """Whether players press lit buttons; if not, the dealer enters hand signals."""
    dwell_ms: int = 40
    """How long a card takes to be pulled."""
    seed: int = 0
    """For shoes that are loaded in random order."""
    cut_at: int | None = None
    """How many cards lie before the cut card."""
    standing: Mapping[int, tuple[tuple[str, int], ...]] = MappingProxyType({})
    """What the bet button of a seat places, bet by bet."""


USUAL: Final = RobotOptions()


class Robot:
    """Acts as the dealer, the floor and the players of one table."""

    def __init__(
        self,
        place: TableSurroundings,
        screen: DealerScreen,
        players: Players,
        ways: RobotOptions = USUAL,
        *,
        cards: Callable[[], tuple[str, ...]] = tuple,
    ) -> None:
        """`cards`: the order in which the next shoe is loaded; empty: as it is shuffled."""
        self.place = place
        self.screen = screen
        self.players = players
        self.ways = ways
        self.cards = cards
        self.prompts: list[Prompt] = []
        self.repeats: list[Prompt] = []
        """Payments that were shown as repeats."""
        self.refused: list[Refused] = []
        self.pending_wagers: list[tuple[int, str, int]] | None = None
        """Wagers of the next round that are not placed yet."""
        self.loads = 0
        self.face_down: int | None = None
        """Index of the face-down card among the cards drawn since the shoe was loaded."""

    # --- steps ----------------------------------------------------------------------------

    async def play(self, done: Callable[[TableDisplay], bool], *, most: int = 2000) -> None:
        """Answer prompts until `done` returns true. Raises RobotStuck after `most` steps."""
        for _ in range(most):
            shown = self.screen.shown
            if done(shown):
                return
            await self.step()
        raise RobotStuck(f"no end after {most} steps, at {self.screen.shown.prompt}")

    async def step(self) -> None:
        """Answer the current prompt, and wait until the display has changed."""
        await until(lambda: not self.screen.shown.stopped, ROBOT_TIMEOUT)
        shown = self.screen.shown
        prompt = shown.prompt
        assert prompt is not None
        self.prompts.append(prompt)
        if shown.again:
            self.repeats.append(prompt)
        await DOES[prompt.tell](self, prompt)
        await until(lambda: self.screen.shown is not shown, ROBOT_TIMEOUT)

    async def act(self, name: str, who: Who = "dealer", **fields: Any) -> Refused | None:
        refused = await self.screen.act(name, fields, who)
        if refused is not None:
            self.refused.append(refused)
        return refused

    # --- cards ----------------------------------------------------------------------------

    async def draw(self, prompt: Prompt) -> None:
        """Pull a card as soon as the lock is open. A lock that closes late, for the card before,
        keeps the card in the shoe; then the pull is retried."""
        shoe = self.place.shoe
        async with asyncio.timeout(ROBOT_TIMEOUT):
            while True:
                while (inside := mechanism(shoe))["lock"] != "open":
                    if self.screen.shown.prompt != prompt:
                        return  # the prompt has changed
                    await asyncio.sleep(DEVICE_INTERVAL)
                if not inside["left"]:
                    await self.act("ShoeRanOut")
                    return
                if prompt.place == "hole":
                    self.face_down = len(inside["out"])
                shoe.request(self.pull())
                if not await self._stayed_in_shoe(prompt, inside["undrawn"]):
                    return

    def pull(self) -> Draw:
        """Returns how the next card is pulled."""
        return Draw(dwell_ms=self.ways.dwell_ms)

    async def _stayed_in_shoe(self, prompt: Prompt, undrawn: int) -> bool:
        """Whether the pulled card stayed in the shoe and the prompt is unchanged."""
        while self.screen.shown.prompt == prompt:
            inside = self.place.shoe.request(Describe()).get("mechanism")
            if inside is None:
                return False  # it has no power
            if not inside["queued"] and not inside["over_reader"]:
                return bool(inside["undrawn"] > undrawn)
            await asyncio.sleep(DEVICE_INTERVAL)
        return False

    async def load(self, prompt: Prompt) -> None:
        inside = mechanism(self.place.shoe)
        if inside["position"] == 0 and inside["left"] == prompt.count:
            return  # the shoe is loaded already
        names = self.cards()
        self.loads += 1
        self.face_down = None
        seed = self.ways.seed + self.loads
        decks = self.place.decks
        self.place.shoe.request(Load(decks=decks, cards=names, seed=seed, cut_at=self.ways.cut_at))

    async def refill(self, prompt: Prompt) -> None:
        """Load the discards: all cards that came out, except those on the felt. They have the backs
        of the batch that was in the shoe."""
        inside = mechanism(self.place.shoe)
        out: list[str] = list(inside["out"])
        felt = self.screen.shown.state
        if felt.hole and self.face_down is not None:
            del out[self.face_down]
        for card in on_felt(felt):
            if wire_name(card) in out:  # cards of an earlier shoe are not among them
                out.remove(wire_name(card))
        if len(out) != prompt.count:
            raise RobotStuck(f"{prompt.count} discards are wanted, and here lie {len(out)}")
        self.face_down = None
        back = inside["back"]
        self.place.shoe.request(Load(decks=self.place.decks, cards=tuple(out), back=back))

    async def shuffle(self, prompt: Prompt) -> None:
        if self.place.shuffler is not None:
            self.place.shuffler.request(Put(decks=prompt.count))
            await asyncio.sleep(_DOOR)
        await self.act("ShuffleStarted")

    async def shuffled(self, prompt: Prompt) -> None:
        if self.place.shuffler is None:
            await self.act("ShuffleDone")
        else:
            try:
                await until(lambda: self.screen.shown.prompt != prompt, SHUFFLE)
            except TimeoutError:  # the shuffler did not start
                await self.screen.shuffle_again()
                await until(lambda: self.screen.shown.prompt != prompt, SHUFFLE)

    # --- wagers and decisions -------------------------------------------------------------

    async def wager(self, prompt: Prompt) -> None:
        if self.pending_wagers is None:
            self.pending_wagers = self.players.wagers()
        while self.pending_wagers:
            seat, bet, amount = self.pending_wagers.pop(0)
            if bet == STANDING:
                if await self.press_bet(seat):
                    return
                continue
            if amount == chips(self.screen.shown.state, seat, bet):
                continue  # placed before the controller was restarted
            if await self.act("WagerPlaced", seat=seat, bet=bet, amount=amount) is None:
                return
        self.pending_wagers = None
        if prompt.place == "spare":
            await self.act("LaySpare")
        else:
            await self.draw(prompt)

    async def press_bet(self, seat: int) -> bool:
        """Place the seat's standing wager with its button if that is lit, else queue it for the
        dealer. Returns whether a button was pressed."""
        felt = self.screen.shown.state
        missing = [
            one for one in self.ways.standing.get(seat, ()) if chips(felt, seat, one[0]) == 0
        ]
        if not missing:
            return False
        station = self.place.station_of(seat)
        assert self.pending_wagers is not None
        if station is None or not await lit(station, seat, "bet"):
            self.pending_wagers[:0] = [(seat, bet, amount) for bet, amount in missing]
            return False
        if len(missing) > 1:  # each press places one
            self.pending_wagers.insert(0, (seat, STANDING, 0))
        station.request(Press(seat=seat, button="bet"))
        return True

    async def decide(self, prompt: Prompt) -> None:
        while not await self.send_choice(prompt, self.players.choose(prompt)):
            pass  # refused: the players make another choice

    async def send_choice(self, prompt: Prompt, chosen: PlayerChoice) -> bool:
        """Send a choice by the lit button, else through the dealer. Returns if it was accepted."""
        button = button_of(prompt, chosen) if self.ways.buttons else None
        station = self.place.station_of(prompt.seat)
        if station is not None and button is not None and await lit(station, prompt.seat, button):
            station.request(Press(seat=prompt.seat, button=button))
            return True
        choice, amount, seat, hand = chosen
        fields: dict[str, Any] = {"seat": seat or prompt.seat}
        if choice in HANDS:
            fields["hand"] = hand if seat else prompt.hand
        if choice == "insure":
            amount = prompt.amount if amount is None else amount
        if amount is not None:
            fields["amount"] = amount
        return await self.act(ACTS[choice], **fields) is None

    # --- people ---------------------------------------------------------------------------

    async def rule(self, prompt: Prompt) -> None:
        await self.act("FloorRuled", "two", way=prompt.choices[0])

    async def enter(self, prompt: Prompt) -> None:
        """Enter the card that came out last, which the dealer has before them."""
        name = mechanism(self.place.shoe)["out"][-1]
        await self.act("CardEntered", card=card_of(name))

    async def device(self, prompt: Prompt) -> None:
        """Wait for the device; after a timeout two people accept its counters."""
        try:
            await until(lambda: self.screen.shown.prompt != prompt, SHUFFLE)
        except TimeoutError:
            await self.act("CountersAccepted", "two")


HANDS: Final = ("hit", "stand", "double", "split", "surrender", "refuse_card")
ACTS: Final = {
    "hit": "Hit",
    "stand": "Stand",
    "double": "Double",
    "split": "Split",
    "surrender": "Surrender",
    "insure": "Insure",
    "even_money": "EvenMoney",
    "decline": "Decline",
    "take_pay": "PayTaken",
    "decline_pay": "PayDeclined",
    "refuse_card": "SpareRefused",
}


def acting(name: str, who: Who = "dealer", **fields: Any) -> Does:
    async def does(robot: Robot, prompt: Prompt) -> None:
        await robot.act(name, who, **fields)

    return does


Does: TypeAlias = Callable[[Robot, Prompt], Awaitable[None]]

DOES: Final[dict[Tell, Does]] = {
    Tell.OPEN_TABLE: acting("TableOpened", "two", bank=100_000),
    Tell.SHUFFLE: Robot.shuffle,
    Tell.AWAIT_SHUFFLE: Robot.shuffled,
    Tell.CHANGE_DECKS: acting("DecksChanged", "two"),
    Tell.LOAD_SHOE: Robot.load,
    Tell.BURN: Robot.draw,
    Tell.TAKE_WAGERS: Robot.wager,
    Tell.DEAL: Robot.draw,
    Tell.LAY_SPARE: acting("LaySpare"),
    Tell.ASK_NATURAL: Robot.decide,
    Tell.ASK_INSURANCE: Robot.decide,
    Tell.CONFIRM_INSURANCE: acting("Confirmed"),
    Tell.CLOSE_INSURANCE: acting("InsuranceClosed"),
    Tell.CHECK_HOLE: acting("CheckHole"),
    Tell.DECIDE: Robot.decide,
    Tell.CONFIRM_DOUBLE: acting("Confirmed"),
    Tell.CONFIRM_SPLIT: acting("Confirmed"),
    Tell.REVEAL: acting("RevealHole"),
    Tell.PAY: acting("Paid"),
    Tell.COLLECT: acting("Paid"),
    Tell.GIVE_BACK: acting("Paid"),
    Tell.FLOOR_FIRST: acting("PaymentApproved", "floor"),
    Tell.CLEAR: acting("Cleared"),
    Tell.RULE: Robot.rule,
    Tell.ENTER_CARD: Robot.enter,
    Tell.CONFIRM_CARD: acting("CardConfirmed", "floor"),
    Tell.AWAIT_DEVICE: Robot.device,
    Tell.CONFIRM_FELT: acting("FeltConfirmed"),
    Tell.REFILL: Robot.refill,
}


class MimicPlayers:
    """Players who follow the dealer's drawing rule, with the same wagers each round."""

    def __init__(self, *wagers: tuple[int, str, int]) -> None:
        self._wagers = list(wagers)

    def wagers(self) -> list[tuple[int, str, int]]:
        return list(self._wagers)

    def choose(self, prompt: Prompt) -> PlayerChoice:
        for choice in ("take_pay", "decline"):
            if choice in prompt.choices:
                return PlayerChoice(choice)
        return PlayerChoice("hit" if prompt.total < 17 and "hit" in prompt.choices else "stand")
