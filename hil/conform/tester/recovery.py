"""Restores a device that an interrupted run has left in any state.

Such a run leaves queued cards, a running shuffle, a pressed button, a full ring, or an armed power
cut. None of them is a fault of the device. What cannot be undone before the timeout is left: the
requests that it prevents report it.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from firmware_protocol.device.control import (
    CutPower,
    ServiceSwitch,
)
from firmware_protocol.messages import (
    Abort,
    AbortReply,
    DeviceState,
    Refusal,
    Refused,
    Reply,
    ResumeMode,
    ResumeReply,
    Selftest,
)
from firmware_protocol.tablelink.plaintext import NO_CHAIN
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemFinding, ItemSkipped, RequestDenied
from hil.conform.tester.session import ReceivedRecord, RingCursor, TesterSession
from hil.conform.tester.stimuli import ACTIONS, make, ready, settle_ms

DRAIN_MS: Final = 20_000
"""Timeout until the device is idle; drawing 70 cards takes 8 s."""
_LOOK_MS: Final = 250


async def undo(bench: ConformBench) -> None:
    """Undo earlier requests. It needs no session, since the device may not be paired yet."""
    if not bench.operator.exact:
        return
    await bench.try_request(ServiceSwitch(on=False))
    await bench.try_request(replace(ACTIONS[bench.profile].defect, on=False))
    # Only a power cut cancels an armed one. It is denied if the power is off already.
    try:
        await bench.request(CutPower())
        await bench.wait_for_restart()
    except RequestDenied:
        await bench.wait_for_restart()
    except ItemSkipped:
        pass
    for request in ACTIONS[bench.profile].restore:
        await bench.try_request(request)


async def drain(bench: ConformBench) -> None:
    """Acknowledge all records, and wait until the device is ready for requests."""
    deadline = bench.wire.now() + DRAIN_MS * 1000
    try:
        session = await bench.session()
        await _until_idle(bench, session, deadline)
        if bench.operator.exact:
            await _until_free(bench, session, deadline)
    except (ItemFinding, ItemSkipped):
        return  # the items report it


async def recover(bench: ConformBench) -> None:
    """Undo and drain, between two items."""
    await bench.reset()
    try:
        await undo(bench)
        if not bench.unpaired:
            await drain(bench)
    except ItemFinding:
        return  # No answer after the power cut; the following items report it.
    finally:
        bench.requested = False


async def _until_idle(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """Wait until no shuffle and no self-test runs and the ring has space."""
    busy = DeviceState.RUNNING | DeviceState.FULL
    while (state := (await session.check_alive()).state) & busy and bench.wire.now() < deadline:
        if DeviceState.RUNNING in state:
            await session.demand(Abort(), AbortReply)
        await bench.pause(_LOOK_MS)
    while _is_busy(await session.ask(Selftest())) and bench.wire.now() < deadline:
        await bench.pause(_LOOK_MS)


def _is_busy(reply: Reply) -> bool:
    return isinstance(reply, Refused) and reply.why is Refusal.BUSY


async def _until_free(bench: ConformBench, session: TesterSession, deadline: int) -> None:
    """Wait until the device accepts a request."""
    while True:
        try:
            await ACTIONS[bench.profile].probe(bench, session)
        except RequestDenied:
            if bench.wire.now() >= deadline:
                return
            await bench.pause(_LOOK_MS)
        else:
            return


async def unacknowledged(
    bench: ConformBench, session: TesterSession, count: int
) -> list[ReceivedRecord]:
    """At least `count` records that the device has sent and that are not acknowledged. An exact
    operator makes them. Otherwise a RESUME from an earlier position returns old ones, if the ring
    still has them; a real host needs dual control for that."""
    if bench.operator.exact:
        return await _made(bench, session, count)
    ring = await session.learn()
    if ring.head - ring.oldest >= count:
        return await _rewound(bench, session, ring, count)
    if "activity" not in bench.operator.can:
        raise ItemSkipped("activity, since the ring has no old records: --control or --ask")
    await session.resume(RingCursor(ring.epoch, ring.head, ring.chain))
    return await _made(bench, session, count)


async def _made(bench: ConformBench, session: TesterSession, count: int) -> list[ReceivedRecord]:
    await ready(bench, session)
    await bench.pause(200)
    return await held_records(bench, session, count)


async def held_records(
    bench: ConformBench, session: TesterSession, count: int
) -> list[ReceivedRecord]:
    """Make at least `count` records in a session that is ready, and do not acknowledge them."""
    session.holding = True
    mark = len(session.records)
    return await wait_for_records(bench, session, mark, await make(bench, count))


async def _rewound(
    bench: ConformBench, session: TesterSession, ring: ResumeReply, count: int
) -> list[ReceivedRecord]:
    session.holding = True
    mark = len(session.records)
    before = RingCursor(ring.epoch, ring.head - count - 1, NO_CHAIN)
    await session.resume(before, ResumeMode.ADOPT)
    # One more than needed: a later RESUME starts from its chain.
    found = await wait_for_records(bench, session, mark, count + 1)
    session.accept(found[0].record)
    session.ack()
    return found[1:]


async def wait_for_records(
    bench: ConformBench, session: TesterSession, mark: int, count: int
) -> list[ReceivedRecord]:
    """Wait for `count` different records after `mark`; returns the first arrival of each."""

    def first() -> list[ReceivedRecord] | None:
        found: dict[int, ReceivedRecord] = {}
        for one in session.records[mark:]:
            found.setdefault(one.record.seq, one)
        return list(found.values()) if len(found) >= count else None

    return await bench.wait_for(first, settle_ms(count), f"{count} records")
