"""Messages.toml -> Python, C header, PROTOCOL.md."""

from __future__ import annotations

from firmware_protocol.generate.emit import camel
from firmware_protocol.generate.schema import INTEGER_SIZES, Catalogue, Field, MessageSpec, array

__all__ = [
    "INTEGER_SIZES",
    "Catalogue",
    "Field",
    "MessageSpec",
    "array",
    "camel",
]
