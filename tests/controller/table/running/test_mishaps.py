"""What goes wrong in the middle of a round: cables, covers, cards, the disk. The table is held
where it touches the outcome, people find a way on, and the record stands by itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller.procedure.model import events
from controller.procedure.model.state import Step
from controller.table.devices.links import LOST_AFTER
from firmware_protocol.device import (
    CutPower,
    Draw,
    Freeze,
    MoveCover,
    Plug,
    Retract,
    SetJam,
    TamperWith,
)
from hil.table.robots.robot import mechanism
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.table.simulated.mishaps import CARDS, is_ready
from tests.support.table.simulated.serving import right, served, serving
from tests.support.table.simulated.simulated_table import SHOE, STATION, room

# --- devices that are away --------------------------------------------------------------------


@simulated
async def test_a_shoe_that_is_unplugged_in_a_round(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Plug(connected=False))
        await until(lambda: one.at(Step.DEVICE), LOST_AFTER + 1)
        assert one.state.lost == ("shoe",)
        await asyncio.sleep(60)
        assert one.at(Step.DEVICE)
        one.room.shoe.request(Plug(connected=True))
        await until(lambda: one.at(Step.FELT), 10)
        await one.to_end()
    assert [type(event).__name__ for event in one.events()].count("DeviceLost") == 1
    right(one.room)


@simulated
async def test_a_cable_that_is_touched_holds_nobody_up(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Plug(connected=False))
        await asyncio.sleep(0.3)
        one.room.shoe.request(Plug(connected=True))
        await until(lambda: is_ready(one, SHOE), LOST_AFTER)
        await one.to_end()
    assert not [event for event in one.events() if isinstance(event, events.DeviceLost)]
    assert one.whats("link").count("PortGone") == 1
    right(one.room)


@simulated
async def test_a_frozen_shoe_is_a_lost_one(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Freeze(on=True))
        await until(lambda: one.at(Step.DEVICE), 30)
        one.room.shoe.request(Freeze(on=False))
        await until(lambda: one.at(Step.FELT), 30)
        await one.to_end()
    right(one.room)


@simulated
async def test_a_shoe_that_starts_in_the_middle_of_a_draw_tells_the_card_once(
    tmp_path: Path,
) -> None:
    async with serving(tmp_path, "classic", *CARDS) as one:
        await one.to(lambda s: s.step is Step.DEALING and s.dealt == 2)
        await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
        one.room.shoe.request(CutPower(at="after_commit", off_ms=300))
        one.room.shoe.request(Draw())
        await until(lambda: one.state.dealt == 3, 20)
        await one.to_end()
        assert one.state.shoe.rounds == 1
    felt = [one for one in one.data("device") if one["what"] in ("CardSeen", "ShoeCardRead")]
    positions = [data["pos"] for data in felt]
    assert sorted(set(positions)) == list(range(1, max(positions) + 1))
    right(one.room)


@simulated
async def test_a_station_that_is_away_is_told_and_stops_nobody(tmp_path: Path) -> None:
    """Where players may decide by hand signals too, the dealer enters them."""
    async with serving(tmp_path, "mega") as one:
        await one.to_step(Step.TURN)
        assert one.room.station is not None
        one.room.station.request(Plug(connected=False))
        await until(lambda: one.state.lost == ("station",), LOST_AFTER + 1)
        assert one.at(Step.TURN)
        await one.to_end()
        one.room.station.request(Plug(connected=True))
        await until(lambda: one.state.lost == (), 10)
        await until(lambda: is_ready(one, STATION))
    right(one.room)


@simulated
async def test_a_lost_shoe_that_two_people_accept_lets_the_floor_void(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Plug(connected=False))
        await until(lambda: one.at(Step.DEVICE), LOST_AFTER + 1)
        await one.robot.act("CountersAccepted", "two")
        assert one.at(Step.FELT)
        await one.robot.act("FeltConfirmed")
        assert one.at(Step.TURN)
        await one.robot.act("RoundVoided", "two", reason="the shoe is broken")
        await one.to_step(Step.CLEARING)
    right(one.room)


# --- the shoe ---------------------------------------------------------------------------------


@simulated
async def test_a_cover_that_is_opened_in_a_round(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(MoveCover(open=True))
        await until(lambda: one.at(Step.DEVICE))
        one.room.shoe.request(TamperWith(source="reader"))
        one.room.shoe.request(MoveCover(open=False))
        await asyncio.sleep(5)
        assert one.at(Step.DEVICE)  # somebody is at the reader still
        one.room.shoe.request(TamperWith(source="reader", active=False))
        await until(lambda: one.at(Step.FELT))
        await one.to_end()
    right(one.room)


@simulated
async def test_a_jam_is_there_still_after_a_start(tmp_path: Path) -> None:
    """It was told before, and is not told again: the shoe says how it is when it is found."""
    async with room(tmp_path, "classic") as made:
        async with served(made) as one:
            await one.to_step(Step.TURN)
            made.shoe.request(SetJam(code="stuck"))
            await until(lambda: one.at(Step.DEVICE))
            await asyncio.sleep(1)
        async with served(made) as two:
            await until(lambda: two.at(Step.FELT), 20)
            await two.robot.act("FeltConfirmed")
            await asyncio.sleep(20)
            assert two.at(Step.DEVICE)
            made.shoe.request(SetJam(code=None))
            await two.to_end()
        right(made)


@simulated
async def test_a_card_forced_out_is_the_next_one(tmp_path: Path) -> None:
    """Nobody has seen it: it is bound and sealed, and must be used."""
    async with serving(tmp_path, "classic", *CARDS) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Draw(force=True))
        await until(lambda: one.state.spare is not None)
        assert one.state.spare is not None
        assert one.state.spare.card == -1
        await one.to_end()
    laid = [event for event in one.events() if isinstance(event, events.CardDrawn) and event.spare]
    assert [event.card for event in laid] == [9]  # the ten of clubs, at its place
    right(one.room)


@simulated
async def test_a_card_that_goes_back_is_people_s_to_look_for(tmp_path: Path) -> None:
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.shoe.request(Retract())
        await until(lambda: one.at(Step.DEVICE))
        await one.robot.act("CountersAccepted", "two")
        await one.robot.act("FeltConfirmed")
        await one.robot.act("RoundVoided", "two", reason="a card is back in the shoe")
    right(one.room)


@pytest.mark.parametrize("read", ["low", "unreadable", "too_fast"])
@simulated
async def test_a_card_that_is_not_read_is_entered_from_the_felt(read: str, tmp_path: Path) -> None:
    async with serving(tmp_path, "classic", *CARDS) as one:
        await one.to(lambda s: s.step is Step.DEALING and s.dealt == 1)
        await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
        one.room.shoe.request(Draw(read=read))  # type: ignore[arg-type]
        await until(lambda: one.at(Step.CARD_ENTRY, Step.HELD))
        await one.to_end()
    entered = [event.card for event in one.events() if isinstance(event, events.CardEntered)]
    assert entered == [20]  # the eight of diamonds
    right(one.room)


@simulated
async def test_two_cards_that_come_together(tmp_path: Path) -> None:
    async with serving(tmp_path, "classic", *CARDS) as one:
        await one.to(lambda s: s.step is Step.DEALING and s.dealt == 1)
        await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
        one.room.shoe.request(Draw(double=True))
        await until(lambda: len(one.state.holds) == 2)
        assert [held.what.value for held in one.state.holds] == [
            "card_unreadable",
            "unknown_card",
        ]
        await one.robot.act("FloorRuled", "two", way="discard")
        assert one.at(Step.CARD_ENTRY)
        await one.robot.act("CardEntered", card=20)
        await one.robot.act("CardConfirmed", "floor")
        await one.to_end()
    right(one.room)
