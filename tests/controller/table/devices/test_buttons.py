"""Buttons and lamps of the stations at a table that is served: armed for what is legal, heard once,
lit for as long as somebody lives who wants it."""

import asyncio
from pathlib import Path
from typing import Any, Final

import pytest

from controller.procedure.model import events as e
from controller.procedure.model.state import Step
from controller.rules.irregularities import Way
from controller.table.intake import DeviceSettings
from drivers.devices.station import LEASE_MS
from firmware_protocol.device import Chord, Freeze, LetGo, Plug, Press
from hil.table.robots import BUTTONS
from hil.table.robots.surroundings import mechanism
from tests.support.asynchronous import in_turn, simulated, simulated_in
from tests.support.drivers.simulated import until
from tests.support.table.simulated.telling import Setting, Told, opened

STANDING: Final = DeviceSettings(
    standing={1: (("main", 2500), ("buster", 500)), 2: (("main", 1000),)},
)
MEGA: Final = Setting("mega", stations=True, house=STANDING, wagers=(), plan={})
SF21X: Final = Setting("sf21x", stations=True, plan={1: "hit stand"})
SEATS: Final = range(1, 8)
ALWAYS: Final = {"call"}
"""Of a seat that plays, while the table is not held."""
RESTING: Final = 0.2
"""Seconds after which all that was wanted of a station is done."""


def lamps(t: Told, seat: int) -> dict[str, Any]:
    found: dict[str, Any] = mechanism(t.station)["seats"][str(seat)]["lamps"]
    return found


def token(t: Told, seat: int) -> int:
    return int(mechanism(t.station)["seats"][str(seat)]["token"])


def hand(t: Told, *hands: Any) -> None:
    for one in hands:
        t.station.request(one)


# --- the bet button ---------------------------------------------------------------------------


@simulated_in(opened, MEGA)
async def test_the_bet_button_places_the_standing_wager(t: Told) -> None:
    """Bet by bet; then it is dark. Other amounts the dealer enters, and the button offers its own
    again."""
    await in_turn(
        t.to_step(Step.WAGERING),
        t.presses(1, "bet"),
        t.presses(1, "bet"),
    )
    assert not await t.lit(1, "bet")
    assert not await t.lit(3, "bet")  # nothing stands there
    placed = [one.event for one in t.made() if isinstance(one.event, e.WagerPlaced)]
    assert [(one.actor.role, one.seat, one.bet, one.amount) for one in placed] == [
        ("player", 1, "main", 2500),
        ("player", 1, "buster", 500),
    ]
    await t.does("WagerPlaced", seat=1, bet="main", amount=4000)
    assert await t.lit(1, "bet")
    await t.presses(1, "bet")
    assert [(seat.main, seat.amount("buster")) for seat in t.state.seats] == [(2500, 500)]
    assert [data["ignored"] for data in t.pressed() if "ignored" in data] == []
    await t.to_step(Step.TURN)
    await t.to_end()


@simulated
async def test_a_wager_that_the_house_refuses_lights_no_button(tmp_path: Path) -> None:
    """A standing wager below the minimum is none that could be placed."""

    async with opened(tmp_path, MEGA._replace(options={"limits.main.min": 2000})) as t:
        await t.to_step(Step.WAGERING)
        assert await t.lit(1, "bet")
        assert not await t.lit(2, "bet")


# --- armed for what is legal ------------------------------------------------------------------


@pytest.mark.parametrize("game", ["maxtime", "sf21x", "mega"])
@simulated
async def test_exactly_the_legal_choices_are_armed(game: str, tmp_path: Path) -> None:
    """At each step of a round, of the seat that is asked; and of no other seat any."""
    cards = ("8c", "8d", "As", "8h", "3d", "9h", "3c", "Td", "5c", "9d", "4c")
    plan = {1: "insure split hit double", 2: "decline double"}

    async with opened(tmp_path, Setting(game, cards=cards, plan=plan, stations=True)) as t:
        await t.to_deal(1)
        asked = 0
        while not t.at(Step.WAGERING):
            await asyncio.sleep(RESTING)
            legal = {BUTTONS.get(choice, choice) for choice in t.prompt.choices}
            legal -= {"confirm"}
            if "withdraw" in legal:
                legal = legal - {"withdraw"} | {"no"}
            for seat in SEATS:
                plays = any(one.number == seat for one in t.state.seats)
                its = legal if seat == t.prompt.seat else set()
                assert set(t.armed(seat)) == (its | ALWAYS if plays else set()), t.words
            asked += bool(legal)
            await t.robot.step()
        assert asked >= 8


@simulated_in(opened, Setting(stations=True))
async def test_hand_signals_leave_the_decision_buttons_dark(t: Told) -> None:
    await t.to_step(Step.TURN)
    await asyncio.sleep(RESTING)
    assert t.armed(1) == ["call"]
    hand(t, Press(seat=1, button="hit"))
    await asyncio.sleep(1)
    await t.stands(Step.TURN)
    assert t.pressed() == []  # what is not armed counts for no press at the station itself
    await t.to_end()
    assert "player" not in {one.event.actor.role for one in t.made()}


# --- late, repeated, chorded ------------------------------------------------------------------


async def decided(t: Told) -> list[tuple[str, str]]:
    await asyncio.sleep(1)
    events = [one.event for one in t.made() if isinstance(one.event, e.Decision)]
    return [(type(event).__name__, event.actor.role) for event in events]


@simulated_in(opened, SF21X)
async def test_a_press_that_bounces_counts_once(t: Told) -> None:
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    hand(t, Press(seat=1, button="hit", bounces=9))
    assert await decided(t) == [("Hit", "player")]
    await t.to_end()


@simulated_in(opened, SF21X)
async def test_a_button_that_is_pressed_again_and_again(t: Told) -> None:
    """The first press is the answer; the next one is none, until the seat is asked again."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    first = token(t, 1)
    for _ in range(4):
        hand(t, Press(seat=1, button="hit", held_ms=30))
        await asyncio.sleep(0.1)
    assert await decided(t) == [("Hit", "player")]
    await t.stands(Step.HAND_CARD)
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    assert token(t, 1) != first
    await t.to_end()


@pytest.mark.parametrize("buttons", [("hit", "stand"), ("stand", "hit"), ("double", "surrender")])
@simulated_in(opened, SF21X)
async def test_several_buttons_at_once(t: Told, buttons: tuple[Any, ...]) -> None:
    """The one that went down first counts; the others are recorded with why they do not."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, buttons[1])
    hand(t, Chord(seat=1, buttons=buttons))
    assert await decided(t) == [(buttons[0].capitalize(), "player")]
    chorded = t.pressed()
    assert [data["button"] for data in chorded] == list(buttons)
    assert [data.get("ignored", "") for data in chorded] == ["", "it came too late"]
    await t.to_end()


@simulated_in(opened, SF21X)
async def test_a_press_that_comes_too_late(t: Told) -> None:
    """It lay in the station's ring while the cable was out; the dealer has entered the decision
    meanwhile."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, "stand")
    hand(t, Press(seat=1, button="stand"))
    hand(t, Plug(connected=False))
    await t.does("Hit", seat=1, hand=0)
    await t.draws()
    before = t.state
    hand(t, Plug(connected=True))
    await until(lambda: bool(t.pressed()), 10)
    assert [data["ignored"] for data in t.pressed()] == ["it came too late"]
    assert t.state == before
    await t.to_end()
    assert (await decided(t))[0][0] == "Hit"


@simulated_in(opened, SF21X)
async def test_a_button_that_is_held_down_is_no_answer_to_the_next_question(t: Told) -> None:
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    hand(t, Press(seat=1, button="hit", held_ms=None))
    await in_turn(
        t.comes_to(Step.HAND_CARD),
        t.to_step(Step.TURN),
        asyncio.sleep(20),
        t.stands(Step.TURN),
    )
    assert "ButtonStuck" in t.whats("device")
    hand(t, LetGo(seat=1, button="hit"))
    assert [name for name, _ in await decided(t)] == ["Hit"]
    await t.to_end()


# --- lamps on a lease -------------------------------------------------------------------------


@simulated_in(opened, SF21X)
async def test_lamps_are_leased_and_the_lease_is_taken_anew(t: Told) -> None:
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    for _ in range(60):
        await asyncio.sleep(LEASE_MS / 500)
        shown = lamps(t, 1)
        assert (shown["rgb"], shown["pattern"]) == ([0, 0, 255], "steady")
        assert "hit" in t.armed(1)
    assert lamps(t, 5)["pattern"] == "off"
    await t.to_end()


@simulated_in(opened, SF21X)
async def test_lamps_and_buttons_without_a_controller_are_safe_by_themselves(t: Told) -> None:
    """Nobody takes their leases anew: the lamps go dark, and no button counts."""
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    hand(t, Plug(connected=False))
    await asyncio.sleep(LEASE_MS / 1000 + 0.1)
    assert lamps(t, 1)["pattern"] == "off"
    await until(lambda: not t.armed(1), 10)
    hand(t, Press(seat=1, button="hit"))
    await asyncio.sleep(1)
    hand(t, Plug(connected=True))
    assert await lit_again(t)
    assert (t.pressed(), lamps(t, 1)["rgb"]) == ([], [0, 0, 255])
    await t.to_end()


@simulated_in(opened, SF21X)
async def test_a_station_that_hangs_is_lit_again_when_it_is_back(t: Told) -> None:
    await t.to_step(Step.TURN)
    assert await t.lit(1, "hit")
    hand(t, Freeze(on=True))
    await asyncio.sleep(20)
    hand(t, Freeze(on=False))
    assert await lit_again(t)
    await t.stands(Step.TURN)
    await t.to_end()


async def lit_again(t: Told) -> bool:
    await until(lambda: "hit" in t.armed(1) and lamps(t, 1)["pattern"] == "steady", 30)
    return True


@simulated_in(opened, SF21X)
async def test_lamps_tell_who_is_asked_who_has_won_and_that_the_table_is_held(t: Told) -> None:
    await t.to(lambda s: len(s.seats) == 2)
    await asyncio.sleep(RESTING)
    assert lamps(t, 1)["rgb"] == [0, 255, 0]  # accepted
    await t.to_step(Step.TURN)
    await asyncio.sleep(RESTING)
    assert [lamps(t, seat)["rgb"] for seat in (1, 2)] == [[0, 0, 255], [0, 0, 0]]
    await t.does("FloorCalled")
    await asyncio.sleep(RESTING)
    held = [lamps(t, seat) for seat in SEATS]
    assert {(tuple(one["rgb"]), one["pattern"]) for one in held} == {((255, 0, 0), "blink")}
    assert all(60_000 / one["period_ms"] < 3 * 60 for one in held)  # never over 3 a second
    assert [t.armed(seat) for seat in SEATS] == [[]] * 7
    await t.ruled(t.state.holds[-1].what, Way.RESUME)
    await t.to(lambda s: s.step is Step.PAYING and s.due[0].seat == 1)
    await asyncio.sleep(RESTING)
    assert (lamps(t, 1)["rgb"], lamps(t, 1)["pattern"]) == ([0, 255, 0], "blink")
    await t.to_end()
