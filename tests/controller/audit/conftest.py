"""Fixtures of the record's tests: places, and a played record with a copy to change."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest

from tests.support.audit.tools.outside import dealt, whole

__all__ = ["archive", "dealt", "place", "record", "whole"]


@pytest.fixture(scope="module", autouse=True)
def no_syncs() -> Iterator[None]:
    """Nothing waits for the disk: what a loss of power leaves is simulated where it matters."""
    with mock.patch("os.fsync", at_once), mock.patch("os.fdatasync", at_once):
        yield


def at_once(fd: int) -> None: ...


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """A witness's archive, not there yet."""
    return tmp_path / "archive"


@pytest.fixture
def record(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "mega-1")
