"""A technician at the console: signs in at a closed table, and has devices test themselves."""

from __future__ import annotations

import asyncio
import re

import msgspec
import pytest

from controller.api.http.sse import HEARTBEAT
from controller.people.sign_in import SESSION_SECONDS
from controller.screens.common.texts import load
from drivers.devices import LinkState
from firmware_protocol.device import InjectDefect, Plug
from tests.support.drivers.simulated import until
from tests.support.screens.at_pages import AtPages, Tab, came, opened, pages_test
from tests.support.table.simulated.house import PINS

ROLE = {"role": "technician"}


async def technician(pages: AtPages) -> Tab:
    tab = pages.tab()
    await tab.open()
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
async def test_their_hour_ends_also_where_nobody_asks(pages: AtPages) -> None:
    tab = await technician(pages)
    async with tab.stream() as stream:
        await came(stream)
        assert stream.events[-1]["signed"] == "technician"
        await asyncio.sleep(SESSION_SECONDS["technician"] + 1)
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
        tests = (tab.act("SelfTest", serial="SH-1") for _ in range(3))
        tried = await asyncio.gather(*tests)
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
    again = pages.tab()
    await again.open()
    answer = (await again.sign_in("T-1", PINS["T-1"], **ROLE)).json()
    assert answer["code"] == "table_open"
    assert "technicians work while it is closed" in answer["what"]
