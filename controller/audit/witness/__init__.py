"""External witnesses: countersigning, archive, monitoring."""

from __future__ import annotations

from controller.audit.witness.cosignatures import COSIGNED
from controller.audit.witness.monitor import News, Said, beside, look, said_before

__all__ = [
    "COSIGNED",
    "News",
    "Said",
    "beside",
    "look",
    "said_before",
]
