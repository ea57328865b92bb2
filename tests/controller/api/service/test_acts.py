"""Acts through the API: whose they are, what takes whom, and what the record has of them."""

from __future__ import annotations

from typing import Any

import pytest

from controller.procedure.model.game import DECISIONS, WHO
from controller.procedure.model.state import Step
from controller.table.loop import acts
from controller.table.loop.acts import NAMES
from hil.table.robots import Screen
from hil.table.robots.api_client import BadRequest, NotAllowed
from tests.support.api.at_api import FIRST, SECOND, AtApi, api_test
from tests.support.api.deeds import FIELDS, VOID, events, nothing_recorded, send
from tests.support.table.simulated.house import PINS


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
    screen = await at.dealing()
    done = await screen.act("CheckHole")
    (answer,) = done.answers
    assert (answer.event, answer.taken, answer.rows) == ("HoleChecked", False, ())
    assert answer.why
    assert answer.code
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
        with pytest.raises(NotAllowed, match="no_dealer"):
            await screen.shuffle_again()
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
    with pytest.raises(NotAllowed, match="no_dealer"):
        await first.act("CheckHole")
    assert (await first.table()).dealer == (await second.table()).dealer
    shown = (await first.table()).dealer
    assert shown is not None
    assert (shown.badge, shown.name, shown.screen) == ("D-17", "Ann Lee", "right")


@api_test()
async def test_nobody_inherits_a_screen(at: AtApi) -> None:
    """Another one that is called the same has not shown the dealer's PIN, nor the floor's."""
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    await screen.close()
    again = await at.client.open("dealer")
    assert again.name == screen.name == "dealer"
    assert (await again.table()).dealer is not None
    for act in ({"type": "CheckHole"}, VOID):
        with pytest.raises(NotAllowed):
            await send(again, act)
    # Nor does a second person of theirs make it the act of the one who has gone.
    await again.authorise(VOID, *SECOND, second=True)
    with pytest.raises(NotAllowed, match="not_authorised"):
        await send(again, VOID)
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
