"""Losses of power: some hundred of the states that `make torture` tries by the ten thousand."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.audit.record.power_runs import states


@pytest.mark.parametrize("seed", range(3))
def test_what_was_acknowledged_outlives_a_loss_of_power(
    tmp_path: Path, record_property: Callable[[str, object], None], seed: int
) -> None:
    lengths = list(states(tmp_path, seed, 200))
    assert len(lengths) == 200
    assert max(lengths) > 30
    record_property("losses of power", len(lengths))
