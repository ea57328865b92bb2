"""What the console says: the procedure's own words, in whatever language a house has them."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest
from msgspec.structs import replace

from controller.api.contract.view import PromptShown, View
from controller.procedure.model.effects import Tell
from controller.procedure.model.state import WAITING
from controller.procedure.prompts import MoneyFormat
from controller.screens.common.texts import NAME
from controller.screens.console.view import console_of
from tests.support.procedure.random_games import game_with
from tests.support.screens.console.shown_at import (
    HERE,
    LONG,
    TEXTS,
    Around,
    console_at,
    everywhere,
    fragment,
    marked,
    pages,
    played,
    played_in,
    view_at,
)


def test_the_console_says_what_the_procedure_says() -> None:
    """Word for word, so that what is read out is what stands in the record."""
    tells = set()
    for at in everywhere("said", 200, LONG):
        view = view_at(at)
        assert view.prompt is not None
        if at.game.jurisdiction.declare_payments and view.prompt.tell.value in _MONEY:
            continue
        assert console_at(at).say == view.prompt.words
        tells.add(view.prompt.tell)
    assert len(tells) > 24


_MONEY: Final = ("pay", "collect", "give_back")


def test_what_is_declared_first_is_not_told_before() -> None:
    """Where the dealer says what a payment comes to, neither amount nor chips stand anywhere."""
    seen = 0
    for at in played("mega", "strict", "declared", 1500):
        view = view_at(at)
        if view.prompt is None or view.prompt.tell is not Tell.PAY:
            continue
        console = console_at(at)
        assert console.payments is not None
        assert console.payments.first.amount == ""
        assert console.payments.first.chips == ()
        money = MoneyFormat().amount(view.prompt.amount)
        assert money not in console.say.split()
        assert not any(money in part for part in console.instruction.small)
        assert [ask.name for one in console.actions for ask in one.asks] == ["amount"]
        seen += 1
    assert seen > 10


def test_the_floor_sees_the_payment_that_it_signs_for_where_payments_are_declared() -> None:
    seen = 0
    game = game_with("mega", {"payout.floor_from": 10}, "strict")
    assert game.jurisdiction.declare_payments
    for at in played_in(game, "seen first", LONG):
        view = view_at(at)
        if view.prompt is None or view.prompt.tell is not Tell.FLOOR_FIRST:
            continue
        console = console_at(at)
        assert console.payments is not None
        assert console.payments.first.amount == MoneyFormat().amount(view.prompt.amount)
        assert console.say == sentence_of(view)
        seen += 1
    assert seen > 3


def sentence_of(view: View) -> str:
    assert view.prompt is not None
    return view.prompt.words


def test_a_house_that_speaks_otherwise_is_shown_nothing_of_ours(tmp_path: Path) -> None:
    """What is printed is made of the house's texts, of names, and of figures."""
    texts = marked(tmp_path / NAME)
    drawn = pages(texts)
    count = 0
    for at in everywhere("translated", 60):
        console = console_at(at, HERE, texts)
        assert console.say.startswith("\u2039")
        html = drawn.text("console/table.html", c=console)
        for word in ("Hit", "Dealer", "Seat", "Shoe", "Record", "Call the floor", "wager"):
            assert f">{word}<" not in html
        for action in (*console.actions, *console.aside):
            assert "\u2039" in action.label
        count += 1
    assert count > 400


def test_a_stopped_record_is_said_before_anything_else() -> None:
    at = next(played("mega", "default", "stopped", 1))
    console = console_at(at, around=Around(stopped="no room on the disk"))
    assert console.instruction.tone == "stopped"
    assert "no room on the disk" in console.say
    assert not console.controls
    assert (console.actions, console.aside, console.groups, console.wagers) == ((), (), (), None)
    html = fragment(console)
    assert "no room on the disk" in html
    assert "data-act=" not in html
    assert html.index("no room on the disk") < html.index("code record")


def test_a_table_that_shows_nothing_yet_says_so() -> None:
    at = next(played("mega", "default", "nothing", 1))
    console = console_of(replace(view_at(at), prompt=None), at.game, HERE, TEXTS)
    assert console.instruction.large == TEXTS("console.fault.no_prompt")
    assert console.actions == ()
    assert fragment(console)


@pytest.mark.parametrize("again", [False, True])
def test_a_payment_that_was_shown_before_says_so(again: bool) -> None:
    for at in played("classic", "default", "again", 600):
        view = view_at(at)
        if isinstance(view.prompt, PromptShown) and view.prompt.tell is Tell.PAY:
            console = console_at(at, around=Around(again=again))
            words = TEXTS("console.pay.again")
            assert (words in fragment(console)) is again
            assert console.say.startswith(words) is again
            return
    pytest.fail("nothing was paid")


def test_every_step_that_waits_was_looked_at() -> None:
    """What these tests walk through has every step."""
    assert set(WAITING) - {at.state.step for at in everywhere("said", 200, LONG)} == set()


def test_what_is_over_in_a_moment_calls_nobody() -> None:
    at = next(played("mega", "default", "slow", 1))
    console = console_at(at, around=Around(stopped="the record is slow: wait", soon=True))
    assert "the record is slow: wait" in console.say
    assert "floor" not in console.say
    assert (console.actions, console.aside, console.groups, console.wagers) == ((), (), (), None)
