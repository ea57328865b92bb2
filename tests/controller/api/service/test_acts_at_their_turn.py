"""Acts that wait for their turn: whose they are then, what they are about, and when a signature for
one that was never done counts on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from controller.audit.errors import RetryLater as RecordFull
from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.people import NO_SIGN_INS, Act
from controller.people.records import Authorisation
from controller.people.sign_in import authority, state_after, with_given_back, without_used
from controller.procedure.model import events as e
from controller.procedure.model.state import Hold, Step
from controller.rules.irregularities import Irregularity
from controller.table.loop.loop import MAX_WAITING
from controller.table.running.table import HoldNames
from hil.table.robots import Screen
from hil.table.robots.api_client import NotAllowed, NotNow, Pin, Stopped, TooMuch
from tests.support.api.at_api import ANN, FIRST, SECOND, AtApi, api_test
from tests.support.api.deeds import VOID, events, last_event, nothing_recorded, send
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS

CY: Final = Pin("D-19", PINS["D-19"])
FLO: Final = Pin("F-3", PINS["F-3"])
"""Dealer and floor."""
SLOW: Final = 0.5
RESUME: Final = {"type": "FloorRuled", "way": "resume"}

# --- whose they are ---------------------------------------------------------------------------


async def _relieved(screen: Screen, other: Screen) -> None:
    await other.sign_in(*CY, relieve=True)


async def _signed_out(screen: Screen, other: Screen) -> None:
    await screen.sign_out()


async def _elsewhere(screen: Screen, other: Screen) -> None:
    await other.sign_in(*ANN)


async def _check(screen: Screen) -> object:
    return await screen.act("CheckHole")


async def _again(screen: Screen) -> object:
    return await screen.shuffle_again()


async def _meanwhile(
    at: AtApi, screen: Screen, change: Coroutine[Any, Any, object]
) -> asyncio.Future[Any]:
    """From here on something waits at the table that changes who deals, and the desk knows nothing
    of it yet. Its end is to be awaited."""
    at.room.book.slow = SLOW
    first = asyncio.create_task(screen.act("CheckHole"))
    await asyncio.sleep(0.1)
    second = asyncio.create_task(change)
    await asyncio.sleep(0.1)
    assert (at.table.table.waiting > 0, first.done(), second.done()) == (True, False, False)
    return asyncio.gather(first, second)


@pytest.mark.parametrize("change", [_relieved, _signed_out, _elsewhere])
@pytest.mark.parametrize("what", [_check, _again])
@api_test()
async def test_whoever_deals_no_more_when_their_act_has_its_turn_does_not_act(
    at: AtApi,
    what: Callable[[Screen], Awaitable[object]],
    change: Callable[[Screen, Screen], Coroutine[Any, Any, None]],
) -> None:
    screen, other = await at.dealing(), await at.client.open("right")
    await at.to_step(screen, Step.SHUFFLING)
    refused = [one.by.name for one in at.room.records("refusal")]
    ends = await _meanwhile(at, screen, change(screen, other))
    with pytest.raises(NotAllowed, match="does not deal here any more") as caught:
        await what(screen)
    assert caught.value.code == "no_dealer"
    await ends
    refused += ["Ann Lee"]  # what was sent before, and had its turn before
    assert [one.by.name for one in at.room.records("refusal")] == refused
    assert not any(b"looked at" in bytes(one.data) for one in at.room.records("person"))


@api_test()
async def test_whoever_deals_when_their_act_has_its_turn_acts(at: AtApi) -> None:
    """Nothing is taken from who deals on, and from who takes over."""
    screen, other = await at.dealing(), await at.client.open("right")
    await at.to_step(screen, Step.WAGERING)
    await other.sign_in(*CY, relieve=True)
    done = await other.act("CheckHole")
    assert at.room.records("refusal")[-1].seq == done.seq
    await screen.sign_in(*ANN, relieve=True)
    await screen.act("CheckHole")
    assert at.table.deals is not None
    assert (at.table.deals.badge, at.table.deals.screen) == ("D-17", "dealer")


@api_test()
async def test_the_floor_that_deals_meanwhile_is_not_their_own_floor(at: AtApi) -> None:
    screen, other = await at.dealing(), await at.client.open("right")
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FLO)
    await screen.authorise(VOID, *SECOND, second=True)
    ends = await _meanwhile(at, screen, other.sign_in(*FLO, relieve=True))
    with pytest.raises(NotAllowed, match="does not deal here any more"):
        await send(screen, VOID)
    await ends
    assert not any(isinstance(one, e.RoundVoided) for one in events(at))


# --- what they are about ----------------------------------------------------------------------


@api_test()
async def test_a_second_hold_that_looks_the_same_is_another_case(at: AtApi) -> None:
    """The floor has signed at two screens, and has ruled once."""
    screen, pit = await at.dealing(), await at.client.open("pit")
    await at.to_step(screen, Step.DEALING)
    await screen.act("FloorCalled", seat=0)
    first = at.state.holds
    for one in (screen, pit):
        await one.authorise(RESUME, *FIRST)
    assert (await send(screen, RESUME)).answers[0].taken
    await screen.act("FloorCalled", seat=0)
    assert at.state.holds == first
    nothing = nothing_recorded(at, "refusal", "decision")
    with nothing, pytest.raises(NotAllowed, match="not_authorised"):
        await send(pit, RESUME)
    assert at.state.holds
    await pit.authorise(RESUME, *FIRST)
    assert (await send(pit, RESUME)).answers[0].taken


def hold(seat: int = 0) -> Hold:
    return Hold(Irregularity.FLOOR_CALLED, Step.TURN, seat=seat)


def test_holds_are_called_by_the_entry_that_brought_them() -> None:
    first, second = hold(), hold()
    cases = HoldNames().after((), 4)
    assert cases.top == ""
    one = cases.after((first,), 5)
    assert (one.top, one.after((first,), 6)) == ("hold 5", one)
    two = one.after((first, second), 7)
    assert (two.top, two.after((first,), 8)) == ("hold 7 on 1", one)
    assert one.after((second,), 9).top == "hold 9"
    assert one.after((replace(first, card=3),), 9).top == "hold 9"
    assert len(set(cases.after((first, second), 10).names)) == 2


# --- what was never done ----------------------------------------------------------------------


async def _sign(screen: Screen) -> None:
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)


async def _once(screen: Screen) -> None:
    """They have signed for one."""
    assert (await send(screen, VOID)).answers[0].taken
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)


@api_test()
async def test_what_could_not_be_recorded_need_not_be_signed_for_again(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await _sign(screen)
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped, match="no room on the disk"):
        await send(screen, VOID)
    at.room.book.refusing = None
    await until(lambda: not at.table.shown.stopped, 30)
    await _once(screen)


@api_test()
async def test_what_found_no_room_need_not_be_signed_for_again(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await _sign(screen)
    at.room.book.slow = SLOW
    for pause in (0.1, 0.0):  # the first one is taken at once
        for _ in range(MAX_WAITING - at.table.table.waiting):
            at.table.table.later(RecordEntry("note", CONTROLLER, {"text": "busy"}))
        await asyncio.sleep(pause)
    with pytest.raises(TooMuch, match="full"):
        await send(screen, VOID)
    at.room.book.slow = 0.001
    await until(lambda: not at.table.table.waiting, 30)
    await _once(screen)


@api_test()
async def test_what_another_case_came_before_counts_when_that_is_over(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await _sign(screen)
    at.room.book.slow = SLOW
    call = asyncio.create_task(screen.act("FloorCalled", seat=0))
    await asyncio.sleep(0.1)
    with pytest.raises(NotNow, match="the table has moved on") as caught:
        await send(screen, VOID)
    assert caught.value.code == "moved_on"
    await call
    at.room.book.slow = 0.001
    assert isinstance(last_event(at), e.FloorCalled)
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)
    await screen.floor("FloorRuled", FIRST, SECOND, way="resume")
    await _once(screen)


@api_test()
async def test_what_was_refused_is_used_up(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(RESUME, *FIRST)
    assert not (await send(screen, RESUME)).answers[0].taken
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, RESUME)


VOIDS: Final = Act("RoundVoided", ("floor",), two=True, about="round 1")


def _authorised(name: str, *, second: bool) -> Authorisation:
    badge = name.lower()
    return Authorisation("floor", name, badge, badge, "dealer", VOIDS.name, VOIDS.about, second, 60)


def test_nothing_is_given_back_beside_a_new_signature() -> None:
    """A second person stands by for the one who asked, not for who asks now."""
    former = state_after(
        state_after(NO_SIGN_INS, _authorised("Bo", second=False)), _authorised("Gil", second=True)
    )
    spent = without_used(former, VOIDS, "dealer")
    assert with_given_back(spent, former, VOIDS, "dealer").authorities == former.authorities
    assert with_given_back(spent, former, VOIDS, "pit") == spent
    assert with_given_back(spent, former, replace(VOIDS, about="round 2"), "dealer") == spent
    anew = state_after(spent, _authorised("Flo", second=False))
    found = with_given_back(anew, former, VOIDS, "dealer")
    assert found == anew
    assert authority(found, VOIDS, "dealer", second=True) is None


@api_test()
async def test_a_signature_that_is_given_back_lapses_when_it_would_have(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await _sign(screen)
    await asyncio.sleep(50)
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped):
        await send(screen, VOID)
    at.room.book.refusing = None
    await asyncio.sleep(11)
    assert not at.table.shown.stopped
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)
    abouts: list[Any] = [
        msgspec.json.decode(one.data).get("about") for one in at.room.records("person")
    ]
    assert abouts.count('round 1: {"reason":"cards on the floor"}') == 2
