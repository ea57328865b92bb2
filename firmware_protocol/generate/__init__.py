"""The generator: messages.toml to Python, the C header and PROTOCOL.md."""

from __future__ import annotations

from firmware_protocol.generate.catalogue import load_catalogue
from firmware_protocol.generate.emit import camel
from firmware_protocol.generate.schema import INTEGER_SIZES, Catalogue, Field, MessageSpec, array

__all__ = [
    "INTEGER_SIZES",
    "Catalogue",
    "Field",
    "MessageSpec",
    "array",
    "camel",
    "load_catalogue",
]
