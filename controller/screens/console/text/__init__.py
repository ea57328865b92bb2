"""Terms and refusals in the house's language."""

from __future__ import annotations

from controller.screens.console.text.refusals import refused
from controller.screens.console.text.terms import READY, HouseTerms

__all__ = ["READY", "HouseTerms", "refused"]
