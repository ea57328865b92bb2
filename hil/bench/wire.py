"""Frames and records encoded and decoded in memory, beside the bare cipher."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from firmware_protocol.messages import CardFlags, CardRead, FrameKind
from firmware_protocol.tablelink.framing import Deframer, Frame
from firmware_protocol.tablelink.noise import Opener, Sealer
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, chained, decode
from hil.bench.measure import Contestant, Line, Pace, Section, contest, rate, ratio

_KEY: Final = bytes(range(32))
_SESSION: Final = 7
_BATCH: Final = 256
"""Frames of one session; then its counters start again."""


def _record() -> EventRecord:
    event = CardRead(1, 1, 12, 99, 0xFE, CardFlags(0), 40, 1, bytes(11))
    return chained(NO_CHAIN, epoch=1, seq=1, boot=1, t_us=1, event=event)


def _repeat(run: Callable[[], object]) -> Contestant:
    def repeated(count: int) -> None:
        for _ in range(count):
            run()

    return repeated


def _opening() -> Contestant:
    """The whole decoding of a record: COBS, CRC, tag, counter, fields."""
    sealer, plaintext = Sealer(_KEY, _SESSION), _record().encode()
    wire = [sealer.seal(plaintext).encode() for _ in range(_BATCH)]

    def run(frames: int) -> None:
        opener, deframer = Opener(_KEY, _SESSION), Deframer()
        for number in range(frames):
            if number % _BATCH == 0:
                opener = Opener(_KEY, _SESSION)
            for frame in deframer.feed(wire[number % _BATCH]):
                if isinstance(frame, Frame):
                    decode(opener.open(frame), sender="device")

    return run


def _bare() -> Contestant:
    cipher, plaintext, header = ChaCha20Poly1305(_KEY), bytes(56), bytes(8)

    def run(frames: int) -> None:
        for number in range(frames):
            cipher.encrypt(number.to_bytes(12, "little"), plaintext, header)

    return run


def _measure(pace: Pace) -> list[Line]:
    frame, deframer = Frame(FrameKind.DATA, _SESSION, 1, bytes(range(1, 73))), Deframer()
    encoded = frame.encode()
    sealer, record = Sealer(_KEY, _SESSION), _record()
    contestants = {
        "encode": _repeat(frame.encode),
        "decode": _repeat(lambda: deframer.feed(encoded)),
        "seal": _repeat(lambda: sealer.seal(record.encode()).encode()),
        "open": _opening(),
        "bare": _bare(),
    }
    rates = contest(contestants, pace)
    texts = {
        "encode": "frames encoded",
        "decode": "frames decoded",
        "seal": "records sealed and encoded",
        "open": "records decoded and opened",
    }
    return [
        *(rate(name, text, rates.median(name), "frames") for name, text in texts.items()),
        ratio("seal_ratio", "sealed, beside the bare cipher", rates.ratio("seal", "bare")),
        ratio("open_ratio", "opened, beside the bare cipher", rates.ratio("open", "bare")),
    ]


WIRE: Final = Section("wire", "frames and records, in one process without a port", _measure)
