"""Prompts, terms and refusals in the house's language."""

from __future__ import annotations

from controller.screens.console.text.prompts import PAYMENTS, parts_of, sentence
from controller.screens.console.text.refusals import refused
from controller.screens.console.text.terms import READY, HouseTerms

__all__ = [
    "PAYMENTS",
    "READY",
    "HouseTerms",
    "parts_of",
    "refused",
    "sentence",
]
