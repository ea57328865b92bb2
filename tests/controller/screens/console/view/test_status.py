"""How the table stands beside the round, said at a glance and in words."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from controller.api.contract.view import DeviceShown
from controller.procedure.engine import Procedure
from controller.procedure.model.state import Hold, Shoe, State, Step
from controller.rules.irregularities import Irregularity
from controller.screens.console.view.page import ConsolePage
from controller.screens.console.view.status import StatusLine
from controller.table.memory import SpaceStatus, WitnessStatus
from drivers.devices import LinkState as Link
from tests.support.procedure.random_games import game_as_it_is
from tests.support.screens.console.shown_at import (
    DEVICES,
    TEXTS,
    WATCHES,
    Around,
    At,
    console_at,
    fragment,
)

GAME = game_as_it_is("mega")
PROCEDURE = Procedure(GAME)
WAGERING = State(step=Step.WAGERING, shoe=Shoe(loaded=True, rounds=3), round=9)


def at(state: State) -> At:
    return At(GAME, PROCEDURE, state, {})


def line(console: ConsolePage, name: str) -> StatusLine:
    (found,) = [one for one in console.status.lines if one.id == name]
    return found


@pytest.mark.parametrize(
    ("shoe", "closing", "name", "mark"),
    [
        (Shoe(loaded=True, rounds=3), False, "loaded", "good"),
        (Shoe(loaded=True, rounds=3, rounds_left=2), False, "cut_card", "care"),
        (Shoe(loaded=True, rounds=3, rounds_left=1), False, "last_round", "care"),
        (Shoe(loaded=True, rounds=3), True, "closing", "care"),
        (Shoe(), False, "empty", "care"),
        (Shoe(decks_out=True), False, "decks_out", "alarm"),
    ],
)
def test_the_shoe_is_always_told_of(shoe: Shoe, closing: bool, name: str, mark: str) -> None:
    found = line(console_at(at(replace(WAGERING, shoe=shoe, closing=closing))), "shoe")
    assert found.said == TEXTS(f"console.shoe.{name}").replace("{rounds}", str(shoe.rounds))
    assert found.mark == mark


def test_each_device_says_how_it_is_linked() -> None:
    devices = (
        DeviceShown("shoe", "SH-1", "lost", "the cable is out"),
        DeviceShown("shuffler", "SF-1", "resuming", "", held="another ring"),
        DeviceShown("station", "ST-1", "ready", ""),
        DeviceShown("station", "ST-2", "new_state", ""),
    )
    console = console_at(at(WAGERING), around=Around(devices=devices))
    shoe, shuffler = line(console, "link-sh-1"), line(console, "link-sf-1")
    assert (shoe.said, shoe.mark, shoe.more) == ("lost", "alarm", "the cable is out")
    assert (shuffler.said, shuffler.mark) == (TEXTS("console.link.held"), "care")
    second = line(console, "link-st-2")
    assert (second.name, second.said, second.mark) == ("ST-2", "new_state", "alarm")


def test_stations_are_counted_and_the_bad_ones_named() -> None:
    """Nine devices are a usual table: each in a line of its own would push the felt away."""
    usual = console_at(at(WAGERING))
    stations = line(usual, "links-station")
    assert (stations.said, stations.mark) == ("7 of 7", "good")
    assert len(usual.status.lines) == 6
    gone = DeviceShown("station", "ST-0003", "lost", "it was unplugged")
    held = DeviceShown("station", "ST-0005", "resuming", "", held="new_epoch")
    devices = tuple({"ST-0003": gone, "ST-0005": held}.get(one.serial, one) for one in DEVICES)
    some = console_at(at(WAGERING), around=Around(devices=devices))
    assert (line(some, "links-station").said, line(some, "links-station").mark) == (
        "5 of 7",
        "alarm",
    )
    none = tuple(replace(one, state="lost") for one in DEVICES)
    all_gone = console_at(at(WAGERING), around=Around(devices=none))
    assert (line(all_gone, "links-station").said, len(all_gone.status.lines)) == ("0 of 7", 6)
    named = [one.name for one in some.status.lines if one.id.startswith("link-st-")]
    assert named == ["ST-0003", "ST-0005"]
    assert line(some, "link-st-0005").more == TEXTS("console.link.held_new_epoch")


def test_every_way_to_be_linked_has_words() -> None:
    assert all(TEXTS.has(f"console.link.{state.value}") for state in Link)


def test_record_and_clock_are_told_of() -> None:
    console = console_at(at(WAGERING), around=Around(quality="unsynced"))
    assert (line(console, "record").said, line(console, "record").mark) == ("41", "good")
    assert line(console, "clock").mark == "care"
    stopped = console_at(at(WAGERING), around=Around(stopped="no room"))
    assert (line(stopped, "record").mark, line(stopped, "record").more) == ("alarm", "no room")


def test_a_record_that_no_witness_has_seen_lately_says_since_when() -> None:
    """Beside the round, and the round goes on as it would."""
    now, minute = 1_800_000_000_000_000, 60_000_000

    def said(witness: WitnessStatus, utc: int = now) -> tuple[str, str]:
        console = console_at(at(WAGERING), around=Around(witness=witness, utc=utc))
        as_usual = console_at(at(WAGERING), around=Around(utc=utc))
        assert (console.instruction, console.actions) == (as_usual.instruction, as_usual.actions)
        assert console.wagers == as_usual.wagers
        found = line(console, "record")
        assert found.said in fragment(console)
        return found.said, found.mark

    assert said(WitnessStatus(30, 0)) == ("41", "good")
    assert said(WitnessStatus(30, now - 5 * minute)) == ("41 - unwitnessed since 07:55 UTC", "care")
    days_ago = "41 - unwitnessed since 2027-01-13"
    assert said(WitnessStatus(30, now - 2880 * minute)) == (days_ago, "care")
    assert said(WitnessStatus(0, now - minute)) == ("41 - never witnessed", "care")
    stopped = Around(stopped="no room", witness=WitnessStatus(0, now))
    assert line(console_at(at(WAGERING), around=stopped), "record").mark == "alarm"


@pytest.mark.parametrize(
    ("minutes", "words"),
    [
        (150, "disk full - play for about 2:30 h"),
        (60, "disk full - play for about 1:00 h"),
        (10, "disk full - play for about 0:10 h"),
        (0, "disk full - play for less than 0:10 h"),
    ],
)
def test_a_disk_that_fills_up_is_one_quiet_line(minutes: int, words: str) -> None:
    """Beside the round, and the round goes on as it would."""
    space = SpaceStatus("No space left on device", minutes)
    console = console_at(at(WAGERING), around=Around(space=space, witness=WitnessStatus(0, 1)))
    as_usual = console_at(at(WAGERING))
    assert (console.instruction, console.actions) == (as_usual.instruction, as_usual.actions)
    assert (console.wagers, console.troubles) == (as_usual.wagers, as_usual.troubles)
    found = line(console, "record")
    assert (found.said, found.mark, found.more) == (words, "care", "No space left on device")
    assert words in fragment(console)
    others = [one for one in console.status.lines if one.id != "record"]
    assert others == [one for one in as_usual.status.lines if one.id != "record"]
    stopped = Around(stopped="no room", space=space)
    assert line(console_at(at(WAGERING), around=stopped), "record").mark == "alarm"


def test_who_deals_and_where_is_told() -> None:
    assert console_at(at(WAGERING)).status.dealer == "Dana deals here"
    assert console_at(at(WAGERING)).status.watching == ""
    watched = console_at(at(WAGERING), WATCHES).status
    assert watched.dealer == 'Dana deals, at screen "console"'
    assert watched.watching.endswith(f"{watched.dealer}.")
    nobody = console_at(at(WAGERING), WATCHES, around=Around(dealer=None))
    assert nobody.status.dealer == TEXTS("console.status.nobody")
    assert nobody.status.watching == TEXTS("console.status.sign_in_first")


def test_a_device_that_is_gone_aside_is_a_trouble_with_its_way_on() -> None:
    devices = (DeviceShown("shuffler", "SF-1", "lost", "no answer"),)
    state = replace(WAGERING, lost=("shuffler",))
    (trouble,) = console_at(at(state), around=Around(devices=devices)).troubles
    assert (trouble.what, trouble.about) == ("No link: shuffler SF-1", "lost: no answer")
    assert trouble.way == TEXTS("console.trouble.aside_way")


def test_one_station_that_is_gone_is_one_trouble() -> None:
    """The procedure knows stations as one thing; the other six are there."""
    gone = DeviceShown("station", "ST-0003", "lost", "it was unplugged")
    devices = tuple(gone if one.serial == gone.serial else one for one in DEVICES)
    state = replace(WAGERING, lost=("station",))
    (trouble,) = console_at(at(state), around=Around(devices=devices)).troubles
    assert (trouble.what, trouble.about) == ("No link: station ST-0003", "lost: it was unplugged")
    held = replace(
        WAGERING,
        step=Step.DEVICE,
        lost=("station",),
        holds=(Hold(Irregularity.DEVICE_LOST, Step.TURN, device="station"),),
    )
    (stopped,) = console_at(at(held), around=Around(devices=devices)).troubles
    assert stopped.about == "station ST-0003"
