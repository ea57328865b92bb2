"""The cable tapped: nothing on it may tell a card."""

from __future__ import annotations

import itertools
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.device import Draw, Load
from firmware_protocol.messages import Alert, AlertCode, DeviceState, FaultCode, FrameKind
from firmware_protocol.tablelink import Frame
from hil.conform.tester import (
    ConformBench,
    ReceivedFrame,
    alert_text,
    count_for_operator,
    load_cards,
    make_records,
    ready_session,
    settle_ms,
    unlock,
    wait_for_records,
)
from hil.faults import TappedFrame, find_secrets, first_difference, repeated_ciphertexts, secrets_of

_LOW: Final = ("2c", "3d", "4h", "5s", "6c", "7d", "8h", "9s", "Tc", "Ad")
_HIGH: Final = ("Kh", "Jd", "Qs", "Kc", "Qd", "Jh", "Ks", "Qc", "Jc", "Kd")
_DRAWN: Final = 8
_QUIET_US: Final = 3_000_000
_WATCHED_US: Final = 3_000_000
_REAL_GAP_US: Final = 40_000
"""At a port machine and line distort the gaps: only larger differences are found."""


class _Run(Struct, frozen=True):
    """The tapped frames of one order of cards, and the times of the records."""

    frames: list[TappedFrame]
    records: list[int]


async def same_timing(bench: ConformBench) -> str | None:
    """Two orders of cards drawn with the same timing give frames of the same lengths and, in
    simulated time, exactly the same gaps."""
    bench.need_exact("two known orders of cards, drawn with the same timing")
    low, high, low_again, high_again = [
        await _tap(bench, cards) for cards in (_LOW, _HIGH, _LOW, _HIGH)
    ]
    orders = "two orders of cards"
    if bench.wire.simulated:
        expected = "frames of the same kinds and lengths, at the same moments"
        for other in (high, low_again, high_again):
            unlike = first_difference(low.frames, other.frames)
            bench.require(unlike is None, expected, unlike, orders)
        return None
    sizes = _sizes(low)
    for other in (high, low_again, high_again):
        found = _sizes(other)
        bench.require(found == sizes, f"frames of lengths {sizes}", f"{found}", orders)
    off, limit = _off((low, low_again), (high, high_again)), _REAL_GAP_US // 1000
    differ = f"{off / 1000:.1f} ms"
    close = off <= _REAL_GAP_US
    bench.require(close, f"gaps that differ by less than {limit} ms", f"by {differ}", orders)
    return (
        f"lengths only, not timing: at a port less than {limit} ms of it cannot be told "
        f"(gaps differed by {differ})"
    )


async def _tap(bench: ConformBench, cards: tuple[str, ...]) -> _Run:
    await bench.fall_silent()
    session = await bench.session()
    await load_cards(bench, session, Load(decks=0, cards=cards))
    bench.stock = 0
    await unlock(bench, session)
    began = session.began or 0
    await bench.pause_until(began + _QUIET_US)
    frames, records = len(bench.log), len(session.records)
    await bench.request(Draw(count=_DRAWN))
    await bench.pause_until(began + _QUIET_US + _WATCHED_US)
    await wait_for_records(bench, session, records, _DRAWN)
    return _Run(
        _tapped(bench.log[frames:]),
        [one.at - began for one in session.records[records:]],
    )


def _tapped(heard: list[ReceivedFrame]) -> list[TappedFrame]:
    return [TappedFrame(one.at, "device", one.frame, len(one.frame.encode())) for one in heard]


def _gaps(run: _Run) -> list[int]:
    times = run.records[:_DRAWN]
    return [after - before for before, after in itertools.pairwise(times)]


def _off(low: tuple[_Run, ...], high: tuple[_Run, ...]) -> int:
    """The largest change of a gap by the cards. A busy machine does not delay every run in the
    same way, so each gap is compared between the two runs that are most alike."""
    pairs = [(_gaps(one), _gaps(two)) for one in low for two in high]
    alike = [min(abs(one[at] - two[at]) for one, two in pairs) for at in range(_DRAWN - 1)]
    return max(alike)


def _sizes(run: _Run) -> list[int]:
    return sorted({one.size for one in run.frames})


async def nothing_in_clear(bench: ConformBench) -> None:
    """No plaintext is on the wire: no received plaintext is found in it, and no ciphertext occurs
    twice."""
    session = await ready_session(bench)
    session.holding = True  # so that records are repeated
    mark = len(session.records)
    made = await make_records(bench, count_for_operator(bench, 8))
    await wait_for_records(bench, session, mark, made)
    await bench.pause(settle_ms(1))
    session.holding = False
    # What makes a device send ALERT, which is not encrypted.
    strange = Frame(FrameKind.DATA, bench.pick(), 0, bytes(72))
    bench.send_frame(strange, "DATA of no session, for an ALERT")
    await bench.pause(1100)
    bench.hs1(await bench.greet(), own=X25519PrivateKey.generate(), text="HS1, for an ALERT")
    await bench.pause(1100)
    info = await session.check_alive()
    other = await bench.session(session.cursor)
    await bench.pause(500)
    _alerts(bench, info.state)
    heard = _tapped(bench.log)
    bench.require_none(repeated_ciphertexts(heard), "another ciphertext each time")
    records = (arrival.record for one in (session, other) for arrival in one.records)
    found = find_secrets(heard, secrets_of(records))
    bench.require_none(found, "no part of a record in clear")


def _alerts(bench: ConformBench, state: DeviceState) -> None:
    """Require that an ALERT contains nothing but its code."""
    for arrival in bench.frames(FrameKind.ALERT, since=0):
        alert = Alert.decode(arrival.frame.payload)
        known = alert.arg in list(FaultCode) and DeviceState.FAULTY in state
        bench.require(
            known if alert.code is AlertCode.DEFECT else not alert.arg,
            "ALERT with arg 0, or DEFECT of a device that says it is FAULTY",
            alert_text(arrival.frame),
            "cards that were drawn",
        )
