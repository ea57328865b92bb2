"""Terms of the console: those of prompts, and devices and how they are linked."""

from __future__ import annotations

from typing import Final

from controller.api.contract.view import DeviceShown
from controller.procedure.prompts import PromptTerms

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
