"""Plays rounds of the games at a whole table: the daemon with simulated devices, and robots.

The screen shows each prompt and its result."""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from itertools import cycle
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from rich import box
from rich.table import Table

from controller.api.contract.view import View
from controller.audit.format.notes import VerifierKey, table_name
from controller.audit.keys import load_table_public
from controller.audit.read.follow import Follower
from controller.audit.read.lookup import first_head
from controller.audit.text import verify_report_lines
from controller.audit.verify import VerifyReport, verify
from controller.commands import print_json
from controller.crash_report import complain
from controller.errors import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_NO, printable
from controller.games import game_of_table
from controller.procedure.model.effects import Prompt, Tell
from controller.sim.play import basic
from controller.table.memory import TableDisplay
from firmware_protocol.device import Draw
from hil.table.demo.cli import GAMES, ROUNDS
from hil.table.demo.terminal import Spectator, Tally, TerminalScreen, pause_before, screen_for
from hil.table.page import Desk, ServedGame, bench_page
from hil.table.robots import (
    ROBOT_TIMEOUT,
    SEATS,
    TABLE_FAULTS,
    Console,
    RandomPlayers,
    Robot,
    RobotOptions,
    SeatClaims,
    SharedRobot,
    fault_text,
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
        self.claims = SeatClaims(plan.seats)
        """Seats and requests of people."""
        self._port = _OPENS
        """Of the daemon's pages: the same for each game."""

    async def run(self) -> None:
        """Play all games; the table is closed at the end if possible.

        Raises DidNotServe, RobotStuck, ApiProblem, Unreachable and UsageProblem."""
        plan, people = self._plan, STAFF if self._plan.page_port is None else STAFF_AND_VISITORS
        async with AsyncExitStack() as stack:
            stage = await stack.enter_async_context(staged(self._folder, people=people))
            desk = Desk(stage, self.claims)
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
        deals = same_standing_bets(example(TABLES[game]))
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
            self.claims.wake()
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
        claims, plan = self.claims, self._plan

        def people(view: View) -> str:
            return "" if plan.page_port is None else people_text(claims, view)

        spectator = Spectator(self._screen, record, screen.view, tally=before, people=people)
        if before is None:
            self.tallies.append(spectator.tally)
        screen.watched.append(spectator.see)
        screen.watched.append(lambda view: claims.wake())
        robot = _DemoRobot(stage, screen, plan, game, spectator, claims)
        desk.playing = ServedGame(screen, robot, url)
        begun, former = time.monotonic() - spectator.tally.seconds, spectator.tally.rounds

        def timed(shown: TableDisplay) -> bool:
            spectator.tally.seconds = time.monotonic() - begun
            if shown.state.hands or shown.state.seats:
                return False
            return self.is_over(spectator.tally.rounds - former, robot, desk)

        claims.next_game = False
        await robot.play(timed, most=1_000_000)
        await robot.act("TableClosed", "two", bank=100_000)

    def is_over(self, rounds: int, robot: SharedRobot, desk: Desk) -> bool:
        """Whether this game is over; never while a person deals."""
        plan, claims = self._plan, self.claims
        if not robot.deals:
            return False
        if plan.rounds is not None:
            return rounds >= plan.rounds
        if claims.next_game:
            return True
        others = len(plan.games) > 1 and robot.alone and not desk.viewers
        return others and rounds >= _ROUNDS_EACH

    def verify(self) -> VerifyReport:
        """Verify the record as `holecard audit verify` does, repeating every decision."""
        record, keys = self._folder / "record", self._folder / "keys"
        name = table_name(first_head(record).snapshot.origin)
        key = VerifierKey(name, load_table_public(keys))
        return verify(record, table_key=key)


class _DemoRobot(SharedRobot):
    """Pauses before each prompt, and causes a fault in the second round."""

    def __init__(
        self,
        stage: Stage,
        console: Console,
        plan: Plan,
        game: str,
        spectator: Spectator,
        claims: SeatClaims,
    ) -> None:
        random = Random(f"{game} {plan.seed}")
        dealt = game_of_table(stage.table)
        behind = dealt.options.cut_behind
        devices = stage.table.equipment.devices
        standing = {} if devices is None else devices.standing
        players = RandomPlayers(
            dealt,
            basic(dealt.name),
            plan.seats,
            random,
            lambda: console.shown.state,
            standing=standing,
        )
        ways = RobotOptions(
            buttons=dealt.buttons,
            dwell_ms=_DWELL_MS if plan.speed else 0,
            seed=random.randrange(1, 2**31),
            cut_at=dealt.decks * 52 - behind if behind else None,
            standing={seat: tuple(bets.items()) for seat, bets in standing.items()},
        )
        super().__init__(stage, console, players, ways, claims)
        self._speed = plan.speed
        self._spectator = spectator
        self._mishap = MISHAPS.get(game)

    async def step(self) -> None:
        shown = self.screen.shown
        prompt = shown.prompt
        if prompt is not None and self._speed and self.deals:
            slower = _WITH_PEOPLE if self.claims.seats else 1.0
            await asyncio.sleep(slower * pause_before(prompt.tell) / self._speed)
        mishap = self._mishap
        if (
            mishap is None
            or prompt is None
            or self.claims.touched
            or not self.alone
            or self._spectator.tally.rounds != 1
            or not mishap.fits(prompt)
        ):
            await super().step()
        else:
            self._mishap = None
            self._spectator.screen.alarm(mishap.words)
            await mishap.does(self)
            await until(lambda: self.screen.shown is not shown, ROBOT_TIMEOUT)


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


def people_text(claims: SeatClaims, view: View) -> str:
    """Who deals, and who sits where."""
    robots = view.dealer is not None and view.dealer.badge == DEALER.badge
    who = "nobody deals" if view.dealer is None else f"{view.dealer.name} deals"
    sitting = ", ".join(map(str, sorted(claims.seats)))
    words = [f"{who} (robot)" if robots else who]
    if sitting:
        words.append(f"people at seat {sitting}")
    if claims.trouble:
        words.append(f"waiting: {claims.trouble}")
    return " - ".join(words)


def same_standing_bets(deals: TableContent) -> TableContent:
    """Each seat's bet button places what that of the first one does."""
    if not deals.standing:
        return deals
    usual = next(iter(deals.standing.values()))
    return replace(deals, standing={str(seat): usual for seat in SEATS})


_START_CODES: Final = (1, 2)
"""Exit codes of a daemon that did not start: a damaged record, or an invalid configuration. The
demo exits with the same code."""


def show(args: argparse.Namespace) -> int:
    """Run the demo and print its summary, also after an interrupt."""
    games = GAMES if args.game == "all" else (args.game,)
    stream = sys.stderr if args.json else sys.stdout
    screen = screen_for(stream, plain=args.plain, quiet=args.json)
    speed, rounds, page = args.speed, args.rounds, args.page_port
    if not screen.watched:
        speed, rounds = 0.0, ROUNDS if rounds is None else rounds
    elif page is None:
        page = _OPENS
    plan = Plan(games, rounds, args.seats, args.seed, speed, page)
    with _folder(args.dir) as folder:
        demo = Demo(plan, screen, folder)
        try:
            interrupted = _run(demo)
        except TABLE_FAULTS as problem:
            screen.stop()
            complain(f"holecard: demo: {fault_text(problem)}")
            code = problem.code if isinstance(problem, DidNotServe) else 0
            return code if code in _START_CODES else EXIT_BROKEN
        finally:
            screen.stop()  # shows the terminal's cursor again
        report = demo.verify() if demo.tallies else None
        if args.json:
            print_json(_as_json(demo.tallies, report, interrupted=interrupted))
        else:
            sum_up(screen, summary_table(demo.tallies, interrupted=interrupted))
            if report is not None:
                screen.line("holecard audit verify:")
                for line in verify_report_lines(report):
                    screen.line(f"  {printable(line)}")
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_NO if report is None or report.code else 0


def _run(demo: Demo) -> bool:
    """Run the demo. Returns whether it was interrupted. Raises UsageProblem and TABLE_FAULTS."""

    async def whole() -> None:
        task = asyncio.current_task()
        assert task is not None
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, task.cancel)
        await demo.run()

    try:
        asyncio.run(whole())
    except (KeyboardInterrupt, asyncio.CancelledError):
        return True
    return False


@contextmanager
def _folder(given: str | None) -> Iterator[Path]:
    if given is not None:
        yield Path(given)
        return
    with TemporaryDirectory(prefix="holecard-demo-") as made:
        yield Path(made)


# --- the summary --------------------------------------------------------------------------------


def summary_table(tallies: list[Tally], *, interrupted: bool) -> Table:
    """Returns a table of wagers, payments and the difference; tokes in other columns."""
    table = Table(box=box.SIMPLE, title_justify="left")
    table.title = "Interrupted: the rounds so far" if interrupted else "All rounds"
    headings = ("rounds", "an hour", "wagers", "paid back", "kept", "tokes", "to dealers")
    for heading in ("", *headings):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for tally in tallies:
        amounts = (
            tally.wagers,
            tally.paid,
            tally.wagers - tally.paid,
            tally.tokes,
            tally.for_dealers,
        )
        written = map(tally.money.amount, amounts)
        table.add_row(tally.table, str(tally.rounds), str(tally.an_hour), *written)
    return table


def sum_up(screen: TerminalScreen, table: Table) -> None:
    if screen.fits(table):
        screen.table(table)
        return
    for line in _as_lines(table):
        screen.line(line)


def _as_lines(table: Table) -> Iterator[str]:
    """Yields one figure a line, for terminals that are too narrow for the table."""
    heads, *columns = table.columns
    yield ""
    yield str(table.title)
    for at, head in enumerate(heads.cells):
        yield f"{head}"
        yield from (f"  {column.header}: {list(column.cells)[at]}" for column in columns)


def _as_json(tallies: list[Tally], report: VerifyReport | None, *, interrupted: bool) -> object:
    return {
        "interrupted": interrupted,
        "games": [msgspec.to_builtins(one) | {"rounds_an_hour": one.an_hour} for one in tallies],
        "verify": None if report is None else {**msgspec.to_builtins(report), "exit": report.code},
    }
