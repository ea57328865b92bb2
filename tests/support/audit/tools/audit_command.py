"""`holecard audit`, as its tests run it."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from controller import cli
from controller.audit.keys import create_key
from tests.support.audit.record.scripted import read_rounds
from tests.support.sim.a_round import changed

LEFT_OPEN: Final = changed(id="R-9", title="Nobody goes on", actions=[], expect={})
"""A round that is voided: its hole card is never turned over."""


def table_keys(place: Path) -> Path:
    """The keys that a table is run with, made there."""
    for role in ("table", "hole", "surveillance"):
        create_key(place, role)
    return place


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """Of JSON."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def line(self) -> str:
        """The one line of an error."""
        assert "Traceback" not in self.err
        *_, last = self.err.splitlines()
        return last


class Runs:
    """Runs the command on a record of scripted rounds, which it makes first."""

    def __init__(
        self, folder: Path, capsys: pytest.CaptureFixture[str], *rounds: dict[str, Any]
    ) -> None:
        self.folder = folder
        self.record = folder / "record"
        self.keys = folder / "keys"
        self.capsys = capsys
        if rounds:
            self.make(*rounds)

    def make(self, *rounds: dict[str, Any]) -> None:
        if not self.keys.exists():
            table_keys(self.keys)
        read_rounds(self.folder, *rounds)
        file = str(self.folder / "rounds.json")
        cli.main(["script", "run", file, "--record", str(self.record), "--keys", str(self.keys)])
        self.capsys.readouterr()

    def another(self) -> "Runs":
        """Another table, with its own keys."""
        (self.folder / "other").mkdir()
        return Runs(self.folder / "other", self.capsys, *rounds(1))

    def __call__(self, name: str, *options: str, record: Path | None = None) -> Ran:
        try:
            code = cli.main(["audit", name, str(record or self.record), *options])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = self.capsys.readouterr()
        return Ran(code, out, err)


def says(ran: Ran, code: int, *words: str) -> None:
    """The command ended with this code, and each of these words is in its output."""
    assert (ran.code, [one for one in words if one not in ran.out]) == (code, []), ran


def refused(ran: Ran, words: str, code: int = 2) -> None:
    """Nothing was printed but an error of one line with these words, and perhaps the usage."""
    lines = 1 if "usage: " not in ran.err else ran.err.count("\n")
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", lines), ran
    assert words in ran.line, ran


def rounds(count: int) -> tuple[dict[str, Any], ...]:
    return tuple(changed(id=f"R-{number}") for number in range(1, count + 1))
