"""Contrast of colours, and the structure of a page."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from html.parser import HTMLParser
from typing import Final

from tests.support.paths import ROOT

ROOM = ROOT / "controller" / "screens"


BASE: Final = (ROOM / "common" / "static" / "base.css").read_text().partition("@media print")[0]


ENOUGH: Final = 7.0


PATHS: Final = (
    "/rounds",
    "/rounds/3",
    "/rounds/3/replay",
    "/problems",
    "/live",
    "/report",
    "/records",
    "/verify",
    "/export",
    "/about",
)


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    if len(digits) == 3:
        digits = "".join(2 * one for one in digits)
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.04045 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def weak(
    themes: Mapping[str, Mapping[str, str]], pairs: Iterable[tuple[str, str]]
) -> dict[tuple[str, str, str], float]:
    """The pairs of colours, by theme, whose contrast is not enough."""
    return {
        (theme, ink, ground): round(contrast(colours[ink], colours[ground]), 2)
        for theme, colours in themes.items()
        for ink, ground in pairs
        if contrast(colours[ink], colours[ground]) < ENOUGH
    }


def colours(*sheets: str) -> dict[str, dict[str, str]]:
    """The colours of each theme: those of a later sheet over those of the ones before it."""
    found: dict[str, dict[str, str]] = {}
    for css in sheets:
        light: dict[str, str] = {}
        for selector, body in re.findall(r"([^{}]*:root[^{]*)\{([^}]*)\}", css):
            values = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]+);", body))
            light = light or values
            name = selector.strip().rpartition(".")[2]
            found[name] = {**found.get(name, {}), **light, **values}
    return found


class Structure(HTMLParser):
    """What a page is made of, and what in it has no name."""

    VOID = frozenset({"meta", "link", "input", "br"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, dict[str, str | None], list[str]]] = []
        self.ids: list[str] = []
        self.headings: list[int] = []
        self.nameless: list[str] = []
        self.wrong: list[str] = []
        self.landmarks: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        said = dict(attrs)
        if said.get("id"):
            self.ids.append(str(said["id"]))
        if tag in ("main", "nav", "header"):
            self.landmarks.append(tag)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        inside = [one[0] for one in self.open]
        asks = tag in ("input", "select", "textarea") and said.get("type") != "hidden"
        if asks and "label" not in inside and "aria-label" not in said:
            self.nameless.append(f"{tag} {said}")
        if tag == "th" and "scope" not in said:
            self.wrong.append("th without a scope")
        if tag not in self.VOID:
            self.open.append((tag, said, []))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.handle_endtag(tag)

    def handle_data(self, data: str) -> None:
        for _, _, text in self.open:
            text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open[-1][0] != tag:
            self.wrong.append(f"</{tag}> closes {self.open[-1][0] if self.open else 'nothing'}")
            return
        _, said, text = self.open.pop()
        named = "".join(text).strip() or said.get("aria-label")
        if tag in ("a", "button", "th", "h1", "h2", "summary", "legend") and not named:
            self.nameless.append(f"{tag} {said}")
