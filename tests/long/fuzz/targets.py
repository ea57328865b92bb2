"""What any bytes are fed to, and what must hold then: nothing raises, and nothing grows.

Hypothesis feeds them in `make test`, atheris by `python -m tests.long.fuzz.decoders`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from firmware_protocol.host import HostLink, HostPairing, Introduction, RecordCursor
from firmware_protocol.messages import (
    MAX_ENCODED,
    PAYLOAD_SIZES,
    Alert,
    DeviceClass,
    FrameKind,
    Hello,
    HelloRsp,
    ProtocolError,
    Side,
)
from firmware_protocol.tablelink import (
    Deframer,
    Frame,
    Sealer,
    agree,
    cobs_decode,
    cobs_encode,
    decode_plaintext,
    encode_plaintext,
)
from tests.long.fuzz.disk import bounded
from tests.long.fuzz.scripted import BOOT, DEVICE_KEY, EPOCH, OWN, SERIAL, Scripted, lock
from tests.long.fuzz.wired import START, Wired

Target = Callable[[bytes], None]
_PLAIN: Final = (56, 120, 226)
_MS: Final = 1000
_SENDERS: Final[tuple[tuple[Side, DeviceClass | None], ...]] = (
    ("device", None),
    ("host", DeviceClass.SHOE),
)


class Bytes:
    """The fuzzer's bytes, taken from the front."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __bool__(self) -> bool:
        return self._at < len(self._data)

    def take(self, size: int) -> bytes:
        """So many; zeros where there are no more."""
        out = self._data[self._at : self._at + size]
        self._at += size
        return out.ljust(size, b"\0")

    def number(self, below: int) -> int:
        return int.from_bytes(self.take(2), "little") % below

    def rest(self) -> bytes:
        return self.take(max(0, len(self._data) - self._at))


def deframer(data: bytes) -> None:
    """Frames do not depend on the chunks, and encode to the same bytes."""
    whole, pieces = Deframer(), Deframer()
    heard = whole.feed(data)
    one_by_one = [what for byte in data for what in pieces.feed(bytes((byte,)))]
    assert heard == one_by_one
    assert whole.buffered == pieces.buffered <= MAX_ENCODED
    for frame in heard:
        if isinstance(frame, Frame):
            assert Deframer().feed(frame.encode()) == [frame]


def cobs(data: bytes) -> None:
    """Decoded COBS encodes to the same bytes."""
    decoded = cobs_decode(data[:MAX_ENCODED])
    if decoded is not None and 0 < len(decoded) < MAX_ENCODED:
        again = cobs_decode(cobs_encode(decoded))
        assert again == decoded


def plaintexts(data: bytes) -> None:
    """Decoded plaintexts encode to the same bytes; others raise ProtocolError."""
    source = Bytes(data)
    for sender, kind in _SENDERS:
        size = _PLAIN[source.number(3)]
        raw = source.take(size)
        try:
            what = decode_plaintext(raw, sender=sender, device_class=kind)
        except ProtocolError:
            continue
        assert encode_plaintext(what) == raw
        repr(what)


def payloads(data: bytes) -> None:
    """HELLO, HELLO_RSP and ALERT."""
    for kind in (Hello, HelloRsp, Alert):
        raw = Bytes(data).take(kind.SPEC.size)
        try:
            what = kind.decode(raw)
        except ProtocolError:
            continue
        assert what.encode() == raw
        if isinstance(what, HelloRsp):
            try:
                agree(Hello(1, 1, DeviceClass.ANY, what.largest, bytes(8), bytes(16)), what)
            except ProtocolError:
                continue


def link(data: bytes) -> None:
    """A link that waits for its first answer."""
    it = HostLink(OWN, DEVICE_KEY, device_class=DeviceClass.SHOE, serial=SERIAL, host_boot=BOOT)
    it.open(START)
    _feed(it, Bytes(data), START)


def running_link(data: bytes) -> None:
    """A link in a session: any bytes, and any DATA of the device."""
    device = Scripted(4)
    wired = Wired(device, cursor=RecordCursor(EPOCH, 2, device.records[1].chain))
    wired.open()
    assert wired.link.resumed
    wired.link.call(_LOCK, wired.now)
    source = Bytes(data)
    while source:
        act = source.number(6)
        if act < 4:
            raw = bytearray(source.take(_PLAIN[source.number(3)]))
            raw[0], raw[1] = (1, 2, 3, 4)[act], 0  # else most end at the first byte
            wired.events += wired.link.receive(_sealed(device, bytes(raw)), wired.now)
        elif act == 4:
            wired.events += wired.link.receive(source.take(source.number(300)), wired.now)
        else:
            wired.now += source.number(1200) * _MS
            wired.events += wired.link.wake(wired.now)
        _look(wired.link, wired.now)
        wired.link.take()
    repr(wired.events)


def frames(data: bytes) -> None:
    """Frames of all kinds, most of them for the current attempt."""
    it = HostLink(OWN, DEVICE_KEY, device_class=DeviceClass.ANY, serial=None, host_boot=BOOT)
    it.open(START)
    said = Deframer().feed(it.take())
    session = said[-1].session if isinstance(said[-1], Frame) else 1
    _feed(it, _framed(Bytes(data), session), START)


def pairing(data: bytes) -> None:
    """A pairing: any bytes, and valid frames."""
    it = HostPairing(OWN, bytes(32), tries=2)
    it.open(START)
    said = Deframer().feed(it.take())
    session = said[-1].session if isinstance(said[-1], Frame) else 1
    source = Bytes(data)
    it.receive(source.take(source.number(400)), START)
    it.receive(_framed(source, session).rest(), START + 1)
    it.wake(START + 10_000_000)
    it.receive(data, START + 10_000_001)
    assert len(it.take()) < 4096


def introduction(data: bytes) -> None:
    """The first step of a pairing alone."""
    it = Introduction(bytes(16))
    it.open(START)
    it.receive(data, START)
    it.wake(START + 10_000_000)
    assert len(it.take()) < 4096


def _framed(source: Bytes, session: int) -> Bytes:
    """Frames with a right CRC."""
    kinds = list(FrameKind)
    out = bytearray()
    while source:
        kind = kinds[source.number(len(kinds))]
        payload = source.take(PAYLOAD_SIZES[kind][0])
        own = 0 if kind is FrameKind.ALERT else session
        out += Frame(kind, own, 0, payload).encode()
    return Bytes(bytes(out))


def _sealed(device: Scripted, raw: bytes) -> bytes:
    sealer: Sealer = device.sealers[-1]
    return sealer.seal(raw).encode()


def _feed(it: HostLink, source: Bytes, now: int) -> None:
    while source:
        now += source.number(700) * _MS
        it.receive(source.take(1 + source.number(300)), now)
        _look(it, now)
        it.take()
    repr(it)


def _look(it: HostLink, now: int) -> None:
    bounded(it)
    it.wake(now)
    due = it.due()
    assert due is None or due > now


_LOCK: Final = lock()
TARGETS: Final[dict[str, Target]] = {
    "deframer": deframer,
    "cobs": cobs,
    "plaintexts": plaintexts,
    "payloads": payloads,
    "link": link,
    "running-link": running_link,
    "frames": frames,
    "pairing": pairing,
    "introduction": introduction,
}
