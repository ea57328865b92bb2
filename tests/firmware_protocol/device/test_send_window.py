"""Records on their way: window, acknowledgements, sending again, and a line that loses them."""

from __future__ import annotations

import pytest

from firmware_protocol.device import RingMemory
from firmware_protocol.messages import (
    DeckKind,
    DeviceState,
    Door,
    HostBeat,
    LogPressure,
    Power,
    PowerCause,
    Start,
    Verdict,
)
from firmware_protocol.tablelink import EventRecord
from tests.support.hil.devices.plain_device import MS, Bench, ack, fill, flowing, nak, sent

# --- window and acknowledgements ------------------------------------------------------------


@pytest.mark.usefixtures("records_flow")
def test_window_0_stops_and_a_later_one_continues(bench: Bench) -> None:
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
    nak(bench, 3)
    assert bench.host.seqs(bench.now) == [3]
    bench.ack(4, window=2)
    assert bench.host.seqs(bench.now) == [3, 5, 6]


@pytest.mark.usefixtures("records_flow")
def test_a_heartbeat_acknowledges_too(bench: Bench) -> None:
    epoch = bench.device.ring.epoch
    bench.happen(9)
    bench.say(bench.host.seal(HostBeat(epoch, 9, 8)))
    assert (bench.device.records.room.acked, bench.host.seqs()[-1]) == (9, 10)
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


@pytest.mark.usefixtures("records_flow")
def test_an_older_acknowledgement_has_no_effect(bench: Bench) -> None:
    bench.happen(5)
    bench.ack(4)
    bench.ack(2, window=1)
    assert bench.device.records.room.acked == 4
    bench.run(150)
    assert bench.host.seqs(bench.now) == [5]  # 6 lies beyond the window of 1


# --- sending again --------------------------------------------------------------------------


def test_records_are_sent_again_at_exactly_these_moments(bench: Bench) -> None:
    start = flowing(bench)
    bench.happen(2)
    bench.run(5_000)
    moments = [0, 150, 450, 1050, 2050, 3050, 4050]
    assert sent(bench, start) == [(moment, seq) for moment in moments for seq in (2, 3)]
    plain = {record for _, record in bench.host.timed(EventRecord, start)}
    assert len(plain) == 2  # the same plaintexts under new counters
    counters = [one.counter for one in bench.host.came if isinstance(one.what, EventRecord)]
    assert len(set(counters)) == len(counters)


def test_the_wait_restarts_when_the_position_moves_on(bench: Bench) -> None:
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


@pytest.mark.usefixtures("records_flow")
def test_nak_sends_them_again_at_once(bench: Bench) -> None:
    bench.happen(6)
    bench.now += 10 * MS
    start = bench.now
    nak(bench, 4)
    assert sent(bench, start) == [(0, 4), (0, 5), (0, 6), (0, 7)]
    ring = bench.device.ring
    for first, epoch in ((1, ring.epoch), (8, ring.epoch), (0xFFFFFFFF, ring.epoch), (4, 77)):
        nak(bench, first, epoch)
    assert len(sent(bench, start)) == 4
    # The timeout of the oldest record restarts with the same length.
    bench.run(160)
    assert sent(bench, start)[4:] == [(150, seq) for seq in range(2, 8)]
    bench.run(200)
    nak(bench, 7)
    bench.run(310)
    assert sent(bench, start)[10:] == [(360, 7), *((660, seq) for seq in range(2, 8))]


@pytest.mark.usefixtures("records_flow")
def test_when_the_window_opens_what_is_overdue_goes_out_at_once(bench: Bench) -> None:
    bench.happen(3)
    bench.ack(2, window=0)
    bench.run(3_000)
    bench.ack(2, window=1)
    assert bench.host.seqs(bench.now) == []
    bench.run(0)
    assert bench.host.seqs(bench.now) == [3]


@pytest.mark.usefixtures("records_flow")
def test_nak_beyond_the_window_sends_nothing(bench: Bench) -> None:
    bench.happen(20)
    start = bench.now
    count = len(bench.host.seqs())
    nak(bench, 15)
    assert len(bench.host.seqs()) == count
    nak(bench, 9)
    assert sent(bench, start)[-1] == (0, 9)


@pytest.mark.usefixtures("records_flow")
def test_pressure_is_recorded_once_and_a_full_ring_locks(bench: Bench) -> None:
    bench.say(bench.host.call(Start(6, 0, DeckKind.FULL_52)))
    bench.ack()
    assert DeviceState.LOCKED not in bench.device.state()
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
    assert (bench.plain.made_safe, bench.plain.locked) == ([bench.now], True)
    assert DeviceState.FULL | DeviceState.LOCKED in bench.device.state()
    bench.plain.locked = False  # whatever the mechanism says
    assert DeviceState.FULL | DeviceState.LOCKED in bench.device.state()
    assert bench.device.full()
    bench.happen(50)
    assert bench.device.ring.head == before + 121
    # Spare slots are for a few kinds, and then there is nothing left.
    taken = [bench.device.record(Power(PowerCause.OTHER), bench.now) for _ in range(20)]
    assert taken == [True] * 7 + [False] * 13
    assert (bench.device.ring.head, bench.device.records.room.free) == (before + 128, 0)
    assert bench.device.ring.oldest <= before + 1


def pressures(bench: Bench) -> int:
    return sum(isinstance(one, LogPressure) for one in bench.events())


@pytest.mark.usefixtures("records_flow")
def test_full_ends_when_twice_as_many_are_free(bench: Bench) -> None:
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


@pytest.mark.usefixtures("records_flow")
def test_pressure_is_recorded_again_only_below_half(bench: Bench) -> None:
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
    assert (pressures(bench), bench.device.full(), bench.plain.locked) == (2, True, True)
    for _ in range(20):
        bench.power_on()
    assert (bench.device.records.room.free, bench.device.ring.oldest) == (0, 1)
    assert bench.device.boot == 22
    bench.connect()
    assert bench.resume() is Verdict.OK


def test_a_new_ring_has_reported_nothing(bench: Bench) -> None:
    fill(bench)
    bench.device.request(RingMemory("replace"), bench.now)
    assert not bench.device.full()
    fill(bench)
    assert pressures(bench) == 2


@pytest.mark.usefixtures("records_flow")
def test_full_lasts_over_a_start_until_twice_as_many_are_free(bench: Bench) -> None:
    fill(bench)
    bench.ack(8)
    assert (bench.device.full(), bench.device.records.room.free) == (True, 14)
    bench.power_on()
    assert (bench.device.full(), bench.device.records.room.free) == (True, 13)
    bench.connect()
    assert bench.resume(9) is Verdict.OK
    bench.ack(12)
    assert not bench.device.full()
    bench.power_on()
    assert not bench.device.full()


def test_a_full_ring_drains_and_continues(bench: Bench) -> None:
    fill(bench)
    bench.connect()
    assert bench.resume() is Verdict.OK
    bench.ack()
    assert not bench.device.full()
    assert sorted(set(bench.host.seqs())) == list(range(1, bench.device.ring.head + 1))
    bench.happen()
    assert bench.host.seqs()[-1] == bench.device.ring.head
