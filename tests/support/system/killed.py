"""Deals a shoe to its end while the daemon is killed repeatedly.

The robot's answers depend on the prompts only, and the cards are fixed: so the final record must
equal that of a daemon that was not killed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

from msgspec.structs import asdict

from controller.audit.errors import RecordProblem
from controller.audit.format.records import Record
from controller.audit.format.segments import numbers
from controller.audit.read.follow import Follower
from controller.audit.read.reader import records
from controller.audit.replay import DecisionData, decode_decision
from controller.audit.verify import verify
from controller.games import game_of_table
from controller.procedure.model import events
from controller.procedure.model.effects import Prompt, Settled
from controller.procedure.model.events import Event
from controller.procedure.model.row import Refused
from controller.procedure.model.state import State, Step
from controller.table.memory import TableDisplay
from controller.table.memory.display import PAYMENTS
from hil.table.robots import (
    ROBOT_TIMEOUT,
    ApiProblem,
    Console,
    Robot,
    RobotOptions,
    Unreachable,
    open_console,
)
from hil.table.robots.robot import Who, card_of
from hil.table.scripts.shoe import whole_shoe
from hil.table.setup import FEW, DidNotServe, Stage, example, staged, until
from tests.support.table.simulated.serving import SPLITTING, Policy

TABLES: Final = {
    "classic": "blackjack-1",
    "maxtime": "maxtime-1",
    "mega": "mega-1",
    "sf21x": "superfun-1",
}
ROUNDS: Final = 3
SOON: Final = 1.5
"""Seconds after a start within which it is killed at any instant."""
RECORDS: Final = 40
"""Approximate length of a start, before the play."""
_LOOK: Final = 0.001
_BESIDE: Final = (
    events.ControllerRestarted,
    events.FeltConfirmed,
    events.DeviceLost,
    events.DeviceBack,
)
"""Records that a restart of the controller adds."""
_OTHERWISE: Final = frozenset({"actor", "second", "commitment", "opening"})
"""What is not the same in each run: who said it, and what binds a card."""


class Scene:
    """A stage with the robots that played there, one per start of the daemon."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.robots: list[Robot] = []
        self.hesitates = False
        """Wait for the prompt of a payment, without paying."""


Kill: TypeAlias = Callable[[Scene], Awaitable[None]]
"""Returns at the instant at which the daemon is to die."""


# --- when it dies -----------------------------------------------------------------------------


def at_decision(number: int) -> Kill:
    """When so many events of the play have been recorded since the start."""

    async def wait(scene: Scene) -> None:
        count = 0
        async for record in _written(scene.stage):
            count += record.kind == "decision" and is_play(decode_decision(record))
            if count >= number:
                return

    return wait


def at_record(number: int) -> Kill:
    """When so many records have been written since the start."""

    async def wait(scene: Scene) -> None:
        count = 0
        async for _ in _written(scene.stage):
            count += 1
            if count >= number:
                return

    return wait


def at_instant(seconds: float) -> Kill:
    """Kill it this long after the start, in any state."""

    async def wait(scene: Scene) -> None:
        await asyncio.sleep(seconds)

    return wait


def at_payment() -> Kill:
    """When a payment is shown, and before it is made."""

    async def wait(scene: Scene) -> None:
        former = len(scene.robots)
        scene.hesitates = True
        try:
            await until(lambda: _sees_payment(scene.robots[former:]), ROBOT_TIMEOUT)
        finally:
            scene.hesitates = False

    return wait


def _sees_payment(robots: Sequence[Robot]) -> bool:
    return any(one.prompts and one.prompts[-1].tell in PAYMENTS for one in robots)


def first_of(*kills: Kill) -> Kill:
    """At the one that comes first."""

    async def wait(scene: Scene) -> None:
        waiting = [asyncio.ensure_future(kill(scene)) for kill in kills]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    return wait


async def _written(stage: Stage) -> AsyncIterator[Record]:
    """What is written from now on, as soon as it is on the disk."""
    following = await _following(stage.house.record)
    while True:
        for told in following.more():
            yield told.record
        await asyncio.sleep(_LOOK)


async def _following(record: Path) -> Follower:
    """From the end of the record on, or from its beginning once it has one."""
    while True:
        with suppress(RecordProblem):  # no record exists yet
            if numbers(record):
                return Follower(record)
        await asyncio.sleep(_LOOK)


# --- what is played ---------------------------------------------------------------------------


class Ended(NamedTuple):
    """What a shoe came to."""

    state: State
    played: list[dict[str, object]]
    """Event by event, what was recorded of the play."""
    settled: list[Settled]
    kills: int
    findings: list[str]
    repeats: list[Prompt]
    """Payments that were said to be repeats."""
    unsaid: list[Prompt]
    """Payments that were shown before a kill and again after it, as if for the first time."""


async def dealt(folder: Path, game: str, kills: Iterable[Kill] = ()) -> Ended:
    """The rounds of this game, through as many of these deaths as there is time for."""
    async with staged(folder, FEW) as stage:
        stage.write(example(TABLES[game]))
        scene = Scene(stage)
        died = 0
        for kill in kills:
            if not await _until_killed(scene, kill):
                break  # all was dealt before
            died += 1
        state = await _to_the_end(scene)
        assert await stage.daemon.stop() == 0
    made = decisions(folder / "record")
    report = verify(folder / "record")
    return Ended(
        state,
        [plain(one.event) for one in made],
        [effect for one in made for effect in one.effects if isinstance(effect, Settled)],
        died,
        [str(finding) for finding in report.findings],
        [prompt for robot in scene.robots for prompt in robot.repeats],
        list(unsaid(scene.robots)),
    )


def over(shown: TableDisplay) -> bool:
    s = shown.state
    return s.round == ROUNDS and s.step is Step.WAGERING and not s.seats


async def _to_the_end(scene: Scene) -> State:
    await scene.stage.daemon.start()
    async with open_console(scene.stage.control) as screen:
        scene.robots.append(Hesitant(scene, screen))
        await scene.robots[-1].play(over)
        return screen.shown.state


async def _until_killed(scene: Scene, kill: Kill) -> bool:
    """Whether it died; what was to be killed after the end of the play is not."""
    stage, struck = scene.stage, False

    async def strike() -> None:
        nonlocal struck
        await until(lambda: stage.daemon.running, ROBOT_TIMEOUT)
        await kill(scene)
        struck = True
        await stage.daemon.kill()

    async def play() -> None:
        await _to_the_end(scene)

    playing, striking = asyncio.create_task(play()), asyncio.create_task(strike())
    try:
        await asyncio.wait((playing, striking), return_when=asyncio.FIRST_COMPLETED)
        if striking.done():
            await striking
            playing.cancel()
        try:
            await playing
        except (asyncio.CancelledError, ApiProblem, DidNotServe, Unreachable):
            if not struck:
                raise  # not killed by this test
        await asyncio.wait((striking,), timeout=0 if not struck else None)
    finally:
        for task in (playing, striking):
            task.cancel()
            with suppress(asyncio.CancelledError, ApiProblem, DidNotServe, Unreachable):
                await task
    if not struck:
        assert await stage.daemon.stop() == 0
    return struck


class Hesitant(Robot):
    """Deals the shoe. Whether a payment is made at once, the scene says."""

    def __init__(self, scene: Scene, screen: Console) -> None:
        game = game_of_table(scene.stage.table)
        top = SPLITTING if game.options.burn.on_shuffle else SPLITTING[1:]
        shoe = whole_shoe(game, tuple(map(card_of, top)))
        ways = RobotOptions(buttons=game.buttons, dwell_ms=0)
        super().__init__(scene.stage, screen, Policy(), ways, cards=lambda: shoe)
        self._scene = scene

    async def act(self, name: str, who: Who = "dealer", **fields: Any) -> Refused | None:
        if self.prompts[-1].tell in PAYMENTS:
            await until(lambda: not self._scene.hesitates, ROBOT_TIMEOUT)
        return await super().act(name, who, **fields)


# --- the record -------------------------------------------------------------------------------


def decisions(record: Path) -> list[DecisionData]:
    """Of the play."""
    every = [decode_decision(one) for _, one in records(record) if one.kind == "decision"]
    return [one for one in every if is_play(one)]


def is_play(made: DecisionData) -> bool:
    return not isinstance(made.event, _BESIDE)


def plain(event: Event) -> dict[str, object]:
    """What is the same in each run."""
    fields = {key: value for key, value in asdict(event).items() if key not in _OTHERWISE}
    return {"event": type(event).__name__, **fields}


def unsaid(robots: Sequence[Robot]) -> Iterator[Prompt]:
    """A payment that a session ended with, and the next one begins with."""
    for former, later in pairwise(robots):
        last = former.prompts[-1] if former.prompts else None
        first = next((one for one in later.prompts if one.tell in PAYMENTS), None)
        if first is not None and first == last and first not in later.repeats:
            yield first


# --- chance -----------------------------------------------------------------------------------


def by_chance(random: Random, most: int) -> Kill:
    """At any instant, or at any record; after so many events of the play at the latest."""
    if random.random() < 0.5:
        kill = at_instant(random.random() * SOON)
    else:
        kill = at_record(random.randrange(1, RECORDS))
    return first_of(kill, at_decision(most))
