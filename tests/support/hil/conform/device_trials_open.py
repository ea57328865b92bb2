"""Trials of what comes before a session, one for each break: see test_device_breaks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from firmware_protocol.messages.common import Info, InfoReply, Paired, Refused
from firmware_protocol.messages.control import TimeAnswer
from firmware_protocol.messages.enums import FrameKind, TamperSource
from firmware_protocol.messages.limits import SCHEMA_HASHES
from firmware_protocol.tablelink.framing import Frame
from tests.support.hil.devices.device_talk import (
    WRONG,
    new_host,
    pair,
    raw,
    replies,
    switch,
    tampers,
)
from tests.support.hil.devices.plain_device import MS, Bench
from tests.support.hil.devices.raw_host import STRANGER, RawHost

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


@shows("hello-unchecked")
def _ranges_of_hello(bench: Bench) -> None:
    payload = bytearray(bench.host.hello().payload)
    payload[2] = 9
    bench.say(Frame(FrameKind.HELLO, 9, 0, bytes(payload)))
    assert not bench.host.came


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


@shows("handshake-id-unchecked")
def _other_id(bench: Bench) -> None:
    bench.say(bench.host.hello())
    hs1 = bench.host.hs1(bench.host.kk())
    bench.say(replace(hs1, session=hs1.session + 1))
    assert hs2s(bench) == 0
    bench.say(hs1)
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


@shows("paired-too-early")
def _paired_in_the_former_session(bench: Bench) -> None:
    bench.flowing()
    former = bench.host
    switch(bench, True)
    bench.collect()
    host = new_host(bench)
    host.sessions = former.sessions  # so that what is said to the former host can be read
    host._picked = 500
    assert pair(bench)
    assert not host.all(Paired)


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
