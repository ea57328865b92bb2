"""Records: RESUME's verdicts, window, sending again, acknowledgements, and a ring that fills up."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firmware_protocol.enums import DeviceState, NakWhy, PowerCause, ResumeMode, Verdict
from firmware_protocol.messages_all import LogPressure, Power, ResumeReply
from firmware_protocol.messages_control import EvtNak, HostBeat
from firmware_protocol.messages_shuffler import Door, Start
from firmware_protocol.plaintext import NO_CHAIN, EventRecord
from hil.device.hands import Ring
from tests.hil.plain_device import MS, Bench
from tests.hil.raw_host import ack, resume


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def flowing(bench: Bench) -> int:
    """Records flow, and all that were there are acknowledged. The moment it is now."""
    bench.flowing()
    bench.run(1)
    return bench.now


def nak(bench: Bench, first: int, epoch: int | None = None) -> None:
    ring = bench.device.ring
    bench.say(bench.host.seal(EvtNak(epoch or ring.epoch, first, NakWhy.GAP)))


def sent(bench: Bench, since: int) -> list[tuple[float, int]]:
    """When which record came, in milliseconds since then."""
    return [
        ((came - since) / MS, record.seq) for came, record in bench.host.timed(EventRecord, since)
    ]


# --- RESUME ---------------------------------------------------------------------------------


def test_verdicts(bench: Bench) -> None:
    bench.happen(9)
    ring = bench.device.ring
    assert (ring.oldest, ring.head) == (1, 10)
    chains = {seq: ring.record(seq)[48:] for seq in range(1, 11)} | {0: NO_CHAIN}
    bench.connect()
    check, adopt, bad = ResumeMode.CHECK, ResumeMode.ADOPT, b"another!"
    table = [
        (Verdict.NEW_EPOCH, ring.epoch ^ 1, 1, NO_CHAIN, check),
        (Verdict.NEW_EPOCH, 0, 0, NO_CHAIN, check),
        (Verdict.NEW_EPOCH, ring.epoch ^ 1, 1, NO_CHAIN, adopt),
        (Verdict.FORK, ring.epoch, 12, chains[10], check),
        (Verdict.FORK, ring.epoch, 12, chains[10], adopt),
        (Verdict.GAP, ring.epoch, 0, NO_CHAIN, check),
        (Verdict.GAP, ring.epoch, 0, NO_CHAIN, adopt),
        (Verdict.OK, ring.epoch, 5, bad, adopt),
        (Verdict.OK, ring.epoch, 11, bad, adopt),
        (Verdict.FORK, ring.epoch, 11, bad, check),
        (Verdict.FORK, ring.epoch, 5, bad, check),
        (Verdict.FORK, ring.epoch, 1, bad, check),
        (Verdict.FORK, ring.epoch, 5, chains[5], check),
        *((Verdict.OK, ring.epoch, seq, chains[seq - 1], check) for seq in range(1, 12)),
    ]
    for verdict, epoch, wanted, chain, mode in table:
        bench.plain.made_safe.clear()
        before = len(bench.host.records())
        bench.say(bench.host.call(resume(epoch, wanted, chain, mode)))
        reply = bench.host.last(ResumeReply)
        assert reply == ResumeReply(ring.epoch, 1, 10, chains[10], verdict), (epoch, wanted, mode)
        new = bench.host.seqs()[before:]
        if verdict is Verdict.OK:
            assert new == list(range(wanted, min(wanted + 8, 11)))
            assert not bench.plain.made_safe
        else:
            assert not new
            assert bench.plain.made_safe == [bench.now]
            bench.happen(0)
            nak(bench, 3)
            bench.say(bench.host.seal(ack(ring.epoch, 3)))
            assert bench.device.records.room.acked in (0, 4, 10, wanted - 1)
            assert len(bench.host.records()) == before


def test_below_the_oldest_there_is_a_gap(bench: Bench) -> None:
    bench.flowing()
    for _ in range(30):
        bench.happen(8)
        bench.ack()
    ring = bench.device.ring
    assert (ring.oldest, ring.head) == (114, 241)
    assert bench.resume(113, b"whatever") is Verdict.GAP
    assert bench.resume(113, mode=ResumeMode.ADOPT) is Verdict.GAP
    assert bench.resume(114, b"whatever", mode=ResumeMode.ADOPT) is Verdict.OK
    assert bench.device.full()  # so that none of them is overwritten before it has come
    assert bench.resume(242, b"whatever", mode=ResumeMode.ADOPT) is Verdict.OK
    assert not bench.device.full()
    assert bench.resume(115) is Verdict.OK


def test_resume_may_go_back_and_the_records_are_safe_again(bench: Bench) -> None:
    bench.flowing()
    for _ in range(30):
        bench.happen(8)
        bench.ack()
    # The host has lost its own record of the last hundred, and wants them again.
    assert bench.resume(142) is Verdict.OK
    room = bench.device.records.room
    head = bench.device.ring.head
    assert (room.acked, head, room.free) == (141, 242, 27)  # LOG_PRESSURE is one more
    bench.happen(500)
    assert bench.device.ring.oldest <= 142
    assert room.full
    assert bench.device.ring.head == head + 20
    bench.ack()
    assert max(bench.host.seqs()) == bench.device.ring.head


def test_a_ring_that_was_rolled_back_is_a_fork(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack()
    bench.device.hand(Ring("save"), bench.now)
    for count in (1, 2, 7):
        bench.flowing()
        bench.happen(count)
        bench.ack()
        cursor = bench.host.records()[-1]
        epoch = bench.device.ring.epoch
        bench.device.hand(Ring("restore"), bench.now)
        assert bench.device.ring.epoch == epoch
        bench.connect()
        assert bench.resume(cursor.seq + 1, cursor.chain) is Verdict.FORK
        bench.happen(20)
        assert bench.resume(cursor.seq + 1, cursor.chain) is Verdict.FORK


def test_a_replaced_ring_is_a_new_epoch(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack()
    before = bench.device.ring.epoch
    answer = bench.device.hand(Ring("replace"), bench.now)
    assert answer["epoch"] != before
    assert (answer["oldest"], answer["head"]) == (1, 1)
    bench.connect()
    assert bench.resume(5, b"whatever", epoch=before) is Verdict.NEW_EPOCH
    assert bench.resume() is Verdict.OK
    assert bench.host.last(Power) == Power(PowerCause.POWER_ON)
    assert bench.host.records()[-1].boot == 2


# --- window and acknowledgements ------------------------------------------------------------


def test_no_more_than_the_window_are_on_their_way(bench: Bench) -> None:
    bench.flowing()
    bench.happen(20)
    assert bench.host.seqs() == list(range(1, 10))
    bench.ack(4, window=3)
    assert bench.host.seqs() == list(range(1, 10))
    bench.ack(8, window=3)
    assert bench.host.seqs() == list(range(1, 12))
    bench.ack(11, window=8)
    assert bench.host.seqs() == list(range(1, 20))


def test_window_0_stops_and_a_later_one_goes_on(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack(2, window=0)
    bench.happen(3)
    bench.run(1)
    before = bench.now
    bench.run(3_000)
    nak(bench, 3)
    assert sent(bench, before) == []
    bench.ack(2, window=1)
    assert bench.host.seqs(bench.now) == []
    bench.run(0)
    assert bench.host.seqs(bench.now) == [3]  # overdue since long
    bench.ack(4, window=2)
    assert bench.host.seqs(bench.now) == [3, 5, 6]


def test_a_heartbeat_acknowledges_too(bench: Bench) -> None:
    bench.flowing()
    epoch = bench.device.ring.epoch
    bench.happen(9)
    bench.say(bench.host.seal(HostBeat(epoch, 9, 8)))
    assert bench.device.records.room.acked == 9
    assert bench.host.seqs()[-1] == 10
    bench.say(bench.host.seal(HostBeat(0, 0, 0)))
    bench.happen()
    assert bench.host.seqs()[-1] == 11


def test_an_acknowledgement_that_cannot_be_is_ignored(bench: Bench) -> None:
    epoch = bench.device.ring.epoch
    bench.connect()
    bench.say(bench.host.seal(ack(epoch, 1)))
    assert bench.device.records.room.acked == 0
    assert bench.resume() is Verdict.OK
    bench.ack(1)
    bench.happen(12)
    for what in (ack(epoch ^ 1, 5, 0), ack(epoch, 10, 0), ack(epoch, 0xFFFFFFFF, 0)):
        bench.say(bench.host.seal(what))
        assert bench.device.records.room.acked == 1
    bench.ack(5)  # the window is still 8
    assert bench.host.seqs()[-1] == 13


def test_an_older_acknowledgement_takes_nothing_back(bench: Bench) -> None:
    bench.flowing()
    bench.happen(5)
    bench.ack(4)
    bench.ack(2, window=1)
    assert bench.device.records.room.acked == 4
    bench.run(150)
    assert bench.host.seqs(bench.now) == [5]  # 6 lies beyond the window of 1


# --- sending again --------------------------------------------------------------------------


def test_records_come_again_at_exactly_these_moments(bench: Bench) -> None:
    start = flowing(bench)
    bench.happen(2)
    bench.run(5_000)
    moments = [0, 150, 450, 1050, 2050, 3050, 4050]
    assert sent(bench, start) == [(moment, seq) for moment in moments for seq in (2, 3)]
    plain = {record for _, record in bench.host.timed(EventRecord, start)}
    assert len(plain) == 2  # the same plaintexts under new counters
    counters = [one.counter for one in bench.host.came if isinstance(one.what, EventRecord)]
    assert len(set(counters)) == len(counters)


def test_the_wait_begins_anew_when_the_position_moves_on(bench: Bench) -> None:
    start = flowing(bench)
    bench.happen(3)
    bench.run(1_100)  # sent at 0, 150, 450, 1050
    bench.ack(2)
    bench.run(1_000)
    assert sent(bench, start + 1_100 * MS) == [
        (moment, seq) for moment in (100, 400, 1000) for seq in (3, 4)
    ]


def test_the_wait_counts_from_the_last_sending_of_the_oldest(bench: Bench) -> None:
    start = flowing(bench)
    bench.happen()
    bench.run(100)
    bench.happen()
    bench.run(50)
    assert sent(bench, start) == [(0, 2), (100, 3), (150, 2), (150, 3)]
    bench.run(50)
    bench.ack(2)
    bench.run(150)
    assert sent(bench, start)[4:] == [(300, 3)]


def test_an_acknowledgement_that_does_not_move_on_changes_no_wait(bench: Bench) -> None:
    start = flowing(bench)
    bench.happen()
    for _ in range(12):
        bench.run(100)
        bench.ack(1)
    assert sent(bench, start) == [(0, 2), (150, 2), (450, 2), (1050, 2)]


def test_nak_brings_them_again_at_once(bench: Bench) -> None:
    bench.flowing()
    bench.happen(6)
    bench.now += 10 * MS
    start = bench.now
    nak(bench, 4)
    assert sent(bench, start) == [(0, 4), (0, 5), (0, 6), (0, 7)]
    ring = bench.device.ring
    for first, epoch in ((1, ring.epoch), (8, ring.epoch), (0xFFFFFFFF, ring.epoch), (4, 77)):
        nak(bench, first, epoch)
    assert len(sent(bench, start)) == 4
    bench.run(140)
    assert sent(bench, start)[4:] == [(140, seq) for seq in range(2, 8)]


def test_nak_beyond_the_window_brings_nothing(bench: Bench) -> None:
    bench.flowing()
    bench.happen(20)
    start = bench.now
    count = len(bench.host.seqs())
    nak(bench, 15)
    assert len(bench.host.seqs()) == count
    nak(bench, 9)
    assert sent(bench, start)[-1] == (0, 9)


def test_a_killed_host_gets_the_record_in_the_next_session_unchanged(bench: Bench) -> None:
    bench.flowing()
    bench.lost = True
    bench.happen(3)
    bench.run(1_500, beats=False)
    bench.lost = False
    bench.connect()
    assert not [seq for seq in bench.host.seqs() if seq > 1]
    assert bench.resume(2) is Verdict.OK
    assert bench.host.seqs()[-3:] == [2, 3, 4]
    ring = bench.device.ring
    assert [one.encode() for one in bench.host.records()[-3:]] == [
        ring.record(seq) for seq in (2, 3, 4)
    ]


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), loss=st.sampled_from([0.1, 0.3, 0.6]))
def test_over_a_line_that_loses_every_record_comes_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, seed: int, loss: float
) -> None:
    bench = Bench(tmp_path_factory.mktemp("device"))
    chance = random.Random(seed)
    bench.flowing()
    kept = [bench.host.records()[0]]
    epoch = bench.device.ring.epoch
    for _ in range(60):
        bench.device.record(Door(True), bench.now)
    looked_at = len(bench.host.came)
    for _ in range(4_000):
        bench.lost = chance.random() < loss
        bench.run(chance.choice([5, 40, 160]))
        bench.alive()
        for came in bench.host.came[looked_at:]:
            if isinstance(came.what, EventRecord) and came.what.seq == kept[-1].seq + 1:
                assert came.what.follows(kept[-1].chain)
                kept.append(came.what)
        looked_at = len(bench.host.came)
        if len(kept) == 61:
            break
        if chance.random() > loss:
            bench.lost = chance.random() < loss
            if chance.random() < 0.5:
                bench.say(bench.host.seal(ack(epoch, kept[-1].seq)))
            else:
                nak(bench, kept[-1].seq + 1)
    assert [record.seq for record in kept] == list(range(1, 62))


# --- a ring that fills up -------------------------------------------------------------------


def test_pressure_is_recorded_once_and_a_full_ring_locks(bench: Bench) -> None:
    bench.flowing()
    bench.say(bench.host.call(Start(6, 0)))
    bench.ack()
    assert not bench.plain.locked
    bench.plain.made_safe.clear()
    before = bench.device.ring.head
    bench.happen(95)
    assert not [one for one in bench.events() if isinstance(one, LogPressure)]
    bench.happen(1)
    assert [one for one in bench.events() if isinstance(one, LogPressure)] == [LogPressure(75)]
    assert bench.device.ring.head == before + 97
    bench.happen(22)
    assert not bench.plain.made_safe
    bench.happen(1)
    assert bench.device.ring.head == before + 121
    assert [one for one in bench.events() if isinstance(one, LogPressure)][1:] == [LogPressure(93)]
    assert bench.plain.made_safe == [bench.now]
    assert bench.plain.locked
    assert DeviceState.FULL | DeviceState.LOCKED in bench.device.state()
    assert bench.device.full()
    bench.happen(50)
    assert bench.device.ring.head == before + 121
    # Spare slots are for a few kinds, and then there is nothing left.
    for cause in [Power(PowerCause.OTHER)] * 20:
        bench.device.record(cause, bench.now)
    assert bench.device.ring.head == before + 128
    assert bench.device.records.room.free == 0
    assert bench.device.ring.oldest <= before + 1


def fill(bench: Bench) -> None:
    bench.device.hand(Ring("fill"), bench.now)
    bench.collect()


def pressures(bench: Bench) -> int:
    return sum(isinstance(one, LogPressure) for one in bench.events())


def test_full_ends_when_twice_as_many_are_free(bench: Bench) -> None:
    bench.flowing()
    fill(bench)
    room = bench.device.records.room
    assert (room.full, room.free) == (True, 7)
    bench.ack(9)
    assert (room.full, room.free) == (True, 15)
    assert bench.device.record(Door(True), bench.now)  # there is room beside the spare slots
    assert (room.full, room.free) == (True, 14)
    bench.ack(11)
    assert not room.full
    assert bench.plain.locked  # until the host lifts it
    assert DeviceState.FULL not in bench.device.state()


def test_pressure_comes_again_only_after_calm(bench: Bench) -> None:
    bench.flowing()
    fill(bench)
    assert pressures(bench) == 2
    room = bench.device.records.room
    while room.percent >= 50 and room.used > 64:
        bench.ack(min(room.acked + 8, bench.device.ring.head - 64))
    fill(bench)
    assert pressures(bench) == 2
    while room.used > 63:
        bench.ack(min(room.acked + 8, bench.device.ring.head - 63))
    seen = bench.device.ring.head
    fill(bench)
    new = [one.event for one in bench.ring_records() if one.seq > seen]
    assert sum(isinstance(one, LogPressure) for one in new) == 2


def test_pressure_is_not_recorded_again_at_each_start(bench: Bench) -> None:
    fill(bench)
    assert pressures(bench) == 2
    bench.power_on()
    assert pressures(bench) == 2
    assert bench.device.full()
    assert bench.plain.locked
    for _ in range(20):
        bench.power_on()
    assert bench.device.records.room.free == 0
    assert bench.device.ring.oldest == 1
    assert bench.device.boot == 22
    bench.connect()
    assert bench.resume() is Verdict.OK


def test_a_full_ring_drains_and_goes_on(bench: Bench) -> None:
    fill(bench)
    bench.connect()
    assert bench.resume() is Verdict.OK
    bench.ack()
    assert not bench.device.full()
    assert sorted(set(bench.host.seqs())) == list(range(1, bench.device.ring.head + 1))
    bench.happen()
    assert bench.host.seqs()[-1] == bench.device.ring.head
