"""Whole rounds of each game at the dealer's page, by touch and by keyboard alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.screens.browser.rounds import HERE, whole_round
from tests.support.screens.browser.table import How


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("game", "how"), HERE)
def test_a_whole_round_at_the_page(game: str, how: How, tmp_path: Path) -> None:
    whole_round(game, how, tmp_path)
