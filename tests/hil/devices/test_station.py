"""The simulated station without a wire: presses, arms, contacts, lamps and the buzzer."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device import Chord, Draw, InjectDefect, LetGo, Mechanism, Press, SetLamp
from firmware_protocol.messages import (
    DEBOUNCE_MS,
    STUCK_AFTER_MS,
    Arm,
    ArmReply,
    Button,
    ButtonMask,
    Buzz,
    BuzzPattern,
    BuzzReply,
    Capabilities,
    DeviceState,
    Edge,
    FaultCode,
    LampFault,
    LampPattern,
    Lamps,
    LampsReply,
    Lock,
    LockState,
    Refusal,
    Stuck,
    WhichButton,
)
from hil.devices import SimulatedStation
from hil.devices.mechanism import MAX_PENDING
from hil.devices.station import BUZZ_MS, DEBOUNCE_US, Contact, bounce_times
from tests.support.hil.devices.desk import EVERY, HIT, STAND, PowerGone, Scene, cannot, pair, seat

# --- a press --------------------------------------------------------------------------------


def test_a_press_makes_two_edges() -> None:
    scene = seat()
    start = scene.now
    scene.play(Press(1, "hit", held_ms=80), 500, Press(1, "call"), 500)
    assert scene.events == pair(WhichButton.HIT, 1, 80) + pair(WhichButton.CALL, 2, 80)
    assert scene.at(Button)[:2] == [start + DEBOUNCE_US, start + 80_000 + DEBOUNCE_US]


def test_a_button_is_held_until_it_is_let_go() -> None:
    scene = seat().play(Press(1, "stand", held_ms=None), 1234)
    assert scene.look()["seats"]["1"]["down"] == ["stand"]
    cannot(scene, Press(1, "stand"), "is down")
    cannot(scene, LetGo(1, "hit"), "is not down")
    scene.play(LetGo(1, "stand"), 100)
    assert scene.events == pair(WhichButton.STAND, 1, 1234)
    cannot(scene, LetGo(1, "stand"), "is not down")


def test_letting_go_cancels_scheduled_changes() -> None:
    first = (Press(1, "hit", held_ms=5000), 100, LetGo(1, "hit"), 100)
    scene = seat().play(*first, Press(1, "hit", held_ms=50), 100)
    assert scene.events == pair(WhichButton.HIT, 1, 100) + pair(WhichButton.HIT, 2, 50)


@pytest.mark.parametrize("held_ms", [0, 1, DEBOUNCE_MS - 1, DEBOUNCE_MS, 65_535, 65_536, 100_000])
def test_how_long_a_press_is(held_ms: int) -> None:
    scene = seat("stuck-counts", ttl=65_535).play(Press(1, "yes", held_ms=held_ms), held_ms + 100)
    both = pair(WhichButton.YES, 1, min(held_ms, 65_535))
    assert scene.events == (both if held_ms >= DEBOUNCE_MS else [])


def test_several_buttons_are_several_presses_in_their_order() -> None:
    scene = seat().play(Chord(1, ("double", "hit", "call"), held_ms=100), 500)
    three = (WhichButton.DOUBLE, WhichButton.HIT, WhichButton.CALL)
    pairs = [pair(button, number, 100) for number, button in enumerate(three, 1)]
    assert scene.events == [down for down, _ in pairs] + [up for _, up in pairs]
    assert scene.at(Button) == sorted(scene.at(Button))


@pytest.mark.parametrize("buttons", [(), ("hit", "hit")])
def test_a_chord_that_cannot_be(buttons: Any) -> None:
    cannot(seat(), Chord(1, buttons), "each once")


def test_a_chord_with_a_button_that_is_down() -> None:
    scene = seat().play(Press(1, "hit", held_ms=None), 50)
    cannot(scene, Chord(1, ("stand", "hit")), "hit of seat 1 is down")


def test_seats_that_are_not_here() -> None:
    scene = seat(make=lambda: SimulatedStation(seats=(1, 3)))
    for hand in (Press(2, "hit"), LetGo(2, "hit"), Chord(2, ("hit",))):
        cannot(scene, hand, r"no seat 2 here.*seats \[1, 3\]")
    assert scene.refused(Arm(2, HIT, 1, 1000)) == Refusal.UNSUPPORTED
    cannot(scene, Draw(), "a station has no draw")
    assert scene.refused(Lock(LockState.OPEN)) == Refusal.UNKNOWN
    assert scene.do(InjectDefect("lamps")) == {}
    for wrong in ((), (0,), (16,)):
        with pytest.raises(ValueError, match="1 to 15"):
            SimulatedStation(seats=wrong)


# --- arms -----------------------------------------------------------------------------------


def test_each_seat_has_its_own_arm() -> None:
    scene = seat(make=lambda: SimulatedStation(seats=(1, 2)), mask=HIT).play(Arm(2, STAND, 5, 1000))
    scene.play(*(Chord(number, ("hit", "stand")) for number in (1, 2)), 300)
    both = [(1, WhichButton.HIT, 77), (2, WhichButton.STAND, 5)]
    assert [(event.seat, event.button, event.token) for event in scene.those(Button)] == 2 * both
    scene.call(Arm(1, ButtonMask(0), 0, 1000))
    assert scene.look()["seats"]["2"]["armed"] == ["stand"]


@pytest.mark.parametrize("last", [Arm(1, ButtonMask(0), 78, 1000), Arm(1, EVERY, 78, 0)])
def test_an_empty_mask_or_no_time_disarms(last: Arm) -> None:
    scene = seat()
    states = [scene.mechanism.state()]
    assert scene.call(last) == ArmReply()
    states.append(scene.mechanism.state())
    scene.play(Press(1, "hit"), 200)
    assert (states, scene.events) == ([DeviceState(0), DeviceState.LOCKED], [])


def test_the_token_is_that_of_the_arm_in_force_when_it_went_down() -> None:
    scene = seat().play(Press(1, "hit", held_ms=1000), 100, Arm(1, STAND, 78, 1000), 1500)
    assert scene.events == pair(WhichButton.HIT, 1, 1000)


@pytest.mark.parametrize("early_us", [0, 1])
def test_an_arm_ends_with_its_time(early_us: int) -> None:
    """To the microsecond: the press counts when its contact has been stable."""
    scene = seat(ttl=500).play((500_000 - DEBOUNCE_US - early_us) / 1000, Press(1, "hit"), 300)
    assert len(scene.events) == (2 if early_us else 0)
    assert scene.mechanism.state() == DeviceState.LOCKED
    assert scene.mechanism.due() is None


def test_a_late_wake_changes_nothing() -> None:
    """What happened when is not a matter of when it was asked for."""
    presses = (Press(1, "hit", held_ms=300), Press(1, "stand", held_ms=12_000))
    prompt, late = seat(ttl=500).play(*presses, 20_000), seat(ttl=500).play(*presses)
    late.mechanism.wake(late.now + 20_000_000)
    times = [[(one.t_us, one.event) for one in scene.desk.records] for scene in (prompt, late)]
    assert times[0] == times[1]
    assert len(times[0]) == 6  # POWER, two presses, STUCK


def test_the_next_arm_restarts_its_time() -> None:
    scene = seat(ttl=500).play(400, Arm(1, EVERY, 77, 500))
    assert scene.look()["seats"]["1"]["ttl_ms"] == 500
    scene.play(400, Press(1, "hit"), 300)
    assert len(scene.events) == 2


@pytest.mark.parametrize("disarms", [["safe"], [Arm(1, ButtonMask(0), 0, 0)], []])
def test_a_press_that_counted_comes_up_though_the_seat_is_disarmed(disarms: list[Any]) -> None:
    scene = seat(ttl=200).play(Press(1, "bet", held_ms=600), 100, *disarms, 900)
    assert scene.events == pair(WhichButton.BET, 1, 600)


# --- stuck ----------------------------------------------------------------------------------


@pytest.mark.parametrize("armed", [False, True])
def test_a_button_that_is_held_for_long_is_stuck_once(armed: bool) -> None:
    scene = seat(mask=EVERY if armed else ButtonMask(0))
    due = scene.now + DEBOUNCE_US + STUCK_AFTER_MS * 1000
    scene.play(Press(1, "no", held_ms=None), 60_000)
    assert scene.look()["seats"]["1"]["stuck"] == ["no"]
    scene.play(Arm(1, EVERY, 78, 60_000), 1000, LetGo(1, "no"), 100, Press(1, "no"), 200)
    assert (scene.those(Stuck), scene.at(Stuck)) == ([Stuck(1, WhichButton.NO)], [due])
    edges = pair(WhichButton.NO, 1, 61_000) if armed else []
    assert scene.those(Button) == edges + pair(WhichButton.NO, 1 + armed, 80, token=78)


def test_just_short_of_stuck() -> None:
    assert not seat().play(Press(1, "no", held_ms=STUCK_AFTER_MS - 1), 20_000).those(Stuck)


# --- full ring, restarts --------------------------------------------------------------------


def test_a_full_ring_disarms_and_refuses_to_arm() -> None:
    scene = seat()
    scene.desk.room = 1
    scene.play(Press(1, "hit"), 3000)
    assert (len(scene.events), scene.mechanism.state()) == (1, DeviceState.LOCKED)
    assert scene.refused(Arm(1, EVERY, 1, 1)) == Refusal.NOT_NOW
    scene.play(Arm(1, ButtonMask(0), 1, 1), "empty", 200, Arm(1, EVERY, 1, 1))
    assert scene.events == pair(WhichButton.HIT, 1, 80)


def test_pending_events_survive_a_start() -> None:
    scene = seat()
    scene.desk.room = 2  # for the two edges down
    scene.play(Chord(1, ("hit", "stand"), 60), 500, "restart", 500)
    assert len(scene.events) == 2
    scene.desk.room, scene.desk.cut_at, scene.desk.cut_after = 9, "before_commit", 1
    with pytest.raises(PowerGone):
        scene.run(ms=500)
    scene.play("restart", 500, "restart", 500)
    assert [
        (one.event.button, one.event.edge, one.boot)  # the boot is that of the recording
        for one in scene.desk.records
        if isinstance(one.event, Button)
    ] == [
        (WhichButton.HIT, Edge.DOWN, 1),
        (WhichButton.STAND, Edge.DOWN, 1),
        (WhichButton.HIT, Edge.UP, 2),
        (WhichButton.STAND, Edge.UP, 3),
    ]


def test_pending_events_are_limited() -> None:
    presses = (Press(1, "hit", held_ms=11_000), 12_000) * (MAX_PENDING + 9)
    scene = seat(mask=ButtonMask(0)).play("fill", *presses, "empty", 1000)
    assert len(scene.those(Stuck)) == MAX_PENDING


def test_after_a_start_nothing_is_armed_and_presses_start_at_1() -> None:
    scene = seat().play(Press(1, "hit"), 200, "restart")
    assert scene.mechanism.state() == DeviceState.LOCKED
    scene.play(Arm(1, EVERY, 5, 1000), Press(1, "hit"), 200)
    assert scene.events[2:] == pair(WhichButton.HIT, 1, 80, token=5)


def test_a_finger_that_stays_through_a_firmwares_start_counts_as_unarmed() -> None:
    scene = seat().play(Press(1, "hit", held_ms=500), 100)
    scene.desk.start(scene.mechanism, scene.now)
    scene.play(50, Arm(1, EVERY, 5, 10_000), 1000, Press(1, "hit"), 200)
    assert scene.those(Button)[1:] == pair(WhichButton.HIT, 1, 80, token=5)


# --- contacts -------------------------------------------------------------------------------

GAPS = st.lists(st.integers(0, DEBOUNCE_US - 1), max_size=24).filter(
    lambda gaps: len(gaps) % 2 == 0
)


def edges(flips: list[int]) -> list[tuple[int, bool]]:
    """What is left of these flips of a contact."""
    contact, out = Contact(), []
    contact.flip(flips)
    while (at := contact.due()) is not None:
        if contact.step(at):
            out.append((at, contact.closed))
    return out


def flips_from(start: int, gaps: list[int]) -> list[int]:
    return list(accumulate(gaps, initial=start))


@given(GAPS, GAPS, st.integers(DEBOUNCE_US, 10**7))
def test_any_bouncing_is_one_edge_each_way(down: list[int], up: list[int], held: int) -> None:
    closing = flips_from(1000, down)
    opening = flips_from(closing[-1] + held, up)
    wanted = [(closing[-1] + DEBOUNCE_US, True), (opening[-1] + DEBOUNCE_US, False)]
    assert edges(closing + opening) == wanted


@given(st.lists(st.integers(0, DEBOUNCE_US - 1), max_size=30), st.integers(0, 10**6))
def test_an_unstable_contact_makes_no_edge(gaps: list[int], start: int) -> None:
    flips = flips_from(start, gaps)
    assert edges(flips) == ([(flips[-1] + DEBOUNCE_US, True)] if len(flips) % 2 else [])


@given(st.integers(0, 10**6), st.integers(0, 20))
def test_bounces_lie_within_the_debounce_time(start: int, bounces: int) -> None:
    flips = bounce_times(start, bounces)
    assert (flips[0], len(set(flips))) == (start, 2 * bounces + 1)
    assert flips == sorted(set(flips))
    assert flips[-1] - start < DEBOUNCE_US


@given(st.integers(0, 20), st.integers(0, 20), st.integers(2 * DEBOUNCE_MS, 300))
def test_a_bouncing_press_is_one_press(down: int, up: int, held_ms: int) -> None:
    scene = seat().play(
        Press(1, "split", held_ms=None, bounces=down), held_ms, LetGo(1, "split", bounces=up), 200
    )
    seen = [(event.edge, event.press) for event in scene.those(Button)]
    assert seen == [(Edge.DOWN, 1), (Edge.UP, 1)]


@given(st.integers(0, 20), st.integers(0, 60))
def test_a_button_let_go_in_the_middle_of_bouncing_does_not_stay_down(
    bounces: int, after_ms: int
) -> None:
    scene = seat().play(
        Press(1, "split", held_ms=70, bounces=bounces),
        after_ms,
        LetGo(1, "split", bounces=bounces),
        300,
    )
    assert scene.look()["seats"]["1"]["down"] == []
    assert len(scene.events) in (0, 2)


RED = b"\xff\x10\x00"


def two_lamps() -> SimulatedStation:
    return SimulatedStation(lamps_per_seat=2)


def lit(
    pattern: LampPattern,
    *breaks: str,
    period: int = 1000,
    lease: int = 60_000,
    rgb: bytes = RED,
    make: Callable[[], Mechanism] = two_lamps,
) -> Scene:
    scene = Scene(make, *breaks)
    assert scene.call(Lamps(1, rgb, pattern, period, lease)) == LampsReply()
    return scene


def lamps(scene: Scene, seat: int = 1) -> Any:
    return scene.look()["seats"][str(seat)]["lamps"]


def levels(scene: Scene, step_ms: int, count: int) -> list[list[int]]:
    """The brightness of each lamp, every so often."""
    return [lamps(scene.play(step_ms if at else 0))["percent"] for at in range(count)]


def test_lamps_display_a_command_until_the_lease_ends() -> None:
    scene = lit(LampPattern.STEADY, period=7, lease=500)
    assert lamps(scene) == {
        "rgb": [255, 16, 0],
        "pattern": "steady",
        "period_ms": 7,
        "lit": True,
        "percent": [100, 100],
        "lease_ms": 500,
        "broken": [],
    }
    assert lamps(scene.play(499.999))["lit"]
    dark = {
        "rgb": [0, 0, 0],
        "pattern": "off",
        "period_ms": 0,
        "lit": False,
        "percent": [0, 0],
        "lease_ms": 0,
        "broken": [],
    }
    assert lamps(scene.play(0.001)) == lamps(Scene(two_lamps)) == dark


@pytest.mark.parametrize(
    ("pattern", "seen"),
    [
        (LampPattern.OFF, [[0, 0]] * 5),
        (LampPattern.STEADY, [[100, 100]] * 5),
        (LampPattern.BLINK, [[100, 100], [100, 100], [0, 0], [0, 0], [100, 100]]),
        (LampPattern.PULSE, [[0, 0], [50, 50], [100, 100], [50, 50], [0, 0]]),
        (LampPattern.CHASE, [[100, 0], [100, 0], [0, 100], [0, 100], [100, 0]]),
    ],
)
def test_every_pattern(pattern: LampPattern, seen: list[list[int]]) -> None:
    assert levels(lit(pattern), 250, 5) == seen


@pytest.mark.parametrize("pattern", list(LampPattern)[2:])
def test_no_period_means_steady(pattern: LampPattern) -> None:
    assert levels(lit(pattern, period=0), 250, 3) == [[100, 100]] * 3


def test_no_lease_is_dark_at_once() -> None:
    assert not lamps(lit(LampPattern.STEADY, lease=0))["lit"]


def test_the_next_word_replaces_the_last() -> None:
    scene = lit(LampPattern.STEADY).play(Lamps(1, b"\0\0\x01", LampPattern.BLINK, 100, 200))
    assert (lamps(scene)["rgb"], lamps(scene)["lease_ms"]) == ([0, 0, 1], 200)
    assert not lamps(scene.play(Lamps(1, RED, LampPattern.OFF, 0, 200)))["lit"]


def test_without_colour_the_largest_is_the_brightness() -> None:
    scene = lit(
        LampPattern.STEADY, make=lambda: SimulatedStation(colour=False), rgb=b"\x01\x20\x03"
    )
    assert Capabilities.COLOUR not in scene.mechanism.capabilities
    assert lamps(scene)["rgb"] == [0x20] * 3


def test_lamps_outlive_the_session_but_no_start() -> None:
    scene = lit(LampPattern.STEADY).play("safe")
    assert lamps(scene)["lit"]
    scene.desk.start(scene.mechanism, scene.now)
    assert not lamps(scene)["lit"]


def test_each_seat_has_its_own_lamps() -> None:
    scene = lit(LampPattern.STEADY, make=lambda: SimulatedStation(seats=(1, 2)))
    assert not lamps(scene, 2)["lit"]
    assert scene.refused(Lamps(3, RED, LampPattern.STEADY, 0, 1)) == Refusal.UNSUPPORTED


# --- broken lamps ---------------------------------------------------------------------------


def test_a_broken_lamp_is_noticed_once_while_it_should_light() -> None:
    scene = lit(LampPattern.STEADY).play(SetLamp(1, 1))
    assert (lamps(scene)["percent"], lamps(scene)["broken"]) == ([100, 0], [1])
    scene.play(Lamps(1, RED, LampPattern.BLINK, 100, 1000), SetLamp(1, 1))
    assert scene.events == [LampFault(1, 1)]
    assert scene.mechanism.selftest(scene.now) == ((FaultCode.LAMPS, 0),)
    assert lamps(scene.play(SetLamp(1, 1, broken=False)))["percent"] == [100, 100]
    assert scene.mechanism.selftest(scene.now) == ()
    assert scene.play(SetLamp(1, 1)).events == [LampFault(1, 1)] * 2


def test_a_lamp_that_breaks_in_the_dark_is_noticed_when_it_should_light() -> None:
    scene = Scene(two_lamps).play(
        SetLamp(1, 1),
        SetLamp(1, 0),
        Lamps(1, RED, LampPattern.OFF, 0, 1000),
        Lamps(1, b"\0\0\0", LampPattern.STEADY, 0, 1000),
        Lamps(1, RED, LampPattern.STEADY, 0, 0),
    )
    assert not scene.events
    assert not lamps(scene.play(Lamps(1, RED, LampPattern.PULSE, 100, 1000)))["lit"]
    assert scene.events == [LampFault(1, 0), LampFault(1, 1)]


def test_a_new_start_notices_it_again() -> None:
    scene = lit(LampPattern.STEADY).play(SetLamp(1, 0))
    scene.desk.start(scene.mechanism, scene.now)
    scene.call(Lamps(1, RED, LampPattern.STEADY, 0, 1000))
    assert scene.events == [LampFault(1, 0)] * 2


def test_without_a_check_a_broken_lamp_is_only_seen() -> None:
    scene = lit(LampPattern.STEADY, make=lambda: SimulatedStation(lamp_check=False)).play(
        SetLamp(1, 0)
    )
    assert not scene.events
    assert scene.mechanism.selftest(scene.now) == ()
    assert lamps(scene)["percent"][:2] == [0, 100]


def test_lamps_that_are_not_there() -> None:
    scene = Scene(two_lamps)
    cannot(scene, SetLamp(1, 2), "lamps 0 to 1")
    cannot(scene, SetLamp(2, 0), "no seat 2")


# --- the buzzer -----------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", list(BuzzPattern)[1:])
def test_a_sound_plays_once(pattern: BuzzPattern) -> None:
    scene = Scene(SimulatedStation)
    assert scene.call(Buzz(pattern)) == BuzzReply()
    assert scene.shown("buzz", "buzzes") == (pattern.name.lower(), 1)
    assert scene.play(BUZZ_MS[pattern]).shown("buzz", "buzzes") == ("off", 1)


def test_a_sound_can_be_ended() -> None:
    stopped = Scene(SimulatedStation).play(Buzz(BuzzPattern.ALARM), Buzz(BuzzPattern.OFF))
    assert stopped.look()["buzz"] == "off"


def test_without_a_buzzer() -> None:
    silent = Scene(lambda: SimulatedStation(buzzer=False))
    assert silent.refused(Buzz(BuzzPattern.TICK)) == Refusal.UNSUPPORTED
