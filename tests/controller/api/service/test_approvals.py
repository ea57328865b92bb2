"""Acts of the floor: for which words badge and PIN stand, when two people do it, and acts that wait
for their turn: whose they are then, and when a signature for one that was never done counts on."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from msgspec.structs import replace

from controller.api.service import act_for
from controller.audit.errors import RetryLater as RecordFull
from controller.audit.format.records import CONTROLLER, Moment, Record, RecordEntry
from controller.people import NO_SIGN_INS, Act, ActSigners, Denied
from controller.people.records import Authorisation
from controller.people.sign_in import authority, state_after, with_given_back, without_used
from controller.procedure.model import events as e
from controller.procedure.model.events import Event
from controller.procedure.model.state import Due, Hold, State, Step
from controller.rules.irregularities import Irregularity, Way
from controller.table.intake import TableInput
from controller.table.loop.loop import MAX_WAITING
from controller.table.running.table import HoldNames
from hil.table.robots import Screen
from hil.table.robots.api_client import BadRequest, NotAllowed, NotNow, Pin, Stopped
from tests.support.api.at_api import (
    ANN,
    FIELDS,
    FIRST,
    SECOND,
    VOID,
    AtApi,
    api_test,
    at_api,
    both_sign,
    events,
    last_event,
    nothing_recorded,
    refused,
    run,
    send,
)
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.house import PINS
from tests.support.table.simulated.serving import DEALER


@api_test()
async def test_a_void_takes_two_people(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    assert await refused(send(screen, VOID)) == (403, "not_authorised")
    assert await refused(screen.authorise(VOID, *SECOND, second=True)) == (403, "no_first_person")
    signed = await screen.authorise(VOID, *FIRST)
    assert (signed.name, signed.role, signed.two) == ("Bo Chan", "floor", True)
    assert await refused(send(screen, VOID)) == (403, "no_second")
    assert await refused(screen.authorise(VOID, *FIRST, second=True)) == (403, "same_person")
    await screen.authorise(VOID, *SECOND, second=True)
    assert (await send(screen, VOID)).answers[0].taken
    made: Any = last_event(at)
    assert (made.actor.name, made.second.name) == ("Bo Chan", "Gil Ode")
    assert await refused(send(screen, VOID)) == (403, "not_authorised")


@pytest.mark.parametrize("kind", [e.RoundVoided, e.PaymentCorrected, e.CountersAccepted])
def test_no_house_can_let_one_person_do_it(kind: type[Event]) -> None:
    game = game_with("classic", {})
    game.jurisdiction = msgspec.structs.replace(game.jurisdiction, two_people=())
    act = act_for(kind, {"type": kind.__name__}, State(Step.TURN, 1), game, "")
    assert act is not None
    assert act.two


@api_test()
async def test_whoever_deals_is_not_their_own_floor(at: AtApi) -> None:
    screen = await at.dealing(who=FLO, step=Step.DEALING)
    assert await refused(screen.authorise(VOID, *FLO)) == (403, "deals_here")


@api_test()
async def test_what_is_sent_is_what_was_signed_for(at: AtApi) -> None:
    """A badge and PIN for one amount are none for another one."""
    screen = await at.dealing(step=Step.CLEARING)
    act = {"type": "PaymentCorrected", **FIELDS["PaymentCorrected"]}
    await both_sign(screen, act)
    for field, value in (("due", 20000), ("seat", 2), ("bet", "toke_main")):
        assert await refused(send(screen, {**act, field: value})) == (403, "not_authorised")
    assert (await send(screen, act)).answers[0].event == "PaymentCorrected"


@api_test()
async def test_a_void_is_of_the_round_that_it_was_signed_for(at: AtApi) -> None:
    loop = asyncio.get_running_loop()
    screen = await at.dealing()
    robot = await at.to_step(screen, Step.CLEARING)
    signed = loop.time()
    await both_sign(screen, VOID)
    await robot.play(lambda s: s.state.step is Step.DEALING)
    assert (at.state.round, loop.time() - signed < 60) == (2, True)
    assert await refused(send(screen, VOID)) == (403, "not_authorised")
    abouts = [msgspec.json.decode(one.data)["about"] for one in _signatures(at)]
    assert abouts[-2:] == ['round 1: {"reason":"cards on the floor"}'] * 2


def _signatures(at: AtApi) -> list[Record]:
    return [one for one in at.room.records("person") if b'"authorised"' in bytes(one.data)]


@api_test()
async def test_a_signature_lapses(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    await asyncio.sleep(61)
    assert await refused(send(screen, VOID)) == (403, "not_authorised")
    # What the dealer may do too, the dealer does then.
    call = {"type": "MisdealCalled"}
    await screen.authorise(call, *FIRST)
    await asyncio.sleep(61)
    await send(screen, call)
    assert last_event(at).actor.role == "dealer"


def test_a_ruling_takes_two_where_the_house_says_so(tmp_path: Path) -> None:
    async def main() -> None:
        game = game_with("classic", {})
        ways = dict(game.jurisdiction.ways)
        misdeal = ways[Irregularity.MISDEAL.value]
        ways[Irregularity.MISDEAL.value] = msgspec.structs.replace(
            misdeal, way=Way.FLOOR_DECIDES, options=(Way.VOID, Way.RESUME), two_people=False
        )
        game.jurisdiction = msgspec.structs.replace(game.jurisdiction, ways=ways)
        async with at_api(tmp_path, game) as at:  # type: ignore[arg-type]
            screen = await at.dealing(step=Step.DEALING)
            called = await screen.act("MisdealCalled")
            assert at.state.step is Step.HELD
            case = at.table.case
            void = {"type": "FloorRuled", "way": "void"}
            resume = {"type": "FloorRuled", "way": "resume"}
            assert (await screen.authorise(void, *FIRST)).two
            assert not (await screen.authorise(resume, *FIRST)).two
            assert await refused(send(screen, void)) == (403, "no_second")
            assert (await send(screen, resume)).answers[0].taken
            abouts = [
                msgspec.json.decode(one.data).get("about") for one in at.room.records("person")
            ]
            held = f"round 1, misdeal, {case}"
            assert abouts[-2:] == [held + ': {"way":"void"}', held + ': {"way":"resume"}']
            assert case == f"hold {called.seq}"

    run(main())


NOT_SIGNED_FOR: Final[list[tuple[dict[str, Any], str]]] = [
    ({"type": "Paid"}, "the floor does not sign for Paid"),
    ({"type": "CheckHole"}, "the floor does not sign for CheckHole"),
    ({"type": "Hit", "seat": 1, "hand": 0}, "the floor does not sign for Hit"),
    ({"type": "CardDrawn", "card": 3}, "no act 'CardDrawn'"),
    ({"type": "HoleRevealed", "card": 3, "opening": ""}, "no act 'HoleRevealed'"),
    ({}, "no act of this type"),
    ({"type": ["Paid"]}, "no act of this type"),
    ({"type": "FloorRuled", "way": "sideways"}, "FloorRuled: Invalid enum value"),
    ({"type": "FloorRuled"}, "FloorRuled"),
    ({"type": "RoundVoided", "reason": "x", "seat": 3}, "RoundVoided has no 'seat'"),
    ({"type": "RoundVoided", "reason": "x" * 501}, "up to 500 printable"),
    ({"type": "ShuffleAgain", "why": 1}, "ShuffleAgain has no 'why'"),
    ({"type": "DeviceAdopted"}, "says which device"),
    ({"type": "DeviceAdopted", "serial": "SH-1", "skip": 1}, "says which device"),
    ({"type": "DeviceAdopted", "serial": "SH-1", "by": 1}, "has no 'by'"),
]


@api_test(adopted=False)
async def test_what_the_floor_does_not_sign_for(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    for act, words in NOT_SIGNED_FOR:
        with nothing_recorded(at, "person"), pytest.raises(BadRequest) as caught:
            await screen.authorise(act, *FIRST)
        assert words in str(caught.value), act


GAME = game_with("classic", {})


def about(kind: type[Event], fields: Mapping[str, Any], state: State) -> str:
    """What the floor signs for, as text."""
    act = act_for(kind, fields, state, GAME, "")
    assert act is not None
    return act.about


HELD = State(
    step=Step.CARD_CONFIRM,
    round=4,
    holds=(Hold(Irregularity.CARD_UNREADABLE, Step.DEALING, seat=2, card=0),),
)
DUE = State(step=Step.PAYING, round=4, due=(Due(3, 0, 0, "main", "win", None, 1000, 2500, "w"),))
LOST = State(step=Step.DEVICE, holds=(Hold(Irregularity.DEVICE_LOST, Step.TURN, device="shoe"),))


@pytest.mark.parametrize(
    ("kind", "state", "words"),
    [
        (e.CardConfirmed, HELD, "round 4, card_unreadable, seat 2, AC"),
        (e.PaymentApproved, DUE, "round 4, seat 3, main, win 1500"),
        (e.CountersAccepted, LOST, "round 0, device_lost, shoe"),
        (e.MisdealCalled, DUE, "round 4"),  # whatever is paid meanwhile
        (e.TableClosed, DUE, ""),
    ],
)
def test_what_is_signed_for_in_words(kind: type[Event], state: State, words: str) -> None:
    assert about(kind, {"type": kind.__name__}, state) == words
    fields = {"type": kind.__name__, "seat": 1, "bank": 5}
    assert about(kind, fields, state) == ": ".join(filter(None, (words, '{"bank":5,"seat":1}')))


def test_hands_of_a_split_that_win_the_same_are_signed_for_one_by_one() -> None:
    first = DUE.due[0]
    second = msgspec.structs.replace(first, hand=1, turn=first.turn + 1)
    words = [
        about(e.PaymentApproved, {}, msgspec.structs.replace(DUE, due=(due,)))
        for due in (first, second)
    ]
    assert words == ["round 4, seat 3, main, win 1500", "round 4, seat 3, hand 1, main, win 1500"]


@api_test()
async def test_what_comes_before_its_turn_makes_it_another_case(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is signed for is looked at again when the act is done, and not only when it is sent."""
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    call = at.table.table.act(lambda now: TableInput((e.FloorCalled(DEALER, 0),)))
    take = at.desk.take

    def first(act: Act, screen: str, now: Moment) -> ActSigners | Denied:
        """Somebody calls the floor at the same moment."""
        call.send(None)  # the call is in the queue before this act
        return take(act, screen, now)

    monkeypatch.setattr(at.desk, "take", first)
    with pytest.raises(NotNow, match="the table has moved on"):
        await send(screen, VOID)
    assert isinstance(last_event(at), e.FloorCalled)
    assert at.state.holds


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
    screen, other = await at.dealing(step=Step.SHUFFLING), await at.client.open("right")
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
    screen, other = await at.dealing(step=Step.WAGERING), await at.client.open("right")
    await other.sign_in(*CY, relieve=True)
    done = await other.act("CheckHole")
    assert at.room.records("refusal")[-1].seq == done.seq
    await screen.sign_in(*ANN, relieve=True)
    await screen.act("CheckHole")
    assert at.table.dealer is not None
    assert (at.table.dealer.badge, at.table.dealer.screen) == ("D-17", "dealer")


@api_test()
async def test_the_floor_that_deals_meanwhile_is_not_their_own_floor(at: AtApi) -> None:
    screen, other = await at.dealing(step=Step.DEALING), await at.client.open("right")
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
    screen, pit = await at.dealing(step=Step.DEALING), await at.client.open("pit")
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
    await both_sign(screen, VOID)


async def _once(screen: Screen) -> None:
    """They have signed for one."""
    assert (await send(screen, VOID)).answers[0].taken
    assert await refused(send(screen, VOID)) == (403, "not_authorised")


@api_test()
async def test_what_could_not_be_recorded_need_not_be_signed_for_again(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    await _sign(screen)
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped, match="no room on the disk"):
        await send(screen, VOID)
    at.room.book.refusing = None
    await until(lambda: not at.table.shown.stopped, 30)
    await _once(screen)


@api_test()
async def test_what_found_no_room_need_not_be_signed_for_again(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    await _sign(screen)
    at.room.book.slow = SLOW
    for pause in (0.1, 0.0):  # the first one is taken at once
        for _ in range(MAX_WAITING - at.table.table.waiting):
            at.table.table.later(RecordEntry("note", CONTROLLER, {"text": "busy"}))
        await asyncio.sleep(pause)
    assert await refused(send(screen, VOID)) == (429, "full")
    at.room.book.slow = 0.001
    await until(lambda: not at.table.table.waiting, 30)
    await _once(screen)


@api_test()
async def test_what_another_case_came_before_counts_when_that_is_over(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
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
    assert await refused(send(screen, VOID)) == (403, "not_authorised")
    await screen.floor("FloorRuled", FIRST, SECOND, way="resume")
    await _once(screen)


@api_test()
async def test_what_was_refused_is_used_up(at: AtApi) -> None:
    screen = await at.dealing(step=Step.DEALING)
    await screen.authorise(RESUME, *FIRST)
    assert not (await send(screen, RESUME)).answers[0].taken
    assert await refused(send(screen, RESUME)) == (403, "not_authorised")


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
    screen = await at.dealing(step=Step.DEALING)
    await _sign(screen)
    await asyncio.sleep(50)
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped):
        await send(screen, VOID)
    at.room.book.refusing = None
    await asyncio.sleep(11)
    assert not at.table.shown.stopped
    assert await refused(send(screen, VOID)) == (403, "not_authorised")
    abouts: list[Any] = [
        msgspec.json.decode(one.data).get("about") for one in at.room.records("person")
    ]
    assert abouts.count('round 1: {"reason":"cards on the floor"}') == 2
