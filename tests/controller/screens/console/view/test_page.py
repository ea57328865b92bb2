"""How the console is made: no hidden card, names and keys in order, nothing inline, enough
contrast, targets that a finger hits."""

from __future__ import annotations

import re
from typing import Final

import pytest
from msgspec.structs import replace

from controller.procedure.model.state import Step
from controller.procedure.prompts import MoneyFormat, Texts
from controller.rules.cards import NAMES
from controller.screens.common.felt import felt_of, where
from controller.screens.common.sessions import Appearance
from controller.screens.common.templates import StaticFiles
from controller.screens.console.text import HouseTerms
from tests.support.paths import ROOT
from tests.support.screens.console.shown_at import (
    STATIC,
    TEXTS,
    WATCHES,
    Around,
    console_at,
    everywhere,
    fragment,
    page,
    pages,
    played,
)
from tests.support.screens.markup import BASE, Structure, colours, weak

_BUTTONS: Final = re.compile(r"\.act\b(?!.*(small|label|badge|kbd))|\.tool\b|\.option\b|\.pad b")
ROOM: Final = ROOT / "controller" / "screens" / "console"
CSS: Final = (ROOM / "static" / "console.css").read_text()
DIALOGS: Final = (ROOM / "static" / "console-dialogs.css").read_text()
PAIRS: Final = (
    ("now-ink", "now"),
    ("now-ink", "table"),
    ("now-ink", "bar"),
    ("soft", "now"),
    ("soft", "table"),
    ("soft", "bar"),
    ("good", "bar"),
    ("care", "bar"),
    ("care", "care-ground"),
    ("care", "tile"),
    ("alarm", "alarm-ground"),
    ("ink", "alarm-ground"),
    ("ink", "panel"),
    ("ink", "accent-ground"),
    ("alarm", "panel"),
    ("go-ink", "go"),
    ("tile-ink", "tile"),
    ("tile-ink", "table"),
    ("gold", "gold-ground"),
    ("gold", "alarm-ground"),
    ("stop-ink", "stop"),
    ("on-cloth", "cloth"),
    ("turn", "cloth"),
    ("black-suit", "card"),
    ("red-suit", "card"),
    ("blue-suit", "card"),
    ("green-suit", "card"),
)
"""What stands on what."""


def test_text_stands_out_in_every_theme() -> None:
    themes = colours(BASE, CSS)
    assert set(themes) == {"theme-light", "theme-auto", "theme-dark"}
    assert not weak(themes, PAIRS)


def test_a_theme_that_is_chosen_looks_as_the_machine_would_have_it() -> None:
    themes = colours(BASE, CSS)
    assert themes["theme-auto"] == themes["theme-dark"] != themes["theme-light"]


def test_buttons_are_large_enough_for_a_finger() -> None:
    """4rem are 64 px."""
    least = []
    for selector, body in re.findall(r"([^{}]+)\{([^}]*)\}", CSS + DIALOGS):
        buttons = re.search(
            r"\.act\b(?!.*(small|label|badge|kbd))|\.tool\b|\.option\b|\.pad b", selector
        )
        height = re.search(r"min-height: ([\d.]+)rem", body)
        if buttons and height:
            least.append((selector.strip(), float(height[1])))
    assert len(least) > 8
    assert not [one for one in least if one[1] < 4]


# --- what is in it ----------------------------------------------------------------------------


def test_no_card_that_lies_face_down_is_in_the_page() -> None:
    """The hole card, the card beside the shoe: not by name, word, picture or commitment."""
    tongue = HouseTerms(TEXTS, MoneyFormat())
    down = 0
    for at in everywhere("hidden", 50):
        s = at.state
        console = console_at(at)
        html = fragment(console)
        spare = [] if s.spare is None or s.spare.card < 0 else [s.spare.card]
        held = [one.card for one in s.holds if one.card >= 0]
        up = {*s.dealer, *spare, *held, *(card for hand in s.hands for card in hand.cards), s.read}
        for commitment in (s.hole, s.spare.commitment if s.spare else ""):
            card = at.hidden.get(commitment, -1)
            assert not commitment or commitment not in html + console.say
            if card < 0 or card in up:
                continue
            down += 1
            assert tongue.card(card) not in html + console.say
        felt = felt_of(s, at.game.seats, tongue, guides=True)
        named = [one for seat in felt.seats for hand in seat.hands for one in hand.cards]
        named += [*felt.dealer, felt.spare]
        assert {NAMES.index(one) for one in named if one not in ("", "--")} <= up
        assert console.felt.count('class="card back"') == named.count("--")
        assert named.count("--") == bool(s.hole) + (s.spare is not None and s.spare.card < 0)
    assert down > 60


def test_what_is_shown_does_not_depend_on_how_often_a_card_was_seen() -> None:
    """No count of the shoe is in anything."""
    for at in played("mega", "default", "count", 120):
        assert console_at(at) == console_at(at._replace(state=replace(at.state, seen=0)))


@pytest.mark.parametrize("signed", [(), (("dealer", "Dana"),)])
def test_everything_has_a_name_and_its_place(signed: tuple[tuple[str, str], ...]) -> None:
    for at in everywhere("structure", 10):
        found = Structure()
        found.feed(page(console_at(at), signed))
        for html in (found.nameless, found.wrong, found.open):
            assert not html
        assert (len(found.ids), found.headings.count(1)) == (len(set(found.ids)), 1)
        assert found.landmarks == ["header", "main"]


def test_nothing_is_inline() -> None:
    """No script, style or handler stands in a page: the policy of the pages lets none run."""
    for at in everywhere("inline", 8):
        html = page(console_at(at))
        assert not re.search(r"\son\w+=|\sstyle=|<style|javascript:", html)
        assert re.findall(r"<script([^>]*)>(.*?)</script>", html) == [
            (f' type="module" src="{STATIC.path("console.js")}"', "")
        ]


def test_what_a_script_names_is_there() -> None:
    static = StaticFiles("controller.screens.console")
    page_of = (ROOM / "templates" / "page.html").read_text()
    table = (ROOM / "templates" / "table.html").read_text()
    for name in static.names:
        if not name.endswith(".js"):
            continue
        text = (ROOM / "static" / name).read_text()
        for module in re.findall(r'from "\./([\w-]+\.js)"', text):
            assert module in static.names
        for found in re.findall(r'byId\("([\w-]+)"\)|getElementById\("([\w-]+)"\)', text):
            mark = found[0] or found[1]
            assert f'id="{mark}"' in page_of + table, (name, mark)
        for word in re.findall(r"\bwords\.(\w+)", text):
            assert TEXTS.has(f"console.dialog.{word}"), (name, word)
        for word in re.findall(r"\bfaults\.(\w+)", text):
            assert TEXTS.has(f"console.fault.{word}"), (name, word)
        for word in re.findall(r"\bsign\.(\w+)", text):
            assert TEXTS.has(f"console.sign.{word}"), (name, word)


def test_nothing_is_told_by_colour_alone() -> None:
    for at in everywhere("colour", 10):
        console = console_at(at, around=Around(quality="unsynced"))
        for line in console.status.lines:
            assert line.name
            assert line.said
        html = fragment(console)
        for mark, sign in (("good", "\u2713"), ("care", "!"), ("alarm", "\u2715")):
            for found in re.findall(rf'class="line mark-{mark}"[^>]*><span [^>]*>(.)', html):
                assert found == sign


def test_everything_is_within_the_picture() -> None:
    most = 0
    for at in everywhere("drawn", 120):
        if at.state.step is Step.CLOSED:
            continue
        svg = console_at(at).felt
        _, _, width, height = map(int, re.findall(r'viewBox="([\d ]+)"', svg)[0].split())
        for x, y, scale in re.findall(r"translate\((-?\d+) (-?\d+)\) scale\(([\d.]+)\)", svg):
            assert 0 <= int(x) <= width
            assert 0 <= int(y) <= height - 64 * float(scale)
        most = max(most, svg.count('class="rank'))
    assert most > 12


def test_the_felt_lies_as_whoever_deals_sees_it() -> None:
    """Seat 1 at the left hand, the dealer's own cards below all seats; a camera sees it turned."""
    at = next(at for at in everywhere("drawn", 60) if at.state.hands and at.state.dealer)
    svg = console_at(at).felt
    named = {
        words: (int(x), int(y))
        for x, y, words in re.findall(r'<text class="place[^"]*" x="(\d+)" y="(\d+)">(.*?)<', svg)
    }
    across = [named[f"Seat {seat}"][0] for seat in range(1, 8)]
    assert across == sorted(across)
    assert all(named["Dealer"][1] > named[f"Seat {seat}"][1] for seat in range(1, 8))
    assert where(1, 7, "dealer")[0] == where(7, 7)[0] < where(1, 7)[0]
    assert "rotate" not in re.sub(r"<path.*?/>", "", svg)  # cards and words stay upright


def test_a_page_says_in_which_language_it_is() -> None:
    (at,) = played("mega", "default", "lang", 1)
    words = {**{name: TEXTS(name) for name in TEXTS.names}, "site.lang": "de"}
    html = pages(Texts(words)).text(
        "console/page.html",
        c=console_at(at),
        secret="",
        appearance=Appearance(),
        screen="console",
        signed=(("dealer", "Dana"),),
    )
    assert '<html lang="de"' in html
    assert TEXTS("console.sign.signed", name="Dana", role="dealer") in html


def test_who_watches_is_shown_the_same_picture_of_the_felt() -> None:
    for at in everywhere("watching", 15):
        one, other = console_at(at), console_at(at, WATCHES)
        assert (one.felt, one.say, one.troubles) == (other.felt, other.say, other.troubles)
        assert "data-act=" not in fragment(other)
