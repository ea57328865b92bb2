"""Robots that see what people see: dealer, players."""

from __future__ import annotations

from hil.table.robots.api_client import PREFIX, Api, ApiProblem, Screen, Unreachable
from hil.table.robots.console import Console, console, state_of
from hil.table.robots.players import Guests
from hil.table.robots.robot import PATIENCE, Mimics, Players, Robot, Said, Stuck, Ways, wire_name
from hil.table.robots.seats import SEATS, Company
from hil.table.robots.shared import ASKING, Shared
from hil.table.robots.surroundings import Place, Touched
from hil.table.robots.text import BUTTONS, card_of

__all__ = [
    "ASKING",
    "BUTTONS",
    "PATIENCE",
    "PREFIX",
    "SEATS",
    "Api",
    "ApiProblem",
    "Company",
    "Console",
    "Guests",
    "Mimics",
    "Place",
    "Players",
    "Robot",
    "Said",
    "Screen",
    "Shared",
    "Stuck",
    "Touched",
    "Unreachable",
    "Ways",
    "card_of",
    "console",
    "state_of",
    "wire_name",
]
