"""Robots that see what people see: dealer, players."""

from __future__ import annotations

from hil.table.robots.api_client import PREFIX, Api, ApiProblem, Screen, Unreachable
from hil.table.robots.console import TABLE_FAULTS, Console, fault_text, open_console, state_of
from hil.table.robots.players import RandomPlayers
from hil.table.robots.robot import (
    ROBOT_TIMEOUT,
    MimicPlayers,
    PlayerChoice,
    Players,
    Robot,
    RobotOptions,
    RobotStuck,
    wire_name,
)
from hil.table.robots.shared import ASKING, SEATS, SeatClaims, SharedRobot
from hil.table.robots.surroundings import BUTTONS, HandledDevice, TableSurroundings, card_of

__all__ = [
    "ASKING",
    "BUTTONS",
    "PREFIX",
    "ROBOT_TIMEOUT",
    "SEATS",
    "TABLE_FAULTS",
    "Api",
    "ApiProblem",
    "Console",
    "HandledDevice",
    "MimicPlayers",
    "PlayerChoice",
    "Players",
    "RandomPlayers",
    "Robot",
    "RobotOptions",
    "RobotStuck",
    "Screen",
    "SeatClaims",
    "SharedRobot",
    "TableSurroundings",
    "Unreachable",
    "card_of",
    "fault_text",
    "open_console",
    "state_of",
    "wire_name",
]
