"""A round that is dealt whatever dies: the controller is killed at a record, begun again, and
everybody goes on from what is shown."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.errors import DiskFull
from controller.audit.replay import decode_decision
from controller.audit.verify import verify
from controller.procedure.model.effects import Prompt, Settled
from controller.procedure.model.state import State, Step
from controller.table.memory import TableDisplay
from drivers.devices import LinkState
from firmware_protocol.device import ShufflePace
from hil.table.robots import Robot
from hil.table.robots.robot import card_of
from hil.table.scripts.shoe import whole_shoe
from tests.support.drivers.simulated import simulate, stopped
from tests.support.table.simulated.serving import AtTable, Policy, Room, Served, ready, room

SHOE: Final = ("2c", "6c", "8d", "Ah", "5d", "8h", "7s", "Tc", "3c", "9h", "Td")
"""One is burned. Seat 1 doubles eleven, seat 2 splits eights and doubles one of them, the dealer
has an ace up and eighteen."""


class Ended(NamedTuple):
    """What a round came to."""

    state: State
    settled: list[Settled]
    groups: int
    """How often something was recorded."""
    paid: list[int]
    """The groups in which a payment was confirmed."""
    kinds: list[str]
    findings: list[str]
    repeats: list[Prompt]


def dealt(folder: Path, game: str, kill: int = -1, *, before: bool = False) -> Ended:
    """A round of this game. `kill`: the group of records at which the controller dies; `before`
    it is written, or after."""
    return simulate(_dealt(folder, game, kill, before=before))


async def _dealt(folder: Path, game: str, kill: int, *, before: bool) -> Ended:
    async with room(folder, game) as made:
        assert made.shuffler is not None
        made.shuffler.request(ShufflePace(shuffle_ms=20))
        robots: list[Robot] = []
        made.kill(kill, before=before)
        first = asyncio.create_task(_session(made, robots))
        died = asyncio.create_task(made.died())
        await asyncio.wait((first, died), return_when=asyncio.FIRST_COMPLETED)
        if died.done():
            made.cut_cables()
            await stopped(first)
            made.spare()
            await _session(made, robots)
        else:
            await stopped(died)
            await first
        return ended(made, robots)


async def _session(made: Room, robots: list[Robot]) -> None:
    table = made.serve()
    async with table:
        await ready(table)
        robots.append(Robot(made, AtTable(table), Policy(), cards=lambda: _shoe(made)))
        await robots[-1].play(_over)
        made.last = table.shown.state


def _over(shown: TableDisplay) -> bool:
    state = shown.state
    return state.step is Step.WAGERING and state.round == 1 and not state.holds


def _shoe(made: Room) -> tuple[str, ...]:
    top = SHOE if made.game.options.burn.on_shuffle else SHOE[1:]
    return whole_shoe(made.game, tuple(map(card_of, top)))


def ended(made: Room, robots: list[Robot]) -> Ended:
    decisions = [decode_decision(record.data) for record in made.records("decision")]
    effects = [effect for one in decisions for effect in one.effects]
    report = verify(made.record)
    return Ended(
        made.last,
        [effect for effect in effects if isinstance(effect, Settled)],
        made.books[0].appended,
        made.books[0].paid,
        [record.kind for record in made.records()],
        [finding.what for finding in report.findings],
        [prompt for robot in robots for prompt in robot.repeats],
    )


ROOMLESS = DiskFull("here", "no room", "free some")
CARDS = ("2c", "6c", "8d", "9h", "5d", "Th", "7s", "Tc", "3c", "9s", "Td")


def is_ready(one: Served, serial: str) -> bool:
    return one.table.supervisor(serial).state is LinkState.READY
