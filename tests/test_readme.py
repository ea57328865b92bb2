"""Every command of the README runs, as it stands there."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
_BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
_INLINE = re.findall(r"`((?:holecard|make) [^`]+)`", README)


def _commands() -> list[str]:
    lines = [line.split("  #")[0].strip() for block in _BLOCKS for line in block.splitlines()]
    found = [line for line in (*lines, *_INLINE) if line]
    return sorted(dict.fromkeys(line.split(" # ")[0].strip() for line in found))


HOLECARD = [line for line in _commands() if line.startswith("holecard ")]
MAKE = [line for line in _commands() if line.startswith("make ")]


def test_there_is_nothing_else_to_type() -> None:
    assert HOLECARD
    assert set(_commands()) == {*HOLECARD, *MAKE}


@pytest.mark.parametrize("line", HOLECARD)
def test_the_command_runs(line: str) -> None:
    words = shlex.split(line)[1:]
    ran = subprocess.run(
        [sys.executable, "-m", "controller.cli", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=110,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


@pytest.mark.parametrize("line", MAKE)
def test_the_target_is_run_by_the_whole_check(line: str) -> None:
    """Tests cannot run the tests; what the README promises of make, `.ci/run` runs."""
    target = shlex.split(line)[1]
    whole = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(rf"^[^#]*\bmake {target}\b", whole, re.MULTILINE), target
