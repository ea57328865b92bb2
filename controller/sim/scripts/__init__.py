"""Scripted rounds: file format, player, expected results."""

from __future__ import annotations

from controller.sim.scripts.cli import (
    ENGINE,
    PlaysScript,
    register_script,
    run_rounds,
    run_scripts,
    usable,
)
from controller.sim.scripts.format import Action, Script, ScriptRound, ScriptSeat
from controller.sim.scripts.results import RoundResult
from controller.sim.scripts.runner import Standing, Watch, play_at

__all__ = [
    "ENGINE",
    "Action",
    "PlaysScript",
    "RoundResult",
    "Script",
    "ScriptRound",
    "ScriptSeat",
    "Standing",
    "Watch",
    "play_at",
    "register_script",
    "run_rounds",
    "run_scripts",
    "usable",
]
