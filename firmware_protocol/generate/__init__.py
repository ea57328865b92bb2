"""The generator: messages.toml to Python, the C header and PROTOCOL.md."""

from __future__ import annotations

from firmware_protocol.generate.catalogue import (
    INTEGER_SIZES,
    Catalogue,
    Field,
    MessageSpec,
    array,
    load_catalogue,
)
from firmware_protocol.generate.emit import camel

__all__ = [
    "INTEGER_SIZES",
    "Catalogue",
    "Field",
    "MessageSpec",
    "array",
    "camel",
    "load_catalogue",
]
