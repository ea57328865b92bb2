"""A table that is served in simulated time, with everybody at it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from controller.audit.replay import decode_decision
from controller.audit.verify import verify
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.state import State, Step
from controller.table.running import RunningTable
from firmware_protocol.device import ShufflePace
from hil.table.robots import Players, Robot
from hil.table.robots.robot import card_of
from hil.table.scripts.shoe import whole_shoe
from tests.support.drivers.simulated import simulate
from tests.support.table.simulated.killing import Policy
from tests.support.table.simulated.simulated_table import AtTable, Room, ready, room


class Served(NamedTuple):
    """A room, the table that is served there, and who is at it."""

    room: Room
    table: RunningTable
    robot: Robot

    @property
    def state(self) -> State:
        return self.table.shown.state

    def at(self, *steps: Step) -> bool:
        return self.table.shown.state.step in steps

    async def to(self, done: Callable[[State], bool]) -> None:
        await self.robot.play(lambda shown: done(shown.state))

    async def to_step(self, step: Step) -> None:
        await self.to(lambda s: s.step is step)

    async def to_end(self) -> None:
        """The round is over."""
        number = self.state.round
        await self.to(lambda s: s.step is Step.WAGERING and s.round >= number and not s.seats)

    def events(self) -> list[Event]:
        return [decode_decision(record.data).event for record in self.room.records("decision")]

    def data(self, kind: str) -> list[dict[str, Any]]:
        return [msgspec.json.decode(record.data) for record in self.room.records(kind)]

    def whats(self, kind: str) -> list[str]:
        return [str(data["what"]) for data in self.data(kind)]


@asynccontextmanager
async def served(made: Room, players: Players | None = None, *top: str) -> AsyncIterator[Served]:
    """`top`: the first cards of the shoe, the burned one first."""
    if made.shuffler is not None and made.shuffler.stand.powered:
        made.shuffler.request(ShufflePace(shuffle_ms=20))
    table = made.serve()
    async with table:
        await ready(table)
        robot = Robot(made, AtTable(table), players or Policy(), cards=lambda: whole(made, top))
        yield Served(made, table, robot)


@asynccontextmanager
async def serving(
    folder: Path,
    game: Game | str = "classic",
    *top: str,
    players: Players | None = None,
    **options: Any,
) -> AsyncIterator[Served]:
    async with room(folder, game, **options) as made, served(made, players, *top) as one:
        yield one


def whole(made: Room, top: tuple[str, ...]) -> tuple[str, ...]:
    """A whole shoe that begins so; empty: as the maker shuffles it."""
    return whole_shoe(made.game, tuple(map(card_of, top))) if top else ()


def run(main: Coroutine[Any, Any, None]) -> None:
    simulate(main)


def right(made: Room) -> None:
    """The record stands by itself: every decision is what the rules make, every card opens."""
    report = verify(made.record)
    found = [finding.what for finding in report.findings]
    assert found == [], found
