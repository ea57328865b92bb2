"""Irregularities whose one way is in the rows themselves (`rulings.FIXED`): no hold is put and
nobody is told, so an event that was taken, or a refusal, is all that shows them.

By name, as a record has both.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from controller.procedure.model.events import PaymentCorrected, Withdrawn
from controller.rules.irregularities import Irregularity

TAKEN: Final[Mapping[str, Irregularity]] = MappingProxyType(
    {
        Withdrawn.__name__: Irregularity.CANNOT_COVER,
        PaymentCorrected.__name__: Irregularity.WRONG_PAYMENT,
    }
)
"""By the type of the event that was taken."""
REFUSED: Final[Mapping[str, Irregularity]] = MappingProxyType(
    {
        "late_wager": Irregularity.LATE_WAGER,
        "first_card_is_out": Irregularity.LATE_WAGER,
        "without_main": Irregularity.LATE_WAGER,
    }
)
"""By the id of the refusal; the first card is what ends the wagers."""
