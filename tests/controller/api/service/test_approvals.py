"""Acts of the floor: for which words of them badge and PIN stand, and when two people do it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from controller.api.service import act_for
from controller.audit.format.records import Moment, Record
from controller.people import Act, ActSigners, Denied
from controller.procedure.model import events
from controller.procedure.model.events import Event
from controller.procedure.model.state import Due, Hold, State, Step
from controller.rules.irregularities import Irregularity, Way
from controller.table.intake import TableInput
from hil.table.robots.api_client import BadRequest, NotAllowed, NotNow, Pin
from tests.support.api.at_api import FIRST, SECOND, AtApi, api_test, at_api, run
from tests.support.api.deeds import FIELDS, VOID, last_event, nothing_recorded, send
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.house import PINS
from tests.support.table.simulated.simulated_table import DEALER

FLO = Pin("F-3", PINS["F-3"])
"""Dealer and floor."""


@api_test()
async def test_a_void_takes_two_people(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)
    with pytest.raises(NotAllowed, match="no_first_person"):
        await screen.authorise(VOID, *SECOND, second=True)
    signed = await screen.authorise(VOID, *FIRST)
    assert (signed.name, signed.role, signed.two) == ("Bo Chan", "floor", True)
    with pytest.raises(NotAllowed, match="no_second"):
        await send(screen, VOID)
    with pytest.raises(NotAllowed, match="same_person"):
        await screen.authorise(VOID, *FIRST, second=True)
    await screen.authorise(VOID, *SECOND, second=True)
    assert (await send(screen, VOID)).answers[0].taken
    made: Any = last_event(at)
    assert (made.actor.name, made.second.name) == ("Bo Chan", "Gil Ode")
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)


@pytest.mark.parametrize(
    "kind", [events.RoundVoided, events.PaymentCorrected, events.CountersAccepted]
)
def test_no_house_can_let_one_person_do_it(kind: type[Event]) -> None:
    game = game_with("classic", {})
    game.jurisdiction = msgspec.structs.replace(game.jurisdiction, two_people=())
    act = act_for(kind, {"type": kind.__name__}, State(Step.TURN, 1), game, "")
    assert act is not None
    assert act.two


@api_test()
async def test_whoever_deals_is_not_their_own_floor(at: AtApi) -> None:
    screen = await at.dealing(who=FLO)
    await at.to_step(screen, Step.DEALING)
    with pytest.raises(NotAllowed, match="deals_here"):
        await screen.authorise(VOID, *FLO)


@api_test()
async def test_what_is_sent_is_what_was_signed_for(at: AtApi) -> None:
    """A badge and PIN for one amount are none for another one."""
    screen = await at.dealing()
    await at.to_step(screen, Step.CLEARING)
    act = {"type": "PaymentCorrected", **FIELDS["PaymentCorrected"]}
    await screen.authorise(act, *FIRST)
    await screen.authorise(act, *SECOND, second=True)
    for field, value in (("due", 20000), ("seat", 2), ("bet", "toke_main")):
        with pytest.raises(NotAllowed, match="not_authorised"):
            await send(screen, {**act, field: value})
    assert (await send(screen, act)).answers[0].event == "PaymentCorrected"


@api_test()
async def test_a_void_is_of_the_round_that_it_was_signed_for(at: AtApi) -> None:
    loop = asyncio.get_running_loop()
    screen = await at.dealing()
    robot = await at.to_step(screen, Step.CLEARING)
    signed = loop.time()
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    await robot.play(lambda s: s.state.step is Step.DEALING)
    assert (at.state.round, loop.time() - signed < 60) == (2, True)
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)
    abouts = [msgspec.json.decode(one.data)["about"] for one in _signatures(at)]
    assert abouts[-2:] == ['round 1: {"reason":"cards on the floor"}'] * 2


def _signatures(at: AtApi) -> list[Record]:
    return [one for one in at.room.records("person") if b'"authorised"' in bytes(one.data)]


@api_test()
async def test_a_signature_lapses(at: AtApi) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    await asyncio.sleep(61)
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(screen, VOID)
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
            screen = await at.dealing()
            await at.to_step(screen, Step.DEALING)
            called = await screen.act("MisdealCalled")
            assert at.state.step is Step.HELD
            case = at.table.case
            void = {"type": "FloorRuled", "way": "void"}
            resume = {"type": "FloorRuled", "way": "resume"}
            assert (await screen.authorise(void, *FIRST)).two
            assert not (await screen.authorise(resume, *FIRST)).two
            with pytest.raises(NotAllowed, match="no_second"):
                await send(screen, void)
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
        (events.CardConfirmed, HELD, "round 4, card_unreadable, seat 2, AC"),
        (events.PaymentApproved, DUE, "round 4, seat 3, main, win 1500"),
        (events.CountersAccepted, LOST, "round 0, device_lost, shoe"),
        (events.MisdealCalled, DUE, "round 4"),  # whatever is paid meanwhile
        (events.TableClosed, DUE, ""),
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
        about(events.PaymentApproved, {}, msgspec.structs.replace(DUE, due=(due,)))
        for due in (first, second)
    ]
    assert words == ["round 4, seat 3, main, win 1500", "round 4, seat 3, hand 1, main, win 1500"]


@api_test()
async def test_what_comes_before_its_turn_makes_it_another_case(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is signed for is looked at again when the act is done, and not only when it is sent."""
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    call = at.table.table.act(lambda now: TableInput((events.FloorCalled(DEALER, 0),)))
    take = at.desk.take

    def first(act: Act, screen: str, now: Moment) -> ActSigners | Denied:
        """Somebody calls the floor at the same moment."""
        call.send(None)  # the call is in the queue before this act
        return take(act, screen, now)

    monkeypatch.setattr(at.desk, "take", first)
    with pytest.raises(NotNow, match="the table has moved on"):
        await send(screen, VOID)
    assert isinstance(last_event(at), events.FloorCalled)
    assert at.state.holds
