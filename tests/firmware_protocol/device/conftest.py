"""A device with its mechanism, and a host that talks to it in plain steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.hil.devices.plain_device import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


@pytest.fixture
def records_flow(bench: Bench) -> None:
    """A session runs, and all records that were there are acknowledged."""
    bench.flowing()
