"""`holecard audit`, as its tests run it."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from controller import cli
from controller.audit.keys import Role, create_key
from tests.support.audit.record.scripted import read_rounds
from tests.support.sim.a_round import changed

_ROLES: Final[tuple[Role, ...]] = ("table", "hole", "surveillance")
LEFT_OPEN: Final = changed(id="R-9", title="Nobody goes on", actions=[], expect={})
"""A round that is voided: its hole card is never turned over."""


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
            for role in _ROLES:
                create_key(self.keys, role)
        read_rounds(self.folder, *rounds)
        file = str(self.folder / "rounds.json")
        cli.main(["script", "run", file, "--record", str(self.record), "--keys", str(self.keys)])
        self.capsys.readouterr()

    def __call__(self, name: str, *options: str, record: Path | None = None) -> Ran:
        try:
            code = cli.main(["audit", name, str(record or self.record), *options])
        except SystemExit as stop:
            code = int(stop.code or 0)
        out, err = self.capsys.readouterr()
        return Ran(code, out, err)


def rounds(count: int) -> tuple[dict[str, Any], ...]:
    return tuple(changed(id=f"R-{number}") for number in range(1, count + 1))
