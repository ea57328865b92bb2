"""Whoever may not sign any more has signed for nothing, from the moment that the file says so."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from controller.people import PeopleFile
from controller.procedure.model.state import Step
from hil.table.robots.api_client import NotAllowed, Stopped
from tests.support.api.at_api import FIRST, SECOND, AtApi, api_test
from tests.support.api.deeds import VOID, nothing_recorded, send
from tests.support.drivers.simulated import until
from tests.support.table.typed.at_desk import change


def file_of(folder: Path) -> PeopleFile:
    return PeopleFile(folder / "house" / "people.json", folder / "keys")


def disable(folder: Path, badge: str) -> None:
    change(file_of(folder), badge, lambda one: replace(one, disabled=True))


@pytest.mark.parametrize(("badge", "why"), [("F-2", "not_authorised"), ("D-18", "no_second")])
@api_test()
async def test_an_act_that_was_signed_by_who_is_disabled_now(
    at: AtApi, tmp_path: Path, badge: str, why: str
) -> None:
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    disable(tmp_path, badge)
    with nothing_recorded(at, "decision"), pytest.raises(NotAllowed, match=why):
        await send(screen, VOID)


@api_test(adopted=False)
async def test_an_adoption_that_was_signed_by_who_is_disabled_now(
    at: AtApi, tmp_path: Path
) -> None:
    screen = await at.client.open("dealer")
    await until(lambda: at.table.supervisor("SH-1").held is not None, 30)
    adopt = {"type": "DeviceAdopted", "serial": "SH-1", "skip": False}
    await screen.authorise(adopt, *FIRST)
    await screen.authorise(adopt, *SECOND, second=True)
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
    screen = await at.dealing()
    await at.to_step(screen, Step.DEALING)
    await screen.authorise(VOID, *FIRST)
    await screen.authorise(VOID, *SECOND, second=True)
    file_of(tmp_path).file.chmod(0o666)
    with pytest.raises(Stopped, match="unreadable"):
        await send(screen, VOID)
    assert (await screen.act("Confirmed")).answers
    file_of(tmp_path).file.chmod(0o600)
    assert (await send(screen, VOID)).answers[0].taken
