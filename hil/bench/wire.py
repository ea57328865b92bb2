"""The wire without a wire: frames and records made and taken, beside the bare cipher."""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from firmware_protocol.messages.enums import CardFlags, FrameKind
from firmware_protocol.messages.registry import CardRead
from firmware_protocol.tablelink.framing import Deframer, Frame
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, chained, decode
from firmware_protocol.tablelink.session_cipher import Opener, Sealer
from hil.bench.measure import Contestant, Line, Pace, Section, contest, rate, ratio

_KEY: Final = bytes(range(32))
_SESSION: Final = 7
_BATCH: Final = 256
"""Frames that are opened under one session, so that their counters can begin anew."""


def _record() -> EventRecord:
    event = CardRead(1, 1, 12, 99, 0xFE, CardFlags(0), 40, 1, bytes(11))
    return chained(NO_CHAIN, epoch=1, seq=1, boot=1, t_us=1, event=event)


def _encoding() -> Contestant:
    frame = Frame(FrameKind.DATA, _SESSION, 1, bytes(range(1, 73)))

    def run(frames: int) -> None:
        for _ in range(frames):
            frame.encode()

    return run


def _decoding() -> Contestant:
    encoded = Frame(FrameKind.DATA, _SESSION, 1, bytes(range(1, 73))).encode()
    deframer = Deframer()

    def run(frames: int) -> None:
        for _ in range(frames):
            deframer.feed(encoded)

    return run


def _sealing() -> Contestant:
    """A record all the way out: fields, chain, padding, seal, CRC, COBS."""
    sealer, record = Sealer(_KEY, _SESSION), _record()

    def run(frames: int) -> None:
        for _ in range(frames):
            sealer.seal(record.encode()).encode()

    return run


def _opening() -> Contestant:
    """A record all the way in: COBS, CRC, tag, counter, fields."""
    sealer, plaintext = Sealer(_KEY, _SESSION), _record().encode()
    wire = [sealer.seal(plaintext).encode() for _ in range(_BATCH)]

    def run(frames: int) -> None:
        opener, deframer = Opener(_KEY, _SESSION), Deframer()
        for number in range(frames):
            if number % _BATCH == 0:
                opener = Opener(_KEY, _SESSION)
            for heard in deframer.feed(wire[number % _BATCH]):
                if isinstance(heard, Frame):
                    decode(opener.open(heard), sender="device")

    return run


def _bare() -> Contestant:
    cipher, plaintext, header = ChaCha20Poly1305(_KEY), bytes(56), bytes(8)

    def run(frames: int) -> None:
        for number in range(frames):
            cipher.encrypt(number.to_bytes(12, "little"), plaintext, header)

    return run


def _measure(pace: Pace) -> list[Line]:
    contestants = {
        "encode": _encoding(),
        "decode": _decoding(),
        "seal": _sealing(),
        "open": _opening(),
        "bare": _bare(),
    }
    rates = contest(contestants, pace)
    return [
        rate("encode", "frames encoded", rates.rate("encode"), "frames"),
        rate("decode", "frames decoded", rates.rate("decode"), "frames"),
        rate("seal", "records sealed and encoded", rates.rate("seal"), "frames"),
        rate("open", "records decoded and opened", rates.rate("open"), "frames"),
        ratio("seal_ratio", "sealed, beside the bare cipher", rates.ratio("seal", "bare")),
        ratio("open_ratio", "opened, beside the bare cipher", rates.ratio("open", "bare")),
    ]


WIRE: Final = Section("wire", "frames and records, in one process without a port", _measure)
