"""RESUME: whose verdict counts, what is held, and what two people may adopt."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from firmware_protocol.host import (
    NO_CURSOR,
    CommandTimedOut,
    RecordCursor,
    RingHeld,
    RingResumed,
)
from firmware_protocol.messages import Resume, ResumeMode, ResumeReply, Verdict
from firmware_protocol.tablelink import NO_CHAIN, EventRecord
from tests.long.fuzz.scripted import EPOCH, Scripted, Wired, records

# --- RESUME ---------------------------------------------------------------------------------


OTHER_THIRD = replace(records(3)[2], chain=b"another!")


def resumed(
    device: Scripted, cursor: RecordCursor, recent: dict[int, bytes] | None = None
) -> Wired:
    return Wired.opened(device, cursor=cursor, recent=recent or {})


def test_a_device_never_seen_is_held_until_two_people_adopt_it() -> None:
    wired = resumed(Scripted(5), NO_CURSOR)
    chain = wired.device.records[-1].chain
    assert wired.of(RingHeld) == [RingHeld(Verdict.NEW_EPOCH, EPOCH, 1, 5, chain)]
    assert wired.device.received(Resume) == [Resume(0, 0, NO_CHAIN, ResumeMode.CHECK)]
    wired.send(1)
    assert not wired.arrived
    wired.adopt()
    assert wired.of(RingResumed) == [RingResumed(EPOCH, 1, 5)]
    wired.send(1, 2, 3)
    assert wired.seqs == [1, 2, 3]


@pytest.mark.parametrize(
    ("devices", "chain", "worse"),
    [
        (Verdict.GAP, records(5)[-1].chain, Verdict.GAP),
        (Verdict.OK, b"another!", Verdict.FORK),
    ],
    ids=["device", "host"],
)
def test_the_worse_verdict_counts(devices: Verdict, chain: bytes, worse: Verdict) -> None:
    wired = resumed(Scripted(5, verdict=devices), RecordCursor(EPOCH, 5, chain))
    assert (wired.verdicts, wired.of(RingResumed)) == ([worse], [])


@pytest.mark.parametrize(
    "ring",
    [
        pytest.param(records(2), id="rolled back, but not beyond the cursor"),
        pytest.param([*records(2), OTHER_THIRD], id="another record than was received"),
    ],
)
def test_a_ring_that_ends_before_or_in_another_than_what_was_received_is_a_fork(
    ring: list[EventRecord],
) -> None:
    wired = Wired.running(5)
    wired.send(1, 2, 3)
    wired.stored(1)
    wired.device.records = ring
    wired.pass_ms(1100, beats=False)
    assert wired.verdicts == [Verdict.FORK]


def test_recent_chains_distinguish_a_repeat_from_a_fork_after_a_restart() -> None:
    device = Scripted(5)
    chains = {record.seq: record.chain for record in device.records[:3]}
    wired = resumed(device, RecordCursor(EPOCH, 3, chains[3]), chains)
    assert wired.send(2) == []
    (held,) = wired.say(replace(device.records[1], chain=b"another!"))
    assert isinstance(held, RingHeld)
    blind = resumed(Scripted(5), RecordCursor(EPOCH, 3, chains[3]))
    assert blind.say(replace(device.records[1], chain=b"another!")) == []


def test_an_unanswered_resume_is_reported_and_retried() -> None:
    device = Scripted(2, mute={Resume})
    wired = resumed(device, RecordCursor(EPOCH, 0, NO_CHAIN))
    wired.pass_ms(1100)
    assert [type(one.command) for one in wired.of(CommandTimedOut)] == [Resume, Resume]
    assert len(device.received(Resume)) == 7  # three each 500 ms, and one of the third round
    assert wired.link.running


def test_a_doubt_outlives_its_session() -> None:
    wired = Wired.running(3)
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert [(one.verdict, one.head) for one in wired.of(RingHeld)] == [(Verdict.FORK, 3)]
    assert not wired.of(RingResumed)


# --- behind ---------------------------------------------------------------------------------


def behind(count: int, acked: int, oldest: int = 1, next_seq: int = 3) -> Wired:
    """A host whose record ends before what the device was told is stored."""
    device = Scripted(count, oldest=oldest)
    device.acked = acked
    return resumed(device, RecordCursor(EPOCH, next_seq - 1, records(count)[next_seq - 2].chain))


@pytest.mark.parametrize("oldest", [1, 5], ids=["in the ring", "deeper than the ring"])
def test_a_record_that_ends_before_what_was_acknowledged_is_behind(oldest: int) -> None:
    wired = behind(9, 7, oldest)
    held = wired.of(RingHeld)[0]
    chain = wired.device.records[6].chain
    assert (held.verdict, held.acked_seq, held.acked_chain) == (Verdict.BEHIND, 7, chain)
    wired.send(3)
    assert not wired.arrived
    wired.forget()
    wired.adopt()
    assert wired.device.received(Resume) == [Resume(EPOCH, 8, NO_CHAIN, ResumeMode.ADOPT)]
    assert wired.link.cursor == RecordCursor(EPOCH, 7, chain)
    wired.send(8, 9)
    assert wired.seqs == [8, 9]


def test_the_first_record_after_an_adoption_is_compared_with_the_acknowledged_chain() -> None:
    wired = behind(9, 7)
    wired.adopt()
    (held,) = wired.say(replace(wired.device.records[7], chain=b"another!"))
    assert isinstance(held, RingHeld)
    assert held.verdict is Verdict.FORK


def test_a_host_notices_itself_that_it_is_behind() -> None:
    """A device that answers OK and names a higher position contradicts itself."""
    device = Scripted(9)
    chain = device.records[-1].chain
    device.replies[Resume] = lambda _: ResumeReply(EPOCH, 1, 9, chain, Verdict.OK, 9, chain)
    wired = resumed(device, RecordCursor(EPOCH, 2, device.records[1].chain))
    assert wired.verdicts == [Verdict.BEHIND]


def test_another_chain_of_what_was_acknowledged_is_a_fork() -> None:
    device = Scripted(5)
    chain = device.records[-1].chain
    device.replies[Resume] = lambda _: ResumeReply(EPOCH, 1, 5, chain, Verdict.OK, 3, b"another!")
    wired = resumed(device, RecordCursor(EPOCH, 3, device.records[2].chain))
    assert wired.verdicts == [Verdict.FORK]


def test_an_adopted_log_may_leave_out_what_was_not_stored_either() -> None:
    wired = behind(9, 7)
    wired.adopt(skip=True)
    assert wired.link.cursor == RecordCursor(EPOCH, 9, wired.device.records[-1].chain)


# --- adopting -------------------------------------------------------------------------------


def test_after_a_gap_what_is_left_is_adopted_from_the_oldest() -> None:
    device = Scripted(9, oldest=5)
    wired = resumed(device, RecordCursor(EPOCH, 2, device.records[1].chain))
    wired.forget()
    wired.adopt()
    assert device.received(Resume) == [Resume(EPOCH, 5, NO_CHAIN, ResumeMode.ADOPT)]
    assert wired.link.cursor == RecordCursor(EPOCH, 4, NO_CHAIN)
    wired.send(5, 6)
    assert wired.seqs == [5, 6]
    wired.stored(5)
    assert wired.link.cursor == RecordCursor(EPOCH, 5, device.records[4].chain)
    (held,) = wired.say(replace(device.records[6], chain=b"another!"))
    assert isinstance(held, RingHeld)


def test_what_is_adopted_and_not_stored_is_adopted_again_in_the_next_session() -> None:
    device = Scripted(9, oldest=5)
    wired = resumed(device, RecordCursor(EPOCH, 2, device.records[1].chain))
    wired.adopt()
    wired.send(5)
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert device.received(Resume) == [Resume(EPOCH, 5, NO_CHAIN, ResumeMode.ADOPT)]
    assert wired.link.resumed
    wired.send(5, 6)
    wired.stored(6)
    wired.forget()
    wired.pass_ms(1100, beats=False)
    assert device.received(Resume)[0].mode is ResumeMode.CHECK


def test_a_ring_that_moved_on_in_between_is_adopted_too() -> None:
    device = Scripted(9, oldest=5)
    wired = resumed(device, RecordCursor(EPOCH, 2, device.records[1].chain))
    device.oldest = 7  # what was acknowledged long ago was overwritten
    wired.forget()
    wired.adopt()
    assert [one.next for one in device.received(Resume)] == [5, 7]
    assert wired.of(RingResumed) == [RingResumed(EPOCH, 7, 9)]


def test_another_ring_than_the_one_accepted_is_held_again() -> None:
    device = Scripted(2)
    wired = resumed(device, NO_CURSOR)
    device.epoch, device.records = 55, records(3, epoch=55)
    wired.forget()
    wired.adopt()
    assert [(one.verdict, one.epoch) for one in wired.of(RingHeld)] == [(Verdict.NEW_EPOCH, 55)]
    wired.adopt()
    assert wired.of(RingResumed) == [RingResumed(55, 1, 3)]


@pytest.mark.parametrize(
    "ring",
    [records(4), [*records(5), replace(records(6)[5], chain=b"another!")]],
    ids=["rolled back", "another"],
)
def test_a_ring_that_is_not_the_one_they_saw_is_held_again(ring: list[EventRecord]) -> None:
    wired = resumed(Scripted(6), NO_CURSOR)
    wired.link.lost(wired.now)
    wired.link.adopt(wired.now)
    wired.forget()
    wired.device.records = ring
    wired.open()
    assert wired.verdicts == [Verdict.FORK]
    wired.adopt()
    assert wired.link.resumed


def test_a_fork_may_be_adopted_and_skipped() -> None:
    device = Scripted(4)
    wired = resumed(device, RecordCursor(EPOCH, 4, b"another!"))
    wired.adopt(skip=True)
    assert wired.of(RingResumed)
    assert wired.link.cursor == RecordCursor(EPOCH, 4, device.records[-1].chain)
    device.records = records(6)
    wired.send(5, 6)
    assert wired.seqs == [5, 6]


def test_adopting_clears_the_doubt_of_a_record() -> None:
    wired = Wired.running(3)
    wired.say(replace(wired.device.records[0], chain=b"another!"))
    wired.forget()
    wired.adopt()
    assert wired.of(RingResumed)
    wired.send(1, 2, 3)
    assert wired.seqs == [1, 2, 3]


def test_adopted_while_away_it_is_adopted_when_the_device_comes_back() -> None:
    wired = resumed(Scripted(2), NO_CURSOR)
    wired.link.lost(wired.now)
    wired.link.adopt(wired.now)
    wired.forget()
    wired.open()
    assert [one.mode for one in wired.device.received(Resume)] == [ResumeMode.ADOPT]
    assert wired.of(RingResumed)


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
    assert [one.mode for one in device.received(Resume)] == [ResumeMode.CHECK, ResumeMode.ADOPT]
    assert wired.of(RingResumed)
    assert not wired.of(RingHeld)


def test_what_has_arrived_is_stored_or_dropped_before_anything_is_adopted() -> None:
    wired = Wired.running(3)
    wired.send(1)
    wired.say(replace(wired.device.records[1], chain=b"another!"))
    with pytest.raises(ValueError, match="1 received records are not stored"):
        wired.link.adopt(wired.now)
    wired.link.discard(wired.now)
    wired.adopt()
    assert wired.link.resumed


def test_a_device_that_claims_the_last_seq_of_all_is_tolerated() -> None:
    last = 0xFFFFFFFF
    device = Scripted()
    record = replace(records(1)[0], seq=last)

    def claims(resume: Resume) -> ResumeReply:
        verdict = Verdict.OK if resume.mode is ResumeMode.ADOPT else Verdict.GAP
        return ResumeReply(EPOCH, last, last, record.chain, verdict, resume.next - 1, NO_CHAIN)

    device.replies[Resume] = claims
    for skip in (False, True):
        wired = Wired.opened(device, cursor=RecordCursor(EPOCH, 3, bytes(8)))
        wired.adopt(skip=skip)
        assert wired.link.resumed
        wired.say(record)
        assert wired.seqs == [last]
        wired.stored(last)
        wired.pass_ms(3000, beats=False)
        assert wired.link.running


def test_nothing_is_adopted_that_is_not_held() -> None:
    wired = Wired.running(1)
    with pytest.raises(ValueError, match="nothing is held"):
        wired.link.adopt(wired.now)
