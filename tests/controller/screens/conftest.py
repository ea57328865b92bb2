"""A record that many tests look at, made once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.sim.scripts.format import read_scripts
from tests.support.audit.record.scripted import FILES, record_all
from tests.support.screens.looked_at import Browser, Looking, dealt, seen, written

ROUNDS = 30
SCRIPTED = 12
SEGMENT = 64 * 1024


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rounds with all that goes wrong, the last of them left with its hole card face down."""
    place = tmp_path_factory.mktemp("screens") / "mega"
    table = dealt("looks", ROUNDS)
    while not (table.state.hole and table.state.hands):
        table.once()
    written(place, table, seen(table.entries))
    return place


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scripted rounds, whose hole cards open as they were committed to."""
    place = tmp_path_factory.mktemp("sound") / "scripts"
    file = next(file for file in FILES if file.stem == "mega")
    record_all(place, read_scripts(file)[:SCRIPTED], size=SEGMENT)
    return place


@pytest.fixture
def looking(place: Path, tmp_path: Path) -> Iterator[Looking]:
    with Looking(place, tmp_path / "scratch") as found:
        yield found


@pytest.fixture
def browser(looking: Looking) -> Browser:
    return looking.enter()
