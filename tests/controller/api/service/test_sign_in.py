"""Badge and PIN at a screen: who is let in, who waits, who takes whose place, what is recorded."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from controller.api.contract.messages import Authorise, SignIn
from controller.procedure.model.state import Step
from hil.table.robots import ApiProblem
from hil.table.robots.api_client import BadRequest, NoScreen, NotAllowed, NotNow, Stopped, TooMuch
from tests.support.api.at_api import ANN, FIRST, SECOND, AtApi, api_test, asked
from tests.support.table.simulated.house import PINS

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
    view = await screen.table()
    assert view.dealer is not None
    assert view.dealer.name == "Ann Lee"
    assert (await screen.sign_out()).roles == ("dealer",)
    assert (await screen.sign_out()).roles == ()
    assert (await screen.table()).dealer is None
    assert sign_ins(at) == [("signed in", "Ann Lee", ""), ("signed out", "Ann Lee", "")]


@api_test()
async def test_a_screen_that_closes(at: AtApi) -> None:
    """Surveillance and technicians leave with it; whoever deals does not leave the table."""
    screen = await at.dealing()
    assert (await screen.sign_in("S-1", PINS["S-1"], "surveillance")).life == 12 * 3600
    await screen.close()
    with pytest.raises(NoScreen) as caught:
        await screen.table()
    assert caught.value.code == "no_screen"
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
    told = [str(caught.value), str(bad.value), repr(bad.value)]
    told.append(repr(SignIn("D-17", WRONG)))
    told.append(repr(Authorise({}, "D-17", WRONG)))
    told.append((await screen.table()).__repr__())
    told += [str(bytes(one.data)) for one in at.room.records()]
    assert not any(pin in text for pin in pins for text in told)


@api_test()
async def test_what_a_sign_in_may_say(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    good = {"badge": "D-17", "pin": PINS["D-17"]}
    roles = "role: dealer, surveillance, technician"
    for role in ("floor", "manager"):
        with pytest.raises(BadRequest) as caught:
            await at.client.post("/sign-in", {**good, "role": role}, SignIn, screen.token)
        assert (caught.value.code, caught.value.error.allowed) == ("bad_field", roles)
    for sent, code in (
        ({**good, "name": "Ann"}, "unknown_field"),
        ({**good, "badge": ""}, "bad_field"),
        ({**good, "pin": 402931}, "bad_field"),
        ({**good, "pin": "4" * 65}, "bad_field"),
        ({**good, "relieve": "yes"}, "bad_field"),
        ({"pin": "402931"}, "bad_field"),
    ):
        with pytest.raises(BadRequest) as caught:
            await at.client.post("/sign-in", sent, SignIn, screen.token)
        assert (caught.value.code, caught.value.error.allowed) == (
            code,
            "badge, pin, role, relieve",
        ), sent
    assert at.whats() == []


@api_test("mega")
async def test_another_dealer_takes_the_place(at: AtApi) -> None:
    """At an open table the procedure is told of it in the same write, and the burn is asked for."""
    screen = await at.dealing()
    await at.to_step(screen, Step.WAGERING)
    other = await at.client.open("dealer")
    with pytest.raises(NotNow, match="another_dealer"):
        await other.sign_in(*SECOND)
    await other.sign_in(*SECOND, relieve=True)
    decisions = at.room.records("decision")
    assert b'"DealerRelieved"' in bytes(decisions[-1].data)
    assert decisions[-1].by.name == "Gil Ode"
    (said,) = [one for one in at.room.records("person") if one.seq == decisions[-1].seq + 1]
    assert msgspec.json.decode(said.data)["relieved"] == "Ann Lee"
    if at.table.parts.game.options.burn.on_dealer:
        assert at.state.step in (Step.RELIEF_BURN, Step.HELD)
    with pytest.raises(NotAllowed, match="no_dealer"):
        await screen.act("Cleared")
    assert sign_ins(at)[-1] == ("signed in", "Gil Ode", "Ann Lee")


@api_test()
async def test_whoever_follows_a_dealer_who_left_has_relieved_them(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.WAGERING)
    await screen.sign_out()
    await screen.sign_in(*ANN)
    assert _reliefs(at) == []
    await screen.sign_out()
    await screen.sign_in(*SECOND)
    assert _reliefs(at) == ["Gil Ode"]


@api_test()
async def test_a_closed_table_is_told_of_no_relief(at: AtApi) -> None:
    screen = await at.dealing()
    await screen.sign_in(*SECOND, relieve=True)
    assert _reliefs(at) == []
    assert len(at.room.records("refusal")) == 0
    assert sign_ins(at)[-1] == ("signed in", "Gil Ode", "Ann Lee")


def _reliefs(at: AtApi) -> list[str]:
    every = at.room.records("decision")
    return [one.by.name for one in every if b'"DealerRelieved"' in bytes(one.data)]


@api_test()
async def test_a_file_that_cannot_be_read(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    at.desk.late = True
    with pytest.raises(Stopped) as caught:
        await screen.sign_in(*ANN)
    assert caught.value.code == "unreadable"
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
    screen = await at.client.open("dealer")
    call = asyncio.create_task(screen.sign_in("D-17", WRONG))
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
        with pytest.raises(Stopped) as caught:
            await ask
        assert caught.value.code == "closing"
    assert (await screen.table()).table == "bj-1"
