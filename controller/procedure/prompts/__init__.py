"""Prompts of waiting steps, and prompts and facts as text. Pure functions."""

from __future__ import annotations

from controller.procedure.prompts.catalogue import (
    BETS,
    CHOICES,
    TEXTS,
    WAYS,
    WHAT,
    WHY,
    Texts,
)
from controller.procedure.prompts.prompt import SHOWS, bets_open, is_last_round, payment_prompt
from controller.procedure.prompts.text import (
    AmountFormat,
    MoneyFormat,
    PromptTerms,
    card_words,
    counted,
    detail,
    either,
    fact,
    irregularity,
    parts_of,
    say,
    sentence,
    total_words,
    way,
)

__all__ = [
    "BETS",
    "CHOICES",
    "SHOWS",
    "TEXTS",
    "WAYS",
    "WHAT",
    "WHY",
    "AmountFormat",
    "MoneyFormat",
    "PromptTerms",
    "Texts",
    "bets_open",
    "card_words",
    "counted",
    "detail",
    "either",
    "fact",
    "irregularity",
    "is_last_round",
    "parts_of",
    "payment_prompt",
    "say",
    "sentence",
    "total_words",
    "way",
]
