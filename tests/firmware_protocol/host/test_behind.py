"""Heartbeats show missing records, which are requested until a timeout ends the session, and other
rings, which end the session and are held."""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable

import pytest
from msgspec.structs import replace
from rich.pretty import pretty_repr

from firmware_protocol.host import (
    NO_CURSOR,
    BeatReceived,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    RecordCursor,
    RecordMissing,
    RecordReceived,
    ReplyReceived,
    RingHeld,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.host.exchange import BEHIND_ASK, BEHIND_END
from firmware_protocol.messages import (
    WINDOW,
    CardFlags,
    CardRead,
    EvtAck,
    EvtNak,
    FrameKind,
    HostBeat,
    NakWhy,
    Reread,
    RereadReply,
    Resume,
    ResumeMode,
    ResumeReply,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandReply, EventRecord
from tests.long.fuzz.scripted import EPOCH, MS, Scripted, Wired, records

ASK_MS, END_MS = BEHIND_ASK // MS, BEHIND_END // MS
BEAT_MS = 250
"""Missing records are checked only at heartbeats of the device."""


def endings(wired: Wired) -> list[SessionEnding]:
    return [one.why for one in wired.of(LinkSessionEnded)]


def asked(wired: Wired) -> list[EvtNak]:
    return wired.device.received(EvtNak)


def test_what_does_not_arrive_is_asked_for_and_then_the_session_ends() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.pass_ms(ASK_MS)
    assert asked(wired) == []
    wired.pass_ms(BEAT_MS)
    assert asked(wired) == [EvtNak(EPOCH, 1, NakWhy.GAP)]
    wired.pass_ms(1000)
    assert (asked(wired), wired.link.running) == ([EvtNak(EPOCH, 1, NakWhy.GAP)] * 2, True)
    assert not wired.of(RecordMissing)
    wired.pass_ms(END_MS - ASK_MS - 1000)
    assert wired.of(RecordMissing) == [RecordMissing(1, 3)]
    assert endings(wired) == [SessionEnding.BEHIND]
    # RESUME is the last way to get the record.
    assert [one.next for one in wired.device.received(Resume)] == [1]
    assert wired.of(RingResumed)
    wired.send(1, 2, 3)
    assert wired.seqs == [1, 2, 3]
    wired.pass_ms(3 * END_MS)
    assert endings(wired) == [SessionEnding.BEHIND]


def test_what_arrives_when_it_is_asked_for_ends_nothing() -> None:
    wired = Wired.running(3)
    wired.forget()
    for seq in (1, 2, 3):
        while not asked(wired):
            wired.pass_ms(BEAT_MS)
        wired.send(seq)
        wired.forget()
    wired.pass_ms(4 * END_MS)
    assert (asked(wired), endings(wired), wired.link.running) == ([], [], True)


def test_what_arrives_at_the_last_moment_counts() -> None:
    """Heartbeat and record arrive together, the heartbeat first."""
    wired = Wired.running(1)
    wired.pass_ms(END_MS)
    wired.cut = True
    wired.pass_ms(BEAT_MS)
    wired.cut = False
    wired.device.beat()
    wired.send(1)
    assert wired.seqs == [1]
    assert (wired.of(RecordMissing), endings(wired), wired.link.running) == ([], [], True)


def test_each_record_that_arrives_gives_the_next_one_its_time() -> None:
    wired = Wired.running(8)
    for seq in range(1, 9):
        wired.pass_ms(END_MS - 2 * BEAT_MS)
        wired.send(seq)
    assert (wired.seqs, endings(wired)) == (list(range(1, 9)), [])


def waits_for_the_host(wired: Wired) -> None:
    """All records of the window were received, and are not stored yet."""
    wired.send(*range(1, WINDOW + 1))


def is_paused(wired: Wired) -> None:
    wired.link.pause(wired.now)


def is_held(wired: Wired) -> None:
    """Its chain does not continue the stored records."""
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    assert not wired.link.resumed


RIGHT: list[Callable[[Wired], None]] = [waits_for_the_host, is_paused, is_held]


@pytest.mark.parametrize("how", RIGHT, ids=lambda one: one.__name__)
def test_where_nothing_can_arrive_nothing_is_missed(how: Callable[[Wired], None]) -> None:
    wired = Wired.running(WINDOW + 4)
    how(wired)
    wired.forget()
    wired.pass_ms(3 * END_MS)
    assert (asked(wired), endings(wired), wired.link.running) == ([], [], True)


def test_a_pause_gives_all_their_time_again() -> None:
    wired = Wired.running(2)
    for _ in range(4):
        wired.pass_ms(END_MS - 2 * BEAT_MS)
        wired.link.pause(wired.now)
        wired.pass_ms(2 * BEAT_MS)
        wired.link.unpause(wired.now)
    assert endings(wired) == []


def test_what_the_host_discards_and_does_not_get_again_is_missed() -> None:
    """again() is lost on the line, and so is all that it would bring."""
    wired = Wired.running(2)
    wired.send(1, 2)
    wired.pass_ms(2 * END_MS)
    assert endings(wired) == []
    wired.link.discard(wired.now)
    wired.forget()
    wired.pass_ms(END_MS + 2 * BEAT_MS)
    assert len(asked(wired)) > 2
    assert (endings(wired), wired.of(RecordReceived)) == ([SessionEnding.BEHIND], [])


# --- another ring than the one that was resumed ---------------------------------------------


CHANGED: dict[str, tuple[int, list[EventRecord], Verdict]] = {
    "replaced": (EPOCH + 1, records(9, epoch=EPOCH + 1), Verdict.NEW_EPOCH),
    "emptied": (EPOCH + 1, [], Verdict.NEW_EPOCH),
    "rolled back before what is kept": (EPOCH, records(1), Verdict.FORK),
    "rolled back before what has come": (EPOCH, records(2), Verdict.FORK),
}


@pytest.mark.parametrize(("epoch", "ring", "verdict"), CHANGED.values(), ids=CHANGED)
def test_a_ring_that_changes_under_a_session_is_held_though_nothing_of_it_comes(
    epoch: int, ring: list[EventRecord], verdict: Verdict
) -> None:
    wired = Wired.running(3)
    wired.send(1, 2, 3)
    wired.stored(2)
    wired.pass_ms(4 * BEAT_MS)
    wired.forget()
    wired.device.epoch, wired.device.records = epoch, ring
    wired.pass_ms(2 * BEAT_MS)
    assert endings(wired) == [SessionEnding.OTHER_RING]
    assert [(one.verdict, one.epoch, one.head) for one in wired.of(RingHeld)] == [
        (verdict, epoch, len(ring))
    ]
    assert (wired.of(RingResumed), wired.link.resumed) == ([], False)
    wired.pass_ms(3 * END_MS)
    assert (endings(wired), wired.link.running) == ([SessionEnding.OTHER_RING], True)
    wired.link.discard(wired.now)
    wired.adopt()
    wired.pass_ms(3 * BEAT_MS)
    assert (wired.link.resumed, endings(wired)) == (True, [SessionEnding.OTHER_RING])


def test_nothing_is_taken_after_a_heartbeat_of_another_ring() -> None:
    """Heartbeat and record come in one piece."""
    wired = Wired.running(2)
    wired.send(1)
    wired.forget()
    wired.device.epoch = EPOCH + 1
    wired.device.beat()
    wired.device.beat()
    assert [type(one) for one in wired.send(2)[:3]] == [
        BeatReceived,
        BeatReceived,
        LinkSessionEnded,
    ]
    assert (wired.arrived, endings(wired)) == ([], [SessionEnding.OTHER_RING])


def test_a_device_whose_heartbeats_and_answers_differ_is_held_once() -> None:
    """RESUME is answered as if nothing were: it would be ready and away again, over and over."""
    wired = Wired.running(3)
    wired.send(1, 2, 3)
    wired.stored(3)
    chain = wired.device.records[-1].chain
    wired.device.replies[Resume] = lambda _: ResumeReply(EPOCH, 1, 3, chain, Verdict.OK, 3, chain)
    wired.device.epoch = EPOCH + 1
    wired.forget()
    wired.pass_ms(3 * END_MS)
    assert endings(wired) == [SessionEnding.OTHER_RING]
    assert wired.of(RingHeld) == [RingHeld(Verdict.FORK, EPOCH, 1, 3, chain, 3, chain)]
    assert wired.link.running
    wired.adopt(skip=True)
    assert wired.link.resumed
    wired.pass_ms(3 * END_MS)
    assert (endings(wired), len(wired.of(RingHeld))) == ([SessionEnding.OTHER_RING] * 2, 2)


# --- and what an honest device may say ------------------------------------------------------


def test_before_resume_is_answered_heartbeats_may_tell_of_any_ring() -> None:
    device = Scripted(2, mute={Resume})
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH + 1, 7, bytes(8)))
    wired.pass_ms(4 * BEAT_MS)
    assert wired.of(BeatReceived)
    device.mute = set()
    wired.pass_ms(4 * BEAT_MS)
    assert wired.verdicts == [Verdict.NEW_EPOCH]
    wired.pass_ms(4 * BEAT_MS)  # nothing is taken while it is held
    assert endings(wired) == []


@pytest.mark.parametrize("skip", [False, True])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_an_adopted_ring_is_the_one_of_the_record_from_then_on(count: int, skip: bool) -> None:
    """Also a new, empty ring."""
    wired = Wired.opened(Scripted(count), cursor=NO_CURSOR)
    wired.pass_ms(2 * BEAT_MS)
    wired.link.adopt(wired.now, skip=skip)
    wired.beat()
    assert [one.mode for one in wired.device.received(Resume)][-1] is ResumeMode.ADOPT
    assert wired.link.resumed
    wired.pass_ms(2 * BEAT_MS)
    wired.device.records = records(count + 1)
    wired.send(*range(count + 1 if skip else 1, count + 2))
    wired.pass_ms(2 * BEAT_MS)
    assert (wired.arrived[-1].seq, endings(wired)) == (count + 1, [])


def test_new_keys_and_records_on_their_way_end_nothing() -> None:
    """Heartbeats of both sessions have the state of the ring at their creation."""
    wired = Wired.running(rekey_frames=30)
    for seq in range(1, 60):
        wired.device.records = records(seq)
        wired.device.beat()  # of a record that is still on its way
        wired.send(seq)
        wired.device.beat()
        if seq % 4 == 0:
            wired.stored(seq)
        wired.pass_ms(BEAT_MS)
    assert len([one for one in wired.of(LinkSessionStarted) if one.rekeyed]) > 2
    assert (wired.seqs, endings(wired)) == (list(range(1, 60)), [])


def test_a_device_that_restarts_continues_with_its_ring() -> None:
    wired = Wired.running(3)
    wired.send(1, 2, 3)
    wired.stored(3)
    wired.device.mute = {FrameKind.HELLO}
    wired.pass_ms(5 * BEAT_MS, beats=False)
    wired.device.mute = set()
    wired.device.records = records(4)  # POWER
    wired.pass_ms(8 * BEAT_MS)
    wired.send(4)
    wired.pass_ms(4 * BEAT_MS)
    assert (wired.seqs, endings(wired)) == ([1, 2, 3, 4], [SessionEnding.SILENT])


# --- the table of PROTOCOL.md, row by row ---------------------------------------------------


def test_what_fits_arrives_once_and_is_acknowledged_when_it_is_stored() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.send(1, 2)
    assert (wired.seqs, wired.device.received(EvtAck)) == ([1, 2], [])
    wired.pass_ms(250)
    assert wired.device.received(HostBeat) == [HostBeat(EPOCH, 0, 8)]
    wired.stored(2)
    assert wired.device.received(EvtAck) == [EvtAck(EPOCH, 2, 8)]
    assert wired.link.cursor == RecordCursor(EPOCH, 2, wired.device.records[1].chain)
    wired.pass_ms(250)
    assert wired.device.received(HostBeat)[-1] == HostBeat(EPOCH, 2, 8)


def test_what_does_not_fit_is_a_fork_and_nothing_more_is_taken() -> None:
    wired = Wired.running(3)
    wired.send(1)
    wired.stored(1)
    wired.forget()
    told = wired.say(replace(wired.device.records[1], chain=b"another!"))
    assert told == [RingHeld(Verdict.FORK, EPOCH, 1, 2, b"another!")]
    wired.send(2, 3)
    assert (wired.arrived, wired.device.received(EvtAck), wired.link.resumed) == ([], [], False)
    wired.pass_ms(250)
    assert wired.device.received(HostBeat) == [HostBeat(0, 0, 0)]


def test_another_record_under_a_stored_seq_is_a_fork() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    wired.stored(2)
    wired.forget()
    told = wired.say(replace(wired.device.records[0], chain=b"another!"))
    assert told == [RingHeld(Verdict.FORK, EPOCH, 1, 1, b"another!")]
    assert not wired.device.received(EvtAck)


def test_another_record_under_a_seq_that_was_received_is_a_fork_too() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    (held,) = wired.say(replace(wired.device.records[1], chain=b"another!"))
    assert isinstance(held, RingHeld)


def test_a_gap_is_asked_for_but_not_more_often_than_each_100_ms() -> None:
    wired = Wired.running(8)
    wired.forget()
    wired.send(3, 4)
    assert not wired.arrived
    wanted = EvtNak(EPOCH, 1, NakWhy.GAP)
    assert wired.device.received(EvtNak) == [wanted]
    wired.pass_ms(99)
    wired.send(3)
    assert wired.device.received(EvtNak) == [wanted]
    wired.pass_ms(1)
    wired.send(3)
    assert wired.device.received(EvtNak) == [wanted, wanted]
    wired.send(1, 3)  # another gap is told at once
    assert wired.device.received(EvtNak)[2:] == [EvtNak(EPOCH, 2, NakWhy.GAP)]
    wired.send(2, 3)
    assert wired.seqs == [1, 2, 3]


def test_a_record_of_another_ring_is_a_new_epoch() -> None:
    wired = Wired.running(2)
    strange = records(1, epoch=77)[0]
    assert wired.say(strange) == [RingHeld(Verdict.NEW_EPOCH, 77, 1, 1, strange.chain)]


def test_a_record_before_resume_is_dropped() -> None:
    device = Scripted(2, mute={Resume})
    wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 0, NO_CHAIN))
    wired.send(1, 2)
    assert not wired.arrived
    device.mute = set()
    wired.pass_ms(200)  # RESUME is sent again
    assert wired.of(RingResumed)
    wired.send(1, 2)
    assert wired.seqs == [1, 2]


def test_what_was_stored_while_no_session_ran_is_reported_by_resume() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.link.lost(wired.now)
    wired.link.stored(2, wired.now)
    assert wired.link.take() == b""
    wired.forget()
    wired.open()
    chain = wired.device.records[1].chain
    assert wired.device.received(Resume) == [Resume(EPOCH, 3, chain, ResumeMode.CHECK)]


def test_stored_takes_only_what_was_received() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.stored(1)
    wired.forget()
    wired.stored(1)
    wired.stored(0)
    assert not wired.device.received(EvtAck)
    for seq in (3, -1):
        with pytest.raises(ValueError, match="were received up to 2"):
            wired.link.stored(seq, wired.now)


def test_what_could_not_be_stored_is_sent_again() -> None:
    wired = Wired.running(4)
    wired.send(1, 2, 3)
    wired.stored(1)
    wired.forget()
    wired.link.discard(wired.now)
    wired.settle()
    assert wired.device.received(EvtNak) == [EvtNak(EPOCH, 2, NakWhy.AGAIN)]
    wired.send(2, 3)
    assert wired.seqs == [2, 3]


# --- windows --------------------------------------------------------------------------------


def test_pause_and_continue_set_the_window() -> None:
    wired = Wired.running(4)
    wired.forget()
    wired.link.pause(wired.now)
    wired.settle()
    wired.pass_ms(250)
    wired.link.unpause(wired.now)
    wired.settle()
    assert wired.device.received(EvtAck) == [EvtAck(EPOCH, 0, 0), EvtAck(EPOCH, 0, 8)]
    assert wired.device.received(HostBeat) == [HostBeat(EPOCH, 0, 0)]


def test_a_pause_outlives_its_session() -> None:
    wired = Wired.running(4)
    wired.link.pause(wired.now)
    wired.settle()
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert wired.of(RingResumed)
    assert wired.device.received(EvtAck) == [EvtAck(EPOCH, 0, 0)]


# --- bounds, and what is shown --------------------------------------------------------------


def test_no_card_is_shown() -> None:
    """For any card and salt, only the chain differs, in which the salt hides them."""
    shown = set()
    for card in range(52):
        read = CardRead(1, 1, card, 99, 0xFE, CardFlags(0), 40, 1, bytes((card,)) * 11)
        record = replace(records(1, event=read)[0], chain=NO_CHAIN)
        again = RereadReply(record.encode())
        told = (
            RecordReceived(record),
            ReplyReceived(1, Reread(EPOCH, 1), again),
            CommandReply(1, 1, again),
        )
        shown.add(f"{told} {told!r} {pretty_repr(told)} {[str(one) for one in told]}")
    assert len(shown) == 1


def test_a_card_in_a_malformed_record_is_not_shown_either() -> None:
    """What a record is refused for may stand beside a card that is one."""
    wired = Wired.running(0)
    read = CardRead(1, 1, 37, 99, 0xFE, CardFlags(0), 40, 1, b"saltysalty!")
    raw = bytearray(records(1, event=read)[0].encode())
    raw[24 + 7] = 201  # its confidence
    wired.say(bytes(raw))
    (told,) = wired.of(ProtocolViolated)
    trace = re.sub("line [0-9]+", "", "".join(traceback.format_exception(told.error)))
    for text in (repr(told), str(told.error), trace):
        assert "CARD_READ.confidence" in text
        assert not any(sign in text for sign in ("37", "201", "salty"))
    assert told.error.__context__ is None
