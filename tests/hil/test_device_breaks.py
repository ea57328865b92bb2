"""Every break of the core shows, and only when it is switched on.

One small trial for each: it holds for an honest device and fails with the break.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Final

import pytest

from firmware_protocol.enums import (
    DeviceClass,
    FrameKind,
    NakWhy,
    ResumeMode,
    TamperSource,
    Verdict,
)
from firmware_protocol.framing import Frame
from firmware_protocol.limits import SCHEMA_HASHES
from firmware_protocol.messages_all import Info, InfoReply, Refused, Tamper
from firmware_protocol.messages_control import DeviceBeat, EvtNak, TimeAnswer, TimeAsk
from firmware_protocol.messages_frames import Alert
from firmware_protocol.messages_shoe import CardRead
from firmware_protocol.messages_shuffler import Start, StartReply
from firmware_protocol.plaintext import EventRecord
from hil.device.breaks import BREAKS
from hil.device.hands import Ring, Service
from tests.hil.plain_device import MS, SECOND, Bench
from tests.hil.raw_host import BOOT, STRANGER, RawHost, ack
from tests.hil.test_device_commands import ask, raw, replies
from tests.hil.test_device_pairing import WRONG, new_host, pair, switch, tampers

Trial = Callable[[Bench], None]
TRIALS: Final[list[tuple[str, Trial]]] = []


def shows(*names: str) -> Callable[[Trial], Trial]:
    def note(trial: Trial) -> Trial:
        TRIALS.extend((name, trial) for name in names)
        return trial

    return note


def hellos(bench: Bench) -> int:
    return len(bench.host.frames(FrameKind.HELLO_RSP))


def hs2s(bench: Bench) -> int:
    return len(bench.host.frames(FrameKind.HS2))


# --- frames and HELLO -----------------------------------------------------------------------


@shows("crc-unchecked")
def _flipped(bench: Bench) -> None:
    wire = bench.host.hello().encode()
    for at in range(len(wire) - 1):
        for bit in range(8):
            changed = bytearray(wire)
            changed[at] ^= 1 << bit
            bench.say(bytes(changed), b"\0")
    assert not bench.host.came
    bench.say(wire)
    assert hellos(bench) == 1


@shows("resync-lost")
def _overlong(bench: Bench) -> None:
    bench.say(b"x" * 10_000, b"\0", bench.host.hello())
    assert hellos(bench) == 1


@shows("frames-timed")
def _byte_by_byte(bench: Bench) -> None:
    for byte in bench.host.hello().encode():
        bench.now += 10 * MS
        bench.say(bytes((byte,)))
    assert hellos(bench) == 1


@shows("hello-random-fixed")
def _random(bench: Bench) -> None:
    bench.say(bench.host.hello(), bench.host.hello())
    assert len({one.payload[32:40] for one in bench.host.frames(FrameKind.HELLO_RSP)}) == 2


@shows("schema-wrong")
def _schema(bench: Bench) -> None:
    bench.say(bench.host.hello())
    assert bench.host.hello_rsp().schema == SCHEMA_HASHES[1]


@shows("version-ignored")
def _no_version(bench: Bench) -> None:
    bench.say(bench.host.hello(version_min=15, version_max=15))
    assert hellos(bench) == 1
    bench.say(bench.host.hs1(bench.host.kk()))
    assert hs2s(bench) == 0


@shows("padding-unchecked")
def _padding_of_hello(bench: Bench) -> None:
    payload = bytearray(bench.host.hello().payload)
    payload[7] = 1
    bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    assert not bench.host.came


@shows("padding-unchecked")
def _padding_of_a_control(bench: Bench) -> None:
    bench.connect()
    bench.say(bench.host.seal(b"\x04\0\x84\x08" + bytes(51) + b"\1"))
    assert not bench.host.all(TimeAnswer)


@shows("padding-unchecked")
def _padding_of_a_command(bench: Bench) -> None:
    bench.connect()
    for reply in replies(bench, raw(0x40, flags=1), raw(0x40, b"\1", length=0)):
        assert isinstance(reply, Refused)


# --- handshake ------------------------------------------------------------------------------


@shows("info-first")
def _info(bench: Bench) -> None:
    bench.connect()
    assert len(bench.host.all(InfoReply)) == 1


@shows("stranger-answered")
def _stranger(bench: Bench) -> None:
    bench.host = RawHost(bench.identity.public, STRANGER)
    bench.say(bench.host.hello())
    bench.say(bench.host.hs1(bench.host.kk()))
    assert hs2s(bench) == 0


@shows("replay-taken")
def _replay(bench: Bench) -> None:
    bench.say(bench.host.hello())
    hs1 = bench.host.hs1(bench.host.kk())
    bench.say(hs1, hs1)
    assert hs2s(bench) == 1


@shows("hello-random-fixed", "replay-taken")
def _replay_with_hello(bench: Bench) -> None:
    hello = bench.host.hello()
    bench.say(hello)
    hs1 = bench.host.hs1(bench.host.kk())
    bench.say(hs1, hello, hs1)
    assert hs2s(bench) == 1


@shows("hello-ends-session")
def _hello_in_session(bench: Bench) -> None:
    bench.connect()
    bench.say(bench.host.hello(), bench.host.call(Info()))
    assert len(bench.host.all(InfoReply)) == 2


@shows("hs1-ends-session")
def _hs1_in_session(bench: Bench) -> None:
    bench.connect()
    former = bench.host.current
    assert bench.shake()
    bench.say(bench.host.call(Info(), former))
    assert len(bench.host.all(InfoReply)) == 2


@shows("former-session-kept")
def _former(bench: Bench) -> None:
    bench.connect()
    former = bench.host.current
    bench.connect()
    bench.say(bench.host.call(Info(), former))
    assert len(bench.host.all(InfoReply)) == 2


@shows("pending-for-ever")
def _pending(bench: Bench) -> None:
    assert bench.shake()
    bench.run(11_000, beats=False)
    bench.say(bench.host.call(Info()))
    assert not bench.host.all(InfoReply)


# --- pairing --------------------------------------------------------------------------------


@shows("pairs-without-switch")
def _switch_off(bench: Bench) -> None:
    new_host(bench)
    assert not pair(bench)


@shows("no-lockout")
def _lockout(bench: Bench) -> None:
    new_host(bench)
    switch(bench, True)
    for _ in range(5):
        assert not pair(bench, WRONG)
    assert not pair(bench)


@shows("wrong-code-silent")
def _wrong_code(bench: Bench) -> None:
    new_host(bench)
    switch(bench, True)
    assert not pair(bench, WRONG)
    assert tampers(bench, TamperSource.PAIRING_CODE) == [True]


@shows("pairing-keeps-session")
def _session_of_the_former(bench: Bench) -> None:
    bench.connect()
    former = bench.host
    new_host(bench)
    switch(bench, True)
    bench.device.take()
    assert pair(bench)
    bench.host = former
    bench.say(former.call(Info()))
    assert len(former.all(InfoReply)) == 1


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
    bench.device.hand(Ring("fill"), bench.now)
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


CORE: Final = tuple(broken.name for broken in BREAKS if not broken.profiles)
NAMED: Final = pytest.mark.parametrize(
    ("name", "trial"), TRIALS, ids=[f"{name}{trial.__name__}" for name, trial in TRIALS]
)


def test_every_break_of_the_core_has_its_trial() -> None:
    assert {name for name, _ in TRIALS} == set(CORE)


@NAMED
def test_an_honest_device_stands_the_trial(tmp_path: Path, name: str, trial: Trial) -> None:
    trial(Bench(tmp_path))


@NAMED
def test_a_break_shows(tmp_path: Path, name: str, trial: Trial) -> None:
    with pytest.raises(AssertionError):
        trial(Bench(tmp_path, name))


def test_a_break_that_is_late_is_only_late(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "late-replies")
    bench.connect()
    began = bench.now
    bench.run(800)
    assert [now - began for now, _ in bench.host.timed(InfoReply)] == [700 * MS]


def test_a_card_in_clear_is_an_alert(tmp_path: Path) -> None:
    card = CardRead(1, 1, 37, 99, 0xFE, 0, 40, 1, bytes(11))  # type: ignore[arg-type]
    honest = Bench(tmp_path / "honest", device_class=DeviceClass.SHOE)
    broken = Bench(tmp_path / "broken", "card-in-clear", device_class=DeviceClass.SHOE)
    for bench in (honest, broken):
        bench.flowing()
        bench.device.record(card, bench.now)
        bench.collect()
    assert not honest.host.all(Alert)
    assert broken.host.last(Alert).arg == 37


def test_a_broken_device_still_acknowledges_what_it_must(tmp_path: Path) -> None:
    """Each break is one mistake: an ordinary round works with nearly all of them."""
    spoil = {"info-first", "late-replies", "chain-wrong", "adopt-refused", "schema-wrong"}
    for name in set(CORE) - spoil:
        bench = Bench(tmp_path / name, name)
        assert bench.shake(), name
        bench.say(bench.host.call(Info()))
        assert bench.resume() is Verdict.OK, name
        bench.happen(2)
        assert {1, 2, 3} <= set(bench.host.seqs()), name
        bench.say(bench.host.seal(ack(bench.device.ring.epoch, 3)))
        bench.device.hand(Service(True), bench.now)
