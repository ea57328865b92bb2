"""What goes wrong in the middle of a round: cables, covers, cards, the disk. The table is held
where it touches the outcome, people find a way on, and the record stands by itself."""

import asyncio
import errno
from pathlib import Path

import pytest

from controller.audit.errors import LogFailed
from controller.procedure.model import events
from controller.procedure.model.effects import Prompt
from controller.procedure.model.state import Step
from controller.table.devices.links import LOST_AFTER
from controller.table.devices.outputs import NONE_RUNS
from controller.table.loop import BadAct, TableStopped
from controller.table.loop.loop import SLOW_AFTER
from firmware_protocol.device import (
    CutPower,
    Draw,
    Freeze,
    Load,
    MoveCover,
    Plug,
    Press,
    Put,
    Retract,
    SetJam,
    ShufflePace,
    TamperWith,
)
from hil.table.robots import PlayerChoice
from hil.table.robots.robot import lit, mechanism
from tests.support.asynchronous import in_turn, raised, simulated, simulated_in
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import (
    CARDS,
    DEALER,
    FLOOR,
    ROOMLESS,
    SHOE,
    STATION,
    Room,
    Served,
    is_ready,
    kept,
    served,
    serving,
    verified,
)

# --- devices that are away --------------------------------------------------------------------


@simulated_in(verified)
async def test_a_shoe_that_is_unplugged_in_a_round(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Plug(connected=False)),
        one.comes_to(Step.DEVICE, LOST_AFTER + 1),
    )
    assert one.state.lost == ("shoe",)
    await in_turn(
        asyncio.sleep(60),
        one.stands(Step.DEVICE),
        one.asked(one.room.shoe, Plug(connected=True)),
        one.comes_to(Step.FELT, 10),
        one.to_end(),
    )
    assert [type(event).__name__ for event in one.events()].count("DeviceLost") == 1


@simulated_in(verified)
async def test_a_cable_that_is_touched_holds_nobody_up(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Plug(connected=False)),
        asyncio.sleep(0.3),
        one.asked(one.room.shoe, Plug(connected=True)),
        until(lambda: is_ready(one, SHOE), LOST_AFTER),
        one.to_end(),
    )
    assert not [event for event in one.events() if isinstance(event, events.DeviceLost)]
    assert one.whats("link").count("PortGone") == 1


@simulated_in(verified)
async def test_a_frozen_shoe_is_a_lost_one(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Freeze(on=True)),
        one.comes_to(Step.DEVICE, 30),
        one.asked(one.room.shoe, Freeze(on=False)),
        one.comes_to(Step.FELT, 30),
        one.to_end(),
    )


@simulated_in(verified, "classic", *CARDS)
async def test_a_shoe_that_starts_in_the_middle_of_a_draw_tells_the_card_once(one: Served) -> None:
    await in_turn(
        one.to(lambda s: s.step is Step.DEALING and s.dealt == 2),
        until(lambda: mechanism(one.room.shoe)["lock"] == "open"),
        one.asked(one.room.shoe, CutPower(at="after_commit", off_ms=300), Draw()),
        until(lambda: one.state.dealt == 3, 20),
        one.to_end(),
    )
    assert one.state.shoe.rounds == 1
    felt = [one for one in one.data("device") if one["what"] in ("CardSeen", "ShoeCardRead")]
    positions = [data["pos"] for data in felt]
    assert sorted(set(positions)) == list(range(1, max(positions) + 1))


@simulated_in(verified, "mega")
async def test_a_station_that_is_away_is_told_and_stops_nobody(one: Served) -> None:
    """Where players may decide by hand signals too, the dealer enters them."""
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.station, Plug(connected=False)),
        until(lambda: one.state.lost == ("station",), LOST_AFTER + 1),
        one.stands(Step.TURN),
        one.to_end(),
        one.asked(one.station, Plug(connected=True)),
        until(lambda: one.state.lost == (), 10),
        until(lambda: is_ready(one, STATION)),
    )


@simulated_in(verified)
async def test_a_lost_shoe_that_two_people_accept_lets_the_floor_void(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Plug(connected=False)),
        one.comes_to(Step.DEVICE, LOST_AFTER + 1),
        one.robot.act("CountersAccepted", "two"),
        one.stands(Step.FELT),
        one.robot.act("FeltConfirmed"),
        one.stands(Step.TURN),
        one.robot.act("RoundVoided", "two", reason="the shoe is broken"),
        one.to_step(Step.CLEARING),
    )


# --- the shoe ---------------------------------------------------------------------------------


@simulated_in(verified)
async def test_a_cover_that_is_opened_in_a_round(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, MoveCover(open=True)),
        one.comes_to(Step.DEVICE),
        one.asked(one.room.shoe, TamperWith(source="reader"), MoveCover(open=False)),
        asyncio.sleep(5),
        one.stands(Step.DEVICE),  # somebody is at the reader still
        one.asked(one.room.shoe, TamperWith(source="reader", active=False)),
        one.comes_to(Step.FELT),
        one.to_end(),
    )


@simulated_in(kept, "classic")
async def test_a_jam_is_there_still_after_a_start(made: Room) -> None:
    """It was told before, and is not told again: the shoe says how it is when it is found."""
    async with served(made) as one:
        await one.to_step(Step.TURN)
        made.shoe.request(SetJam(code="stuck"))
        await one.comes_to(Step.DEVICE)
        await asyncio.sleep(1)
    async with served(made) as two:
        await in_turn(
            two.comes_to(Step.FELT, 20),
            two.robot.act("FeltConfirmed"),
            asyncio.sleep(20),
            two.stands(Step.DEVICE),
        )
        made.shoe.request(SetJam(code=None))
        await two.to_end()


@simulated_in(verified, "classic", *CARDS)
async def test_a_card_forced_out_is_the_next_one(one: Served) -> None:
    """Nobody has seen it: it is bound and sealed, and must be used."""
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Draw(force=True)),
        until(lambda: one.state.spare is not None),
    )
    assert one.state.spare is not None
    assert one.state.spare.card == -1
    await one.to_end()
    laid = [event for event in one.events() if isinstance(event, events.CardDrawn) and event.spare]
    assert [event.card for event in laid] == [9]  # the ten of clubs, at its place


@simulated_in(verified)
async def test_a_card_that_goes_back_is_people_s_to_look_for(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Retract()),
        one.comes_to(Step.DEVICE),
        one.robot.act("CountersAccepted", "two"),
        one.robot.act("FeltConfirmed"),
        one.robot.act("RoundVoided", "two", reason="a card is back in the shoe"),
    )


@pytest.mark.parametrize("read", ["low", "unreadable", "too_fast"])
@simulated_in(verified, "classic", *CARDS)
async def test_a_card_that_is_not_read_is_entered_from_the_felt(one: Served, read: str) -> None:
    await in_turn(
        one.to(lambda s: s.step is Step.DEALING and s.dealt == 1),
        until(lambda: mechanism(one.room.shoe)["lock"] == "open"),
        one.asked(one.room.shoe, Draw(read=read)),  # type: ignore[arg-type]
        until(lambda: one.at(Step.CARD_ENTRY, Step.HELD)),
        one.to_end(),
    )
    entered = [event.card for event in one.events() if isinstance(event, events.CardEntered)]
    assert entered == [20]  # the eight of diamonds


@simulated_in(verified, "classic", *CARDS)
async def test_two_cards_that_come_together(one: Served) -> None:
    await in_turn(
        one.to(lambda s: s.step is Step.DEALING and s.dealt == 1),
        until(lambda: mechanism(one.room.shoe)["lock"] == "open"),
        one.asked(one.room.shoe, Draw(double=True)),
        until(lambda: len(one.state.holds) == 2),
    )
    assert [held.what.value for held in one.state.holds] == [
        "card_unreadable",
        "unknown_card",
    ]
    await in_turn(
        one.robot.act("FloorRuled", "two", way="discard"),
        one.stands(Step.CARD_ENTRY),
        one.robot.act("CardEntered", card=20),
        one.robot.act("CardConfirmed", "floor"),
        one.to_end(),
    )


@simulated_in(verified, "classic", *CARDS)
async def test_a_face_up_card_is_pulled_out_and_not_dealt(one: Served) -> None:
    await in_turn(
        one.to(lambda s: s.step is Step.DEALING and s.dealt == 1),
        one.robot.act("FaceUpCardFound", card=20),
        until(lambda: mechanism(one.room.shoe)["lock"] == "open"),
        one.asked(one.room.shoe, Draw()),
        asyncio.sleep(1),
    )
    assert one.state.dealt == 1
    await one.to(lambda s: s.dealt == 2)
    assert one.state.hands[1].cards == (34,)  # the nine of hearts took its place
    await one.to_end()
    assert sum("discarded" in data for data in one.data("device")) == 1


@simulated_in(verified)
async def test_other_cards_in_the_shoe_in_a_round(one: Served) -> None:
    await in_turn(
        one.to_step(Step.TURN),
        one.asked(one.room.shoe, Load(decks=6, seed=4)),
        one.comes_to(Step.DEVICE),
    )
    assert "cards were put in" in one.table.shown.state.holds[-1].detail or one.state.lost
    await asyncio.sleep(5)
    await one.stands(Step.DEVICE)  # the cover is closed again, the cards are others


@simulated_in(verified)
async def test_a_shoe_that_is_short_of_cards(one: Served) -> None:
    await in_turn(
        one.to_step(Step.LOADING),
        one.asked(one.room.shoe, Load(decks=6, seed=4, remove=("Ac",))),
        one.comes_to(Step.HELD),
    )
    assert one.state.holds[-1].detail == "311 cards of 312"


# --- the shuffler -----------------------------------------------------------------------------


@simulated_in(verified)
async def test_a_batch_with_another_card_in_it(one: Served) -> None:
    """The shuffler knows the cards: fifty-two of them are not enough."""
    await in_turn(
        one.to_step(Step.SHUFFLE_NEEDED),
        one.asked(one.shuffler, Put(decks=6, remove=("Ac",), add=("2c",))),
        asyncio.sleep(0.1),
        one.robot.act("ShuffleStarted"),
        one.comes_to(Step.HELD, 10),
    )
    assert one.state.holds[-1].detail == "1 missing, 1 extra"


@simulated_in(verified)
async def test_a_start_that_was_refused_is_asked_for_again(one: Served) -> None:
    await in_turn(
        one.to_step(Step.SHUFFLE_NEEDED),
        one.asked(one.shuffler, SetJam(code="stuck")),
        until(lambda: "shuffler" in one.state.lost),
        one.asked(one.shuffler, SetJam(code=None)),
        one.to_step(Step.SHUFFLE_NEEDED),
        one.asked(one.shuffler, Put(decks=6), Plug(connected=False)),
        until(lambda: not is_ready(one, "SF-1")),
        one.robot.act("ShuffleStarted"),
        until(lambda: bool(one.table.shuffle_problem)),
        one.asked(one.shuffler, Plug(connected=True)),
        until(lambda: is_ready(one, "SF-1")),
        asyncio.sleep(10),
        one.to_step(Step.SHUFFLING),
        asyncio.sleep(10),
        one.stands(Step.SHUFFLING),  # never by itself
    )
    await raised(
        BadAct,
        one.table.shuffle_again(events.Actor("technician", "Tim")),
        "the dealer or the floor",
    )
    await one.table.shuffle_again(DEALER)
    await until(lambda: one.at(Step.LOADING), 10)
    assert one.table.shuffle_problem == ""
    await raised(BadAct, one.table.shuffle_again(DEALER), "no shuffle")
    assert one.whats("device").count("ShuffleStarted") == 1


@simulated_in(kept)
async def test_a_shuffle_of_nothing_that_the_floor_plays_on_after(made: Room) -> None:
    """Nothing shuffles then, and people are told what to do; also after a start."""
    async with served(made) as one:
        await one.to_step(Step.SHUFFLE_NEEDED)
        await one.robot.act("ShuffleStarted")
        await until(lambda: one.table.shuffle_problem != "", 5)
        assert one.table.shuffle_problem == (
            "the shuffle was not started: no cards are in the shuffler; put them in, then ask for "
            "the shuffle again"
        )
        assert made.shuffler is not None
        made.shuffler.request(Put(decks=6, left_inside=52))
        await asyncio.sleep(0.1)
        await one.table.shuffle_again(DEALER)
        await until(lambda: one.at(Step.HELD), 20)
        assert one.state.holds[-1].detail == "52 missing, 0 extra"
        assert one.table.shuffle_problem == ""
        await one.robot.act("FloorRuled", "two", way="resume")
        await one.stands(Step.SHUFFLING)
        assert one.table.shuffle_problem == NONE_RUNS
    async with served(made) as one:
        assert one.at(Step.SHUFFLING)
        assert one.table.shuffle_problem == NONE_RUNS
        made.shuffler.request(Put(decks=0))  # what was left inside comes out
        made.shuffler.request(Put(decks=6))
        await asyncio.sleep(0.1)
        await one.table.shuffle_again(DEALER)
        assert one.table.shuffle_problem == ""
        await until(lambda: one.at(Step.LOADING), 10)
        assert one.table.shuffle_problem == ""


@simulated_in(verified)
async def test_a_shuffle_that_runs_on_while_the_floor_is_called(one: Served) -> None:
    await in_turn(
        one.to_step(Step.SHUFFLE_NEEDED),
        one.asked(one.shuffler, ShufflePace(shuffle_ms=20_000), Put(decks=6)),
        one.robot.act("ShuffleStarted"),
        asyncio.sleep(1),
        one.robot.act("FloorCalled", seat=0),
        one.stands(Step.HELD),
        one.robot.act("FloorRuled", "floor", way="resume"),
    )
    assert (one.at(Step.SHUFFLING), one.table.shuffle_problem) == (True, "")
    await until(lambda: one.at(Step.LOADING), 30)


@simulated_in(verified)
async def test_a_shuffle_that_is_broken_off(one: Served) -> None:
    await in_turn(
        one.to_step(Step.SHUFFLE_NEEDED),
        one.asked(one.shuffler, ShufflePace(shuffle_ms=5000), Put(decks=6)),
        one.robot.act("ShuffleStarted"),
        until(lambda: mechanism(one.shuffler)["running"] > 0),
        one.asked(one.shuffler, CutPower(off_ms=500)),
        one.comes_to(Step.DEVICE, 20),
    )
    assert "broken off" in one.state.holds[-1].detail
    await in_turn(
        one.robot.act("CountersAccepted", "two"),
        one.robot.act("FeltConfirmed"),
        one.stands(Step.SHUFFLING),
        asyncio.sleep(5),
    )
    await one.table.shuffle_again(FLOOR)
    await until(lambda: one.at(Step.LOADING), 20)


# --- the record -------------------------------------------------------------------------------


@simulated_in(verified, "mega")
async def test_a_disk_without_room_in_a_round(one: Served) -> None:
    await one.to(lambda s: s.step is Step.DEALING and s.dealt == 2)
    await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
    acked = one.room.shoe.stand.firmware.records.room.acked
    one.room.book.refusing = ROOMLESS
    await in_turn(
        one.asked(one.room.shoe, Draw()),
        until(lambda: bool(one.table.shown.stopped)),
        asyncio.sleep(1),
    )
    # No acknowledgement, no effect, all safe.
    assert (one.room.shoe.stand.firmware.records.room.acked, one.state.dealt) == (acked, 2)
    assert mechanism(one.room.shoe)["lock"] == "locked"
    lamps = mechanism(one.station)["seats"]["1"]["lamps"]
    assert (lamps["rgb"], lamps["pattern"]) == ([255, 0, 0], "blink")
    await raised(TableStopped, one.robot.act("FloorCalled"), "no room")
    await asyncio.sleep(30)
    one.room.book.refusing = None
    await in_turn(
        until(lambda: not one.table.shown.stopped, 5),
        until(lambda: one.state.dealt == 3, 10),  # it has come again, once
        one.to_end(),
    )
    assert one.state.lost == ()
    texts = [data["text"] for data in one.data("note")]
    assert texts == [f"recorded again; nothing could be recorded since: {ROOMLESS}"]


@pytest.mark.parametrize("seconds", [3.5, 30.0])
@simulated_in(verified, "classic", *CARDS)
async def test_a_disk_that_stalls(one: Served, seconds: float) -> None:
    """No card comes out meanwhile; what was drawn is taken once, whether or not its shoe has given
    up waiting."""
    await one.to(lambda s: s.step is Step.DEALING and s.dealt == 2)
    await until(lambda: mechanism(one.room.shoe)["lock"] == "open")
    one.room.book.slow = seconds
    await one.asked(one.room.shoe, Draw())
    await until(lambda: bool(one.table.shown.stopped), SLOW_AFTER + 1)
    assert one.table.table.append_seconds >= SLOW_AFTER
    await asyncio.sleep(0.2)
    assert (mechanism(one.room.shoe)["lock"], one.state.dealt) == ("locked", 2)
    one.room.book.slow = 0.001
    await until(lambda: one.state.dealt == 3, 60)
    await until(lambda: not one.table.shown.stopped, 60)
    assert one.table.table.append_seconds == 0
    await until(lambda: is_ready(one, SHOE), LOST_AFTER)
    await one.to_end()
    assert one.state.lost == ()


@simulated
async def test_a_disk_that_has_failed_holds_the_table_for_good(tmp_path: Path) -> None:
    failed = LogFailed("here", OSError(errno.EIO, "broken"))
    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        one.room.book.refusing = failed
        await raised(TableStopped, one.robot.act("FloorCalled"), "nothing is recorded any more")
        await asyncio.sleep(60)
        assert one.table.shown.stopped == str(failed)
        assert mechanism(one.room.shoe)["lock"] == "locked"
        one.room.book.refusing = None
        await asyncio.sleep(60)
        assert one.table.shown.stopped  # nobody guesses what the disk holds


# --- players ----------------------------------------------------------------------------------


class Pressing:
    """Players who wait for somebody else to press."""

    def wagers(self) -> list[tuple[int, str, int]]:
        return [(1, "main", 1000)]

    def choose(self, prompt: Prompt) -> PlayerChoice:
        return PlayerChoice("stand")


@simulated
async def test_a_button_that_is_pressed_twice_counts_once(tmp_path: Path) -> None:
    top = ("2c", "2d", "9h", "3d", "Th", "4s", "5c", "6d")
    async with verified(tmp_path, "maxtime", *top, players=Pressing()) as one:
        await one.to_step(Step.TURN)
        station = one.room.station
        assert station is not None
        assert await lit(station, 1, "hit")
        station.request(Press(seat=1, button="hit", held_ms=30))
        await until(lambda: one.at(Step.HAND_CARD))
        station.request(Press(seat=1, button="stand", held_ms=30))
        await in_turn(
            asyncio.sleep(1),
            one.stands(Step.HAND_CARD),
            one.to_end(),
        )
    decided = [event for event in one.events() if isinstance(event, events.Decision)]
    assert [type(event) for event in decided] == [events.Hit, events.Stand]
    assert decided[0].actor.role == "player"
