"""What a run found: lines for people, JSON, JUnit XML."""

from __future__ import annotations

import platform
from collections import Counter
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any
from xml.etree import ElementTree

from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.limits import SCHEMA_HASHES, VERSION
from hil.conform.runner import Outcome


class Setting(Struct, frozen=True):
    """What a run was made with."""

    profile: Profile
    port: str
    operator: str
    """nobody, person or controlled."""
    seed: int
    simulated_time: bool
    began: str
    """ISO 8601, with its zone."""
    device: dict[str, str]
    """What HELLO_RSP and INFO say: maker, model, serial, firmware."""


def lines(outcome: Outcome) -> list[str]:
    """One line for the item; for FAIL what it takes to see why."""
    item = outcome.item
    head = f"{item.id:<6} {outcome.result}"
    if outcome.result == "SKIP":
        return [f"{head}  {outcome.remark}"]
    if outcome.result == "PASS":
        return [f"{head}  {outcome.remark}".rstrip()]
    return [
        head,
        f"       sent      {outcome.sent}",
        f"       expected  {outcome.expected}",
        f"       came      {outcome.came}",
        f"       rule      {item.text}",
        f"       see       {item.link}",
    ]


def summary(outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcome.result for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    return (
        f"{counts['PASS']} passed, {counts['FAIL']} failed, {counts['SKIP']} skipped "
        f"in {seconds:.1f} s"
    )


def versions() -> dict[str, str]:
    return {
        "holecard": version("holecard"),
        "protocol": f"TableLink/{VERSION}",
        "schema": SCHEMA_HASHES[VERSION].hex(),
        "python": platform.python_version(),
    }


def as_json(setting: Setting, outcomes: Sequence[Outcome]) -> dict[str, Any]:
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
        "items": [_item(outcome) for outcome in outcomes],
    }


def _item(outcome: Outcome) -> dict[str, Any]:
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


def as_junit(setting: Setting, outcomes: Sequence[Outcome]) -> bytes:
    counts = Counter(outcome.result for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite",
        name=f"holecard conform {setting.profile}",
        tests=str(len(outcomes)),
        failures=str(counts["FAIL"]),
        errors="0",
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


def _case(setting: Setting, outcome: Outcome) -> ElementTree.Element:
    case = ElementTree.Element(
        "testcase",
        classname=f"conform.{setting.profile}",
        name=outcome.item.id,
        time=f"{outcome.seconds:.3f}",
    )
    if outcome.result == "SKIP":
        ElementTree.SubElement(case, "skipped", message=_plain(outcome.remark))
    elif outcome.result == "FAIL":
        failure = ElementTree.SubElement(case, "failure", message=_plain(outcome.expected))
        failure.text = _plain("\n".join(lines(outcome)))
    elif outcome.remark:
        ElementTree.SubElement(case, "system-out").text = _plain(outcome.remark)
    return case


def _plain(text: str) -> str:
    """XML takes no control characters, and a report may hold anything."""
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)
