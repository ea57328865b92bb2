"""What a waiting step shows and the words for it; pure functions of the state."""

from __future__ import annotations

from controller.procedure.prompts.prompt import SHOWS, bets_open, is_last_round, payment_prompt
from controller.procedure.prompts.terms import (
    BETS,
    CHOICES,
    DETAILS,
    WHAT,
    WHY,
    AmountFormat,
    MoneyFormat,
    card_words,
    counted,
    detail,
    irregularity,
    total_words,
    way,
)
from controller.procedure.prompts.text import fact, say

__all__ = [
    "BETS",
    "CHOICES",
    "DETAILS",
    "SHOWS",
    "WHAT",
    "WHY",
    "AmountFormat",
    "MoneyFormat",
    "bets_open",
    "card_words",
    "counted",
    "detail",
    "fact",
    "irregularity",
    "is_last_round",
    "payment_prompt",
    "say",
    "total_words",
    "way",
]
