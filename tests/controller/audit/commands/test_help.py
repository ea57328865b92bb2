"""What `holecard audit` prints for machines, and what its help promises."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controller import cli
from tests.support.audit.tools.audit_command import Runs, rounds


def no_constant(name: str) -> None:
    raise AssertionError(f"{name} is no JSON")


def test_sql_prints_json_whatever_the_values_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = Runs(tmp_path, capsys)
    runs.make(*rounds(1))
    ran = runs("sql", "SELECT 9e999, -9e999, x'00ff', 1.5, NULL, 'a'", "--json")
    found = json.loads(ran.out, parse_constant=no_constant)
    assert found["rows"] == [[None, None, "00ff", 1.5, None, "a"]]


def test_help_names_the_codes_that_its_commands_give(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("COLUMNS", "100")
        assert cli.main(["audit", "--help"]) == 0
    codes = capsys.readouterr().out.partition("Exit codes: ")[2]
    given = {part.strip().split()[0] for part in codes.replace("\n", " ").split(";")}
    assert given == {"0", "1", "2", "3", "74", "130", "141"}
