"""Pairing as the tester does it, correctly or with deliberate errors."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.device import ServiceSwitch
from firmware_protocol.messages import (
    PAIR_WAIT_MS,
    BadLabelCode,
    FrameKind,
    PairDone,
    ProtocolError,
)
from firmware_protocol.tablelink import (
    Frame,
    Handshake,
    Opener,
    SessionKeys,
    decode_plaintext,
    fingerprint_of,
    label_psk,
    read_label,
)
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemSkipped


class PairingResult(Struct, frozen=True):
    """The device's key and the number of the pairing."""

    device_key: bytes
    pairings: int


class PairingAttempt(Struct, frozen=True):
    """A pairing after PAIR3 was sent."""

    session: int
    device_key: bytes
    keys: SessionKeys


async def label_code(bench: ConformBench) -> bytes:
    """The code on the device's label. Raises ItemSkipped if it is unknown."""
    text = await bench.operator.label()
    try:
        return read_label(text)
    except BadLabelCode as problem:
        raise ItemSkipped(f"the code of the label ({problem})") from None


async def send_pair1(
    bench: ConformBench, own: X25519PrivateKey, code: bytes
) -> tuple[Handshake, Frame]:
    """Send HELLO and PAIR1."""
    greeting = await bench.greet(own=own)
    shake = Handshake.xxpsk3("host", greeting.prologue, own, label_psk(code))
    frame = Frame(FrameKind.PAIR1, greeting.session, 0, shake.write())
    bench.send_frame(frame)
    return shake, frame


async def attempt_pairing(
    bench: ConformBench, own: X25519PrivateKey, code: bytes, text: str = ""
) -> PairingAttempt:
    """Send HELLO to PAIR3."""
    shake, first = await send_pair1(bench, own, code)
    answer = await bench.frame(FrameKind.PAIR2, first.session, PAIR_WAIT_MS)
    if answer is None:
        raise bench.finding(f"PAIR2 within {PAIR_WAIT_MS} ms, the service switch being on")
    try:
        shake.read(answer.payload)
    except ProtocolError as error:
        raise bench.finding("a PAIR2 that opens", f"{error.name}: {error}") from None
    key = shake.their_key
    last = Frame(FrameKind.PAIR3, first.session, 0, shake.write())
    bench.send_frame(last, text)
    return PairingAttempt(first.session, key, shake.split())


async def pair_with(bench: ConformBench, own: X25519PrivateKey, code: bytes) -> PairingResult:
    """Pair with the right code."""
    tried = await attempt_pairing(bench, own, code)
    frame = await bench.frame(FrameKind.DATA, tried.session, PAIR_WAIT_MS)
    if frame is None:
        raise bench.finding(f"PAIR_DONE within {PAIR_WAIT_MS} ms")
    try:
        done = decode_plaintext(
            Opener(tried.keys.receive, tried.session).open(frame), sender="device"
        )
    except ProtocolError as error:
        raise bench.finding("PAIR_DONE under the keys of the pairing", str(error)) from None
    if not isinstance(done, PairDone) or frame.counter:
        raise bench.finding("PAIR_DONE with counter 0", type(done).__name__)
    expected = fingerprint_of(own)
    bench.require_equal(done.fingerprint, expected, f"fingerprint {expected.hex()}")
    return PairingResult(tried.device_key, done.pairings)


async def turn_service_switch(bench: ConformBench, on: bool) -> None:
    await bench.request(ServiceSwitch(on=on))
    await bench.pause(100)


async def pair_for_run(bench: ConformBench) -> bytes:
    """Pair the device with the run's host, if the operator can. Returns the device's key."""
    code = await label_code(bench)
    await turn_service_switch(bench, False)  # resets the count of wrong codes
    await turn_service_switch(bench, True)
    done = await pair_with(bench, bench.own, code)
    await turn_service_switch(bench, False)
    return done.device_key
