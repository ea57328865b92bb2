"""Pairing: only with the switch on and the label's code, and what it does to the former host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.messages import DeviceState, FrameKind, Info, Paired, Tamper, TamperSource
from firmware_protocol.tablelink import EventRecord, fingerprint_of
from hil.conform.tester import (
    ConformBench,
    ItemSkipped,
    RingCursor,
    TesterSession,
    attempt_pairing,
    flip_bits,
    label_code,
    pair_with,
    send_pair1,
    turn_service_switch,
)

_TRIES: Final = 5


async def switched_off(bench: ConformBench) -> None:
    """With the service switch off, PAIR1 is not answered."""
    hello_rsp = (await bench.greet()).hello_rsp
    if DeviceState.SERVICE in hello_rsp.state:
        if "service" not in bench.operator.can:
            raise ItemSkipped("the service switch, which is on, turned off")
        await turn_service_switch(bench, False)
    for own in (X25519PrivateKey.generate(), bench.own):
        await send_pair1(bench, own, bytes(16))
        await bench.unanswered(FrameKind.PAIR2, expected="no PAIR2, the switch is off")
    if not bench.unpaired:
        await bench.session()


async def wrong_code(bench: ConformBench) -> None:
    """A wrong label code gets no PAIR_DONE, makes TAMPER PAIRING_CODE, and the former host stays
    paired; after five, PAIR1 is not answered."""
    code = await label_code(bench)
    session = await bench.session()
    await turn_service_switch(bench, True)
    try:
        await _try_wrong(bench, session, code)
    finally:
        await turn_service_switch(bench, False)
    await bench.session()


async def _try_wrong(bench: ConformBench, session: TesterSession, code: bytes) -> None:
    stranger = X25519PrivateKey.generate()
    for turn in range(_TRIES):
        mark = len(session.accepted)
        text = f"PAIR3 made with wrong label code {turn + 1}"
        tried = await attempt_pairing(bench, stranger, flip_bits(code, turn), text)
        await session.until_accepted(_is_wrong_code, 2000, "TAMPER PAIRING_CODE", mark)
        await bench.pause(bench.late_ms)
        bench.require(
            not bench.frames(FrameKind.DATA, session=tried.session),
            "no PAIR_DONE, the label code was wrong",
        )
    found = sum(map(_is_wrong_code, session.accepted))
    bench.require_equal(found, _TRIES, f"TAMPER PAIRING_CODE {_TRIES} times")
    await session.check_alive("wrong codes do not end the paired host's session")
    await send_pair1(bench, stranger, code)
    await bench.unanswered(FrameKind.PAIR2, expected="no PAIR2 after five wrong label codes")
    again = await bench.session()
    await again.check_alive("the former host stays paired")
    await turn_service_switch(bench, False)
    await turn_service_switch(bench, True)
    _, first = await send_pair1(bench, stranger, code)
    bench.require(
        await bench.frame(FrameKind.PAIR2, first.session, 5000),
        "PAIR2 once the switch was off and on again",
    )
    await bench.greet()  # cancels the unfinished pairing


def _is_wrong_code(record: EventRecord) -> bool:
    event = record.event
    return isinstance(event, Tamper) and event.source is TamperSource.PAIRING_CODE


async def pairs(bench: ConformBench) -> None:
    """Pairing gives PAIR_DONE and PAIRED, replaces the host, and ends a running session
    before PAIRED."""
    code = await label_code(bench)
    session = await bench.session()
    new = X25519PrivateKey.generate()
    async with _put_back(bench, code):
        await turn_service_switch(bench, True)
        await bench.pause(200)
        done = await pair_with(bench, new, code)
        bench.require_equal(done.device_key, bench.device_key, "the device's key as before")
        cursor = session.cursor
        await _ended(bench, session)
        await turn_service_switch(bench, False)
        bench.hs1(await bench.greet(), text="HS1 of the host that was replaced")
        await bench.unanswered(FrameKind.HS2, expected="no HS2 for the former host")
        await _new_served(bench, new, cursor, done.pairings)


@asynccontextmanager
async def _put_back(bench: ConformBench, code: bytes) -> AsyncIterator[None]:
    """Pair the original host again at the end, also after an error."""
    own = bench.own
    try:
        yield
    finally:
        bench.own = own
        bench.end_sessions()
        await turn_service_switch(bench, True)
        await pair_with(bench, own, code)
        await turn_service_switch(bench, False)


async def _ended(bench: ConformBench, session: TesterSession) -> None:
    await bench.pause(bench.late_ms)  # what was on its way
    bench.require(
        not any(isinstance(one.record.event, Paired) for one in session.records),
        "PAIRED for the new host: the former session is over before it",
    )
    session.beating = False
    session.call(Info())
    await bench.pause(bench.quiet_ms)
    bench.require(
        not session.received[session.mark :], "no DATA in the session that pairing has ended"
    )
    bench.end_sessions()


async def _new_served(
    bench: ConformBench, new: X25519PrivateKey, cursor: RingCursor, pairings: int
) -> None:
    bench.own = new
    session = await bench.session(cursor)
    bench.require(DeviceState.PAIRED in session.info.state, "state PAIRED")
    print_of_new = fingerprint_of(new)
    paired = await session.until_event(Paired, 2000, "the event PAIRED")
    bench.require(
        paired == Paired(print_of_new, pairings),
        f"PAIRED of {print_of_new.hex()}, pairing {pairings}",
    )
