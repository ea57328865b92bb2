"""Records: exactly once and in order, acknowledged only when kept."""

from __future__ import annotations

import re
import traceback

import pytest
from msgspec.structs import replace
from rich.pretty import pretty_repr

from firmware_protocol.host import (
    ProtocolViolated,
    RecordCursor,
    RecordReceived,
    ReplyReceived,
    RingHeld,
    RingResumed,
)
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    EvtAck,
    EvtNak,
    HostBeat,
    NakWhy,
    Reread,
    RereadReply,
    Resume,
    ResumeMode,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandReply
from tests.long.fuzz.scripted import EPOCH, Scripted, Wired, records


def numbers(wired: Wired) -> list[int]:
    return [record.seq for record in wired.arrived]


# --- the table of PROTOCOL.md, row by row ---------------------------------------------------


def test_what_fits_arrives_once_and_is_acknowledged_when_it_is_stored() -> None:
    wired = Wired.running(3)
    wired.forget()
    wired.send(1, 2)
    assert numbers(wired) == [1, 2]
    assert not wired.device.received(EvtAck)
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
    wrong = replace(wired.device.records[1], chain=b"another!")
    (held,) = wired.say(wrong)
    assert held == RingHeld(Verdict.FORK, EPOCH, 1, 2, b"another!")
    wired.send(2, 3)
    assert not wired.arrived
    assert not wired.device.received(EvtAck)
    assert not wired.link.resumed
    wired.pass_ms(250)
    assert wired.device.received(HostBeat) == [HostBeat(0, 0, 0)]


def test_another_record_under_a_stored_seq_is_a_fork() -> None:
    wired = Wired.running(3)
    wired.send(1, 2)
    wired.stored(2)
    wired.forget()
    (held,) = wired.say(replace(wired.device.records[0], chain=b"another!"))
    assert isinstance(held, RingHeld)
    assert held.verdict is Verdict.FORK
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
    assert numbers(wired) == [1, 2, 3]


def test_a_record_of_another_ring_is_a_new_epoch() -> None:
    wired = Wired.running(2)
    strange = records(1, epoch=77)[0]
    (held,) = wired.say(strange)
    assert held == RingHeld(Verdict.NEW_EPOCH, 77, 1, 1, strange.chain)


def test_a_record_before_resume_is_dropped() -> None:
    device = Scripted(2)
    device.mute = {Resume}
    wired = Wired(device, cursor=RecordCursor(EPOCH, 0, NO_CHAIN))
    wired.open()
    wired.send(1, 2)
    assert not wired.arrived
    device.mute = set()
    wired.pass_ms(200)  # RESUME is sent again
    assert wired.of(RingResumed)
    wired.send(1, 2)
    assert numbers(wired) == [1, 2]


def test_what_was_stored_while_no_session_ran_is_reported_by_resume() -> None:
    wired = Wired.running(4)
    wired.send(1, 2)
    wired.link.lost(wired.now)
    wired.link.stored(2, wired.now)
    assert wired.link.take() == b""
    wired.forget()
    wired.open()
    (resume,) = wired.device.received(Resume)
    assert resume == Resume(EPOCH, 3, wired.device.records[1].chain, ResumeMode.CHECK)


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
    assert numbers(wired) == [2, 3]


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
