"""Signing in and out, who signed for what, looks of surveillance, self-tests of devices."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from controller.api.contract.messages import Authorise, SignIn
from controller.api.service.table_api import INTERVAL, LOOKS, RECORD_TIMEOUT
from controller.audit.errors import RetryLater as RecordFull
from controller.audit.format.records import RecordEntry
from controller.people import PeopleFile
from controller.procedure.model.state import Step
from drivers.devices import LinkState
from firmware_protocol.device import InjectDefect, Plug
from hil.table.robots import Api, ApiProblem, Screen, Unreachable
from hil.table.robots.api_client import (
    BadRequest,
    NotAllowed,
    NotNow,
    Stopped,
    TooMuch,
)
from tests.support.api.at_api import (
    ANN,
    FIRST,
    SECOND,
    VOID,
    AtApi,
    api_test,
    asked,
    both_sign,
    nothing_recorded,
    refused,
    send,
)
from tests.support.api.at_port import Port, port_test
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS
from tests.support.table.typed.at_desk import change

WRONG = "806417"


def sign_ins(at: AtApi) -> list[tuple[str, str, str]]:
    found = [msgspec.json.decode(one.data) for one in at.room.records("person")]
    return [
        (one["what"], one.get("name", ""), one.get("relieved", ""))
        for one in found
        if one["what"] in ("signed in", "signed out")
    ]


@api_test()
async def test_signing_in_and_out(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    assert (await screen.table()).dealer is None
    signed = await screen.sign_in(*ANN)
    assert (signed.badge, signed.name, signed.role, signed.life) == (
        "D-17",
        "Ann Lee",
        "dealer",
        0,
    )
    shown = (await screen.table()).dealer
    assert shown is not None
    assert shown.name == "Ann Lee"
    assert [(await screen.sign_out()).roles for _ in range(2)] == [("dealer",), ()]
    assert (await screen.table()).dealer is None
    assert sign_ins(at) == [("signed in", "Ann Lee", ""), ("signed out", "Ann Lee", "")]


@api_test()
async def test_a_screen_that_closes(at: AtApi) -> None:
    """Surveillance and technicians leave with it; whoever deals does not leave the table."""
    screen = await at.dealing()
    assert (await screen.sign_in("S-1", PINS["S-1"], "surveillance")).life == 12 * 3600
    await screen.close()
    assert await refused(screen.table()) == (401, "no_screen")
    assert sign_ins(at)[-1] == ("signed out", "Dee Faro", "")
    assert (await (await at.client.open("other")).table()).dealer is not None


@api_test()
async def test_wrong_pins_and_unknown_badges_are_told_alike_and_wait(at: AtApi) -> None:
    told = []
    for badge, pin in (("D-17", WRONG), ("D-99", WRONG), ("X-1", PINS["X-1"])):
        screen = await at.client.open(f"at-{badge.lower()}")
        with pytest.raises(NotAllowed) as caught:
            await screen.sign_in(badge, pin)
        told.append((caught.value.status, caught.value.error))
    assert len(set(map(str, told))) == 1
    screen = await at.client.open("dealer")
    for _ in range(3):
        with pytest.raises(NotAllowed):
            await screen.sign_in("D-17", WRONG)
    response = await asked(
        at,
        "POST",
        "/api/v1/sign-in",
        headers={"Authorization": f"Bearer {screen.token}"},
        json={"badge": "D-17", "pin": PINS["D-17"]},
    )
    assert response.status_code == 429
    error = response.json()["error"]
    assert error["code"] == "wait"
    assert response.headers["retry-after"] == str(error["wait"])
    with pytest.raises(TooMuch) as slow:
        await screen.authorise({"type": "RoundVoided", "reason": "x"}, "D-17", WRONG)
    await asyncio.sleep(slow.value.wait)
    await screen.sign_in(*ANN)


@api_test()
async def test_no_pin_stands_anywhere(at: AtApi) -> None:
    """Not in the record, not in an answer, not in what is printed of a request."""
    screen = await at.dealing()
    pins = [ANN.pin, WRONG, FIRST.pin]
    with pytest.raises(ApiProblem) as caught:
        await screen.sign_in("D-18", WRONG)
    with pytest.raises(BadRequest) as bad:
        await at.client.post("/sign-in", {"pin": WRONG}, SignIn, screen.token)
    await screen.authorise({"type": "RoundVoided", "reason": "x"}, *FIRST)
    told = [
        str(caught.value),
        str(bad.value),
        repr(bad.value),
        repr(SignIn("D-17", WRONG)),
        repr(Authorise({}, "D-17", WRONG)),
        repr(await screen.table()),
        *(str(bytes(one.data)) for one in at.room.records()),
    ]
    assert not any(pin in text for pin in pins for text in told)


@api_test()
async def test_what_a_sign_in_may_say(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    good = {"badge": "D-17", "pin": PINS["D-17"]}
    roles, names = "role: dealer, surveillance, technician", "badge, pin, role, relieve"
    for sent, code, allowed in (
        ({**good, "role": "floor"}, "bad_field", roles),
        ({**good, "role": "manager"}, "bad_field", roles),
        ({**good, "name": "Ann"}, "unknown_field", names),
        ({**good, "badge": ""}, "bad_field", names),
        ({**good, "pin": 402931}, "bad_field", names),
        ({**good, "pin": "4" * 65}, "bad_field", names),
        ({**good, "relieve": "yes"}, "bad_field", names),
        ({"pin": "402931"}, "bad_field", names),
    ):
        with pytest.raises(BadRequest) as caught:
            await at.client.post("/sign-in", sent, SignIn, screen.token)
        assert (caught.value.code, caught.value.error.allowed) == (code, allowed), sent
    assert at.whats() == []


@api_test("mega")
async def test_another_dealer_takes_the_place(at: AtApi) -> None:
    """At an open table the procedure is told of it in the same write, and the burn is asked for."""
    screen = await at.dealing(step=Step.WAGERING)
    other = await at.client.open("dealer")
    assert await refused(other.sign_in(*SECOND)) == (409, "another_dealer")
    await other.sign_in(*SECOND, relieve=True)
    decisions = at.room.records("decision")
    assert b'"DealerRelieved"' in bytes(decisions[-1].data)
    assert decisions[-1].by.name == "Gil Ode"
    (said,) = [one for one in at.room.records("person") if one.seq == decisions[-1].seq + 1]
    assert msgspec.json.decode(said.data)["relieved"] == "Ann Lee"
    if at.table.parts.game.options.burn.on_dealer:
        assert at.state.step in (Step.RELIEF_BURN, Step.HELD)
    assert await refused(screen.act("Cleared")) == (403, "no_dealer")
    assert sign_ins(at)[-1] == ("signed in", "Gil Ode", "Ann Lee")


@api_test()
async def test_whoever_follows_a_dealer_who_left_has_relieved_them(at: AtApi) -> None:
    screen = await at.dealing(step=Step.WAGERING)
    await screen.sign_out()
    await screen.sign_in(*ANN)
    assert _reliefs(at) == []
    await screen.sign_out()
    await screen.sign_in(*SECOND)
    assert _reliefs(at) == ["Gil Ode"]


@api_test()
async def test_a_closed_table_is_told_of_no_relief(at: AtApi) -> None:
    await (await at.dealing()).sign_in(*SECOND, relieve=True)
    assert (_reliefs(at), len(at.room.records("refusal"))) == ([], 0)
    assert sign_ins(at)[-1] == ("signed in", "Gil Ode", "Ann Lee")


def _reliefs(at: AtApi) -> list[str]:
    every = at.room.records("decision")
    return [one.by.name for one in every if b'"DealerRelieved"' in bytes(one.data)]


@api_test()
async def test_a_file_that_cannot_be_read(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    at.desk.late = True
    assert await refused(screen.sign_in(*ANN)) == (503, "unreadable")
    at.desk.late = False
    await screen.sign_in(*ANN)


@api_test()
async def test_one_thing_at_a_time_at_a_screen(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    first = asyncio.create_task(screen.sign_in(*ANN))
    await asyncio.sleep(0.005)
    with pytest.raises(TooMuch) as caught:
        await screen.sign_in(*ANN)
    assert (caught.value.code, caught.value.wait) == ("busy", 1)
    await first


@api_test()
async def test_a_guess_counts_whoever_waits_for_it(at: AtApi) -> None:
    call = asyncio.create_task((await at.client.open("dealer")).sign_in("D-17", WRONG))
    await asyncio.sleep(0.005)
    call.cancel()
    await asyncio.wait((call,))
    await asyncio.sleep(1)
    assert at.whats() == ["refused"]


@api_test()
async def test_a_table_that_is_closing_takes_nothing_more(at: AtApi) -> None:
    screen = await at.dealing()
    at.served.stopping.set()
    for ask in (
        screen.sign_in(*ANN),
        screen.act("CheckHole"),
        screen.close(),
        at.client.open("other"),
    ):
        assert await refused(ask) == (503, "closing")
    assert (await screen.table()).table == "bj-1"


def file_of(folder: Path) -> PeopleFile:
    return PeopleFile(folder / "house" / "people.json", folder / "keys")


def disable(folder: Path, badge: str) -> None:
    change(file_of(folder), badge, lambda one: replace(one, disabled=True))


@pytest.mark.parametrize(("badge", "why"), [("F-2", "not_authorised"), ("D-18", "no_second")])
@api_test()
async def test_an_act_that_was_signed_by_who_is_disabled_now(
    at: AtApi, tmp_path: Path, badge: str, why: str
) -> None:
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    disable(tmp_path, badge)
    with nothing_recorded(at, "decision"), pytest.raises(NotAllowed, match=why):
        await send(screen, VOID)


@api_test(adopted=False)
async def test_an_adoption_that_was_signed_by_who_is_disabled_now(
    at: AtApi, tmp_path: Path
) -> None:
    screen = await at.client.open("dealer")
    await until(lambda: at.table.supervisor("SH-1").held is not None, 30)
    await both_sign(screen, {"type": "DeviceAdopted", "serial": "SH-1", "skip": False})
    disable(tmp_path, "D-18")
    with nothing_recorded(at, "link"), pytest.raises(NotAllowed, match="no_second"):
        await at.client.post("/devices/SH-1/adopt", {}, msgspec.Struct, screen.token)


@api_test()
async def test_a_dealer_who_is_disabled_deals_no_more(at: AtApi, tmp_path: Path) -> None:
    screen = await at.dealing()
    disable(tmp_path, "D-17")
    with nothing_recorded(at, "decision"), pytest.raises(NotAllowed, match="no_dealer"):
        await screen.act("FloorCalled")


@api_test()
async def test_where_nobody_knows_who_may_sign_the_dealer_goes_on(
    at: AtApi, tmp_path: Path
) -> None:
    """The floor's word is not taken then, and is not lost either."""
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    file_of(tmp_path).file.chmod(0o666)
    assert await refused(send(screen, VOID)) == (503, "unreadable")
    assert (await screen.act("Confirmed")).answers
    file_of(tmp_path).file.chmod(0o600)
    assert (await send(screen, VOID)).answers[0].taken


async def watching(client: Api, name: str = "watch") -> Screen:
    """A screen at which surveillance is signed in."""
    screen = await client.open(name)
    await screen.sign_in("S-1", PINS["S-1"], "surveillance")
    return screen


def looks(at: AtApi) -> list[dict[str, Any]]:
    found = [msgspec.json.decode(one.data) for one in at.room.records("person")]
    return [data for data in found if data["what"] == LOOKS]


@api_test()
async def test_a_look_stands_in_the_record_before_it_is_answered(at: AtApi) -> None:
    view = await (await watching(at.client)).table()
    assert looks(at) == [{"what": LOOKS, "badge": "S-1", "screen": "watch", "at": "table"}]
    record = at.room.records("person")[-1]
    assert (record.by.role, record.by.name) == ("surveillance", "Dee Faro")
    assert view.record.seq >= record.seq


@api_test()
async def test_a_minute_s_looks_at_one_screen_are_one(at: AtApi) -> None:
    screen, other = await watching(at.client), await watching(at.client, "other")
    began = asyncio.get_running_loop().time()
    async with asyncio.TaskGroup() as group:
        for _ in range(10):
            group.create_task(screen.table())
    assert len(looks(at)) == 1
    await other.table()
    assert [one["screen"] for one in looks(at)] == ["watch", "other"]
    while asyncio.get_running_loop().time() - began < INTERVAL - 1:
        await screen.table()
        await asyncio.sleep(5)
    assert len(looks(at)) == 2
    await asyncio.sleep(6)
    await screen.table()
    assert len(looks(at)) == 3


@port_test()
async def test_a_stream_is_a_look_when_it_begins(port: Port, client: Api) -> None:
    screen = await watching(client)
    async with aclosing(screen.stream(timeout=0)) as views:
        view = await anext(views)
        assert [one["at"] for one in looks(port.at)] == ["stream"]
        assert view.record.seq >= port.at.room.records("person")[-1].seq
    port.at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    await asyncio.sleep(INTERVAL)
    async with aclosing(screen.stream(timeout=0)) as views:
        with pytest.raises(Unreachable, match="no room on the disk"):
            await anext(views)
    assert len(looks(port.at)) == 1


@api_test()
async def test_who_is_not_surveillance_looks_without_a_word(at: AtApi) -> None:
    nobody, dealer = await at.client.open("nobody"), await at.dealing()
    for one in (nobody, dealer):
        await one.table()
    screen = await watching(at.client)
    await screen.sign_out()
    await screen.table()
    assert looks(at) == []


@api_test()
async def test_a_look_that_cannot_be_recorded_shows_nothing(at: AtApi) -> None:
    screen, nobody = await watching(at.client), await at.client.open("nobody")
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped, match="no room on the disk"):
        await screen.table()
    assert (await nobody.table()).stopped  # who is nobody watches on
    at.room.book.refusing = None
    await until(lambda: not at.table.shown.stopped, 30)
    await screen.table()
    assert len(looks(at)) == 1


@api_test()
async def test_a_disk_that_stalls_holds_up_only_who_is_to_be_recorded(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    screen, other = await watching(at.client), await watching(at.client, "other")
    nobody, dealer = await at.client.open("nobody"), await at.dealing()
    append, goes_on = at.room.book.append, asyncio.Event()

    async def stalls(*entries: RecordEntry) -> Any:
        await goes_on.wait()
        return await append(*entries)

    monkeypatch.setattr(at.room.book, "append", stalls)
    monkeypatch.setattr(at.table.table, "append", stalls)
    began = loop.time()
    looking = [asyncio.create_task(one.table()) for one in (screen, screen, other) for _ in "ab"]
    await asyncio.sleep(1)
    for one in (nobody, dealer):
        assert not (await one.table()).stopped
    assert loop.time() - began < 2
    answers = await asyncio.gather(*looking, return_exceptions=True)
    assert loop.time() - began < RECORD_TIMEOUT + 2
    assert all("nothing was recorded within 10 s" in str(one) for one in answers), answers
    slow = await nobody.table()
    assert (slow.stopped, slow.soon) == ("the record is slow: wait", True)
    assert looks(at) == []
    goes_on.set()
    await until(lambda: not at.table.shown.stopped, 30)
    await screen.table()
    assert looks(at)


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
    assert await refused(screen.self_test("SH-1")) == (409, "not_tested")
    assert [one["found"] for _, one in recorded(at)] == ["not answered"]


@api_test()
async def test_nobody_else_tests_a_device_and_nobody_at_an_open_table(at: AtApi) -> None:
    dealer = await at.dealing()
    assert await refused(dealer.self_test("SH-1")) == (403, "no_technician")
    screen = await technician(at)
    assert await refused(screen.self_test("SH-9")) == (404, "no_device")
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
