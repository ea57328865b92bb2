"""A link in a running session."""

from __future__ import annotations

import pytest

from tests.long.fuzz.scripted import Wired


@pytest.fixture
def wired() -> Wired:
    """A link whose session was resumed with an empty ring."""
    return Wired.running()
