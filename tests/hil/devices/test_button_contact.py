"""Contacts and debouncing: any bouncing is one edge each way."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from firmware_protocol.device.control import LetGo, Press
from firmware_protocol.messages import DEBOUNCE_MS, Button, Edge
from hil.devices.button_contact import DEBOUNCE_US, Contact, bounce_times
from tests.support.hil.devices.station_table import seat

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
    out = [start]
    for gap in gaps:
        out.append(out[-1] + gap)
    return out


@given(GAPS, GAPS, st.integers(DEBOUNCE_US, 10**7))
def test_any_bouncing_is_one_edge_each_way(down: list[int], up: list[int], held: int) -> None:
    closing = flips_from(1000, down)
    opening = flips_from(closing[-1] + held, up)
    wanted = [(closing[-1] + DEBOUNCE_US, True), (opening[-1] + DEBOUNCE_US, False)]
    assert edges(closing + opening) == wanted


@given(st.lists(st.integers(0, DEBOUNCE_US - 1), max_size=30), st.integers(0, 10**6))
def test_an_unstable_contact_makes_no_edge(gaps: list[int], start: int) -> None:
    flips = flips_from(start, gaps)
    last = [] if len(flips) % 2 == 0 else [(flips[-1] + DEBOUNCE_US, True)]
    assert edges(flips) == last


@given(st.integers(0, 10**6), st.integers(0, 20))
def test_bounces_lie_within_the_debounce_time(start: int, bounces: int) -> None:
    flips = bounce_times(start, bounces)
    assert flips[0] == start
    assert len(flips) == 2 * bounces + 1
    assert flips == sorted(set(flips))
    assert flips[-1] - start < DEBOUNCE_US


@given(st.integers(0, 20), st.integers(0, 20), st.integers(2 * DEBOUNCE_MS, 300))
def test_a_bouncing_press_is_one_press(down: int, up: int, held_ms: int) -> None:
    scene = seat()
    scene.do(Press(1, "split", held_ms=None, bounces=down))
    scene.run(ms=held_ms)
    scene.do(LetGo(1, "split", bounces=up))
    scene.run(ms=200)
    assert [event.edge for event in scene.those(Button)] == [Edge.DOWN, Edge.UP]
    assert {event.press for event in scene.those(Button)} == {1}


@given(st.integers(0, 20), st.integers(0, 60))
def test_a_button_let_go_in_the_middle_of_bouncing_does_not_stay_down(
    bounces: int, after_ms: int
) -> None:
    scene = seat()
    scene.do(Press(1, "split", held_ms=70, bounces=bounces))
    scene.run(ms=after_ms)
    scene.do(LetGo(1, "split", bounces=bounces))
    scene.run(ms=300)
    assert scene.look()["seats"]["1"]["down"] == []
    assert len(scene.events) in (0, 2)
