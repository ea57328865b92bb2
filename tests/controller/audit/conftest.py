"""Fixtures of the tests of records."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where a record is made."""
    return tmp_path / "record"
