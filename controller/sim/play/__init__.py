"""Simulated rounds: a dealer who follows the procedure, players with a strategy."""

from __future__ import annotations

from controller.sim.play.rounds import (
    ALL_PAID,
    Play,
    PlaySetup,
    RoundRecord,
    RoundStuck,
    Stepper,
    pay,
    voice,
)
from controller.sim.play.strategy import POLICIES, Strategy, basic, load
from controller.sim.play.vault import HoleVault, ScriptVault
from controller.sim.play.wagers import stakes_for

__all__ = [
    "ALL_PAID",
    "POLICIES",
    "HoleVault",
    "Play",
    "PlaySetup",
    "RoundRecord",
    "RoundStuck",
    "ScriptVault",
    "Stepper",
    "Strategy",
    "basic",
    "load",
    "pay",
    "stakes_for",
    "voice",
]
