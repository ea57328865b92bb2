"""The report of a run: lines of text, JSON, JUnit XML."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any, Final
from xml.etree import ElementTree

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.messages import SCHEMA_HASHES, VERSION
from hil.conform.runs.runner import INTERRUPTED, ItemOutcome, RunResult

ALL_PASSED: Final = 0
SOME_FAILED: Final = 1
INCOMPLETE: Final = 3
STOPPED: Final = 130
"""Exit codes. 2 is a wrong argument; 130 is a shell's code of Ctrl-C."""


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
