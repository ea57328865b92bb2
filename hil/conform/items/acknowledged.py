"""What the device was told is stored: RESUME_REPLY names it, and BEHIND is the answer to less."""

from __future__ import annotations

from typing import Final

from firmware_protocol.device import CutPower
from firmware_protocol.messages import Resume, ResumeMode, ResumeReply, Verdict
from firmware_protocol.tablelink import NO_CHAIN
from hil.conform.items.ring import verdict_of
from hil.conform.tester import (
    ConformBench,
    RingCursor,
    TesterSession,
    make_records,
    ready_session,
    settle_ms,
)

_COUNT: Final = 4
_OFF_MS: Final = 200


async def _recorded(bench: ConformBench, session: TesterSession) -> RingCursor:
    """Make records that are acknowledged. Returns the position before them."""
    before = session.cursor
    made = await make_records(bench, _COUNT)
    await session.until_head(before.seq + made, settle_ms(made))
    await bench.pause(bench.late_ms + 300)
    return before


def _require_acked(
    bench: ConformBench, reply: ResumeReply, cursor: RingCursor, why: str = ""
) -> None:
    bench.require_equal(reply.acked_seq, cursor.seq, f"acked_seq {cursor.seq}{why}")
    bench.require(
        reply.acked_chain == cursor.chain,
        f"acked_chain: the chain of record {cursor.seq}{why}",
        reply.acked_chain.hex(),
    )


async def high_water_mark(bench: ConformBench) -> None:
    """RESUME_REPLY names the highest acknowledged record and its chain; RESUME with CHECK that
    wants it again is answered BEHIND, and no event is sent; only ADOPT lowers it."""
    session = await ready_session(bench)
    before = await _recorded(bench, session)
    after = session.cursor
    new = await bench.session(resume=False)
    _require_acked(bench, await new.learn(), after)
    earlier = [Resume(after.epoch, before.seq + 1, before.chain, ResumeMode.CHECK)]
    oldest = (await new.learn()).oldest
    if oldest > 2:
        earlier.append(Resume(after.epoch, oldest - 2, NO_CHAIN, ResumeMode.CHECK))
    for resume in earlier:
        new.records.clear()
        await verdict_of(bench, new, resume, Verdict.BEHIND)
        await bench.pause(500)
        bench.require_none(new.records, "no event after BEHIND")
        _require_acked(bench, await new.learn(), after, " after BEHIND")
    new.holding = True
    await new.resume(before, ResumeMode.ADOPT)
    _require_acked(bench, await new.learn(), before, " after ADOPT")
    check = Resume(after.epoch, before.seq + 1, before.chain, ResumeMode.CHECK)
    await verdict_of(bench, new, check, Verdict.OK)
    new.holding = False
    await new.catch_up()


async def over_a_power_cut(bench: ConformBench) -> None:
    """After a power cut RESUME_REPLY names at least what was acknowledged at the last commit, with
    its chain, and what ADOPT has lowered stays lowered."""
    session = await ready_session(bench)
    await _recorded(bench, session)
    at_commit = session.cursor
    session.holding = True
    await make_records(bench, 1)
    await bench.pause(bench.late_ms + 300)
    known = {one.record.seq: one.record.chain for one in session.records}
    known |= {at_commit.seq: at_commit.chain}
    reply = await _cut(bench)
    bench.require(
        reply.acked_seq >= at_commit.seq,
        f"acked_seq of at least {at_commit.seq}, acknowledged before the last commit",
        f"{reply.acked_seq}",
        "power cut",
    )
    chain = known.get(reply.acked_seq)
    bench.require(
        chain == reply.acked_chain,
        f"acked_chain: the chain of record {reply.acked_seq}",
        reply.acked_chain.hex(),
    )
    new = await bench.session(at_commit)
    lower = RingCursor(at_commit.epoch, at_commit.seq - 1, NO_CHAIN)
    new.holding = True
    await new.resume(lower, ResumeMode.ADOPT)
    reply = await _cut(bench)
    bench.require_equal(reply.acked_seq, lower.seq, f"acked_seq {lower.seq}, as ADOPT has set it")


async def _cut(bench: ConformBench) -> ResumeReply:
    """Cut the power. Returns the state of the ring after the start."""
    await bench.request(CutPower(off_ms=_OFF_MS))
    await bench.pause_lossy(_OFF_MS + 300)
    await bench.wait_for_restart()
    return await (await bench.session(resume=False)).learn()
