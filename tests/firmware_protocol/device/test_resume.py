"""RESUME: its verdicts, what flows after it, and rings that were rolled back or replaced."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import RingMemory
from firmware_protocol.messages import Power, PowerCause, ResumeMode, ResumeReply, Verdict
from firmware_protocol.tablelink import NO_CHAIN
from tests.support.hil.devices.device_talk import nak
from tests.support.hil.devices.plain_device import Bench
from tests.support.hil.devices.raw_host import ack, resume


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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
    bench.power_on()  # ... over a start too
    assert bench.device.records.room.acked == 141
    assert bench.device.ring.head == head + 1
    bench.connect()
    assert bench.resume(142) is Verdict.OK
    room = bench.device.records.room
    bench.happen(500)
    assert bench.device.ring.oldest <= 142
    assert room.full
    assert bench.device.ring.head == head + 20
    bench.ack()
    assert max(bench.host.seqs()) == bench.device.ring.head


def test_a_replaced_ring_is_a_new_epoch(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack()
    before = bench.device.ring.epoch
    answer = bench.device.request(RingMemory("replace"), bench.now)
    assert answer["epoch"] != before
    assert (answer["oldest"], answer["head"]) == (1, 1)
    bench.connect()
    assert bench.resume(5, b"whatever", epoch=before) is Verdict.NEW_EPOCH
    assert bench.resume() is Verdict.OK
    assert bench.host.last(Power) == Power(PowerCause.POWER_ON)
    assert bench.host.records()[-1].boot == 2


def test_what_was_acknowledged_of_another_ring_is_ignored(bench: Bench) -> None:
    bench.flowing()
    bench.happen(40)
    bench.ack()
    bench.device.request(RingMemory("replace"), bench.now)
    bench.happen(5)
    bench.power_on()
    assert bench.device.records.room.acked == 0
