"""Helpers to run `holecard script run` with a record."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller import cli
from tests.support.sim.a_round import ROUND


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def line(self) -> str:
        """The single error line, after the warning about demo keys."""
        *before, last = self.err.splitlines()
        usual = ("demo keys", ": recorded, the last record is ")
        assert all(any(words in line for words in usual) for line in before), self.err
        assert "Traceback" not in self.err
        return last


class Runs:
    """Runs scripted rounds into DIR."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place = folder / "DIR"
        self._file = folder / "rounds.json"
        self._capsys = capsys

    def __call__(self, *options: str, rounds: tuple[dict[str, Any], ...] = (ROUND,)) -> Ran:
        self._file.write_text(json.dumps({"schema": 1, "rounds": rounds}))
        given = options or ("--record", str(self.place))
        code = cli.main(["script", "run", str(self._file), *given])
        out, err = self._capsys.readouterr()
        return Ran(code, out, err.replace(str(self.place), "DIR"))
