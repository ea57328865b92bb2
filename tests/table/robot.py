"""Everybody at a simulated table. They see what the table shows, the lamps and the devices before
them, and nothing else: no state, no card that lies face down.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

from controller.procedure.effects import Prompt, Tell
from controller.procedure.row import Refused
from controller.rules.cards import NAMES, Card
from controller.table.items import Done
from controller.table.running import RunningTable
from controller.table.shown import Shown
from hil.device.hands import Draw, Load, Press, Put
from tests.drivers.simulated import until
from tests.table.simulated_table import DEALER, FLOOR, SECOND, Place, mechanism

PATIENCE: Final = 60.0
"""Simulated seconds for anything that is to come by itself."""
SHUFFLE: Final = 8.0
"""The same for a shuffle."""
BUTTONS: Final = {
    "insure": "yes",
    "even_money": "yes",
    "take_pay": "yes",
    "decline": "no",
    "decline_pay": "no",
}


class Said(NamedTuple):
    """What a player wants."""

    choice: str
    amount: int | None = None
    seat: int = 0
    """0: the seat that is asked, for the hand that is."""
    hand: int = 0


class Players(Protocol):
    """What the players do."""

    def wagers(self) -> list[tuple[int, str, int]]:
        """Of the next round: seat, bet, amount."""

    def says(self, prompt: Prompt) -> Said:
        """What somebody wants who is asked."""


class Stuck(AssertionError):
    """The table wants something that nobody here does."""


class Robot:
    """Dealer, floor and players of one table, in one person."""

    def __init__(
        self,
        room: Place,
        table: RunningTable,
        players: Players,
        *,
        cards: Callable[[], tuple[str, ...]] = tuple,
        buttons: bool = True,
    ) -> None:
        """`cards`: the order in which the next shoe is loaded; empty: as the shuffler leaves it.
        `buttons`: players press them where they light up; else the dealer enters hand signals."""
        self.room = room
        self.table = table
        self.players = players
        self.cards = cards
        self.buttons = buttons
        self.prompts: list[Prompt] = []
        self.repeats: list[Prompt] = []
        """Payments that were said to be repeats."""
        self.refused: list[Refused] = []
        self.waiting: list[tuple[int, str, int]] | None = None
        """Wagers of the next round that are not placed yet."""
        self.loads = 0

    # --- going on -------------------------------------------------------------------------

    async def play(self, done: Callable[[Shown], bool], *, most: int = 2000) -> None:
        """Does what is shown until this is so."""
        for _ in range(most):
            shown = self.table.shown
            if done(shown):
                return
            await self.step(shown)
        raise Stuck(f"no end after {most} steps, at {self.table.shown.prompt}")

    async def step(self, shown: Shown) -> None:
        await until(lambda: not self.table.shown.stopped, PATIENCE)
        shown = self.table.shown
        prompt = shown.prompt
        assert prompt is not None
        self.prompts.append(prompt)
        if shown.again:
            self.repeats.append(prompt)
        await DOES[prompt.tell](self, prompt)
        await until(lambda: self.table.shown is not shown, PATIENCE)

    async def act(self, name: str, actor: Any = DEALER, second: Any = None, **fields: Any) -> Done:
        done = await self.table.act({"type": name, **fields}, actor, second=second)
        answer = done.answered[0].answer
        if isinstance(answer, Refused):
            self.refused.append(answer)
        return done

    def prompts_of(self, tell: Tell) -> list[Prompt]:
        return [prompt for prompt in self.prompts if prompt.tell is tell]

    # --- cards ----------------------------------------------------------------------------

    async def draw(self, prompt: Prompt) -> None:
        """Pulls a card as soon as the shoe lets one out."""
        async with asyncio.timeout(PATIENCE):
            while mechanism(self.room.shoe)["lock"] != "open":
                await asyncio.sleep(0.005)
        self.room.shoe.hand(Draw())

    async def load(self, prompt: Prompt) -> None:
        inside = mechanism(self.room.shoe)
        if inside["position"] == 0 and inside["left"] == prompt.count:
            return  # they lie in it already
        names = self.cards()
        self.loads += 1
        if names:
            self.room.shoe.hand(Load(decks=self.room.game.decks, cards=names))
        else:
            self.room.shoe.hand(Load(decks=self.room.game.decks, seed=self.loads))

    async def refill(self, prompt: Prompt) -> None:
        """The discards are all cards but those that lie on the felt."""
        out = list(mechanism(self.room.shoe)["out"])
        felt = self.felt()
        discards = [name for name in out if not felt or not _taken(felt, name)]
        assert len(discards) == prompt.count
        self.room.shoe.hand(Load(decks=self.room.game.decks, cards=tuple(discards)))

    def felt(self) -> list[str]:
        raise NotImplementedError

    async def shuffle(self, prompt: Prompt) -> None:
        if self.room.shuffler is not None:
            self.room.shuffler.hand(Put(decks=prompt.count))
            await asyncio.sleep(0.1)
        await self.act("ShuffleStarted")

    async def shuffled(self, prompt: Prompt) -> None:
        if self.room.shuffler is None:
            await self.act("ShuffleDone")
        else:
            try:
                await until(lambda: self.table.shown.prompt != prompt, SHUFFLE)
            except TimeoutError:  # it stands still: somebody has looked
                await self.table.shuffle_again(DEALER)
                await until(lambda: self.table.shown.prompt != prompt, SHUFFLE)

    # --- wagers and decisions -------------------------------------------------------------

    async def wager(self, prompt: Prompt) -> None:
        if self.waiting is None:
            self.waiting = self.players.wagers()
        if self.waiting:
            seat, bet, amount = self.waiting.pop(0)
            done = await self.act("WagerPlaced", seat=seat, bet=bet, amount=amount)
            if isinstance(done.answered[0].answer, Refused):
                await self.wager(prompt)
            return
        self.waiting = None
        if prompt.place == "spare":
            await self.act("LaySpare")
        else:
            await self.draw(prompt)

    async def decide(self, prompt: Prompt) -> None:
        choice, amount, seat, hand = self.players.says(prompt)
        button = BUTTONS.get(choice, choice)
        if self.buttons and not seat and amount is None and await self.lit(prompt.seat, button):
            assert self.room.station is not None
            self.room.station.hand(Press(seat=prompt.seat, button=button))  # type: ignore[arg-type]
            return
        fields: dict[str, Any] = {"seat": seat or prompt.seat}
        if choice in HANDS:
            fields["hand"] = hand if seat else prompt.hand
        if choice == "insure":
            amount = prompt.amount if amount is None else amount
        if amount is not None:
            fields["amount"] = amount
        done = await self.act(ACTS[choice], **fields)
        if isinstance(done.answered[0].answer, Refused):
            await self.decide(prompt)

    async def lit(self, seat: int, button: str) -> bool:
        """Whether the button lights up, soon."""
        if self.room.station is None:
            return False
        try:
            async with asyncio.timeout(0.5):
                while not self._may_press(seat, button):
                    await asyncio.sleep(0.005)
        except TimeoutError:
            return False
        return True

    def _may_press(self, seat: int, button: str) -> bool:
        assert self.room.station is not None
        lit = mechanism(self.room.station)["seats"][str(seat)]
        return button in lit["armed"] and button not in lit["down"]

    # --- people ---------------------------------------------------------------------------

    async def rule(self, prompt: Prompt) -> None:
        await self.act("FloorRuled", FLOOR, SECOND, way=prompt.choices[0])

    async def enter(self, prompt: Prompt) -> None:
        """The card that came out last lies before the dealer."""
        name = mechanism(self.room.shoe)["out"][-1]
        await self.act("CardEntered", card=card_of(name))

    async def device(self, prompt: Prompt) -> None:
        """Somebody else sees to it; where nobody does, two people take it as it is."""
        try:
            await until(lambda: self.table.shown.prompt != prompt, SHUFFLE)
        except TimeoutError:
            await self.act("CountersAccepted", FLOOR, SECOND)


HANDS: Final = ("hit", "stand", "double", "split", "surrender")
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


def says(name: str, actor: Any = DEALER, second: Any = None, **fields: Any) -> Does:
    async def does(robot: Robot, prompt: Prompt) -> None:
        await robot.act(name, actor, second, **fields)

    return does


Does = Callable[[Robot, Prompt], Awaitable[None]]

DOES: Final[dict[Tell, Does]] = {
    Tell.OPEN_TABLE: says("TableOpened", FLOOR, SECOND, bank=100_000),
    Tell.SHUFFLE: Robot.shuffle,
    Tell.AWAIT_SHUFFLE: Robot.shuffled,
    Tell.CHANGE_DECKS: says("DecksChanged", FLOOR, SECOND),
    Tell.LOAD_SHOE: Robot.load,
    Tell.BURN: Robot.draw,
    Tell.TAKE_WAGERS: Robot.wager,
    Tell.DEAL: Robot.draw,
    Tell.LAY_SPARE: says("LaySpare"),
    Tell.ASK_NATURAL: Robot.decide,
    Tell.ASK_INSURANCE: Robot.decide,
    Tell.CONFIRM_INSURANCE: says("Confirmed"),
    Tell.CLOSE_INSURANCE: says("InsuranceClosed"),
    Tell.CHECK_HOLE: says("CheckHole"),
    Tell.DECIDE: Robot.decide,
    Tell.CONFIRM_DOUBLE: says("Confirmed"),
    Tell.CONFIRM_SPLIT: says("Confirmed"),
    Tell.REVEAL: says("RevealHole"),
    Tell.PAY: says("Paid"),
    Tell.COLLECT: says("Paid"),
    Tell.GIVE_BACK: says("Paid"),
    Tell.FLOOR_FIRST: says("PaymentApproved", FLOOR),
    Tell.CLEAR: says("Cleared"),
    Tell.RULE: Robot.rule,
    Tell.ENTER_CARD: Robot.enter,
    Tell.CONFIRM_CARD: says("CardConfirmed", FLOOR),
    Tell.AWAIT_DEVICE: Robot.device,
    Tell.CONFIRM_FELT: says("FeltConfirmed"),
    Tell.REFILL: Robot.refill,
}


class Mimics:
    """Players who do as the dealer does, for the same wager each time."""

    def __init__(self, *wagers: tuple[int, str, int]) -> None:
        self._wagers = list(wagers)

    def wagers(self) -> list[tuple[int, str, int]]:
        return list(self._wagers)

    def says(self, prompt: Prompt) -> Said:
        for choice in ("take_pay", "decline"):
            if choice in prompt.choices:
                return Said(choice)
        return Said("hit" if prompt.total < 17 and "hit" in prompt.choices else "stand")


def card_of(name: str) -> Card:
    """A card as hands name it."""
    return NAMES.index(name.upper())


def wire_name(card: Card) -> str:
    """As hands name it."""
    name = NAMES[card]
    return name[0] + name[1].lower()


def _taken(felt: list[str], name: str) -> bool:
    """Whether it is one of those on the felt, which is counted off then."""
    if name in felt:
        felt.remove(name)
        return True
    return False
