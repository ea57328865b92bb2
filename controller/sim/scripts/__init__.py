"""Scripted rounds: file format, runner, expected results."""

from __future__ import annotations

from controller.sim.scripts.command import (
    ENGINE,
    OverFailed,
    PlaysScript,
    run_rounds,
    run_scripts,
    usable,
)
from controller.sim.scripts.format import Script, ScriptAction, ScriptRound, ScriptSeat
from controller.sim.scripts.runner import RoundResult, RoundWatcher, ScriptStart, play_at

__all__ = [
    "ENGINE",
    "OverFailed",
    "PlaysScript",
    "RoundResult",
    "RoundWatcher",
    "Script",
    "ScriptAction",
    "ScriptRound",
    "ScriptSeat",
    "ScriptStart",
    "play_at",
    "run_rounds",
    "run_scripts",
    "usable",
]
