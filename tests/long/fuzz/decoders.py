"""Fuzzing of all that decodes, guided by coverage.

    python -m tests.long.fuzz.decoders --seconds 60                all targets, 60 seconds each
    python -m tests.long.fuzz.decoders --target link --runs 100000
    python -m tests.long.fuzz.decoders --list

Exit code 0: nothing was found. 1: something was; the bytes are shown and written to a file. 2: the
arguments are wrong, or atheris is not installed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, Final

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
    agree,
    cobs_decode,
    cobs_encode,
    decode_plaintext,
    encode_plaintext,
)
from tests.long.fuzz.scripted import (
    BOOT,
    DEVICE_KEY,
    EPOCH,
    OWN,
    SERIAL,
    START,
    Scripted,
    Wired,
    lock,
)
from tests.long.fuzz.two_ends import bounded

Target = Callable[[bytes], None]
_PLAIN: Final = (56, 120, 226)
_MS: Final = 1000
_SENDERS: Final[tuple[tuple[Side, DeviceClass | None], ...]] = (
    ("device", None),
    ("host", DeviceClass.SHOE),
)


class Bytes(BytesIO):
    """The fuzzer's bytes, taken from the front."""

    def __bool__(self) -> bool:
        return self.tell() < len(self.getbuffer())

    def take(self, size: int) -> bytes:
        """So many; zeros where there are no more."""
        return self.read(size).ljust(size, b"\0")

    def number(self, below: int) -> int:
        return int.from_bytes(self.take(2), "little") % below


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
        assert cobs_decode(cobs_encode(decoded)) == decoded


def plaintexts(data: bytes) -> None:
    """Decoded plaintexts encode to the same bytes; others raise ProtocolError."""
    source = Bytes(data)
    for sender, kind in _SENDERS:
        raw = source.take(_PLAIN[source.number(3)])
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
    wired.link.call(lock(), wired.now)
    source = Bytes(data)
    while source:
        act = source.number(6)
        if act < 4:
            raw = bytearray(source.take(_PLAIN[source.number(3)]))
            raw[0], raw[1] = (1, 2, 3, 4)[act], 0  # else most end at the first byte
            sealed = device.sealers[-1].seal(bytes(raw)).encode()
            wired.events += wired.link.receive(sealed, wired.now)
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
    _feed(it, _framed(Bytes(data), _session(it.take())), START)


def pairing(data: bytes) -> None:
    """A pairing: any bytes, and valid frames."""
    it = HostPairing(OWN, bytes(32), tries=2)
    it.open(START)
    session, source = _session(it.take()), Bytes(data)
    it.receive(source.take(source.number(400)), START)
    it.receive(_framed(source, session).read(), START + 1)
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


def _session(said: bytes) -> int:
    """The session id under which a host has just asked."""
    last = Deframer().feed(said)[-1]
    return last.session if isinstance(last, Frame) else 1


def _framed(source: Bytes, session: int) -> Bytes:
    """Frames with a right CRC."""
    out = bytearray()
    while source:
        kind = list(FrameKind)[source.number(len(FrameKind))]
        payload = source.take(PAYLOAD_SIZES[kind][0])
        out += Frame(kind, 0 if kind is FrameKind.ALERT else session, 0, payload).encode()
    return Bytes(bytes(out))


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


MISSING: Final = (
    "tests.long.fuzz.decoders: atheris is not installed; "
    "pip install 'holecard[fuzz]' brings it (CPython 3.11 to 3.13, Linux)"
)
LONGEST: Final = 4096
"""Bytes of an input."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.list:
        print("\n".join(f"{name:14} {target.__doc__}" for name, target in TARGETS.items()))
        return 0
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 2
    if options.inside:
        _fuzz(atheris, options)
    names = list(TARGETS) if options.target is None else [options.target]
    found = [name for name in names if _run(name, options)]
    print(f"found something: {', '.join(found)}" if found else f"{len(names)} targets held")
    return 1 if found else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.long.fuzz.decoders", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, help="only this one")
    parser.add_argument("--seconds", type=_positive, default=30, help="for each target")
    parser.add_argument("--runs", type=_positive, help="inputs for each target, if that is sooner")
    parser.add_argument("--seed", type=_positive, default=1)
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="a folder")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _run(name: str, options: argparse.Namespace) -> bool:
    """Returns whether a failure was found. libFuzzer ends the process of each target."""
    options.findings.mkdir(parents=True, exist_ok=True)
    command = [
        *(sys.executable, "-m", "tests.long.fuzz.decoders", "--inside", "--target", name),
        *("--seconds", str(options.seconds), "--seed", str(options.seed)),
        *("--findings", str(options.findings)),
        *(() if options.runs is None else ("--runs", str(options.runs))),
    ]
    print(f"--- {name}", flush=True)
    return subprocess.run(command, check=False).returncode != 0


def _fuzz(atheris: Any, options: argparse.Namespace) -> None:
    """Does not return: libFuzzer ends the process, with 0 or with its own code."""
    atheris.instrument_all()
    words = [
        options.target,
        f"-max_total_time={options.seconds}",
        f"-max_len={LONGEST}",
        f"-seed={options.seed}",
        f"-artifact_prefix={options.findings}/{options.target}-",
        "-timeout=10",
        "-verbosity=0",
        "-print_final_stats=1",
        *(() if options.runs is None else (f"-runs={options.runs}",)),
    ]
    atheris.Setup(words, TARGETS[options.target])
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
