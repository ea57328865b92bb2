"""Messages.toml -> Python, C header, PROTOCOL.md."""

from __future__ import annotations

from firmware_protocol.generate.emit import camel
from firmware_protocol.generate.schema import WHOLE, Catalogue, Field, Message, array

__all__ = [
    "WHOLE",
    "Catalogue",
    "Field",
    "Message",
    "array",
    "camel",
]
