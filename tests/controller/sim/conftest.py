"""A way to run scripted rounds through the command."""

import json
from pathlib import Path
from typing import Any, Protocol

import pytest

from controller import cli
from tests.support.commands import Said, Says


class Run(Protocol):
    """Runs rounds out of one file: the exit code, stdout, and stderr with FILE for its name."""

    def __call__(
        self, *rounds: dict[str, Any], raw: bytes | None = None, options: tuple[str, ...] = ()
    ) -> Said: ...


@pytest.fixture
def run(tmp_path: Path, said: Says) -> Run:
    def play(
        *rounds: dict[str, Any], raw: bytes | None = None, options: tuple[str, ...] = ()
    ) -> Said:
        file = tmp_path / "file.json"
        document = {"schema": 1, "rounds": rounds}
        file.write_bytes(json.dumps(document).encode() if raw is None else raw)
        answer = said(cli.main(["script", "run", str(file), *options]))
        return answer._replace(err=answer.err.replace(str(file), "FILE"))

    return play
