"""A sample of the power losses that `make torture` simulates."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.audit.record.power_runs import states


@pytest.mark.parametrize("seed", range(3))
def test_acknowledged_entries_survive_a_power_loss(
    tmp_path: Path, record_property: Callable[[str, object], None], seed: int
) -> None:
    lengths = list(states(tmp_path, seed, 200))
    assert len(lengths) == 200
    assert max(lengths) > 30
    record_property("losses of power", len(lengths))
