"""Rounds of the games at a whole table, for people to look on: the daemon deals with simulated
devices, robots play, and whoever watches sees each prompt and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from controller.audit.following import Following
from controller.audit.heads import first_head
from controller.audit.keys import load_table_public
from controller.audit.notes import VerifierKey
from controller.audit.signing import table_name
from controller.audit.verify import Report, Verification
from controller.procedure.effects import Prompt, Tell
from controller.sim.games import game_of_table
from controller.sim.strategy import basic
from controller.table.shown import Shown
from hil.device.hands import Draw
from hil.table.before import Place, until
from hil.table.console import Console, console
from hil.table.daemon import DidNotServe
from hil.table.guests import Guests
from hil.table.robot import PATIENCE, DealerScreen, Players, Robot, Ways
from hil.table.screen import Screen, pause_before
from hil.table.spectator import Spectator, Tally
from hil.table.stage import Stage, staged
from hil.table.table_file import example

TABLES: Final = {
    "maxtime": "maxtime-1",
    "sf21x": "superfun-1",
    "classic": "blackjack-1",
    "mega": "mega-1",
}
_DWELL_MS: Final = 40
"""How long somebody takes to pull a card."""


class Plan(Struct, frozen=True):
    """What is shown."""

    games: tuple[str, ...]
    rounds: int
    seats: int
    seed: int
    speed: float
    """Times as fast as people like to watch; 0: nobody waits."""


class Demo:
    """A plan, played on a screen. What came of it stands here, also when it was broken off."""

    def __init__(self, plan: Plan, screen: Screen, folder: Path) -> None:
        self.tallies: list[Tally] = []
        self._plan = plan
        self._screen = screen
        self._folder = folder

    async def run(self) -> None:
        """Whatever ends it, the table is closed in good order if it can be. DidNotServe, Stuck,
        ApiProblem, Unreachable, UsageProblem."""
        async with staged(self._folder) as stage:
            for game in self._plan.games:
                await self._game(stage, game)

    async def _game(self, stage: Stage, game: str) -> None:
        await stage.serve(example(TABLES[game]))
        code = 0
        try:
            async with console(stage.control) as screen:
                await self._rounds(stage, screen, game)
        finally:
            if stage.daemon.running:
                code = await stage.daemon.stop()
        if code != 0:
            raise DidNotServe(f"holecard serve: ended with {code}")

    async def _rounds(self, stage: Stage, screen: Console, game: str) -> None:
        record = Following(stage.house.record)
        spectator = Spectator(self._screen, record, screen.view)
        self.tallies.append(spectator.tally)
        screen.watched.append(spectator.see)
        watching = _Watching(self._screen, spectator, game, self._plan.speed)
        robot = _robot(stage, screen, self._plan, watching)
        begun = time.monotonic()

        def timed(shown: Shown) -> bool:
            spectator.tally.seconds = time.monotonic() - begun
            return spectator.tally.rounds >= self._plan.rounds and not shown.state.hands

        await robot.play(timed, most=1_000_000)
        await robot.act("TableClosed", "two", bank=100_000)

    def verify(self) -> Report:
        """What `holecard audit verify` says of the record: every decision made again."""
        record, keys = self._folder / "record", self._folder / "keys"
        name = table_name(first_head(record).snapshot.origin)
        key = VerifierKey(name, load_table_public(keys))
        verification = Verification(record, table_key=key)
        for _ in verification:
            continue
        return verification.report


class _Watched(Robot):
    """Leaves whoever watches the time to read, and has something go wrong in the second round."""

    def __init__(
        self, place: Place, screen: DealerScreen, players: Players, ways: Ways, watching: _Watching
    ) -> None:
        super().__init__(place, screen, players, ways)
        self._watching = watching
        self._mishap = MISHAPS.get(watching.game)

    async def step(self) -> None:
        shown, watching = self.screen.shown, self._watching
        prompt = shown.prompt
        if prompt is not None and watching.speed:
            await asyncio.sleep(pause_before(prompt.tell) / watching.speed)
        mishap = self._mishap
        if (
            mishap is None
            or prompt is None
            or watching.spectator.tally.rounds != 1
            or not mishap.fits(prompt)
        ):
            await super().step()
        else:
            self._mishap = None
            watching.screen.alarm(mishap.words)
            await mishap.does(self)
            await until(lambda: self.screen.shown is not shown, PATIENCE)


class _Watching(Struct, frozen=True):
    """Who looks on, at which game, and how fast they like it."""

    screen: Screen
    spectator: Spectator
    game: str
    speed: float


class Mishap(Struct, frozen=True):
    """Something that goes wrong instead of what the prompt asks for."""

    words: str
    fits: Callable[[Prompt], bool]
    does: Callable[[Robot], Awaitable[object]]


async def _slips(robot: Robot) -> None:
    robot.place.shoe.hand(Draw(force=True))


MISHAPS: Final = {
    "sf21x": Mishap(
        "A card that nobody asked for slips out of the locked shoe, face down.",
        lambda prompt: prompt.tell is Tell.DECIDE,
        _slips,
    ),
    "classic": Mishap(
        "A seat was passed over: the dealer calls a misdeal.",
        lambda prompt: prompt.tell is Tell.DEAL and prompt.seat > 0 and prompt.count == 2,
        lambda robot: robot.act("MisdealCalled"),
    ),
}
"""In the second round of a game. A misdeal is void, and another round follows."""


def _robot(stage: Stage, screen: Console, plan: Plan, watching: _Watching) -> Robot:
    random = Random(f"{watching.game} {plan.seed}")
    dealt = game_of_table(stage.table)
    behind = dealt.options.cut_behind
    guests = Guests(dealt, basic(dealt.name), plan.seats, random, lambda: screen.shown.state)
    ways = Ways(
        buttons=dealt.buttons,
        dwell_ms=_DWELL_MS if plan.speed else 0,
        seed=random.randrange(1, 2**31),
        cut_at=dealt.decks * 52 - behind if behind else None,
    )
    return _Watched(stage, screen, guests, ways, watching)
