"""A whole table, its pages in a browser, and a robot that deals there as a person would."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, Literal

from msgspec.structs import replace
from playwright.async_api import Browser, ConsoleMessage, Page

from controller.audit.read.reader import records
from controller.audit.replay import decode_decision
from controller.games import game_of_table
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State, Step
from firmware_protocol.device import ControlRequest, Describe, Draw
from hil.simulator import LiveDevice
from hil.table.robots import ROBOT_TIMEOUT, Api, Console, MimicPlayers, Robot, RobotOptions
from hil.table.robots.console import watched
from hil.table.robots.robot import Who, card_of, mechanism
from hil.table.scripts.shoe import whole_shoe
from hil.table.setup import FEW, GUEST, STAFF, Stage, TableContent, example, staged, until
from tests.support.screens.browser.page import Keys, PageDealer, Touch, chromium, page_at
from tests.support.table.simulated.telling import DEAL, Choosing

How = Literal["touch", "keys"]
TABLES: Final = {
    "classic": "blackjack-1",
    "maxtime": "maxtime-1",
    "mega": "mega-1",
    "sf21x": "superfun-1",
}
_WAGERS: Final = {
    "classic": ((1, "main", 2500), (4, "main", 5000)),
    "maxtime": ((1, "main", 2500), (4, "main", 5000)),
    "mega": ((1, "main", 2500), (1, "buster", 500), (4, "main", 5000)),
    "sf21x": ((1, "main", 2500), (4, "main", 5000)),
}


class Watcher(Console):
    """A screen that looks whenever it wants to know."""

    async def look(self) -> None:
        self.see(await self._screen.table())


def _ring(device: LiveDevice) -> Mapping[str, Any]:
    found: Mapping[str, Any] = device.request(Describe())
    return found


class AtTable:
    """Who deals at the page."""

    def __init__(
        self, stage: Stage, browser: Browser, watcher: Watcher, page: Page, how: How, game: str
    ) -> None:
        self.stage = stage
        self.browser = browser
        self.watcher = watcher
        self.page = page
        self.how = how
        self.wrong: list[str] = []
        """What pages said to their consoles, and failed of."""
        self.listen(page)
        self.dealer = self.hands_at(page)
        self.robot = Robot(
            stage, self.dealer, MimicPlayers(*_WAGERS[game]), RobotOptions(seed=3, dwell_ms=0)
        )

    def seen_by(self, watcher: Watcher) -> None:
        """The daemon was begun again."""
        self.watcher = self.dealer.watcher = watcher

    def hands_at(self, page: Page) -> PageDealer:
        """Somebody at another page."""
        return PageDealer(page, Touch(page) if self.how == "touch" else Keys(page), self.watcher)

    @property
    def stands(self) -> State:
        return self.watcher.shown.state

    def listen(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.wrong.append(f"failed: {error}"))

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.wrong.append(f"{message.type}: {message.text}")

    async def open(self) -> None:
        """The dealer is signed in, the table is open, and wagers may be placed."""
        await self.dealer.sign_in()
        await self.robot.play(lambda shown: shown.state.step is Step.WAGERING)

    async def round(self) -> None:
        """To its end, and on to the next wagers."""
        number = self.stands.round
        await self.robot.play(lambda shown: shown.state.round > number and _between(shown.state))

    # --- what a story tells -----------------------------------------------------------------

    async def to(self, done: Callable[[State], bool]) -> None:
        await self.robot.play(lambda shown: done(shown.state))

    async def to_step(self, step: Step) -> None:
        await self.to(lambda s: s.step is step)

    async def to_deal(self, dealt: int) -> None:
        """So many cards of the deal lie on the felt."""
        await self.to(lambda s: s.step is Step.DEALING and s.dealt == dealt)

    async def to_card(self, seat: int) -> None:
        """The seat in turn has asked for a card."""
        await self.to(lambda s: s.step is Step.HAND_CARD and s.hands[s.turn].seat == seat)

    async def to_end(self) -> None:
        """The round is over, and wagers are taken again."""
        await self.to(_between)
        await self.to(lambda s: s.step is Step.WAGERING and not s.seats)

    async def says(self, name: str, who: Who = "dealer", **fields: Any) -> None:
        """Somebody does it at the page, and it is taken."""
        refused = await self.robot.act(name, who, **fields)
        assert refused is None, (name, fields, refused)
        await self.dealer.caught_up()

    async def refused(self, name: str, who: Who = "dealer", **fields: Any) -> Refused:
        found = await self.dealer.act(name, fields, who)
        assert found is not None, (name, fields)
        return found

    async def shows(self, *words: str) -> None:
        """The page says all of this."""
        said = ""
        try:
            async with asyncio.timeout(ROBOT_TIMEOUT):
                while not said or not all(one in said for one in words):
                    said = (await self.dealer.words()).lower()
        except TimeoutError:
            raise AssertionError(f"{said!r} is shown, and not all of {words}") from None

    async def entered(self, card: str) -> None:
        """The dealer reads the card from the felt, wrongly first; the floor looks too."""
        await self.says("CardEntered", card=card_of("Ks" if card != "Ks" else "2c"))
        await self.shows("confirm the card that was entered")
        await self.says("CardRejected", "floor")
        await self.says("CardEntered", card=card_of(card))
        await self.says("CardConfirmed", "floor")

    async def draws(self, **draw: Any) -> None:
        """A card is pulled as soon as the shoe lets one out, and is heard of."""
        shoe = self.stage.shoe
        await until(lambda: mechanism(shoe)["lock"] == "open", ROBOT_TIMEOUT)
        self.robot.pending_wagers = (
            None if self.stands.step is Step.WAGERING else self.robot.pending_wagers
        )
        await self.heard(shoe, Draw(dwell_ms=0, **draw))

    async def forces(self, **draw: Any) -> None:
        """A card is pulled out of a shoe that is locked."""
        shoe = self.stage.shoe
        await until(lambda: mechanism(shoe)["lock"] == "locked", ROBOT_TIMEOUT)
        await self.heard(shoe, Draw(dwell_ms=0, force=True, **draw))

    async def heard(self, device: LiveDevice, hand: ControlRequest) -> None:
        """A hand at a device, of which the table has taken notice."""
        head = _ring(device)["head"]
        device.request(hand)
        await until(lambda: head < _ring(device)["head"] == _ring(device)["acked"], ROBOT_TIMEOUT)
        await self.watcher.look()

    @property
    def out(self) -> str:
        """The card that came out last."""
        return str(mechanism(self.stage.shoe)["out"][-1])

    async def fresh(
        self,
        top: tuple[str, ...],
        wagers: tuple[tuple[int, str, int], ...],
        plan: Mapping[int, str],
    ) -> None:
        """A shuffle is called, and a shoe with these cards on top is loaded and burned from."""
        game = game_of_table(self.stage.table)
        burned = ("2c", "3c", "4c")[: game.options.burn.on_shuffle]
        cards = whole_shoe(game, tuple(map(card_of, (*burned, *top)))) if top else ()
        self.robot.cards = lambda: cards
        self.robot.players = Choosing(wagers, plan)
        self.robot.pending_wagers, loads = None, self.robot.loads
        if self.stands.step is Step.WAGERING:
            await self.says("ShuffleCalled")
        await self.to(lambda s: s.step is Step.WAGERING and self.robot.loads > loads)


def _between(s: State) -> bool:
    return s.step is Step.WAGERING and not s.hands


def dealt_at(game: str, options: Mapping[str, object], port: int) -> TableContent:
    deals = example(TABLES[game])
    return replace(deals, screens=port, options={**deals.options, **options})


@asynccontextmanager
async def watching(stage: Stage) -> AsyncIterator[Watcher]:
    """What the API shows everybody, from now on; every device is ready."""
    async with Api(stage.control) as api:
        screen = await api.open("watcher")
        async with watched(Watcher(screen, await screen.table())) as watcher:
            yield watcher


@asynccontextmanager
async def at_table(
    folder: Path,
    game: str = "classic",
    how: How = "touch",
    *,
    size: str = "usual",
    options: Mapping[str, object] | None = None,
    port: int = 0,
) -> AsyncIterator[AtTable]:
    """`options`: instead of those of the example table, by dotted path; `port`: of the pages, 0:
    any one."""
    async with (
        chromium() as browser,
        staged(folder / "house", FEW, name="pages", people=(*STAFF, GUEST)) as stage,
    ):
        await stage.serve(dealt_at(game, options or {}, port))
        url = await stage.daemon.screens()
        assert url is not None
        async with watching(stage) as watcher:
            yield AtTable(
                stage,
                browser,
                watcher,
                await page_at(browser, url, size, touch=how == "touch"),
                how,
                game,
            )
        assert await stage.daemon.stop() == 0


def decided(record: Path) -> Counter[str]:
    """How often each kind of event was decided."""
    every = (decode_decision(one) for _, one in records(record) if one.kind == "decision")
    return Counter(type(made.event).__name__ for made in every)


TWO: Final = ((1, "main", 2500), (2, "main", 2500))


async def says(page: Page) -> str:
    return await page.inner_text("#instruction")


async def is_killed(table: AtTable, step: Step) -> None:
    """The page finds the table again by itself, asks for the felt, and goes on from the same step.
    The table has pages at a port of its own."""
    await table.fresh((*DEAL, "9d"), TWO, {1: "hit"})
    await table.to_step(step)
    await table.dealer.caught_up()
    words, stood = await says(table.page), table.stands
    before = decided(table.stage.house.record)
    table.wrong.clear()
    await table.stage.daemon.kill()
    await table.page.locator("#banner").wait_for()
    assert "Connection lost" in await table.page.inner_text("#banner")
    await table.stage.daemon.start()
    async with watching(table.stage) as watcher:
        table.seen_by(watcher)
        # Its session ended with the controller: it says so, and asks to be loaded again.
        await table.page.locator("#banner button").tap()
        await table.page.wait_for_selector("#sign-in")
        await table.dealer.sign_in(relieve=True)
        await table.shows("compare the felt with the screen", "controller restarted")
        await table.says("FeltConfirmed")
        assert (await says(table.page), table.stands.hands) == (words, stood.hands)
        assert await table.page.locator("#again").count() == (step is Step.PAYING)
        await table.to_end()
    made = decided(table.stage.house.record) - before
    assert (made["Hit"], made["FeltConfirmed"]) == (step is Step.TURN, 1)
