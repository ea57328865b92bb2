"""Which irregularities are told at the dealer's page, and at which table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tests.support.screens.browser import irregular_cards, irregular_people
from tests.support.screens.browser.stories import STORIES

PARTS: Final = (irregular_cards, irregular_people)
ONE_DECK: Final[Mapping[str, object]] = {"decks": 1, "payout.floor_from": 1000}
IN_ONE_DECK: Final = ("a_payment_that_waits_for_the_floor", "a_shoe_that_runs_out")
IN_USUAL_DECKS: Final = tuple(name for name in STORIES if name not in IN_ONE_DECK)
