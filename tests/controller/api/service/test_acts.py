"""Acts through the API: whose they are, what is none, tables that take none, what is recorded."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
import pytest

from controller.api.service.table_api import ShieldedTasks
from controller.audit.errors import RetryLater as RecordFull
from controller.procedure.model import events as e
from controller.procedure.model.game import DECISIONS, WHO
from controller.procedure.model.state import Step
from controller.table.intake import TableInput
from controller.table.loop import acts
from controller.table.loop.acts import NAMES
from controller.table.loop.loop import ADOPTED
from hil.table.robots import Screen
from hil.table.robots.api_client import BadRequest, NotAllowed, Stopped, TooMuch
from tests.support.api.at_api import (
    ANN,
    FIELDS,
    FIRST,
    SECOND,
    VOID,
    AtApi,
    api_test,
    asked,
    both_sign,
    events,
    nothing_recorded,
    refused,
    send,
)
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS
from tests.support.table.simulated.serving import DEALER


@api_test()
async def test_a_round_is_played_by_what_the_api_shows(at: AtApi) -> None:
    """Everything that is done stands in the record with the name of whoever has signed for it."""
    robot = await at.robot(await at.dealing())
    await robot.play(lambda s: s.state.step is Step.WAGERING and s.state.round == 1)
    assert robot.refused == []
    found = events(at)
    dealers = {one.actor.name for one in found if one.actor.role == "dealer"}
    floors = {one.actor.name for one in found if one.actor.role == "floor"}
    assert (dealers, floors) == ({"Ann Lee"}, {"Bo Chan"})
    second: Any = found[0]
    assert (second.second.role, second.second.name) == ("dealer", "Gil Ode")


@api_test()
async def test_what_the_procedure_refuses_is_recorded_and_no_error(at: AtApi) -> None:
    done = await (await at.dealing()).act("CheckHole")
    (answer,) = done.answers
    assert (answer.event, answer.taken, answer.rows) == ("HoleChecked", False, ())
    assert all((answer.why, answer.code))
    refusal = at.room.records("refusal")[-1]
    assert (refusal.seq, refusal.by.name) == (done.seq, "Ann Lee")
    assert done.table.record.seq == done.seq


# --- who may ----------------------------------------------------------------------------------


@api_test()
async def test_who_is_not_the_dealer_only_watches(at: AtApi) -> None:
    await at.dealing()
    screen = await at.client.open("nobody")
    await _only_watches(at, screen)
    await screen.sign_in("S-1", PINS["S-1"], "surveillance")
    await _only_watches(at, screen)
    await screen.sign_in("T-1", PINS["T-1"], "technician")
    await _only_watches(at, screen)


async def _only_watches(at: AtApi, screen: Screen) -> None:
    with nothing_recorded(at, "refusal", "decision"):
        for name in NAMES:
            with pytest.raises(NotAllowed) as caught:
                await screen.act(name, **FIELDS.get(name, {}))
            assert caught.value.code in ("no_dealer", "not_authorised"), name
        assert await refused(screen.shuffle_again()) == (403, "no_dealer")
    assert (await screen.table()).table == "bj-1"


def test_every_act_has_an_owner() -> None:
    """The procedure refuses the acts of those who may not; here it is that none of them is left
    to nobody: the dealer's, or the floor's with badge and PIN."""
    for kind in acts.BY_PEOPLE:
        assert kind in DECISIONS or WHO[kind] & {"dealer", "floor"}, kind


@api_test()
async def test_the_dealer_acts_from_the_screen_where_they_signed_in_last(at: AtApi) -> None:
    first = await at.dealing("left")
    await first.act("CheckHole")
    second = await at.dealing("right")
    await second.act("CheckHole")
    assert await refused(first.act("CheckHole")) == (403, "no_dealer")
    assert (await first.table()).dealer == (await second.table()).dealer
    shown = (await first.table()).dealer
    assert shown is not None
    assert (shown.badge, shown.name, shown.screen) == ("D-17", "Ann Lee", "right")


@api_test()
async def test_nobody_inherits_a_screen(at: AtApi) -> None:
    """Another one that is called the same has not shown the dealer's PIN, nor the floor's."""
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    await screen.close()
    again = await at.client.open("dealer")
    assert again.name == screen.name == "dealer"
    assert (await again.table()).dealer is not None
    for act in ({"type": "CheckHole"}, VOID):
        with pytest.raises(NotAllowed):
            await send(again, act)
    # Nor does a second person of theirs make it the act of the one who has gone.
    await again.authorise(VOID, *SECOND, second=True)
    assert await refused(send(again, VOID)) == (403, "not_authorised")
    assert not any(type(one).__name__ == "RoundVoided" for one in events(at))


@pytest.mark.parametrize("field", ["actor", "second"])
@api_test()
async def test_nobody_says_who_they_are(at: AtApi, field: str) -> None:
    screen = await at.dealing()
    who = {"role": "floor", "name": "Bo Chan"}
    with nothing_recorded(at, "refusal", "decision"):
        with pytest.raises(BadRequest, match="who has signed for it"):
            await send(screen, {**VOID, field: who})
        with pytest.raises(BadRequest, match="who has signed for it"):
            await screen.authorise({**VOID, field: who}, *FIRST)


NO_ACTS: Final[list[tuple[dict[str, Any], str]]] = [
    ({"type": "CardDrawn", "card": 3}, "no act 'CardDrawn'; allowed: AllPaid"),
    ({"type": "Paid", "amount": "five"}, "Paid: Expected `int | null`"),
    ({"type": "Paid", "amount": 2**53}, "below 2^53"),
    ({"type": "Paid", "sum": 5}, "Paid has no 'sum'; allowed: amount"),
    ({"type": "CheckHole", "card": 5}, "CheckHole has no fields"),
    ({"type": "CardEntered", "card": 52}, "allowed: 0 to 51"),
    ({"type": "CardEntered"}, "missing required field `card`"),
    ({"type": "LaySpare"}, "no card that lies beside the shoe is due now"),
]


@api_test()
async def test_what_is_no_act(at: AtApi) -> None:
    screen = await at.dealing()
    for act, words in NO_ACTS:
        nothing = nothing_recorded(at, "refusal", "decision", "fault")
        with nothing, pytest.raises(BadRequest) as caught:
            await send(screen, act)
        assert words in str(caught.value), act
        assert caught.value.code == "no_act"


@api_test()
async def test_nothing_is_spent_on_a_table_that_stands_still(at: AtApi) -> None:
    """The floor has signed once, and needs not do so again when all goes on."""
    screen = await at.dealing(step=Step.DEALING)
    await both_sign(screen, VOID)
    at.room.book.refusing = RecordFull("record", "no room on the disk", "make room")
    with pytest.raises(Stopped, match="no room on the disk"):
        await screen.act("CheckHole")
    with pytest.raises(Stopped, match="no room on the disk"):
        await send(screen, VOID)
    with pytest.raises(Stopped):
        await screen.sign_in(*ANN)
    assert (await screen.table()).stopped == "record: no room on the disk; make room"
    health = await at.client.health()
    assert (health.ready, health.stopped) == (
        False,
        "record: no room on the disk; make room",
    )
    at.room.book.refusing = None
    await until(lambda: not at.table.shown.stopped, 30)
    assert (await send(screen, VOID)).answers[0].taken


@api_test()
async def test_too_much_at_once(at: AtApi) -> None:
    screen = await at.dealing()
    at.room.book.slow = 0.2
    async with asyncio.TaskGroup() as group:
        tries = [group.create_task(_tried(screen)) for _ in range(100)]
    came = [task.result() for task in tries]
    assert came.count("taken") + came.count("full, wait 1") == 100
    assert came.count("full, wait 1") >= 30
    assert len(at.room.records("refusal")) == came.count("taken")


async def _tried(screen: Screen) -> str:
    try:
        await screen.act("CheckHole")
    except TooMuch as problem:
        return f"{problem.code}, wait {problem.wait}"
    return "taken"


@api_test()
async def test_whoever_goes_away_has_acted_all_the_same(at: AtApi) -> None:
    """Whether their request is still waiting for its turn or for the disk."""
    screen = await at.dealing()
    at.room.book.slow = 0.5
    calls = [asyncio.create_task(screen.act("CheckHole")) for _ in range(3)]
    await asyncio.sleep(0.2)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    assert all(call.cancelled() for call in calls)
    await until(lambda: len(at.api.tasks) == 0, 10)
    assert len(at.room.records("refusal")) == 3


@api_test()
async def test_a_record_that_does_not_answer(at: AtApi) -> None:
    """Whoever asked hears that it may still be done; and it is done, once."""
    screen = await at.dealing()
    at.api.tasks = ShieldedTasks(1.0)
    at.room.book.slow = 2.0
    assert await refused(screen.act("CheckHole")) == (503, "no_answer")
    at.room.book.slow = 0.001
    await until(lambda: len(at.room.records("refusal")) == 1, 10)


# --- devices ----------------------------------------------------------------------------------


@api_test(adopted=False)
async def test_two_people_adopt_a_device(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    await until(lambda: at.table.supervisor("SH-1").held is not None, 30)
    (shoe,) = [one for one in (await screen.table()).devices if one.device == "shoe"]
    assert (shoe.serial, shoe.state, shoe.held) == ("SH-1", "resuming", "new_epoch")
    health = await at.client.health()
    links = {one.serial: (one.state, one.held) for one in health.links}
    assert (health.ready, links["SH-1"]) == (False, ("resuming", "new_epoch"))
    assert await refused(at.client.post("/devices/SH-1/adopt", {}, _Any, screen.token)) == (
        403,
        "not_authorised",
    )
    assert (await screen.adopt("SH-1", FIRST, SECOND)).people == ("Bo Chan", "Gil Ode")
    await until(lambda: at.table.supervisor("SH-1").state.value == "ready", 30)
    links = {one.serial: (one.state, one.held) for one in (await at.client.health()).links}
    assert links["SH-1"] == ("ready", "")
    assert await refused(screen.adopt("SH-1", FIRST, SECOND)) == (409, "nothing_held")
    # The other one was not signed for.
    await until(lambda: at.table.supervisor("SF-1").held is not None, 30)
    assert await refused(at.client.post("/devices/SF-1/adopt", {}, _Any, screen.token)) == (
        403,
        "not_authorised",
    )
    told = [msgspec.json.decode(one.data) for one in at.room.records("link")]
    adoptions = [one for one in told if one["what"] == ADOPTED]
    assert [(one["device"], one["two"]) for one in adoptions] == [("SH-1", ["Bo Chan", "Gil Ode"])]


class _Any(msgspec.Struct):
    """Whatever is answered."""


@api_test(adopted=False)
async def test_a_device_is_adopted_as_it_was_signed_for(at: AtApi) -> None:
    screen = await at.client.open("dealer")
    await until(lambda: at.table.supervisor("SH-1").held is not None, 30)
    await both_sign(screen, {"type": "DeviceAdopted", "serial": "SH-1"})
    assert await refused(
        at.client.post("/devices/SH-1/adopt", {"skip": True}, _Any, screen.token)
    ) == (403, "not_authorised")
    await at.client.post("/devices/SH-1/adopt", {}, _Any, screen.token)
    missing = await asked(
        at,
        "POST",
        "/api/v1/devices/SH-9/adopt",
        headers={"Authorization": f"Bearer {screen.token}"},
        json={},
    )
    assert (missing.status_code, missing.json()["error"]["allowed"]) == (404, "SH-1, SF-1, ST-1")


@api_test()
async def test_a_shuffler_that_stands_still(at: AtApi) -> None:
    screen = await at.dealing()
    with pytest.raises(BadRequest, match="no shuffle of the shuffler is waited for"):
        await screen.shuffle_again()
    await at.to_step(screen, Step.SHUFFLING)
    assert (await screen.shuffle_again()).answers == ()
    again = {"type": "ShuffleAgain"}
    other = await at.client.open("pit")
    await other.authorise(again, *FIRST)
    await other.shuffle_again()
    by = [one.by for one in at.room.records("person") if b"looked at" in bytes(one.data)]
    assert [(one.role, one.name) for one in by] == [
        ("dealer", "Ann Lee"),
        ("floor", "Bo Chan"),
    ]


@api_test()
async def test_a_shuffle_that_ends_before_somebody_has_looked_is_not_begun_again(
    at: AtApi, monkeypatch: pytest.MonkeyPatch
) -> None:
    await at.to_step(await at.dealing(), Step.SHUFFLING)
    done = TableInput((e.ShuffleDone(DEALER),))
    starting = at.table.devices.shuffle_starter
    assert starting is not None
    begun: list[int] = []
    monkeypatch.setattr(starting, "want", begun.append)
    first = asyncio.create_task(at.table.table.act(lambda now: done))
    await asyncio.sleep(0)  # it is in the queue
    await at.table.shuffle_again(DEALER)
    await first
    assert at.state.step is Step.LOADING
    assert begun == []
