"""A record that heartbeats tell of and that does not come: asked for, and then given up."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from firmware_protocol.enums import NakWhy
from firmware_protocol.limits import WINDOW
from firmware_protocol.link_events import Arrived, Ending, Resumed, SessionEnded, StuckBehind
from firmware_protocol.link_session import BEHIND_ASK, BEHIND_END
from firmware_protocol.messages_all import Resume
from firmware_protocol.messages_control import EvtNak
from tests.fuzz.scripted import EPOCH
from tests.fuzz.wired import MS, Wired

ASK_MS, END_MS = BEHIND_ASK // MS, BEHIND_END // MS
BEAT_MS = 250
"""Nothing is looked at but when the device's heart beats."""


def endings(wired: Wired) -> list[Ending]:
    return [one.why for one in wired.of(SessionEnded)]


def asked(wired: Wired) -> list[EvtNak]:
    naks: list[EvtNak] = wired.device.heard(EvtNak)
    return naks


def test_what_does_not_come_is_asked_for_and_then_the_session_ends() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.pass_ms(ASK_MS)
    assert asked(wired) == []
    wired.pass_ms(BEAT_MS)
    assert asked(wired) == [EvtNak(EPOCH, 1, NakWhy.GAP)]
    wired.pass_ms(1000)
    assert asked(wired) == [EvtNak(EPOCH, 1, NakWhy.GAP)] * 2
    assert wired.link.running
    assert not wired.of(StuckBehind)
    wired.pass_ms(END_MS - ASK_MS - 1000)
    assert wired.of(StuckBehind) == [StuckBehind(1, 3)]
    assert endings(wired) == [Ending.BEHIND]
    # The last way to get it is to say once more from where on it is wanted.
    assert [one.next for one in wired.device.heard(Resume)] == [1]
    assert wired.of(Resumed)
    wired.send(1, 2, 3)
    assert [one.seq for one in wired.arrived] == [1, 2, 3]
    wired.pass_ms(3 * END_MS)
    assert endings(wired) == [Ending.BEHIND]


def test_what_comes_when_it_is_asked_for_ends_nothing() -> None:
    wired = Wired.running(3)
    wired.forget()
    for seq in (1, 2, 3):
        while not asked(wired):
            wired.pass_ms(BEAT_MS)
        wired.send(seq)
        wired.forget()
    wired.pass_ms(4 * END_MS)
    assert (asked(wired), endings(wired)) == ([], [])
    assert wired.link.running


def test_what_comes_at_the_last_moment_counts() -> None:
    """Heartbeat and record come in one piece, the heartbeat first."""
    wired = Wired.running(1)
    wired.pass_ms(END_MS)
    wired.cut = True
    wired.pass_ms(BEAT_MS)
    wired.cut = False
    wired.device.beat()
    wired.send(1)
    assert [one.seq for one in wired.arrived] == [1]
    assert (wired.of(StuckBehind), endings(wired)) == ([], [])
    assert wired.link.running


def test_each_record_that_comes_gives_the_next_one_its_time() -> None:
    wired = Wired.running(8)
    for seq in range(1, 9):
        wired.pass_ms(END_MS - 2 * BEAT_MS)
        wired.send(seq)
    assert [one.seq for one in wired.arrived] == list(range(1, 9))
    assert endings(wired) == []


def waits_for_the_host(wired: Wired) -> None:
    """All that the window lets come has come, and is not kept yet."""
    wired.send(*range(1, WINDOW + 1))


def is_paused(wired: Wired) -> None:
    wired.link.pause(wired.now)


def is_held(wired: Wired) -> None:
    """Its chain does not go with what was kept."""
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    assert not wired.link.resumed


def has_another_ring(wired: Wired) -> None:
    wired.device.epoch = EPOCH + 1


RIGHT: list[Callable[[Wired], None]] = [waits_for_the_host, is_paused, is_held, has_another_ring]


@pytest.mark.parametrize("how", RIGHT, ids=lambda one: one.__name__)
def test_where_nothing_can_come_nothing_is_missed(how: Callable[[Wired], None]) -> None:
    wired = Wired.running(WINDOW + 4)
    how(wired)
    wired.forget()
    wired.pass_ms(3 * END_MS)
    assert (asked(wired), endings(wired)) == ([], [])
    assert wired.link.running


def test_a_pause_gives_all_their_time_again() -> None:
    wired = Wired.running(2)
    for _ in range(4):
        wired.pass_ms(END_MS - 2 * BEAT_MS)
        wired.link.pause(wired.now)
        wired.pass_ms(2 * BEAT_MS)
        wired.link.go_on(wired.now)
    assert endings(wired) == []


def test_what_the_host_lets_go_of_and_does_not_get_again_is_missed() -> None:
    """again() is lost on the line, and so is all that it would bring."""
    wired = Wired.running(2)
    wired.send(1, 2)
    wired.pass_ms(2 * END_MS)
    assert endings(wired) == []
    wired.link.again(wired.now)
    wired.forget()
    wired.pass_ms(END_MS + 2 * BEAT_MS)
    assert len(asked(wired)) > 2
    assert endings(wired) == [Ending.BEHIND]
    assert not wired.of(Arrived)
