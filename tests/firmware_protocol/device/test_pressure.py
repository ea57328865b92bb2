"""A ring that fills up: LOG_PRESSURE, the safe state, the spare slots, and the way back."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import RingMemory
from firmware_protocol.messages import (
    DeviceState,
    Door,
    LogPressure,
    Power,
    PowerCause,
    Start,
    Verdict,
)
from tests.support.hil.devices.device_talk import fill
from tests.support.hil.devices.plain_device import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_pressure_is_recorded_once_and_a_full_ring_locks(bench: Bench) -> None:
    bench.flowing()
    bench.say(bench.host.call(Start(6, 0)))
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
    assert bench.plain.made_safe == [bench.now]
    assert bench.plain.locked
    assert DeviceState.FULL | DeviceState.LOCKED in bench.device.state()
    bench.plain.locked = False  # whatever the mechanism says
    assert DeviceState.FULL | DeviceState.LOCKED in bench.device.state()
    assert bench.device.full()
    bench.happen(50)
    assert bench.device.ring.head == before + 121
    # Spare slots are for a few kinds, and then there is nothing left.
    taken = [bench.device.record(Power(PowerCause.OTHER), bench.now) for _ in range(20)]
    assert taken == [True] * 7 + [False] * 13
    assert bench.device.ring.head == before + 128
    assert bench.device.records.room.free == 0
    assert bench.device.ring.oldest <= before + 1


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


def test_pressure_is_recorded_again_only_below_half(bench: Bench) -> None:
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


def test_a_new_ring_has_reported_nothing(bench: Bench) -> None:
    fill(bench)
    bench.device.request(RingMemory("replace"), bench.now)
    assert not bench.device.full()
    fill(bench)
    assert pressures(bench) == 2


def test_full_lasts_over_a_start_until_twice_as_many_are_free(bench: Bench) -> None:
    bench.flowing()
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
