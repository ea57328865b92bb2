"""A table file's [screens]: where its pages are served to browsers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from controller.config import values as checks
from controller.config.schema import Key, read_table
from controller.config.values import Check
from controller.errors import UsageProblem
from controller.rules.option_constraints import Range

LOOPBACK: Final = "127.0.0.1"


class ScreensPlace(Struct, frozen=True):
    """The file's [screens]."""

    port: int
    """0: any free one, which is said once it is taken."""
    listen: str = LOOPBACK
    certificate: Path | None = None
    key: Path | None = None
    texts: Path | None = None
    """The pages' words in another language; None: as they come."""


class _Screens(Struct, frozen=True):
    port: int
    listen: str = LOOPBACK
    certificate: str | None = None
    key: str | None = None
    texts: str | None = None


_NAMED: Final = checks.whole(Range(1024, 65_535))


def _read_port(value: object) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value == 0:
        return value
    return _NAMED.read(value)


_TEXT: Final = checks.text(400)
_KEYS: Final = {
    "port": Key(Check(f"{_NAMED.allowed}; 0: any free one", _read_port), required=True),
    "listen": Key(checks.text(45)),
    "certificate": Key(_TEXT),
    "key": Key(_TEXT),
    "texts": Key(_TEXT),
}


def read_screens(
    raw: Mapping[str, Any], beside: Path, where: str, problems: list[UsageProblem]
) -> ScreensPlace | None:
    """Files start from the folder `beside`. Whether they go together, and whether the address can
    be listened at, those know who listen."""
    found = read_table(raw, _Screens, _KEYS, where, problems)
    if found is None:
        return None
    certificate, key, texts = (
        None if name is None else beside / name
        for name in (found.certificate, found.key, found.texts)
    )
    return ScreensPlace(found.port, found.listen, certificate, key, texts)


def line_of(place: ScreensPlace) -> str:
    """In words."""
    host = f"[{place.listen}]" if ":" in place.listen else place.listen
    at = f"{host}:{place.port}" if place.port else f"any free port of {host}"
    return f"screens at {at}{'' if place.certificate is None else ', behind a certificate'}"
