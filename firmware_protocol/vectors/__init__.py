"""Golden bytes of each version of the protocol: data to build or check a device."""

from __future__ import annotations

from importlib import resources
from typing import Any

import msgspec

NAMES = (
    "crc",
    "cobs",
    "messages",
    "frames",
    "damage",
    "chain",
    "handshake_kk",
    "handshake_xxpsk3",
    "sealed",
)


def text(name: str, version: int = 1) -> str:
    """Returns the text of the file."""
    file = resources.files(__name__).joinpath(f"v{version}").joinpath(f"{name}.json")
    return file.read_text(encoding="utf-8")


def load(name: str, version: int = 1) -> Any:
    """Returns the parsed file."""
    return msgspec.json.decode(text(name, version))
