"""Trials of a session, its records and commands, one for each break: see test_device_breaks."""

from __future__ import annotations

from itertools import pairwise

from firmware_protocol.device.control import RingMemory
from firmware_protocol.messages.common import (
    Info,
    InfoReply,
    Refused,
    Selftest,
    SelftestReply,
    Tamper,
)
from firmware_protocol.messages.control import DeviceBeat, EvtNak, TimeAnswer, TimeAsk
from firmware_protocol.messages.enums import FrameKind, NakWhy, ResumeMode, TamperSource, Verdict
from firmware_protocol.messages.shuffler import Abort, AbortReply, Start, StartReply
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.plaintext import EventRecord
from tests.support.hil.conform.device_trials_open import TRIALS, Trial, shows
from tests.support.hil.devices.device_talk import ask, raw, replies
from tests.support.hil.devices.plain_device import MS, SECOND, Bench
from tests.support.hil.devices.raw_host import BOOT

# --- the session ----------------------------------------------------------------------------


@shows("counter-unchecked")
def _twice(bench: Bench) -> None:
    bench.connect()
    frame = bench.host.call(Info())
    bench.say(frame, frame)
    assert len(bench.host.all(InfoReply)) == 2


@shows("tag-unchecked")
def _tag(bench: Bench) -> None:
    bench.connect()
    for at in (20, 60, 71):  # ciphertext, ciphertext, tag
        frame = bench.host.call(Info())
        payload = bytearray(frame.payload)
        payload[at] ^= 1
        bench.say(Frame(FrameKind.DATA, frame.session, frame.counter, bytes(payload), 1))
        assert len(bench.host.all(InfoReply)) == 1
        assert not bench.host.all(Refused)


@shows("counter-jumps")
def _counters(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    counters = [one.counter for one in bench.host.came[2:]]
    assert counters == list(range(len(counters)))


@shows("beat-when-idle")
def _beats(bench: Bench) -> None:
    bench.connect()
    began = bench.now
    for _ in range(10):
        bench.run(100)
        bench.say(bench.host.seal(TimeAsk(0)))
    assert [now - began for now, _ in bench.host.timed(DeviceBeat)] == [
        moment * MS for moment in (250, 500, 750, 1000)
    ]


@shows("lives-for-ever")
def _silence(bench: Bench) -> None:
    bench.connect()
    bench.run(2_000, beats=False)
    bench.say(bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 1


@shows("counts-nothing")
def _counts(bench: Bench) -> None:
    bench.connect()
    frame = bench.host.call(Info())
    bench.say(b"\5damage\0", frame, frame)
    bench.run(250)
    beat = bench.host.last(DeviceBeat)
    assert (beat.damaged, beat.refused) == (1, 1)


@shows("malformed-is-damage")
def _malformed(bench: Bench) -> None:
    bench.connect()
    payload = bytearray(bench.host.hello().payload)
    payload[7] = 1
    bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    bench.say(bench.host.seal(bytes(56)), bench.host.seal(raw(0x40, command_id=0)))
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 3)


@shows("refusals-counted")
def _refusals(bench: Bench) -> None:
    bench.connect()
    assert len(replies(bench, raw(0x43), raw(0x40, flags=1))) == 2
    assert (bench.device.channel.damaged, bench.device.channel.refused) == (0, 0)


@shows("clock-fast")
def _clock(bench: Bench) -> None:
    bench.connect()
    bench.run(10_000)
    bench.say(bench.host.seal(TimeAsk(0)))
    assert abs(bench.host.last(TimeAnswer).t2 - 10 * SECOND) <= 5_000


# --- records --------------------------------------------------------------------------------


@shows("events-before-resume")
def _before_resume(bench: Bench) -> None:
    bench.connect()
    bench.happen()
    assert not bench.host.records()


@shows("chain-wrong")
def _chain(bench: Bench) -> None:
    bench.happen(3)
    bench.power_on()  # such a device knows its own ring again
    bench.connect()
    assert bench.resume(mode=ResumeMode.ADOPT) is Verdict.OK
    records = bench.host.records()
    assert [one.seq for one in records] == [1, 2, 3, 4, 5]
    for before, record in pairwise(records):
        assert record.follows(before.chain)


@shows("no-backoff", "never-resends", "skips-after-loss")
def _again(bench: Bench) -> None:
    bench.flowing()
    bench.run(1)
    start = bench.now
    bench.happen()
    bench.run(1_100)
    moments = [(now - start) // MS for now, _ in bench.host.timed(EventRecord, start)]
    assert moments == [0, 150, 450, 1050]


@shows("window-ignored")
def _window(bench: Bench) -> None:
    bench.flowing()
    bench.happen(20)
    assert bench.host.seqs() == list(range(1, 10))
    bench.ack(9, window=0)
    assert bench.host.seqs() == list(range(1, 10))


@shows("nak-ignored", "skips-after-loss")
def _nak(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.say(bench.host.seal(EvtNak(bench.device.ring.epoch, 3, NakWhy.GAP)))
    assert bench.host.seqs() == [1, 2, 3, 4, 3, 4]


@shows("nak-epoch-unchecked")
def _nak_of_another_ring(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.say(bench.host.seal(EvtNak(bench.device.ring.epoch ^ 1, 3, NakWhy.GAP)))
    assert bench.host.seqs() == [1, 2, 3, 4]


@shows("nak-keeps-wait")
def _wait_after_nak(bench: Bench) -> None:
    bench.flowing()
    bench.happen(2)
    bench.run(100)
    bench.say(bench.host.seal(EvtNak(bench.device.ring.epoch, 3, NakWhy.GAP)))
    bench.run(149)
    assert bench.host.seqs() == [1, 2, 3, 3]
    bench.run(1)
    assert bench.host.seqs() == [1, 2, 3, 3, 2, 3]


@shows("repeats-beyond-window")
def _narrower(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack(1, window=1)
    bench.run(150)
    assert bench.host.seqs() == [1, 2, 3, 4, 2]


@shows("old-acks-ignored")
def _older_ack(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack(3, window=0)
    bench.ack(2, window=8)
    bench.happen()
    assert bench.host.seqs()[-1] == 5


@shows("first-resume-counts")
def _second_resume(bench: Bench) -> None:
    bench.flowing()
    assert bench.resume(99) is Verdict.FORK
    bench.happen()
    assert bench.host.seqs() == [1]
    assert isinstance(ask(bench, Start(6, 0)), Refused)


@shows("acked-again")
def _acked(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.ack(3)
    bench.run(2_000)
    assert bench.host.seqs().count(3) == 1


@shows("forgets-unacked")
def _unacked(bench: Bench) -> None:
    bench.flowing()
    bench.happen(3)
    bench.connect()
    assert bench.resume(2) is Verdict.OK
    assert bench.host.seqs() == [1, 2, 3, 4, 2, 3, 4]


@shows("sent-before-commit")
def _cut(bench: Bench) -> None:
    bench.flowing()
    bench.device.cut_at("before_commit")
    bench.cut(events=1)
    seen = bench.host.records()[-1]
    bench.power_on()
    bench.connect()
    assert bench.resume(seen.seq + 1, seen.chain) is Verdict.OK


@shows("fork-unnoticed")
def _fork(bench: Bench) -> None:
    bench.connect()
    assert bench.resume(1, epoch=bench.device.ring.epoch ^ 1) is Verdict.NEW_EPOCH
    assert bench.resume(1, b"another!") is Verdict.FORK
    assert bench.resume(99) is Verdict.FORK


@shows("ring-overwrites")
def _full(bench: Bench) -> None:
    bench.device.hand(RingMemory("fill"), bench.now)
    for _ in range(300):
        bench.device.record(Tamper(TamperSource.CASE, True), bench.now)
    assert bench.device.ring.oldest == 1
    assert bench.device.full()


@shows("adopt-refused")
def _adopt(bench: Bench) -> None:
    bench.connect()
    assert bench.resume(mode=ResumeMode.ADOPT) is Verdict.OK


# --- commands -------------------------------------------------------------------------------


@shows("results-forgotten")
def _repeat(bench: Bench) -> None:
    bench.flowing()
    assert ask(bench, Start(6, 0), 50) == ask(bench, Start(6, 0), 50) == StartReply(1)


@shows("stale-taken")
def _stale(bench: Bench) -> None:
    bench.flowing()
    assert ask(bench, Start(6, 0), 50) == StartReply(1)
    assert isinstance(ask(bench, Start(6, 0), 49), Refused)


@shows("stale-for-all")
def _stale_and_idempotent(bench: Bench) -> None:
    bench.flowing()
    assert ask(bench, Start(6, 0), 50) == StartReply(1)
    assert ask(bench, Abort(), 49) == AbortReply()


@shows("busy-with-itself")
def _under_way(bench: Bench) -> None:
    bench.flowing()
    assert ask(bench, Selftest(), 50) is None
    assert ask(bench, Selftest(), 50) is None
    bench.run(1_000)
    assert len(bench.host.all(SelftestReply)) == 1


@shows("unknown-silent")
def _unknown(bench: Bench) -> None:
    bench.flowing()
    assert len(replies(bench, raw(0x43), raw(0x48), raw(0x50, b"\1"))) == 3


@shows("ranges-unchecked")
def _ranges(bench: Bench) -> None:
    bench.flowing()
    for reply in replies(bench, raw(0x60, b"\0\0"), raw(0x41, bytes(16) + b"\7")):
        assert isinstance(reply, Refused)


@shows("resume-unneeded")
def _not_resumed(bench: Bench) -> None:
    bench.connect()
    assert isinstance(ask(bench, Start(6, 0)), Refused)


@shows("late-replies")
def _deadline(bench: Bench) -> None:
    bench.connect()
    bench.run(500)
    assert bench.host.all(InfoReply)


@shows("boot-ignored")
def _boots(bench: Bench) -> None:
    bench.flowing()
    assert ask(bench, Start(6, 0), 50) == StartReply(1)
    assert ask(bench, Start(6, 0), 50, BOOT + 1) == StartReply(2)


__all__ = ["TRIALS", "Trial"]  # those of both parts
