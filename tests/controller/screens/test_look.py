"""How the pages look, as far as figures can tell: contrast, names, structure."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

import pytest

from tests.support.paths import ROOT
from tests.support.screens.looked_at import Browser

ROOM = ROOT / "controller" / "screens"
BASE: Final = (ROOM / "common" / "static" / "base.css").read_text()
ENOUGH: Final = 7.0
PAIRS: Final = (
    ("ink", "ground"),
    ("ink", "panel"),
    ("ink", "accent-ground"),
    ("ink", "alarm-ground"),
    ("ink", "care-ground"),
    ("soft", "ground"),
    ("soft", "panel"),
    ("accent", "panel"),
    ("accent", "ground"),
    ("on-accent", "accent"),
    ("alarm", "alarm-ground"),
    ("alarm", "panel"),
    ("care", "care-ground"),
    ("care", "panel"),
    ("good", "good-ground"),
    ("good", "panel"),
    ("on-cloth", "cloth"),
    ("black-suit", "card"),
    ("red-suit", "card"),
    ("blue-suit", "card"),
    ("green-suit", "card"),
)
"""What stands on what."""
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


def themes() -> dict[str, dict[str, str]]:
    blocks = re.findall(r"([^{}]*:root[^{]*)\{([^}]*)\}", BASE.partition("@media print")[0])
    found: dict[str, dict[str, str]] = {}
    light: dict[str, str] = {}
    for selector, body in blocks:
        values = dict(re.findall(r"--([\w-]+):\s*(#[0-9a-fA-F]+);", body))
        light = light or values
        found[selector.strip()[-24:]] = {**light, **values}
    return found


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


def test_contrast_is_computed_as_it_is_defined() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


def test_text_stands_out_in_every_theme() -> None:
    found = themes()
    assert len(found) == 3
    weak = {
        (theme, ink, ground): round(contrast(colours[ink], colours[ground]), 2)
        for theme, colours in found.items()
        for ink, ground in PAIRS
        if contrast(colours[ink], colours[ground]) < ENOUGH
    }
    assert not weak


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


@pytest.mark.parametrize("path", PATHS)
def test_everything_has_a_name_and_its_place(browser: Browser, path: str) -> None:
    page = Structure()
    page.feed(browser.get(path).text)
    assert not page.nameless
    assert not page.wrong
    assert not page.open
    assert len(page.ids) == len(set(page.ids))
    assert page.headings.count(1) == 1
    assert page.headings[0] == 1
    steps = zip(page.headings, page.headings[1:], strict=False)
    assert all(later <= former + 1 for former, later in steps)
    assert page.landmarks == ["header", "nav", "main"]


def test_a_page_without_a_session_has_its_structure_too(browser: Browser) -> None:
    stranger = Browser(browser.app)
    page = Structure()
    page.feed(stranger.get("/rounds").text)
    assert not [*page.nameless, *page.wrong, *page.open]
    assert page.landmarks == ["header", "main"]


def test_every_page_says_where_it_is(browser: Browser) -> None:
    for path in PATHS:
        text = browser.get(path).text
        name = path.split("/")[1]
        (here,) = re.findall(r'<a href="/(\w+)" aria-current="page"', text)
        assert here == name
        assert re.search(r"<title>[^<]+ - Holecard review</title>", text)
        assert 'lang="en"' in text
        assert 'class="skip" href="#page"' in text


def test_nothing_is_told_by_colour_alone(browser: Browser) -> None:
    """Marks have words, and a card its suit as a letter and in words."""
    text = browser.get("/rounds/3").text
    for mark in re.findall(r'<span class="mark[^"]*">(.*?)</span>', text):
        assert mark.strip()
    chips = re.findall(r'<span class="chip-card suit-\w">(.*?)</span></span>', text)
    assert chips
    for chip in chips:
        assert re.search("[\u2663\u2666\u2665\u2660]", chip)
        assert re.search(r"\w+ of (?:clubs|diamonds|hearts|spades)", chip)
