"""A house with people, and a desk where they sign in."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.people import PeopleFile
from tests.support.table.simulated.house import house
from tests.support.table.typed.at_desk import Desk


@pytest.fixture
def file(tmp_path: Path) -> PeopleFile:
    return house(tmp_path)


@pytest.fixture
def desk(file: PeopleFile) -> Iterator[Desk]:
    found = Desk(file)
    yield found
    asyncio.run(found.desk.close())
