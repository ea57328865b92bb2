"""Runs subcommands of hil in this process, and lists what a simulated device leaves behind."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from controller.commands import load_handler, parse
from hil.conform.runs import register as register_conform
from hil.simulator import cli


def sim(*arguments: str | Path) -> int:
    """Run `holecard sim`. Raises UsageProblem."""
    parsed = parse(["sim", *map(str, arguments)], cli.register)
    return load_handler(parsed)(parsed)


def sim_until_ready(patch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    """Run a device in this process, until it has printed what runs."""
    announce = cli.announce

    def and_stop(*described: Any) -> None:
        announce(*described)
        os.kill(os.getpid(), signal.SIGTERM)

    with patch.context() as patched:
        patched.setattr(cli, "announce", and_stop)
        return sim(*arguments)


def conform(*arguments: str | Path) -> int:
    """Run `holecard conform`. Raises UsageProblem."""
    parsed = parse(["conform", *map(str, arguments)], register_conform)
    return load_handler(parsed)(parsed)


def left_in(place: Path) -> set[str]:
    """The files in a device's folder that do not belong to the device itself."""
    own = {"identity.toml", "in-use", "kept", "mechanism", "ring", "host"}
    return {path.name for path in place.iterdir()} - own
