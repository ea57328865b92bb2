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
    stakes_for,
    voice,
)
from controller.sim.play.shoe import HoleVault, ScriptVault
from controller.sim.play.strategy import POLICIES, Strategy, basic, load

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
