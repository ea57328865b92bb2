"""A table whose installation is checked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon.doctor_house import House, house


@pytest.fixture
def made(tmp_path: Path) -> Iterator[House]:
    with house(tmp_path) as one:
        yield one
