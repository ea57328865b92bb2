"""Items tried one after the other, each from the same beginning, and what came of them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from controller.errors import UsageProblem
from firmware_protocol.conformance import ConformanceItem, Need
from firmware_protocol.messages.errors import ProtocolError
from hil.conform.items import TRIALS, WITHOUT_SESSION
from hil.conform.tester.bench import ConformBench, Trial
from hil.conform.tester.findings import (
    ItemBlocked,
    ItemFinding,
    ItemSkipped,
    NotApplicable,
    RunAborted,
)
from hil.conform.tester.operators import Operator
from hil.conform.tester.recovery import to_rest
from hil.conform.tester.wire import WireLost

Result = Literal["PASS", "FAIL", "SKIP", "UNTRIED"]
"""SKIP: nobody is there to do what it needs. UNTRIED: something stood in the way."""

_MEANS: Final[Mapping[Need, str]] = {
    "activity": "activity: --control or --ask",
    "power": "power: --control or --ask",
    "service": "service: --control or --ask",
    "eyes": "eyes: --control or --ask",
    "ring": "ring: --control",
}
INTERRUPTED: Final = "interrupted"
_AGAIN_MS: Final = 5_000
"""A device that has fallen off its port by itself is back by then; a cable that was pulled, not."""


class ItemOutcome(Struct, frozen=True):
    item: ConformanceItem
    result: Result
    seconds: float
    """Of the run."""
    wire_seconds: float
    """Of the device; not the same in simulated time."""
    sent: str = ""
    expected: str = ""
    came: str = ""
    remark: str = ""
    """SKIP: what it needs. UNTRIED: why. PASS: what could not be looked at closely."""
    pointless: bool = False
    """SKIP: the rule is about something that this model does not have."""


class RunResult(Struct, frozen=True):
    """What came of all items, and why the run was broken off, if it was."""

    outcomes: Sequence[ItemOutcome]
    broken_off: str = ""


def missing(item: ConformanceItem, operator: Operator) -> str:
    """What the item needs and nobody can do here; "" when it can be tried."""
    lacks = [need for need in item.needs if need not in operator.can]
    return "; ".join(_MEANS[need] for need in lacks)


def untried(item: ConformanceItem, why: str) -> ItemOutcome:
    return ItemOutcome(item, "UNTRIED", 0.0, 0.0, remark=why)


async def run_items(
    bench: ConformBench,
    items: Sequence[ConformanceItem],
    tell: Callable[[ItemOutcome], None] | None = None,
) -> RunResult:
    """All of these items. Once the run is broken off the rest of them is not tried."""
    out: list[ItemOutcome] = []
    broken_off, upset = "", False
    for item in items:
        outcome = untried(item, broken_off)
        if not broken_off:
            try:
                outcome = await _in_turn(bench, item, upset=upset)
            except RunAborted as off:
                broken_off = off.why
                outcome = untried(item, f"broken off in the middle: {off.why}")
            upset = outcome.result != "PASS" and bench.handled
        out.append(outcome)
        if tell is not None:
            tell(outcome)
    return RunResult(out, broken_off)


async def _in_turn(bench: ConformBench, item: ConformanceItem, *, upset: bool) -> ItemOutcome:
    """`upset`: the item before has left the device as it happened to be."""
    if bench.unpaired and item.id not in WITHOUT_SESSION:
        return untried(item, bench.unpaired)
    try:
        if upset:
            await _rest(bench)
        outcome = await run_item(bench, item, TRIALS[item.id])
    except UsageProblem as problem:  # whoever stands at the device has gone
        raise RunAborted(str(problem)) from None
    except asyncio.CancelledError:
        raise RunAborted(INTERRUPTED) from None
    task = asyncio.current_task()
    if task is not None and task.cancelling():  # and tidying up has failed of it
        raise RunAborted(INTERRUPTED)
    return outcome


async def _rest(bench: ConformBench) -> None:
    try:
        await to_rest(bench)
    except WireLost as lost:
        await _there_again(bench, lost)


async def run_item(bench: ConformBench, item: ConformanceItem, trial: Trial) -> ItemOutcome:
    """One item, from a fresh beginning. What it finds is its outcome. BrokenOff when the port has
    gone for good, as with a cable that was pulled."""
    lacks = missing(item, bench.operator)
    if lacks:
        return ItemOutcome(item, "SKIP", 0.0, 0.0, remark=f"needs {lacks}")
    began, wire_began = time.monotonic(), bench.wire.now()

    def outcome(result: Result, **more: Any) -> ItemOutcome:
        wire_seconds = (bench.wire.now() - wire_began) / 1e6
        return ItemOutcome(item, result, time.monotonic() - began, wire_seconds, **more)

    try:
        await bench.fresh()
        remark = await trial(bench)
    except ItemSkipped as lacking:
        pointless = isinstance(lacking, NotApplicable)
        return outcome("SKIP", remark=f"needs {lacking.needs}", pointless=pointless)
    except ItemBlocked as prevented:
        return outcome("UNTRIED", remark=prevented.why)
    except ItemFinding as finding:
        return outcome("FAIL", sent=finding.sent, expected=finding.expected, came=finding.came)
    except WireLost as lost:
        gone = bench.finding("that the device stays at its port", str(lost))
        await _there_again(bench, lost)
        return outcome("FAIL", sent=gone.sent, expected=gone.expected, came=gone.came)
    except ProtocolError as error:
        odd = bench.finding("bytes that TableLink allows", f"{error.name}: {error}")
        return outcome("FAIL", sent=odd.sent, expected=odd.expected, came=odd.came)
    return outcome("PASS", remark=remark or "")


async def _there_again(bench: ConformBench, lost: WireLost) -> None:
    """The device is at its port again, so that it was the device that left it; or BrokenOff."""
    try:
        await bench.wire.reopen(bench.wire.now() + _AGAIN_MS * 1000)
    except WireLost:
        raise RunAborted(str(lost)) from None
