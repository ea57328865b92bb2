"""Every command of the README runs, as it stands there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from controller.cli import main
from tests.support.paths import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
_ALL_BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
_SESSIONS = [block for block in _ALL_BLOCKS if " run/" in block]
"""Lines that belong together, with files of their own in run/; what ends in & runs beside them."""
_BLOCKS = [block for block in _ALL_BLOCKS if block not in _SESSIONS]
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
def test_the_command_runs(
    line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """But the demo, which `tests/system/test_demo.py` runs and looks at."""
    monkeypatch.chdir(ROOT)
    words = shlex.split(line)[1:]
    if words[0] != "demo":
        assert main(words) == 0, capsys.readouterr().err
        assert capsys.readouterr().out


@pytest.mark.parametrize("block", _SESSIONS)
def test_the_session_runs(block: str, tmp_path: Path) -> None:
    env = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    lines = [line.split("  #")[0].strip() for line in block.splitlines()]
    for room in ("controller", "tests"):
        (tmp_path / room).symlink_to(ROOT / room)
    with ExitStack() as beside:
        for line in lines:
            if line.endswith("&"):
                beside.enter_context(_beside(line.removesuffix("&"), tmp_path, env))
                continue
            ran = subprocess.run(
                ["bash", "-c", line],
                cwd=tmp_path,
                env=env,
                capture_output=True,
                text=True,
                timeout=60,
                stdin=subprocess.DEVNULL,
                check=False,
            )
            assert ran.returncode == 0, (line, ran.stdout, ran.stderr)
            assert ran.stdout or ran.stderr  # with --out the data is in its file


@contextmanager
def _beside(line: str, cwd: Path, env: dict[str, str]) -> Iterator[None]:
    """Runs until it is told to stop, and has said that it does."""
    with subprocess.Popen(
        shlex.split(line), cwd=cwd, env=env, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert any(said.startswith("runs until") for said in process.stdout)
            yield
        finally:
            process.terminate()
        assert process.wait(10) == 0


@pytest.mark.parametrize("line", MAKE)
def test_the_target_is_run_by_the_whole_check(line: str) -> None:
    """Tests cannot run the tests; what the README promises of make, `.ci/run` runs."""
    target = shlex.split(line)[1]
    whole = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert re.search(rf"^[^#]*\bmake {target}\b", whole, re.MULTILINE), target
