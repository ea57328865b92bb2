"""The cable tapped: nothing on it may tell a card."""

from __future__ import annotations

import itertools
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.enums import AlertCode, DeviceState, FaultCode, FrameKind
from firmware_protocol.framing import Frame
from firmware_protocol.messages import Alert
from hil.conform import words
from hil.conform.activity import load, make, ready, settle_ms, some, unlock
from hil.conform.bench import Bench
from hil.conform.rewind import arrived
from hil.conform.session import Session
from hil.conform.trial import Trial
from hil.device.hands import Draw, Load

_LOW: Final = ("2c", "3d", "4h", "5s", "6c", "7d", "8h", "9s", "Tc", "Ad")
_HIGH: Final = ("Kh", "Jd", "Qs", "Kc", "Qd", "Jh", "Ks", "Qc", "Jc", "Kd")
_DRAWN: Final = 8
_QUIET_US: Final = 3_000_000
_WATCHED_US: Final = 3_000_000
_REAL_GAP_US: Final = 40_000
"""On a real line a gap is what the machine and the port make of it."""
_WINDOW: Final = 8


class _Tapped(Struct, frozen=True):
    """What a tap sees of one order of cards: time since the session began and length, by frame;
    and when each new record came."""

    frames: list[tuple[int, int]]
    records: list[int]


async def same_timing(bench: Bench) -> str | None:
    """Two orders of cards drawn with the same timing give frames of the same lengths and, in
    simulated time, exactly the same gaps."""
    bench.need_exact("two known orders of cards, drawn with the same timing")
    low = await _tap(bench, _LOW)
    high = await _tap(bench, _HIGH)
    again = await _tap(bench, _LOW)
    for other in (high, again):
        if bench.wire.simulated:
            _exactly(bench, low, other)
        elif sorted({size for _, size in low.frames}) != sorted({size for _, size in other.frames}):
            raise bench.finding("frames of the same lengths", _sizes(other), "two orders of cards")
    if bench.wire.simulated:
        return None
    off = max(abs(one - two) for one, two in zip(_gaps(low), _gaps(high), strict=True))
    if off > _REAL_GAP_US:
        raise bench.finding(
            f"gaps that differ by less than {_REAL_GAP_US // 1000} ms",
            f"by {off / 1000:.1f} ms",
            "two orders of cards",
        )
    return f"on a real port lengths are compared; gaps differed by {off / 1000:.1f} ms at most"


async def _tap(bench: Bench, cards: tuple[str, ...]) -> _Tapped:
    await bench.alone()
    session = await bench.session()
    await load(bench, session, Load(decks=0, cards=cards))
    bench.stock = 0
    await unlock(bench, session)
    began = session.began or 0
    await bench.pause_until(began + _QUIET_US)
    frames, records = len(bench.log), len(session.records)
    await bench.hand(Draw(count=_DRAWN))
    await bench.pause_until(began + _QUIET_US + _WATCHED_US)
    await arrived(bench, session, records, _DRAWN)
    return _Tapped(
        [(one.at - began, len(one.frame.encode())) for one in bench.log[frames:]],
        [one.at - began for one in session.records[records:]],
    )


def _gaps(tapped: _Tapped) -> list[int]:
    times = tapped.records[:_DRAWN]
    return [after - before for before, after in itertools.pairwise(times)]


def _sizes(tapped: _Tapped) -> str:
    return f"lengths {sorted({size for _, size in tapped.frames})}"


def _exactly(bench: Bench, one: _Tapped, other: _Tapped) -> None:
    if [size for _, size in one.frames] != [size for _, size in other.frames]:
        raise bench.finding("frames of the same lengths", _sizes(other), "two orders of cards")
    for (at, _), (then, _) in zip(one.frames, other.frames, strict=True):
        if at != then:
            raise bench.finding(
                f"a frame {at} us after the session began, as with the other order",
                f"{then} us",
                "two orders of cards",
            )


async def nothing_in_clear(bench: Bench) -> None:
    """No plaintext is on the wire: nothing that came is found in it, and no ciphertext comes
    twice."""
    session = await bench.session()
    await ready(bench, session)
    await bench.pause(200)
    session.holding = True  # so that records come more than once
    mark = len(session.records)
    made = await make(bench, some(bench, 8))
    await arrived(bench, session, mark, made)
    await bench.pause(settle_ms(1))
    session.holding = False
    # What makes a device give hints in clear.
    strange = Frame(FrameKind.DATA, bench.pick(), 0, bytes(72))
    bench.send_frame(strange, "DATA of no session, for an ALERT")
    await bench.pause(1100)
    bench.hs1(await bench.greet(), own=X25519PrivateKey.generate(), text="HS1, for an ALERT")
    await bench.pause(1100)
    info = await session.lives()
    other = await bench.session(session.cursor)
    await bench.pause(500)
    _alerts(bench, info.state)
    _unique(bench)
    _absent(bench, session)
    _absent(bench, other)


def _alerts(bench: Bench, state: DeviceState) -> None:
    """An ALERT says what its code says and no more."""
    for arrival in bench.frames(FrameKind.ALERT):
        alert = Alert.decode(arrival.frame.payload)
        defect = alert.code is AlertCode.DEFECT
        known = alert.arg in list(FaultCode) and DeviceState.FAULTY in state
        if (alert.arg and not defect) or (defect and not known):
            raise bench.finding(
                "ALERT with arg 0, or DEFECT of a device that says it is FAULTY",
                words.of_alert(arrival.frame),
                "cards that were drawn",
            )


def _unique(bench: Bench) -> None:
    seen: set[bytes] = set()
    for arrival in bench.frames(FrameKind.DATA):
        if arrival.frame.payload in seen:
            raise bench.finding(
                "another ciphertext each time", f"{words.of_frame(arrival.frame)} as before"
            )
        seen.add(arrival.frame.payload)


def _absent(bench: Bench, session: Session) -> None:
    """No eight bytes of a record's body and chain are in a frame."""
    wire = [arrival.frame.payload for arrival in bench.log]
    for got in session.records:
        for at in range(24, len(got.data) - _WINDOW + 1):
            piece = got.data[at : at + _WINDOW]
            if len(set(piece)) > _WINDOW // 2 and any(piece in payload for payload in wire):
                raise bench.finding(
                    "no part of a record in clear", f"bytes {at} on of record {got.record.seq}"
                )


TRIALS: Final[dict[str, Trial]] = {"TAP-1": same_timing, "TAP-2": nothing_in_clear}
