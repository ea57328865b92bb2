"""Records: exactly once and in order, acknowledged only when kept, held when they do not fit."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from firmware_protocol.enums import CardFlags, NakWhy, ResumeMode, Verdict
from firmware_protocol.limits import WINDOW
from firmware_protocol.link import NO_CURSOR, Cursor
from firmware_protocol.link_cursor import RECENT, Place, Records
from firmware_protocol.link_events import Arrived, Held, Resumed, SessionEnded, Unanswered
from firmware_protocol.messages_all import Resume
from firmware_protocol.messages_control import EvtAck, EvtNak, HostBeat
from firmware_protocol.messages_shoe import CardRead
from firmware_protocol.plaintext import NO_CHAIN
from tests.fuzz.scripted import EPOCH, Scripted, records
from tests.fuzz.wired import Wired


def numbers(wired: Wired) -> list[int]:
    return [record.seq for record in wired.arrived]


# --- the table of PROTOCOL.md, row by row ---------------------------------------------------


def test_what_fits_arrives_once_and_is_acknowledged_when_it_is_kept() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.send(1, 2)
    assert numbers(wired) == [1, 2]
    assert not wired.device.heard(EvtAck)
    wired.pass_ms(250)
    assert wired.device.heard(HostBeat) == [HostBeat(EPOCH, 0, 8)]
    wired.kept(2)
    assert wired.device.heard(EvtAck) == [EvtAck(EPOCH, 2, 8)]
    assert wired.link.cursor == Cursor(EPOCH, 2, wired.device.records[1].chain)
    wired.pass_ms(250)
    assert wired.device.heard(HostBeat)[-1] == HostBeat(EPOCH, 2, 8)


def test_what_does_not_fit_is_a_fork_and_nothing_more_is_taken() -> None:
    wired = Wired.running(3)
    wired.send(1)
    wired.kept(1)
    wired.forget()
    wrong = replace(wired.device.records[1], chain=b"another!")
    (held,) = wired.say(wrong)
    assert held == Held(Verdict.FORK, EPOCH, 1, 2, b"another!")
    wired.send(2, 3)
    assert not wired.arrived
    assert not wired.device.heard(EvtAck)
    assert not wired.link.resumed
    wired.pass_ms(250)
    assert wired.device.heard(HostBeat) == [HostBeat(0, 0, 0)]


def test_what_is_kept_is_dropped_and_acknowledged_again() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    wired.kept(2)
    wired.forget()
    assert wired.send(1, 2) == []
    assert wired.device.heard(EvtAck) == [EvtAck(EPOCH, 2, 8)]  # one for both


def test_another_record_under_a_kept_seq_is_a_fork() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    wired.kept(2)
    wired.forget()
    (held,) = wired.say(replace(wired.device.records[0], chain=b"another!"))
    assert isinstance(held, Held)
    assert held.verdict is Verdict.FORK
    assert not wired.device.heard(EvtAck)


def test_another_record_under_a_seq_that_has_come_is_a_fork_too() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    (held,) = wired.say(replace(wired.device.records[1], chain=b"another!"))
    assert isinstance(held, Held)


def test_a_gap_is_asked_for_but_not_more_often_than_each_100_ms() -> None:
    wired = Wired.running(8)
    wired.forget()
    wired.send(3, 4)
    assert not wired.arrived
    wanted = EvtNak(EPOCH, 1, NakWhy.GAP)
    assert wired.device.heard(EvtNak) == [wanted]
    wired.pass_ms(99)
    wired.send(3)
    assert wired.device.heard(EvtNak) == [wanted]
    wired.pass_ms(1)
    wired.send(3)
    assert wired.device.heard(EvtNak) == [wanted, wanted]
    wired.send(1, 3)  # another gap is told at once
    assert wired.device.heard(EvtNak)[2:] == [EvtNak(EPOCH, 2, NakWhy.GAP)]
    wired.send(2, 3)
    assert numbers(wired) == [1, 2, 3]


def test_a_record_of_another_ring_is_a_new_epoch() -> None:
    wired = Wired.running(2)
    strange = records(1, epoch=77)[0]
    (held,) = wired.say(strange)
    assert held == Held(Verdict.NEW_EPOCH, 77, 1, 1, strange.chain)


def test_a_record_before_resume_is_dropped() -> None:
    device = Scripted(2)
    device.mute = {Resume}
    wired = Wired(device, cursor=Cursor(EPOCH, 0, NO_CHAIN))
    wired.open()
    wired.send(1, 2)
    assert not wired.arrived
    device.mute = set()
    wired.pass_ms(200)  # RESUME is sent again
    assert wired.of(Resumed)
    wired.send(1, 2)
    assert numbers(wired) == [1, 2]


def test_no_more_than_a_window_waits() -> None:
    wired = Wired.running(20)
    wired.forget()
    wired.send(*range(1, 21))
    assert numbers(wired) == list(range(1, WINDOW + 1))
    assert not wired.device.heard(EvtNak)
    wired.kept(3)
    wired.send(*range(9, 21))
    assert numbers(wired) == list(range(1, WINDOW + 4))


def test_what_waits_is_not_delivered_again_in_the_next_session() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.pass_ms(1100, beats=False)
    assert wired.of(SessionEnded)
    assert wired.link.resumed
    assert wired.device.heard(Resume)[-1].next == 1  # nothing is kept yet
    wired.send(1, 2, 3)
    assert numbers(wired) == [1, 2, 3]
    wired.device.said.clear()
    wired.kept(3)
    assert wired.device.heard(EvtAck) == [EvtAck(EPOCH, 3, 8)]


def test_what_was_kept_while_no_session_ran_is_told_by_resume() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.link.lost(wired.now)
    wired.link.kept(2, wired.now)
    assert wired.link.take() == b""
    wired.forget()
    wired.open()
    (resume,) = wired.device.heard(Resume)
    assert resume == Resume(EPOCH, 3, wired.device.records[1].chain, ResumeMode.CHECK)


def test_kept_takes_only_what_has_come() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.kept(1)
    wired.forget()
    wired.kept(1)
    wired.kept(0)
    assert not wired.device.heard(EvtAck)
    for seq in (3, -1):
        with pytest.raises(ValueError, match="have come up to 2"):
            wired.link.kept(seq, wired.now)


def test_what_could_not_be_kept_comes_once_more() -> None:
    wired = Wired.running(4)
    wired.send(1, 2, 3)
    wired.kept(1)
    wired.forget()
    wired.link.again(wired.now)
    wired.settle()
    assert wired.device.heard(EvtNak) == [EvtNak(EPOCH, 2, NakWhy.AGAIN)]
    wired.send(2, 3)
    assert numbers(wired) == [2, 3]


# --- windows --------------------------------------------------------------------------------


def test_pause_and_go_on_set_the_window() -> None:
    wired = Wired.running(4)
    wired.forget()
    wired.link.pause(wired.now)
    wired.settle()
    wired.pass_ms(250)
    wired.link.go_on(wired.now)
    wired.settle()
    assert wired.device.heard(EvtAck) == [EvtAck(EPOCH, 0, 0), EvtAck(EPOCH, 0, 8)]
    assert wired.device.heard(HostBeat) == [HostBeat(EPOCH, 0, 0)]


def test_a_pause_outlives_its_session() -> None:
    wired = Wired.running(4)
    wired.link.pause(wired.now)
    wired.settle()
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert wired.of(Resumed)
    assert wired.device.heard(EvtAck) == [EvtAck(EPOCH, 0, 0)]


# --- RESUME ---------------------------------------------------------------------------------


def resumed(device: Scripted, cursor: Cursor, recent: dict[int, bytes] | None = None) -> Wired:
    wired = Wired(device, cursor=cursor, recent=recent or {})
    wired.open()
    return wired


def test_a_device_never_seen_is_held_until_two_people_adopt_it() -> None:
    wired = resumed(Scripted(5), NO_CURSOR)
    (held,) = wired.of(Held)
    chain = wired.device.records[-1].chain
    assert held == Held(Verdict.NEW_EPOCH, EPOCH, 1, 5, chain)
    assert wired.device.heard(Resume) == [Resume(0, 0, NO_CHAIN, ResumeMode.CHECK)]
    wired.send(1)
    assert not wired.arrived
    wired.link.adopt(wired.now)
    wired.settle()
    assert wired.of(Resumed) == [Resumed(EPOCH, 1, 5)]
    wired.send(1, 2, 3)
    assert numbers(wired) == [1, 2, 3]


@pytest.mark.parametrize("worse", ["device", "host"])
def test_the_worse_verdict_counts(worse: str) -> None:
    device = Scripted(5)
    good = Cursor(EPOCH, 5, device.records[-1].chain)
    if worse == "device":
        device.verdict = Verdict.GAP
        wired = resumed(device, good)
        wanted = Verdict.GAP
    else:
        device.verdict = Verdict.OK
        wired = resumed(device, Cursor(EPOCH, 5, b"another!"))
        wanted = Verdict.FORK
    (held,) = wired.of(Held)
    assert held.verdict is wanted
    assert not wired.of(Resumed)


@pytest.mark.parametrize(
    ("cursor", "oldest", "verdict"),
    [
        (Cursor(99, 5, bytes(8)), 1, Verdict.NEW_EPOCH),
        (Cursor(EPOCH, 6, bytes(8)), 1, Verdict.FORK),  # rolled back
        (Cursor(EPOCH, 2, bytes(8)), 4, Verdict.GAP),
    ],
)
def test_the_host_sees_for_itself_what_a_device_keeps_quiet(
    cursor: Cursor, oldest: int, verdict: Verdict
) -> None:
    device = Scripted(5)
    device.oldest = oldest
    device.verdict = Verdict.OK
    (held,) = resumed(device, cursor).of(Held)
    assert (held.verdict, held.oldest, held.head) == (verdict, oldest, 5)


def test_a_ring_that_ends_before_what_has_come_is_a_fork() -> None:
    wired = Wired.running(5)
    wired.send(1, 2, 3)
    wired.kept(1)
    del wired.device.records[2:]  # rolled back, but not beyond the cursor
    wired.pass_ms(1100, beats=False)
    (held,) = wired.of(Held)
    assert held.verdict is Verdict.FORK


def test_a_ring_that_ends_in_another_record_than_was_kept_is_a_fork() -> None:
    wired = Wired.running(5)
    wired.send(1, 2, 3)
    wired.kept(1)
    wired.device.records = records(3)
    wired.device.records[2] = replace(wired.device.records[2], chain=b"another!")
    wired.pass_ms(1100, beats=False)
    (held,) = wired.of(Held)
    assert held.verdict is Verdict.FORK


def test_recent_chains_tell_a_repeat_from_a_fork_after_a_restart() -> None:
    device = Scripted(5)
    chains = {record.seq: record.chain for record in device.records[:3]}
    wired = resumed(device, Cursor(EPOCH, 3, chains[3]), chains)
    assert wired.send(2) == []
    (held,) = wired.say(replace(device.records[1], chain=b"another!"))
    assert isinstance(held, Held)
    blind = resumed(Scripted(5), Cursor(EPOCH, 3, chains[3]))
    assert blind.say(replace(device.records[1], chain=b"another!")) == []


def test_an_unanswered_resume_is_told_and_asked_anew() -> None:
    device = Scripted(2)
    device.mute = {Resume}
    wired = resumed(device, Cursor(EPOCH, 0, NO_CHAIN))
    wired.pass_ms(1100)
    assert [type(one.command) for one in wired.of(Unanswered)] == [Resume, Resume]
    assert len(device.heard(Resume)) == 7  # three each 500 ms, and one of the third round
    assert wired.link.running


def test_a_doubt_outlives_its_session() -> None:
    wired = Wired.running(3)
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    wired.forget()
    wired.pass_ms(1100, beats=False)
    (held,) = wired.of(Held)
    assert held.verdict is Verdict.FORK
    assert held.head == 3
    assert not wired.of(Resumed)


# --- adopting -------------------------------------------------------------------------------


def test_after_a_gap_what_is_left_is_adopted_from_the_oldest() -> None:
    device = Scripted(9)
    device.oldest = 5
    wired = resumed(device, Cursor(EPOCH, 2, device.records[1].chain))
    wired.forget()
    wired.link.adopt(wired.now)
    wired.settle()
    assert device.heard(Resume) == [Resume(EPOCH, 5, NO_CHAIN, ResumeMode.ADOPT)]
    assert wired.link.cursor == Cursor(EPOCH, 4, NO_CHAIN)
    wired.send(5, 6)
    assert numbers(wired) == [5, 6]
    wired.kept(5)
    assert wired.link.cursor == Cursor(EPOCH, 5, device.records[4].chain)
    (held,) = wired.say(replace(device.records[6], chain=b"another!"))
    assert isinstance(held, Held)


def test_what_is_adopted_and_not_kept_is_adopted_again_in_the_next_session() -> None:
    device = Scripted(9)
    device.oldest = 5
    wired = resumed(device, Cursor(EPOCH, 2, device.records[1].chain))
    wired.link.adopt(wired.now)
    wired.settle()
    wired.send(5)
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert device.heard(Resume) == [Resume(EPOCH, 5, NO_CHAIN, ResumeMode.ADOPT)]
    assert wired.link.resumed
    wired.send(5, 6)
    wired.kept(6)
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert device.heard(Resume)[0].mode is ResumeMode.CHECK


def test_a_ring_that_moved_on_meanwhile_is_adopted_all_the_same() -> None:
    device = Scripted(9)
    device.oldest = 5
    wired = resumed(device, Cursor(EPOCH, 2, device.records[1].chain))
    device.oldest = 7  # what was acknowledged long ago was overwritten
    wired.forget()
    wired.link.adopt(wired.now)
    wired.settle()
    assert [one.next for one in device.heard(Resume)] == [5, 7]
    assert wired.of(Resumed) == [Resumed(EPOCH, 7, 9)]


def test_another_ring_than_the_one_accepted_is_held_anew() -> None:
    device = Scripted(2)
    wired = resumed(device, NO_CURSOR)
    device.epoch, device.records = 55, records(3, epoch=55)
    wired.forget()
    wired.link.adopt(wired.now)
    wired.settle()
    (held,) = wired.of(Held)
    assert (held.verdict, held.epoch) == (Verdict.NEW_EPOCH, 55)
    wired.link.adopt(wired.now)
    wired.settle()
    assert wired.of(Resumed) == [Resumed(55, 1, 3)]


def test_a_fork_may_be_adopted_and_skipped() -> None:
    device = Scripted(4)
    wired = resumed(device, Cursor(EPOCH, 4, b"another!"))
    wired.link.adopt(wired.now, skip=True)
    wired.settle()
    assert wired.of(Resumed)
    assert wired.link.cursor == Cursor(EPOCH, 4, device.records[-1].chain)
    device.records = records(6)
    wired.send(5, 6)
    assert numbers(wired) == [5, 6]


def test_adopting_clears_the_doubt_of_a_record() -> None:
    wired = Wired.running(3)
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    wired.forget()
    wired.link.adopt(wired.now)
    wired.settle()
    assert wired.of(Resumed)
    wired.send(1, 2, 3)
    assert numbers(wired) == [1, 2, 3]


def test_adopted_while_away_it_is_adopted_when_the_device_comes_back() -> None:
    wired = resumed(Scripted(2), NO_CURSOR)
    wired.link.lost(wired.now)
    wired.link.adopt(wired.now)
    wired.forget()
    wired.open()
    assert [one.mode for one in wired.device.heard(Resume)] == [ResumeMode.ADOPT]
    assert wired.of(Resumed)


def test_adopted_while_a_resume_is_on_its_way_it_is_asked_once_more() -> None:
    device = Scripted(2)
    wired = resumed(device, NO_CURSOR)
    wired.link.lost(wired.now)
    device.mute = {Resume}
    wired.open()
    wired.link.adopt(wired.now)
    device.mute = set()
    wired.forget()
    wired.pass_ms(200)
    assert [one.mode for one in device.heard(Resume)] == [ResumeMode.CHECK, ResumeMode.ADOPT]
    assert wired.of(Resumed)
    assert not wired.of(Held)


def test_nothing_is_adopted_that_is_not_held() -> None:
    wired = Wired.running(1)
    with pytest.raises(ValueError, match="nothing is held"):
        wired.link.adopt(wired.now)


# --- bounds, and what is shown --------------------------------------------------------------


def test_only_so_many_chains_are_remembered() -> None:
    ring = records(RECENT + 40)
    chains = {record.seq: record.chain for record in ring}
    kept = Records(Cursor(EPOCH, 100, chains[100]), chains)
    assert len(kept._recent) == RECENT
    assert kept.place(ring[99]) is Place.KEPT
    assert kept.place(replace(ring[99], chain=b"another!")) is Place.FORK
    assert kept.place(replace(ring[10], chain=b"another!")) is Place.KEPT  # too long ago to know
    for record in ring[100:]:
        assert kept.place(record) is Place.NEXT
        kept.kept(record.seq)
    assert len(kept._recent) == RECENT


def test_no_card_is_shown() -> None:
    card = CardRead(1, 1, 37, 99, 0xFE, CardFlags(0), 40, 1, bytes(11))
    record = records(1, event=card)[0]
    assert "37" not in repr(Arrived(record)).replace(repr(record.chain), "")
