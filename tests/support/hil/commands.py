"""Runs subcommands of hil in this process, and lists what a simulated device leaves behind."""

from __future__ import annotations

from pathlib import Path

from controller.commands import load_handler, parse
from hil.conform.runs import register as register_conform
from hil.simulator.cli import register as register_sim


def sim(*arguments: str | Path) -> int:
    """Run `holecard sim`. Raises UsageProblem."""
    parsed = parse(["sim", *map(str, arguments)], register_sim)
    return load_handler(parsed)(parsed)


def conform(*arguments: str | Path) -> int:
    """Run `holecard conform`. Raises UsageProblem."""
    parsed = parse(["conform", *map(str, arguments)], register_conform)
    return load_handler(parsed)(parsed)


def left_in(place: Path) -> set[str]:
    """The files in a device's folder that do not belong to the device itself."""
    own = {"identity.toml", "in-use", "kept", "mechanism", "ring", "host"}
    return {path.name for path in place.iterdir()} - own
