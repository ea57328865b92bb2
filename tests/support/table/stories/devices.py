"""A shoe, a shuffler or a station that is lost, and a controller that starts anew: over the wire
and in each house."""

import asyncio

from controller.procedure.model import events
from controller.procedure.model.effects import Ruled, Tell
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from controller.table.devices.links import LOST_AFTER
from firmware_protocol.device import CutPower, MoveCover, Plug, Put, SetJam, ShufflePace
from tests.support.asynchronous import in_turn
from tests.support.drivers.simulated import Plugged, until
from tests.support.table.simulated.serving import FLOOR, SECOND
from tests.support.table.simulated.telling import (
    CASES,
    HOUSES,
    TWO,
    VOID,
    WAY_ON,
    WON,
    Case,
    Told,
    irregular,
)

CHECK = (Way.DEVICE_CHECK,)
RESTART_TEST = "irregular/test_every_irregularity.py: test_a_controller_that_restarts"


async def gone(t: Told, way: Way, why: str) -> None:
    """What is shown of a shoe that has a part in the outcome, and what the house does then."""
    await in_turn(
        t.shows(
            default=f"Stop dealing - device lost, {why}{WAY_ON}",
            strict=f"Floor: rule on device lost, {why} - wait for the device, or void the round"
            + TWO,
        ),
        t.noted(Informed("floor", "device_lost", 0, why)),
        t.ruled(Odd.DEVICE_LOST, way),
    )


# --- shuffler, shoe or station lost or faulty -------------------------------------------------


@irregular(
    Odd.DEVICE_LOST,
    "device_lost",
    "device_agrees",
    "confirm_felt",
    default=CHECK,
    strict=(Way.DEVICE_CHECK, Way.VOID),
)
async def a_shoe_that_is_jammed(t: Told, way: Way) -> None:
    await in_turn(
        t.to_card(1),
        t.asked(t.room.shoe, SetJam(code="stuck")),
        until(lambda: bool(t.state.lost)),
        gone(t, way, "a card is stuck (stuck)"),
    )
    if way is Way.VOID:
        await t.to(lambda s: s.step is Step.HELD)  # no round begins without its shoe
        await t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK)
    await in_turn(
        t.refused("felt_not_asked", "FeltConfirmed"),
        until(lambda: t.locked),
        t.asked(t.room.shoe, SetJam(code=None)),
        t.comes_to(Step.FELT),
    )
    assert t.words.startswith("Compare the felt with the screen, confirm when they agree")
    assert await t.refuses("FeltConfirmed", FLOOR) == "not_theirs"


@irregular(Odd.DEVICE_LOST, "device_lost", "shoe_still_lost", strict=(Way.VOID,), nets=None)
async def a_round_that_is_void_without_its_shoe(t: Told, way: Way) -> None:
    """Wagers go back without it; the next round waits for it."""
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.room.shoe, Plug(connected=False)),
        t.comes_to(Step.HELD, LOST_AFTER + 1),
    )
    assert t.words.endswith(f"wait for the device, or void the round{TWO}")
    await in_turn(
        t.ruled(Odd.DEVICE_LOST, way),
        t.to_step(Step.HELD),
        t.shows(f"Floor: rule on device lost - wait for the device{TWO}"),
        t.won(VOID),
        t.asked(t.room.shoe, Plug(connected=True)),
        until(lambda: not t.state.lost),
        t.does("FloorRuled", FLOOR, SECOND, way="device_check"),
        t.shows("Compare the felt with the screen, confirm when they agree - device lost"),
        t.to_step(Step.WAGERING),
    )


@irregular(Odd.DEVICE_LOST, "device_lost", "device_back", "way_device_there", strict=CHECK)
async def a_shoe_that_is_back_before_the_floor_has_ruled(t: Told, way: Way) -> None:
    """Nobody waits for a device that is there."""
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.room.shoe, MoveCover(open=True)),
        t.comes_to(Step.HELD),
        t.asked(t.room.shoe, MoveCover(open=False)),
        until(lambda: not t.state.lost),
        t.stands(Step.HELD),
        t.does("FloorRuled", FLOOR, SECOND, way=way.value),
        t.stands(Step.FELT),
    )


@irregular(Odd.DEVICE_LOST, "device_lost", "accept_counters", ways=CHECK)
async def a_shoe_that_two_people_take_as_it_is(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.room.shoe, Plug(connected=False)),
        until(lambda: bool(t.state.lost), LOST_AFTER + 1),
        t.ruled(Odd.DEVICE_LOST, way),
        t.stands(Step.DEVICE),
        t.refused("accept_counters", "CountersAccepted", FLOOR),
    )
    same = events.Actor("surveillance", FLOOR.name)
    await in_turn(
        t.refused("accept_counters", "CountersAccepted", FLOOR, same),
        t.does("CountersAccepted", FLOOR, SECOND),
        t.noted(Ruled("device_lost", "counters_accepted", "Flo", "Bob")),
        t.does("FeltConfirmed"),
        t.asked(t.room.shoe, Plug(connected=True)),
    )


@irregular(Odd.DEVICE_LOST, "shoe_gone_at_load", ways=CHECK)
async def a_shoe_that_is_gone_when_it_is_to_be_loaded(t: Told, way: Way) -> None:
    """It has no part before that; the dealer counts the cards into it all the same."""
    await in_turn(
        t.to_step(Step.SHUFFLE_NEEDED),
        t.asked(t.room.shoe, Plug(connected=False)),
        until(lambda: t.state.lost == ("shoe",), LOST_AFTER + 1),
        t.stands(Step.SHUFFLE_NEEDED),
        t.to_step(Step.LOADING),
        t.does("ShoeLoaded", count=312),
        t.shows(
            default=f"Stop dealing - device lost{WAY_ON}",
            strict=f"Floor: rule on device lost - wait for the device{TWO}",
        ),
        t.ruled(Odd.DEVICE_LOST, way),
        t.asked(t.room.shoe, Plug(connected=True)),
        t.to_step(Step.WAGERING),
        t.to_step(Step.DEALING),
    )


async def lost_before(t: Told) -> Plugged:
    """The shuffler is unplugged in a round, which goes on without it; the next shuffle does not."""
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.shuffler, Plug(connected=False)),
        until(lambda: t.state.lost == ("shuffler",), LOST_AFTER + 1),
        t.ends(WON),
        t.does("ShuffleCalled"),
        t.does("ShuffleStarted"),
        t.shows(
            default=f"Stop dealing - device lost{WAY_ON}",
            strict=f"Floor: rule on device lost - wait for the device{TWO}",
        ),
        t.ruled(Odd.DEVICE_LOST, Way.DEVICE_CHECK),
        t.stands(Step.DEVICE),
    )
    return t.shuffler


@irregular(
    Odd.DEVICE_LOST,
    "device_lost_aside",
    "shuffler_gone_at_shuffle",
    "device_agrees",
    ways=CHECK,
    nets=None,
)
async def a_shuffler_that_is_gone_when_it_is_to_shuffle(t: Told, way: Way) -> None:
    (await lost_before(t)).request(Plug(connected=True))
    await in_turn(
        t.comes_to(Step.FELT, 10),
        t.does("FeltConfirmed"),
        t.shows("Shuffle 6 decks"),
        t.to_step(Step.WAGERING),
    )
    assert t.whats("device").count("ShuffleDone") == 2


@irregular(Odd.DEVICE_LOST, "shuffler_gone_at_shuffle", "accept_counters", ways=CHECK, nets=None)
async def a_shuffle_by_hand_where_the_shuffler_stays_away(t: Told, way: Way) -> None:
    await in_turn(
        lost_before(t),
        t.does("CountersAccepted", FLOOR, SECOND),
        t.does("FeltConfirmed"),
        t.does("ShuffleStarted"),
        t.does("ShuffleDone"),
        t.to_step(Step.WAGERING),
    )
    assert t.whats("device").count("ShuffleDone") == 1


@irregular(Odd.DEVICE_LOST, "device_lost", ways=CHECK, nets=None)
async def a_shuffler_that_loses_its_power(t: Told, way: Way) -> None:
    """The order of the cards is known to nobody: people look, and it shuffles anew."""
    await in_turn(
        t.to_step(Step.SHUFFLE_NEEDED),
        t.asked(t.shuffler, ShufflePace(shuffle_ms=3000), Put(decks=6)),
        t.does("ShuffleStarted"),
        asyncio.sleep(1),
        t.asked(t.shuffler, CutPower(off_ms=300)),
        until(lambda: bool(t.state.lost), 20),
        t.shows(
            default=f"Stop dealing - device lost, its shuffle was broken off{WAY_ON}",
            strict="Floor: rule on device lost, its shuffle was broken off - wait for the device"
            + TWO,
        ),
        t.ruled(Odd.DEVICE_LOST, way),
        t.does("CountersAccepted", FLOOR, SECOND),
        t.does("FeltConfirmed"),
        t.shows("Wait for the shuffle of 6 decks"),
        t.asked(t.shuffler, ShufflePace(shuffle_ms=20)),
        t.to_step(Step.LOADING),  # somebody has looked at it, and asks for it again
    )
    assert len(t.data("device", "ShuffleStarted")) == 2


@irregular(
    Odd.DEVICE_LOST,
    "device_lost",
    default=CHECK,
    strict=(Way.DEVICE_CHECK, Way.VOID),
    options={"decisions.by": "buttons"},
    stations=True,
)
async def a_station_where_players_decide_by_buttons(t: Told, way: Way) -> None:
    await in_turn(
        t.to_step(Step.TURN),
        t.refused("buttons_only", "Stand", seat=1, hand=0),
        t.asked(t.station, Plug(connected=False)),
        until(lambda: t.state.lost == ("station",), LOST_AFTER + 1),
    )
    assert t.prompt.tell is (Tell.AWAIT_DEVICE if t.house == "default" else Tell.RULE)
    await t.ruled(Odd.DEVICE_LOST, way)
    await t.asked(t.station, Plug(connected=True))


@irregular(Odd.DEVICE_LOST, "device_lost", "device_lost_aside", "device_back", ways=CHECK)
async def devices_that_have_no_part_in_what_happens(t: Told, way: Way) -> None:
    """A shuffler in a round: the floor is told, and the round goes on. The shoe stops it."""
    await in_turn(
        t.to_step(Step.TURN),
        t.asked(t.shuffler, Plug(connected=False)),
        until(lambda: t.state.lost == ("shuffler",), LOST_AFTER + 1),
        t.stands(Step.TURN),
    )
    told = t.facts(Informed)[-1]
    assert (told.who, told.what) == ("floor", "device_lost")
    assert told.detail.startswith("shuffler: ")
    await in_turn(
        t.refused("no_device_waited_for", "CountersAccepted", FLOOR, SECOND),
        t.asked(t.room.shoe, SetJam(code="motor")),
        until(lambda: "shoe" in t.state.lost),
        t.ruled(Odd.DEVICE_LOST, way),
        t.asked(t.room.shoe, SetJam(code=None)),
        t.asked(t.shuffler, Plug(connected=True)),
        until(lambda: not t.state.lost),
    )


@irregular(
    Odd.DEVICE_LOST,
    "device_lost",
    "device_still_gone",
    "device_there_again",
    ways=CHECK,
    options={"decisions.by": "buttons"},
    stations=True,
)
async def two_devices_that_come_back_one_by_one(t: Told, way: Way) -> None:
    """The one that was lost last first, and then the other way round."""
    await t.to_step(Step.TURN)
    station, shoe = t.room.station, t.room.shoe
    assert station is not None
    for first_back in (shoe, station):
        station.request(Plug(connected=False))
        await until(lambda: "station" in t.state.lost, LOST_AFTER + 1)
        await t.ruled(Odd.DEVICE_LOST, way)
        shoe.request(Plug(connected=False))
        await until(lambda: "shoe" in t.state.lost, LOST_AFTER + 1)
        await t.ruled(Odd.DEVICE_LOST, way)
        first_back.request(Plug(connected=True))
        await until(lambda: len(t.state.lost) == 1, 10)
        if first_back is shoe:
            await t.does("FeltConfirmed")
            await t.stands(Step.DEVICE)
        station.request(Plug(connected=True))
        shoe.request(Plug(connected=True))
        await t.comes_to(Step.FELT, 10)
        await t.to_step(Step.TURN)


# --- power lost, controller restarted: same step, same round ----------------------------------

CASES.append(
    Case(
        RESTART_TEST,
        Odd.RESTARTED,
        ("controller_restarted", "confirm_felt"),
        dict.fromkeys(HOUSES, (Way.FELT_CHECK,)),
    )
)
