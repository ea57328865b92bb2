"""What everybody is shown: the same for each reader, made once for each change."""

from __future__ import annotations

import msgspec
from msgspec.structs import asdict, replace

from controller.api.contract.view import (
    PromptShown,
    TableIdentity,
    View,
    ViewInput,
    dealer_of,
    view_of,
)
from controller.api.service.table_api import table_identity
from controller.audit.errors import RetryLater
from controller.people import NO_SIGN_INS, SignInSession
from controller.procedure.model.effects import Effect, Prompt, Tell
from controller.procedure.model.state import State, Step
from controller.procedure.prompts import MoneyFormat, say
from controller.rules.hands import Hand
from controller.table.memory import TableDisplay
from firmware_protocol.device import Plug
from tests.support.api.at_api import AtApi, api_test, asked
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import NOON

BJ = TableIdentity("bj-1", "classic", "Blackjack")
PAY = Prompt(Tell.PAY, seat=2, hand=0, place="main", why="dealer_busts", stake=1000, amount=1000)


def stands(shown: TableDisplay) -> ViewInput:
    return ViewInput(shown, None, (), "", False, 7, "synced")


def test_a_prompt_says_what_the_dealer_reads() -> None:
    one = Hand(2, 1000, 1000)
    for hands, several in (((one,), False), ((one, replace(one, number=1)), True)):
        state = State(step=Step.PAYING, round=3, hands=hands)
        view = view_of(BJ, stands(TableDisplay(5, state, (PAY,))), NOON)
        assert view.prompt is not None
        assert view.prompt.words == say(PAY, MoneyFormat(), several=several)
        assert ("hand 1" in view.prompt.words) is several
        assert asdict(view.prompt) == asdict(PAY) | {"words": view.prompt.words}


def test_amounts_are_in_the_currency_of_the_table() -> None:
    euros = replace(BJ, money=MoneyFormat("EUR", 0))
    view = view_of(euros, stands(TableDisplay(5, State(step=Step.PAYING), (PAY,))), NOON)
    assert view.prompt is not None
    assert "EUR 1,000" in view.prompt.words
    assert (view.currency.symbol, view.currency.minor_digits) == ("EUR", 0)


def test_a_table_that_shows_no_prompt() -> None:
    view = view_of(BJ, stands(TableDisplay(5, State(), (), stopped="no room")), NOON)
    assert (view.prompt, view.stopped, view.seq, view.record.seq) == (None, "no room", 5, 7)
    assert (view.clock.utc, view.clock.quality) == (NOON, "synced")


def test_nobody_is_shown_how_often_a_card_was_seen() -> None:
    """That is a count of the shoe."""
    few = State(step=Step.DEALING, seen=0)
    many = replace(few, seen=2**200 - 1)
    bodies = [
        msgspec.json.encode(view_of(BJ, stands(TableDisplay(5, s, ())), 0)) for s in (few, many)
    ]
    assert bodies[0] == bodies[1]
    assert b"seen" not in bodies[0]


def test_who_deals() -> None:
    assert dealer_of(NO_SIGN_INS) is None
    ann = SignInSession("dealer", "Ann Lee", "D-17", "dealer", 0)
    dee = SignInSession("surveillance", "Dee Faro", "S-1", "pit", 0)
    assert dealer_of(replace(NO_SIGN_INS, sessions=(dee,))) is None
    shown = dealer_of(replace(NO_SIGN_INS, sessions=(dee, ann)))
    assert shown is not None
    assert (shown.badge, shown.name, shown.screen) == ("D-17", "Ann Lee", "dealer")


@api_test()
async def test_a_view_is_read_back_as_it_was(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    seen = at.api.views.now()
    assert msgspec.json.decode(seen.body, type=View) == seen.view
    assert await screen.table() == seen.view
    assert seen.view.state.step is at.state.step
    devices = [(one.device, one.state) for one in seen.view.devices]
    assert devices == [("shoe", "ready"), ("shuffler", "ready"), ("station", "ready")]


@api_test()
async def test_it_is_made_once_for_each_change(at: AtApi) -> None:
    screens = [await at.client.open(f"watcher-{number}") for number in range(3)]
    first = at.api.views.now()
    bodies = []
    for screen in screens:
        headers = {"Authorization": f"Bearer {screen.token}"}
        bodies.append((await asked(at, "GET", "/api/v1/table", headers=headers)).content)
    assert bodies == [first.body] * 3
    assert at.api.views.now() is first
    await at.dealing()
    assert at.api.views.now() is not first


@api_test()
async def test_a_device_that_goes_is_seen_though_nothing_is_recorded(at: AtApi) -> None:
    at.room.book.refusing = RetryLater("record", "no room on the disk", "make room")
    assert at.room.station is not None
    at.room.station.request(Plug(connected=False))
    await until(lambda: at.api.views.now().view.devices[2].state != "ready", 30)


@api_test(adopted=False)
async def test_the_title_of_a_table_that_has_no_file(at: AtApi) -> None:
    found = table_identity(at.table.parts)
    game = at.table.parts.game
    assert (found.table, found.game, found.title) == ("bj-1", game.name, game.title)


def test_the_instruction_is_shown_whole_and_is_no_effect() -> None:
    assert PromptShown.__struct_fields__ == (*Prompt.__struct_fields__, "words")
    assert PromptShown.__annotations__ == {**Prompt.__annotations__, "words": "str"}
    assert not issubclass(PromptShown, Effect)
