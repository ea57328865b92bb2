"""Plays rounds of the games at a whole table: the daemon with simulated devices, and robots.

The screen shows each prompt and its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from itertools import cycle
from pathlib import Path
from random import Random
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from controller.api.contract.view import View
from controller.audit.format.notes import VerifierKey, table_name
from controller.audit.keys import load_table_public
from controller.audit.read.follow import Follower
from controller.audit.read.lookup import first_head
from controller.audit.verify import VerifyReport, verify
from controller.games import game_of_table
from controller.procedure.model.effects import Prompt, Tell
from controller.sim.play import basic
from controller.table.memory import TableDisplay
from firmware_protocol.device import Draw
from hil.table.demo.terminal import Spectator, Tally, TerminalScreen, pause_before
from hil.table.page import Desk, ServedGame, bench_page
from hil.table.robots import (
    ROBOT_TIMEOUT,
    SEATS,
    Console,
    Players,
    RandomPlayers,
    Robot,
    RobotOptions,
    SeatClaims,
    SharedRobot,
    TableSurroundings,
    open_console,
)
from hil.table.setup import (
    DEALER,
    GUEST,
    STAFF,
    STAFF_AND_VISITORS,
    DidNotServe,
    Stage,
    TableContent,
    example,
    staged,
    until,
)

TABLES: Final = {
    "maxtime": "maxtime-1",
    "sf21x": "superfun-1",
    "classic": "blackjack-1",
    "mega": "mega-1",
}
_DWELL_MS: Final = 40
"""Time for which a pulled card is over the reader."""
_ROUNDS_EACH: Final = 3
"""Rounds of a game before the next one, without a limit on rounds."""
_WITH_PEOPLE: Final = 4.0
"""Factor by which a prompt is shown longer if people sit at the table."""
_OPENS: Final = 0
"""Any free port."""


class Plan(Struct, frozen=True):
    """The games, rounds and options of a demo."""

    games: tuple[str, ...]
    rounds: int | None
    """Rounds of each game; None: the games in turn, until interrupted."""
    seats: int
    seed: int
    speed: float
    """Factor of the usual speed; 0: no pauses."""
    page_port: int | None = None
    """Port of the bench page, 0 for any free one; None: no page."""


class Demo:
    """Runs a plan on a screen. `tallies` has the results, also after an interrupt."""

    def __init__(self, plan: Plan, screen: TerminalScreen, folder: Path) -> None:
        self.tallies: list[Tally] = []
        self._plan = plan
        self._screen = screen
        self._folder = folder
        self.company = SeatClaims(plan.seats)
        """Seats and requests of people."""
        self._port = _OPENS
        """Of the daemon's pages: the same for each game."""

    async def run(self) -> None:
        """Play all games; the table is closed at the end if possible.

        Raises DidNotServe, RobotStuck, ApiProblem, Unreachable and UsageProblem."""
        plan, people = self._plan, STAFF if self._plan.page_port is None else STAFF_AND_VISITORS
        async with AsyncExitStack() as stack:
            stage = await stack.enter_async_context(staged(self._folder, people=people))
            desk = Desk(stage, self.company)
            if plan.page_port is not None:
                page = await stack.enter_async_context(bench_page(desk, plan.page_port))
                self._announce(page)
            for game in plan.games if plan.rounds is not None else cycle(plan.games):
                await self._game(stage, desk, game)

    def _announce(self, page: str) -> None:
        """Print the page's address, badges and PINs."""
        line = self._screen.line
        line()
        line(f"Bench page        {page}   the devices from outside, seats to take, faults")
        line()
        for one in STAFF_AND_VISITORS:
            whose = "  the robot dealer's" if one is DEALER else ""
            line(f"  badge {one.badge}  PIN {one.pin}  {', '.join(one.roles)}: {one.name}{whose}")
        line(f"  To deal: sign in at the console as {GUEST.badge}, and relieve the dealer.")

    async def _game(self, stage: Stage, desk: Desk, game: str) -> None:
        deals = everybody_bets(example(TABLES[game]))
        if self._plan.page_port is not None:
            deals = replace(deals, screens=self._port)
        await stage.serve(deals)
        code = 0
        try:
            url = await self._screens(stage) if self._plan.page_port is not None else None
            async with open_console(stage.control) as screen:
                await self._rounds(stage, screen, game, desk, url)
        finally:
            desk.playing = None
            self.company.look()
            if stage.daemon.running:
                code = await stage.daemon.stop()
        if code != 0:
            raise DidNotServe(f"holecard serve: ended with {code}")

    async def _screens(self, stage: Stage) -> str | None:
        url = await stage.daemon.screens()
        if url is None:
            return None
        first = self._port == _OPENS
        self._port = urlsplit(url).port or _OPENS
        if first:
            self._screen.line()
            self._screen.line(f"Dealer's console  {url}")
            self._screen.line(f"Review            {url}review/")
        return url

    async def _rounds(
        self, stage: Stage, screen: Console, game: str, desk: Desk, url: str | None
    ) -> None:
        record = Follower(stage.house.record)
        title = screen.view.title
        before = next((one for one in self.tallies if one.table == title), None)
        company, plan = self.company, self._plan

        def people(view: View) -> str:
            return "" if plan.page_port is None else people_words(company, view)

        spectator = Spectator(self._screen, record, screen.view, tally=before, people=people)
        if before is None:
            self.tallies.append(spectator.tally)
        screen.watched.append(spectator.see)
        screen.watched.append(lambda view: company.look())
        watching = _Watching(self._screen, spectator, game, plan.speed)
        robot = _robot(stage, screen, plan, watching, company)
        desk.playing = ServedGame(screen, robot, url)
        begun, former = time.monotonic() - spectator.tally.seconds, spectator.tally.rounds

        def timed(shown: TableDisplay) -> bool:
            spectator.tally.seconds = time.monotonic() - begun
            if shown.state.hands or shown.state.seats:
                return False
            return self.enough(spectator.tally.rounds - former, robot, desk)

        company.next_game = False
        await robot.play(timed, most=1_000_000)
        await robot.act("TableClosed", "two", bank=100_000)

    def enough(self, rounds: int, robot: SharedRobot, desk: Desk) -> bool:
        """Whether this game is over; never while a person deals."""
        plan, company = self._plan, self.company
        if not robot.deals:
            return False
        if plan.rounds is not None:
            return rounds >= plan.rounds
        if company.next_game:
            return True
        others = len(plan.games) > 1 and robot.alone and not desk.looking
        return others and rounds >= _ROUNDS_EACH

    def verify(self) -> VerifyReport:
        """Verify the record as `holecard audit verify` does, repeating every decision."""
        record, keys = self._folder / "record", self._folder / "keys"
        name = table_name(first_head(record).snapshot.origin)
        key = VerifierKey(name, load_table_public(keys))
        return verify(record, table_key=key)


class _Watched(SharedRobot):
    """Pauses before each prompt, and causes a fault in the second round."""

    def __init__(
        self,
        place: TableSurroundings,
        screen: Console,
        players: Players,
        ways: RobotOptions,
        company: SeatClaims,
        watching: _Watching,
    ) -> None:
        super().__init__(place, screen, players, ways, company)
        self._watching = watching
        self._mishap = MISHAPS.get(watching.game)

    async def step(self) -> None:
        shown, watching = self.screen.shown, self._watching
        prompt = shown.prompt
        if prompt is not None and watching.speed and self.deals:
            slower = _WITH_PEOPLE if self.company.seats else 1.0
            await asyncio.sleep(slower * pause_before(prompt.tell) / watching.speed)
        mishap = self._mishap
        if (
            mishap is None
            or prompt is None
            or self.company.touched
            or not self.alone
            or watching.spectator.tally.rounds != 1
            or not mishap.fits(prompt)
        ):
            await super().step()
        else:
            self._mishap = None
            watching.screen.alarm(mishap.words)
            await mishap.does(self)
            await until(lambda: self.screen.shown is not shown, ROBOT_TIMEOUT)


class _Watching(Struct, frozen=True):
    """Who looks on, at which game, and how fast they like it."""

    screen: TerminalScreen
    spectator: Spectator
    game: str
    speed: float


class Mishap(Struct, frozen=True):
    """Something that goes wrong instead of what the prompt asks for."""

    words: str
    fits: Callable[[Prompt], bool]
    does: Callable[[Robot], Awaitable[object]]


async def _slips(robot: Robot) -> None:
    robot.place.shoe.request(Draw(force=True))


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


def people_words(company: SeatClaims, view: View) -> str:
    """Who deals, and who sits where."""
    robots = view.dealer is not None and view.dealer.badge == DEALER.badge
    who = "nobody deals" if view.dealer is None else f"{view.dealer.name} deals"
    sitting = ", ".join(map(str, sorted(company.seats)))
    words = [f"{who} (robot)" if robots else who]
    if sitting:
        words.append(f"people at seat {sitting}")
    if company.trouble:
        words.append(f"waiting: {company.trouble}")
    return " - ".join(words)


def everybody_bets(deals: TableContent) -> TableContent:
    """Each seat's bet button places what that of the first one does."""
    if not deals.standing:
        return deals
    usual = next(iter(deals.standing.values()))
    return replace(deals, standing={str(seat): usual for seat in SEATS})


def _robot(
    stage: Stage, screen: Console, plan: Plan, watching: _Watching, company: SeatClaims
) -> _Watched:
    random = Random(f"{watching.game} {plan.seed}")
    dealt = game_of_table(stage.table)
    behind = dealt.options.cut_behind
    devices = stage.table.equipment.devices
    standing = {} if devices is None else devices.standing
    guests = RandomPlayers(
        dealt,
        basic(dealt.name),
        plan.seats,
        random,
        lambda: screen.shown.state,
        standing=standing,
    )
    ways = RobotOptions(
        buttons=dealt.buttons,
        dwell_ms=_DWELL_MS if plan.speed else 0,
        seed=random.randrange(1, 2**31),
        cut_at=dealt.decks * 52 - behind if behind else None,
        standing={seat: tuple(bets.items()) for seat, bets in standing.items()},
    )
    return _Watched(stage, screen, guests, ways, company, watching)
