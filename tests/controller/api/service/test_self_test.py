"""A technician has devices test themselves: while the table is closed, and recorded by name."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from controller.procedure.model.state import Step
from drivers.devices import LinkState
from firmware_protocol.device import InjectDefect, Plug
from hil.table.robots import Screen
from hil.table.robots.api_client import NotAllowed, NotNow, Unknown
from tests.support.api.at_api import FIRST, SECOND, AtApi, api_test
from tests.support.api.deeds import nothing_recorded
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS


async def technician(at: AtApi) -> Screen:
    screen = await at.client.open("bench")
    await screen.sign_in("T-1", PINS["T-1"], "technician")
    return screen


def recorded(at: AtApi) -> list[tuple[str, dict[str, Any]]]:
    """Those that stand in the record, and by whom."""
    every = [(one.by, msgspec.json.decode(one.data)) for one in at.room.records("person")]
    return [(f"{by.role} {by.name}", one) for by, one in every if one["what"] == "self test"]


@api_test()
async def test_what_a_device_finds_stands_in_the_record_by_name(at: AtApi) -> None:
    screen = await technician(at)
    done = await screen.self_test("SH-1")
    assert (done.device, done.name, done.found) == ("shoe", "Eve Pond", "none")
    at.room.shoe.request(InjectDefect(code="motor", arg=2))
    done = await screen.self_test("SH-1")
    assert (done.found, done.arg) == ("motor", 2)
    said = {"what": "self test", "device": "shoe", "serial": "SH-1"}
    assert recorded(at) == [
        ("technician Eve Pond", {**said, "found": "none", "detail": ""}),
        ("technician Eve Pond", {**said, "found": "motor", "detail": "2"}),
    ]


@api_test()
async def test_a_device_that_does_not_answer(at: AtApi) -> None:
    screen = await technician(at)
    shoe = at.table.supervisor("SH-1")
    at.room.shoe.request(Plug(connected=False))
    await until(lambda: shoe.state is not LinkState.READY)
    with pytest.raises(NotNow, match="not_tested"):
        await screen.self_test("SH-1")
    assert [one["found"] for _, one in recorded(at)] == ["not answered"]


@api_test()
async def test_nobody_else_tests_a_device_and_nobody_at_an_open_table(at: AtApi) -> None:
    dealer = await at.dealing()
    with pytest.raises(NotAllowed, match="no_technician"):
        await dealer.self_test("SH-1")
    screen = await technician(at)
    with pytest.raises(Unknown, match="no_device"):
        await screen.self_test("SH-9")
    await at.to_step(dealer, Step.WAGERING)
    with nothing_recorded(at, "person"), pytest.raises(NotNow, match="table_open"):
        await screen.self_test("SH-1")


@api_test()
async def test_a_table_that_opens_meanwhile_is_told_of(at: AtApi) -> None:
    screen, floor = await technician(at), await at.client.open("floor")
    testing = asyncio.create_task(screen.self_test("SH-1"))
    await asyncio.sleep(0.1)
    await floor.floor("TableOpened", FIRST, SECOND, bank=100_000)
    assert not testing.done()
    assert (await testing).found == "none"
    ((_, said),) = recorded(at)
    assert said["detail"] == "the table was opened meanwhile"
