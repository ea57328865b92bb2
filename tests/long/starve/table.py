"""A whole table in a process of its own, which stays at a step until it is told to go on:

    python -m tests.long.starve.table FOLDER

Prints a line of JSON at each step, and goes on after each line of its stdin.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from controller.games import game_of_table
from controller.procedure.model.state import Step
from controller.table.memory import TableDisplay
from hil.table.robots import Robot, RobotOptions, open_console
from hil.table.robots.robot import card_of
from hil.table.scripts.shoe import whole_shoe
from hil.table.setup import Stage, example, staged
from tests.support.table.simulated.serving import SPLITTING, Policy

EXAMPLE: Final = "blackjack-1"
IDLE, IN_ROUND, DONE = "idle", "in round", "done"


def _before_round(number: int) -> Callable[[TableDisplay], bool]:
    def reached(shown: TableDisplay) -> bool:
        s = shown.state
        return s.round >= number - 1 and s.step is Step.WAGERING and not s.seats

    return reached


async def _play(stage: Stage) -> None:
    await stage.serve(example(EXAMPLE))
    game = game_of_table(stage.table)
    shoe = whole_shoe(game, tuple(map(card_of, SPLITTING)))
    async with open_console(stage.control) as screen:
        ways = RobotOptions(buttons=game.buttons, dwell_ms=0)
        robot = Robot(stage, screen, Policy(), ways, cards=lambda: shoe)
        await robot.play(_before_round(2))
        await _stay(IDLE, stage)
        await robot.play(lambda shown: shown.state.step is Step.TURN)
        await _stay(IN_ROUND, stage)
        await robot.play(_before_round(3))
    code = await stage.daemon.stop()
    _tell(DONE, code=code, told=stage.daemon.notifications)


async def _stay(step: str, stage: Stage) -> None:
    _tell(step, pid=stage.daemon.pid)
    await asyncio.to_thread(sys.stdin.readline)


def _tell(step: str, **fields: object) -> None:
    print(json.dumps({"step": step, **fields}), flush=True)


async def main(folder: Path) -> None:
    async with staged(folder) as stage:
        await _play(stage)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
