"""A whole table with its bench page: the daemon, simulated devices, robots, and an HTTP client
of the page without a port."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from controller.games import game_of_table
from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.state import State
from firmware_protocol.device import Answer
from hil.table.demo.demo import TABLES, same_standing_bets
from hil.table.page import Desk, ServedGame
from hil.table.page.app import SECRET_HEADER, Page, application
from hil.table.robots import (
    Console,
    MimicPlayers,
    RobotOptions,
    SeatClaims,
    SharedRobot,
    open_console,
)
from hil.table.robots.robot import card_of
from hil.table.robots.surroundings import mechanism
from hil.table.scripts.shoe import whole_shoe
from hil.table.setup import FEW, GUEST, STAFF, STAFF_AND_VISITORS, Stage, example, staged, until

PORT: Final = 8099
HERE: Final = f"http://127.0.0.1:{PORT}"
SOON: Final = 30.0
QUIET: Final = 0.4
"""Seconds in which robots who do not wait would have done something."""
LOW: Final = ("2c", "3d", "4h", "5s", "6c", "7d", "8h")
"""A shoe without blackjacks and insurance."""


class AtBench(NamedTuple):
    """A person at the bench."""

    stage: Stage
    console: Console
    robot: SharedRobot
    desk: Desk
    page: Page
    http: httpx.AsyncClient

    @property
    def state(self) -> State:
        return self.console.shown.state

    @property
    def prompt(self) -> Prompt:
        found = self.console.shown.prompt
        assert found is not None
        return found

    async def ask(self, what: str, **body: Any) -> tuple[int, dict[str, Any]]:
        """A post of the page's own script."""
        headers = {SECRET_HEADER: self.page.secret, "Origin": HERE, "Sec-Fetch-Site": "same-origin"}
        answer = await self.http.post(f"/{what}", json=body, headers=headers)
        return answer.status_code, answer.json()

    async def done(self, what: str, **body: Any) -> None:
        status, told = await self.ask(what, **body)
        assert (status, told["done"]) == (200, True), told

    async def press(self, seat: int, button: str) -> None:
        fitted = next(one for one, _ in self.stage.devices if seat in one.seats)
        hand = {"do": "press", "seat": seat, "button": button}
        await self.done("hand", device=fitted.serial, hand=hand)

    async def pull(self) -> None:
        """Pull a card as a dealer does, when the lock is open."""
        await until(lambda: self.shoe["lock"] == "open", SOON)
        await self.done("hand", device="SH-1", button="pull")

    async def until_asked(self, tell: Tell, seat: int = 0) -> None:
        await until(
            lambda: self.prompt.tell is tell and (not seat or self.prompt.seat == seat), SOON
        )

    async def until_seen(self, words: str) -> None:
        """Wait until the page shows this text."""
        await until(lambda: words in self.page.table(), SOON)

    async def stays(self) -> None:
        """Assert that neither the prompt, the state nor the shoe changes for QUIET seconds."""
        before = (self.prompt, self.state, len(self.shoe["out"]))
        await asyncio.sleep(QUIET)
        assert (self.prompt, self.state, len(self.shoe["out"])) == before

    async def until(self, done: Callable[[State], bool]) -> None:
        """Run the robots until `done` returns true."""
        await self.robot.play(lambda shown: done(shown.state), most=100_000)

    @asynccontextmanager
    async def dealing(self, done: Callable[[State], bool]) -> AsyncIterator[asyncio.Task[None]]:
        """Run the robots in a task until `done` returns true."""
        task = asyncio.create_task(self.until(done))
        try:
            yield task
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    @property
    def shoe(self) -> Answer:
        return dict(mechanism(self.stage.shoe))


@asynccontextmanager
async def at_bench(folder: Path, game: str, *top: str, robots: int = 2) -> AsyncIterator[AtBench]:
    """`top`: the first cards of the shoe, the burned one first."""
    async with staged(folder, FEW, people=(*STAFF, GUEST)) as stage:
        await stage.serve(same_standing_bets(example(TABLES[game])))
        async with open_console(stage.control) as screen:
            dealt = game_of_table(stage.table)
            claims = SeatClaims(robots)
            players = MimicPlayers(*((seat, "main", 1000) for seat in range(1, robots + 1)))
            ways = RobotOptions(buttons=dealt.buttons, dwell_ms=0, seed=7)
            robot = SharedRobot(stage, screen, players, ways, claims)
            if top:
                robot.cards = lambda: whole_shoe(dealt, tuple(map(card_of, top)))
            screen.watched.append(lambda view: claims.wake())
            desk = Desk(stage, claims)
            desk.playing = ServedGame(screen, robot, None)
            page = Page(desk, STAFF_AND_VISITORS)
            transport = httpx.ASGITransport(application(page, PORT))
            async with httpx.AsyncClient(transport=transport, base_url=HERE) as http:
                yield AtBench(stage, screen, robot, desk, page, http)
        assert await stage.daemon.stop() == 0
