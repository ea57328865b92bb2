"""Terms and refusals in the house's language."""

from __future__ import annotations

import re
from typing import Final

from controller.api.contract.messages import Answer
from controller.api.contract.view import DeviceShown
from controller.procedure.engine import refusal_name
from controller.procedure.prompts import PromptTerms, Texts, either

READY: Final = "ready"
"""The link state of a device that works."""


class HouseTerms(PromptTerms):
    """The terms of prompts, of devices and of their links, in a house's words."""

    def device(self, device: DeviceShown) -> str:
        """A device; where a table has several of its kind, with its serial number."""
        return self.texts(f"console.device.one_{device.device}", serial=device.serial)

    def linked(self, state: str, other: str) -> str:
        """How a device is linked, or `other` if there is no text for the state."""
        known = self.texts.has(f"console.link.{state}")
        return self.texts(f"console.link.{state}") if known else other


# --- refusals ---------------------------------------------------------------------------------


TERMS: Final = {
    "bet": "console.bet_name",
    "offered": "console.bet_name",
    "legal": "console.choice",
    "role": "console.role",
    "allowed": "console.role",
}
"""The text sections for the values of a field. Other fields are numbers and amounts."""
NONE: Final = {"no decision": "console.term.no_decision", "nothing": "console.term.nothing"}
BETWEEN: Final = re.compile(", | or ")


def refused(answer: Answer, texts: Texts) -> str:
    """The text for the `answer` to an event that was not accepted."""
    said = {field: _said(field, value, texts) for field, value in answer.detail.items()}
    return texts(f"console.refuse.{refusal_name(answer.code)}", **said)


def _said(field: str, value: str, texts: Texts) -> str:
    if value in NONE:
        return texts(NONE[value])
    if field not in TERMS:
        return value
    return either(texts, [texts(f"{TERMS[field]}.{one}") for one in BETWEEN.split(value)])
