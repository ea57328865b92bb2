"""Stories of irregularities at a served table; importing this package registers all of them."""

from types import ModuleType
from typing import Final

from tests.support.table.simulated.telling import CASES
from tests.support.table.stories import (
    cards,
    dealing,
    devices,
    money,
    people,
)

MODULES: Final[tuple[ModuleType, ...]] = (
    cards,
    dealing,
    devices,
    money,
    people,
)

__all__ = ["CASES", "MODULES"]
