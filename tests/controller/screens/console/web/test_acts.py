"""What is pressed at the console: what it was pressed on, whose it is, what is said of it; devices
that a technician has test themselves."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.api import service
from controller.api.contract.errors import Problem
from controller.api.http.sse import HEARTBEAT
from controller.api.service import ScreenSession, submit_act
from controller.people import service as people_service
from controller.people.sign_in import SESSION_SECONDS
from controller.procedure.model.events import TableOpened
from controller.procedure.model.state import Step
from controller.procedure.prompts import Texts
from controller.screens.common.texts import load
from controller.screens.console.web import post
from controller.screens.console.web.app import RefusalBody, refusal_of
from drivers.devices import LinkState
from firmware_protocol.device import InjectDefect, Plug
from tests.support.api.at_api import ANN, events, run
from tests.support.drivers.simulated import until
from tests.support.screens.at_pages import (
    BANK,
    ONE,
    TWO,
    AtPages,
    Tab,
    at_pages,
    came,
    opened,
    pages_test,
)
from tests.support.table.simulated.house import PINS
from tests.support.tracing import Trace, traced


@pages_test()
async def test_two_people_do_together_what_takes_two(pages: AtPages) -> None:
    tab = await pages.dealing()
    assert (await tab.act("TableOpened", ONE, bank=BANK)).json()["code"] == "no_second"
    same = await tab.act("TableOpened", {**ONE, "badge2": "F-2", "pin2": ONE["pin"]}, bank=1)
    assert same.json()["code"] == "same_person"
    wrong = await tab.act("TableOpened", {**TWO, "pin2": "000000"}, bank=BANK)
    assert wrong.json()["code"] == "not_right"
    nobody = await tab.act("TableOpened", bank=BANK)
    assert nobody.json()["code"] == "not_authorised"  # nothing was left of the first one
    assert (await tab.act("TableOpened", TWO, bank=BANK)).json()["done"]
    (event,) = events(pages.at)
    assert isinstance(event, TableOpened)
    assert event.second is not None
    assert (event.actor.name, event.second.name) == ("Bo Chan", "Gil Ode")


@pages_test()
async def test_what_is_wrong_is_said_in_the_words_of_the_house(pages: AtPages) -> None:
    """By its code; what was written for programs is left out."""
    tab = await pages.dealing()
    wrong = (await tab.act("TableOpened", {**ONE, "pin": "000000"}, bank=BANK)).json()
    assert (wrong["what"], wrong["code"]) == (load()("refused.not_right"), "not_right")
    assert wrong["allowed"] == ""
    texts = Texts({"refused.same_person": "Derselbe Mensch"})
    same = Problem(403, "same_person", "that is the same person", "another one", wait=3)
    assert refusal_of(same, texts) == RefusalBody("Derselbe Mensch", "", "same_person", 3)
    other = Problem(400, "bad_field", "seq cannot be this", "a seq")
    assert refusal_of(other, texts).what == "seq cannot be this"


@pages_test()
async def test_a_press_on_an_older_prompt_is_refused_and_a_repeated_one_does_nothing_twice(
    pages: AtPages,
) -> None:
    tab = await opened(pages)
    assert (await tab.act("ShuffleStarted")).json()["done"]
    count = len(events(pages.at))
    again = await tab.act("ShuffleStarted")
    assert (again.status_code, again.json()["code"]) == (409, "moved_on")
    assert (len(events(pages.at)), len(pages.at.room.records("refusal"))) == (count, 0)


@pages_test()
async def test_an_act_after_which_the_same_is_asked_says_that_it_was_recorded(
    pages: AtPages,
) -> None:
    """Else it would look as if nothing had been pressed, and be pressed again."""
    tab = await opened(pages)
    moved = (await tab.act("ShuffleStarted")).json()
    assert (moved["done"], moved["stays"]) == (True, False)
    await tab.open()
    again = (await tab.act("ShuffleAgain", ONE)).json()
    assert (again["done"], again["stays"], again["said"]) == (True, True, load()("doors.recorded"))


@pages_test()
async def test_two_presses_on_one_prompt_that_come_at_once_do_it_once(pages: AtPages) -> None:
    """The second is held against what is asked at its turn, not when it came."""
    tab = await opened(pages)
    count = len(events(pages.at))
    both = await asyncio.gather(tab.act("ShuffleStarted"), tab.act("ShuffleStarted"))
    assert sorted(one.status_code for one in both) == [200, 409]
    (late,) = (one.json() for one in both if one.status_code == 409)
    assert late["code"] == "moved_on"
    assert (len(events(pages.at)), pages.at.room.records("refusal")) == (count + 1, [])


@pages_test()
async def test_nobody_signs_for_what_has_come_while_a_pin_was_looked_at(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab = await opened(pages)
    assert (await tab.act("FloorCalled")).json()["done"]
    await tab.open()
    ask, slow = service.authorise, [True]

    async def while_they_look(*given: Any) -> Any:
        found = await ask(*given)
        if slow.pop() if slow else False:
            other = await opened_again(tab, pages)
            assert (await other.act("FloorRuled", ONE, way="resume")).json()["done"]
            await other.open()
            assert (await other.act("FloorCalled")).json()["done"]
        return found

    monkeypatch.setattr(post, "authorise", while_they_look)
    assert (await tab.act("FloorRuled", ONE, way="resume")).json()["code"] == "moved_on"
    monkeypatch.undo()
    await tab.open()
    assert (await tab.act("FloorRuled", ONE, way="resume")).json()["done"]


async def opened_again(tab: Tab, pages: AtPages) -> Tab:
    """The same browser, with another page of it."""
    other = pages.tab()
    other.cookies, other.secret = tab.cookies, tab.secret
    await other.open()
    return other


@pages_test()
async def test_what_the_floor_signs_for_never_becomes_the_dealers(pages: AtPages) -> None:
    await opened(pages)
    api = pages.at.api
    (screen,) = (one for one in api.screens if "dealer" in one.badges)
    call = {"type": "FloorCalled"}
    with pytest.raises(Problem, match="not"):
        await submit_act(api, screen, call, floor=True)
    assert (await submit_act(api, screen, call)).answers[0].taken


@pages_test()
async def test_surveillance_that_watches_the_console_is_recorded_first(pages: AtPages) -> None:
    tab = await opened(pages)
    api = pages.at.api
    (screen,) = (one for one in api.screens if "dealer" in one.badges)
    looks = []

    async def begins(at: ScreenSession, what: str) -> None:
        looks.append((at, what))

    api.surveillance.record_look = begins  # type: ignore[assignment,method-assign]
    await tab.open()
    async with tab.stream() as reader:
        await came(reader)
    assert looks == [(screen, "table"), (screen, "stream")]


@pages_test()
async def test_wagers_that_stations_place_leave_what_the_dealer_presses_right(
    pages: AtPages,
) -> None:
    tab = await pages.dealing()
    screen = await pages.at.client.open("robot")
    await screen.sign_in(*ANN)
    await pages.at.to_step(screen, Step.WAGERING)
    tab = await pages.open()
    assert (await tab.sign_in(*ANN)).json()["done"]
    for seat in (1, 2):
        done = await tab.act("WagerPlaced", seat=seat, bet="main", amount=1000)
        assert done.json()["done"], done.text


@pages_test()
async def test_the_floor_signs_for_what_it_saw(pages: AtPages) -> None:
    """A ruling that was pressed on one hold is not given for another one."""
    tab = await opened(pages)
    assert (await tab.act("FloorCalled")).json()["done"]
    held = pages.tab()
    held.cookies, held.secret = tab.cookies, tab.secret
    await held.open()
    first = await held.act("FloorRuled", ONE, way="resume")
    assert first.json()["done"], first.text
    await tab.open()
    assert (await tab.act("FloorCalled")).json()["done"]
    assert (await held.act("FloorRuled", ONE, way="resume")).json()["code"] == "moved_on"
    await held.open()
    assert (await held.act("FloorRuled", ONE, way="resume")).json()["done"]


@pages_test()
async def test_what_the_procedure_refuses_is_said_plainly_and_recorded(pages: AtPages) -> None:
    answer = await (await opened(pages)).act("Cleared")
    assert answer.status_code == 200
    assert not answer.json()["done"]
    assert answer.json()["said"]
    assert len(pages.at.room.records("refusal")) == 1


@pages_test()
async def test_a_table_that_closes_takes_nothing(pages: AtPages) -> None:
    tab = await pages.dealing()
    pages.at.served.stopping.set()
    answer = await tab.act("TableOpened", TWO, bank=BANK)
    assert (answer.status_code, answer.json()["code"]) == (503, "closing")
    with pytest.raises(Problem):
        pages.screens.console.streams.open(pages.screens.browsers.begin())


@pages_test()
async def test_no_pin_is_in_the_record_or_in_a_line(
    pages: AtPages, capsys: pytest.CaptureFixture[str]
) -> None:
    tab = await opened(pages)
    wrong = await tab.act("FloorCalled", {"badge": "F-2", "pin": "864209"})
    said = [wrong.text, (await tab.open()).text]
    kinds = ("person", "decision", "refusal", "fault")
    said += [str(bytes(r.data)) for kind in kinds for r in pages.at.room.records(kind)]
    text = json.dumps(said) + "".join(capsys.readouterr())
    assert not [pin for pin in (*PINS.values(), "864209") if pin in text]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"act": "", "seq": "1"}, "no_json"),
        ({"act": "[]", "seq": "1"}, "no_json"),
        ({"act": '{"type":"Paid","type":"Paid"}', "seq": "1"}, "no_json"),
        ({"act": '{"type":"CardDrawn","card":3}', "seq": "1"}, "no_act"),
        ({"act": '{"type":["x"]}', "seq": "1"}, "no_act"),
        ({"act": '{"type":"Paid","actor":"Bo"}', "seq": "{seq}"}, "no_act"),
        ({"act": '{"type":"Paid"}', "seq": ""}, "bad_field"),
        ({"act": '{"type":"Paid"}', "seq": "-1"}, "bad_field"),
        ({"act": '{"type":"Paid"}', "seq": "9" * 30}, "bad_field"),
        ({"act": '{"type":"Paid"}', "seq": "999999"}, "moved_on"),
        ({"act": '{"type":"DeviceAdopted","serial":3}', "seq": "{seq}"}, "no_device"),
        ({"act": '{"type":"DeviceAdopted","serial":"SH-1"}', "seq": "{seq}"}, "nothing_held"),
        ({"act": '{"type":"Paid"}', "seq": "{seq}", "badge": "F-2", "pin": "1"}, "no_floor_act"),
    ],
)
@pages_test()
async def test_an_act_that_is_none_is_refused_with_words(
    pages: AtPages, fields: dict[str, str], code: str
) -> None:
    tab = await pages.dealing()
    before = len(pages.at.room.records("decision"))
    given = {name: text.replace("{seq}", str(tab.seq)) for name, text in fields.items()}
    answer = await tab.post("/act", **given)
    said = answer.json()
    assert answer.status_code >= 400
    assert said["code"] == code, said
    assert said["what"]
    assert set(said) == {"what", "allowed", "code", "wait"}
    assert len(pages.at.room.records("decision")) == before


DEVICES = ("drivers/", "firmware_protocol/")
"""Devices are told of the new state by tasks of their own."""


WAGER = {"seat": 1, "bet": "main", "amount": 1000}


@pytest.mark.parametrize(
    ("kind", "fields", "step", "limit"),
    [
        ("WagerPlaced", WAGER, Step.WAGERING, 45),
        ("ShuffleCalled", {}, Step.WAGERING, 45),
        ("Paid", {}, Step.PAYING, 45),  # the record is signed as well
    ],
)
def test_a_press(tmp_path: Path, kind: str, fields: dict[str, Any], step: Step, limit: int) -> None:
    traces: list[Trace] = []

    async def main() -> None:
        async with at_pages(tmp_path) as pages:
            await pages.at.to_step(await pages.at.dealing(), step)
            tab = await pages.dealing()
            with traced() as trace:
                answer = await tab.act(kind, **fields)
            assert answer.json()["done"], answer.text
            traces.append(trace.without(DEVICES))

    run(main())
    (found,) = traces
    assert "controller/table/loop/loop.py" in found.files
    assert len(found.files) <= limit, found.files


ROLE = {"role": "technician"}
MINUTE = 60
"""Their hour, in a shorter test."""


async def technician(pages: AtPages) -> Tab:
    tab = await pages.open()
    answer = await tab.sign_in("T-1", PINS["T-1"], **ROLE)
    assert answer.json()["done"], answer.text
    assert "may test the devices" in answer.json()["said"]
    return tab


async def buttons(tab: Tab) -> list[str]:
    return re.findall(r"Test [a-z ]+ [A-Z]{2}-[0-9]", (await tab.open()).text)


@pages_test()
async def test_each_device_is_offered_and_what_it_finds_is_said_and_recorded(
    pages: AtPages,
) -> None:
    other = pages.tab()
    tab = await technician(pages)
    assert await buttons(tab) == [
        "Test shoe reader SH-1",
        "Test shuffler SF-1",
        "Test station ST-1",
    ]
    assert await buttons(other) == []
    answer = (await tab.act("SelfTest", serial="SH-1")).json()
    assert answer == {
        "done": True,
        "said": "SH-1 has tested itself: nothing is wrong.",
        "stays": True,
    }
    pages.at.room.shoe.request(InjectDefect(code="motor", arg=2))
    answer = (await tab.act("SelfTest", serial="SH-1")).json()
    assert answer["said"] == "SH-1 has tested itself and found: motor 2."
    told = [msgspec.json.decode(one.data) for one in pages.at.room.records("person")]
    assert [one["found"] for one in told if one["what"] == "self test"] == ["none", "motor"]
    assert (await tab.post("/sign-out")).json()["done"]
    assert await buttons(tab) == []


@pages_test()
async def test_nobody_else_tests_anything(pages: AtPages) -> None:
    dealer = await pages.dealing()
    assert await buttons(dealer) == []
    assert (await dealer.act("SelfTest", serial="SH-1")).json()["code"] == "no_technician"
    tab = await technician(pages)
    unknown = await tab.act("SelfTest", serial="XX-9")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "no_device")
    bad = await tab.sign_in("T-1", PINS["T-1"], role="floor")
    assert (bad.status_code, bad.json()["allowed"]) == (400, "dealer or technician")


@pages_test()
async def test_their_hour_ends_also_where_nobody_asks(
    pages: AtPages, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        people_service, "SESSION_SECONDS", {**SESSION_SECONDS, "technician": MINUTE}
    )
    tab = await technician(pages)
    async with tab.stream() as stream:
        await came(stream)
        assert stream.events[-1]["signed"] == "technician"
        await asyncio.sleep(MINUTE + 1)
        assert pages.at.served.desk.expire(pages.at.served.moment())
        await asyncio.sleep(HEARTBEAT)
        assert stream.events[-1]["signed"] == ""
    assert (await tab.act("SelfTest", serial="SH-1")).json()["code"] == "no_technician"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        (Plug(connected=False), "not_tested"),
        (None, "test_busy"),
    ],
)
@pages_test()
async def test_why_nothing_came_of_it(pages: AtPages, fault: Plug | None, code: str) -> None:
    tab = await technician(pages)
    if fault is None:  # several at once
        tried = await asyncio.gather(*(tab.act("SelfTest", serial="SH-1") for _ in range(3)))
    else:
        pages.at.room.shoe.request(fault)
        shoe = pages.at.table.supervisor("SH-1")
        await until(lambda: shoe.state is not LinkState.READY)
        tried = [await tab.act("SelfTest", serial="SH-1")]
    said = [one.json() for one in tried]
    assert code in {one.get("code", "") for one in said}
    for one in said:
        assert one.get("done") or one["what"] == load()(f"refused.{one['code']}")


@pages_test()
async def test_who_signs_in_here_takes_the_place_of_who_was_signed_in(pages: AtPages) -> None:
    """The page says so when it is told, though its head is not drawn anew."""
    tab = await technician(pages)
    assert 'data-signed="technician"' in (await tab.open()).text
    async with tab.stream() as stream:
        await came(stream)
        assert (await tab.post("/sign-out")).json()["done"]
        await until(lambda: stream.events[-1]["signed"] == "", 60)
    assert 'data-signed=""' in (await tab.open()).text


@pages_test()
async def test_a_technician_has_no_business_at_an_open_table(pages: AtPages) -> None:
    tab = await technician(pages)
    await opened(pages)
    assert await buttons(tab) == []
    late = await tab.act("SelfTest", serial="SH-1")
    assert (late.status_code, late.json()["code"]) == (409, "table_open")
    again = await pages.open()
    answer = (await again.sign_in("T-1", PINS["T-1"], **ROLE)).json()
    assert answer["code"] == "table_open"
    assert "technicians work while it is closed" in answer["what"]
