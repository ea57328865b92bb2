"""Runs items one after the other, each from the same initial state, and reports the outcomes."""

from __future__ import annotations

import asyncio
import platform
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Any, Final, Literal
from xml.etree import ElementTree

from msgspec import Struct

from controller.errors import UsageProblem
from firmware_protocol.conformance import ConformanceItem, Need, Profile
from firmware_protocol.messages import SCHEMA_HASHES, VERSION, ProtocolError
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
ALL_PASSED: Final = 0
SOME_FAILED: Final = 1
INCOMPLETE: Final = 3
STOPPED: Final = 130
"""Exit codes. 2 is a wrong argument; 130 is a shell's code of Ctrl-C."""
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


class RunSettings(Struct, frozen=True):
    """The settings of a run."""

    profile: Profile
    port: str
    operator: str
    """nobody, person, controlled or direct."""
    seed: int
    simulated_time: bool
    began: str
    """ISO 8601, with its zone."""
    device: dict[str, str]
    """From HELLO_RSP and INFO: maker, model, serial, firmware."""


# --- the report: lines of text, JSON, JUnit XML --------------------------------------------------


def lines(outcome: ItemOutcome) -> list[str]:
    """One line for an item; for FAIL also the details."""
    item = outcome.item
    head = f"{item.id:<6} {outcome.result}"
    if outcome.result != "FAIL":
        return [f"{head}  {outcome.remark}".rstrip()]
    return [
        head,
        f"       sent      {outcome.sent}",
        f"       expected  {outcome.expected}",
        f"       came      {outcome.came}",
        f"       rule      {item.text}",
        f"       see       {item.link}",
    ]


def summary(course: RunResult) -> str:
    counts = Counter(outcome.result for outcome in course.outcomes)
    seconds = sum(outcome.seconds for outcome in course.outcomes)
    incomplete = ": the run is incomplete" if exit_code(course) == INCOMPLETE else ""
    return (
        f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped, "
        f"{counts['UNTRIED']} not tried in {seconds:.1f} s{incomplete}"
    )


def exit_code(course: RunResult) -> int:
    """An item that was not run has not passed; a run without any item is incomplete."""
    if course.broken_off == INTERRUPTED:
        return STOPPED
    results = {outcome.result for outcome in course.outcomes if not outcome.not_applicable}
    if "FAIL" in results:
        return SOME_FAILED
    return ALL_PASSED if results == {"PASS"} else INCOMPLETE


def versions() -> dict[str, str]:
    return {
        "holecard": version("holecard"),
        "protocol": f"TableLink/{VERSION}",
        "schema": SCHEMA_HASHES[VERSION].hex(),
        "python": platform.python_version(),
    }


def as_json(setting: RunSettings, course: RunResult, notices: Sequence[str] = ()) -> dict[str, Any]:
    outcomes = course.outcomes
    counts = Counter(outcome.result for outcome in outcomes)
    return {
        "profile": setting.profile,
        "port": setting.port,
        "operator": setting.operator,
        "seed": setting.seed,
        "simulated_time": setting.simulated_time,
        "began": setting.began,
        "device": setting.device,
        "versions": versions(),
        "passed": counts["PASS"],
        "failed": counts["FAIL"],
        "skipped": counts["SKIP"],
        "not_tried": counts["UNTRIED"],
        "exit_code": exit_code(course),
        "broken_off": course.broken_off,
        "notices": list(notices),
        "items": [_item(outcome) for outcome in outcomes],
    }


def _item(outcome: ItemOutcome) -> dict[str, Any]:
    out: dict[str, Any] = {
        "id": outcome.item.id,
        "result": outcome.result,
        "seconds": round(outcome.seconds, 3),
        "wire_seconds": round(outcome.wire_seconds, 6),
        "rule": outcome.item.text,
        "link": outcome.item.link,
    }
    if outcome.remark:
        out["remark"] = outcome.remark
    if outcome.result == "FAIL":
        out |= {"sent": outcome.sent, "expected": outcome.expected, "came": outcome.came}
    return out


def as_junit(setting: RunSettings, course: RunResult) -> bytes:
    outcomes = course.outcomes
    counts = Counter(outcome.result for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=f"holecard conform {setting.profile}",
        tests=str(len(outcomes)),
        failures=str(counts["FAIL"]),
        errors=str(counts["UNTRIED"]),
        skipped=str(counts["SKIP"]),
        time=f"{sum(outcome.seconds for outcome in outcomes):.3f}",
        timestamp=setting.began,
    )
    properties = ElementTree.SubElement(suite, "properties")
    facts = {
        "port": setting.port,
        "operator": setting.operator,
        "seed": str(setting.seed),
        "simulated_time": str(setting.simulated_time).lower(),
        "broken_off": course.broken_off,
        **{f"device.{name}": value for name, value in setting.device.items()},
        **{f"version.{name}": value for name, value in versions().items()},
    }
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_plain(value))
    for outcome in outcomes:
        suite.append(_case(setting, outcome))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _case(setting: RunSettings, outcome: ItemOutcome) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=f"conform.{setting.profile}",
        name=outcome.item.id,
        time=f"{outcome.seconds:.3f}",
    )
    if outcome.result == "SKIP":
        ElementTree.SubElement(case, "skipped", message=_plain(outcome.remark))
    elif outcome.result == "UNTRIED":
        # An error, since nothing is known about the rule.
        message = f"not tried: {_plain(outcome.remark)}"
        ElementTree.SubElement(case, "error", message=message, type="not tried")
    elif outcome.result == "FAIL":
        failure = ElementTree.SubElement(case, "failure", message=_plain(outcome.expected))
        failure.text = _plain("\n".join(lines(outcome)))
    elif outcome.remark:
        ElementTree.SubElement(case, "system-out").text = _plain(outcome.remark)
    return case


def _plain(text: str) -> str:
    """Replace control characters, which XML does not allow."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
