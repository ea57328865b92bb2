"""Runs items one after the other, each from the same initial state, and collects the outcomes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from controller.errors import UsageProblem
from firmware_protocol.conformance import ConformanceItem, Need
from firmware_protocol.messages import ProtocolError
from hil.conform.items import TRIALS, WITHOUT_SESSION
from hil.conform.tester import (
    ConformBench,
    ItemBlocked,
    ItemFinding,
    ItemSkipped,
    NotApplicable,
    Operator,
    RunAborted,
    Trial,
    WireLost,
    recover,
)

Result = Literal["PASS", "FAIL", "SKIP", "UNTRIED"]
"""SKIP: it needs an operator. UNTRIED: it was prevented."""

_MEANS: Final[Mapping[Need, str]] = {
    "activity": "activity: --control or --ask",
    "power": "power: --control or --ask",
    "service": "service: --control or --ask",
    "eyes": "eyes: --control or --ask",
    "ring": "ring: --control",
}
INTERRUPTED: Final = "interrupted"
_REOPEN_MS: Final = 5_000
"""Timeout for a device that left its port to return; a pulled cable does not."""


class ItemOutcome(Struct, frozen=True):
    item: ConformanceItem
    result: Result
    seconds: float
    """Wall-clock time."""
    wire_seconds: float
    """Time of the wire, which may be simulated."""
    sent: str = ""
    expected: str = ""
    came: str = ""
    remark: str = ""
    """SKIP: what it needs. UNTRIED: why. PASS: what could not be checked."""
    not_applicable: bool = False
    """SKIP: the rule does not apply to this model."""


class RunResult(Struct, frozen=True):
    """The outcomes of all items, and why the run was aborted, if it was."""

    outcomes: Sequence[ItemOutcome]
    broken_off: str = ""


def missing(item: ConformanceItem, operator: Operator) -> str:
    """What the item needs and the operator cannot do; empty if it can be run."""
    lacks = [need for need in item.needs if need not in operator.can]
    return "; ".join(_MEANS[need] for need in lacks)


def untried(item: ConformanceItem, why: str) -> ItemOutcome:
    return ItemOutcome(item, "UNTRIED", 0.0, 0.0, remark=why)


async def run_items(
    bench: ConformBench,
    items: Sequence[ConformanceItem],
    on_outcome: Callable[[ItemOutcome], None] | None = None,
) -> RunResult:
    """Run these items. After the run is aborted the rest is not tried."""
    out: list[ItemOutcome] = []
    broken_off, disturbed = "", False
    for item in items:
        outcome = untried(item, broken_off)
        if not broken_off:
            try:
                outcome = await _run_one(bench, item, disturbed=disturbed)
            except RunAborted as off:
                broken_off = off.why
                outcome = untried(item, f"broken off in the middle: {off.why}")
            disturbed = outcome.result != "PASS" and bench.requested
        out.append(outcome)
        if on_outcome is not None:
            on_outcome(outcome)
    return RunResult(out, broken_off)


async def _run_one(bench: ConformBench, item: ConformanceItem, *, disturbed: bool) -> ItemOutcome:
    """Run one item. `disturbed`: an item before it may have left the device in any state."""
    if bench.unpaired and item.id not in WITHOUT_SESSION:
        return untried(item, bench.unpaired)
    try:
        if disturbed:
            await _rest(bench)
        outcome = await run_item(bench, item, TRIALS[item.id])
    except UsageProblem as problem:  # the operator is gone
        raise RunAborted(str(problem)) from None
    except asyncio.CancelledError:
        raise RunAborted(INTERRUPTED) from None
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # interrupted during cleanup
        raise RunAborted(INTERRUPTED)
    return outcome


async def _rest(bench: ConformBench) -> None:
    try:
        await recover(bench)
    except WireLost as lost:
        await _reopen(bench, lost)


async def run_item(bench: ConformBench, item: ConformanceItem, trial: Trial) -> ItemOutcome:
    """Run one item from the initial state. Raises RunAborted if the port does not return, as after
    the cable was pulled."""
    lacks = missing(item, bench.operator)
    if lacks:
        return ItemOutcome(item, "SKIP", 0.0, 0.0, remark=f"needs {lacks}")
    began, wire_began = time.monotonic(), bench.wire.now()

    def outcome(result: Result, **more: Any) -> ItemOutcome:
        wire_seconds = (bench.wire.now() - wire_began) / 1e6
        return ItemOutcome(item, result, time.monotonic() - began, wire_seconds, **more)

    try:
        await bench.reset()
        remark = await trial(bench)
    except ItemSkipped as lacking:
        not_applicable = isinstance(lacking, NotApplicable)
        return outcome("SKIP", remark=f"needs {lacking.why}", not_applicable=not_applicable)
    except ItemBlocked as prevented:
        return outcome("UNTRIED", remark=prevented.why)
    except ItemFinding as finding:
        return outcome("FAIL", sent=finding.sent, expected=finding.expected, came=finding.came)
    except WireLost as lost:
        gone = bench.finding("that the device stays at its port", str(lost))
        await _reopen(bench, lost)
        return outcome("FAIL", sent=gone.sent, expected=gone.expected, came=gone.came)
    except ProtocolError as error:
        odd = bench.finding("bytes that TableLink allows", f"{error.name}: {error}")
        return outcome("FAIL", sent=odd.sent, expected=odd.expected, came=odd.came)
    return outcome("PASS", remark=remark or "")


async def _reopen(bench: ConformBench, lost: WireLost) -> None:
    """Reopen the port. Raises RunAborted on timeout."""
    try:
        await bench.wire.reopen(bench.wire.now() + _REOPEN_MS * 1000)
    except WireLost:
        raise RunAborted(str(lost)) from None
