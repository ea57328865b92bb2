"""Items tried one after the other, each from the same beginning, and what came of them."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, Literal

from msgspec import Struct

from firmware_protocol.conformance import Item, Need
from firmware_protocol.errors import ProtocolError
from hil.conform.bench import Bench
from hil.conform.findings import Finding, Lacking
from hil.conform.operators import Operator
from hil.conform.trial import Trial
from hil.conform.wire import WireLost

Result = Literal["PASS", "FAIL", "SKIP"]

_MEANS: Final[Mapping[Need, str]] = {
    "activity": "activity: --control or --ask",
    "power": "power: --control or --ask",
    "service": "service: --control or --ask",
    "eyes": "eyes: --control or --ask",
    "ring": "ring: --control",
}


class Outcome(Struct, frozen=True):
    item: Item
    result: Result
    seconds: float
    """Of the run."""
    wire_seconds: float
    """Of the device; not the same in simulated time."""
    sent: str = ""
    expected: str = ""
    came: str = ""
    remark: str = ""
    """SKIP: what it needs. PASS: what could not be looked at closely."""


def missing(item: Item, operator: Operator) -> str:
    """What the item needs and nobody can do here; "" when it can be tried."""
    lacks = [need for need in item.needs if need not in operator.can]
    return "; ".join(_MEANS[need] for need in lacks)


async def run(
    bench: Bench, items: Iterable[Item], trials: Mapping[str, Trial]
) -> AsyncIterator[Outcome]:
    for item in items:
        yield await attempt(bench, item, trials[item.id])


async def attempt(bench: Bench, item: Item, trial: Trial) -> Outcome:
    """One item, from a fresh beginning. What it finds is its outcome, never an exception."""
    lacks = missing(item, bench.operator)
    if lacks:
        return Outcome(item, "SKIP", 0.0, 0.0, remark=f"needs {lacks}")
    began, wire_began = time.monotonic(), bench.wire.now()

    def outcome(result: Result, **more: str) -> Outcome:
        wire_seconds = (bench.wire.now() - wire_began) / 1e6
        return Outcome(item, result, time.monotonic() - began, wire_seconds, **more)

    try:
        await bench.fresh()
        remark = await trial(bench)
    except Lacking as lacking:
        return outcome("SKIP", remark=f"needs {lacking.needs}")
    except Finding as finding:
        return outcome("FAIL", sent=finding.sent, expected=finding.expected, came=finding.came)
    except WireLost as lost:
        gone = bench.finding("that the device stays at its port", str(lost))
        return outcome("FAIL", sent=gone.sent, expected=gone.expected, came=gone.came)
    except ProtocolError as error:
        odd = bench.finding("bytes that TableLink allows", f"{error.name}: {error}")
        return outcome("FAIL", sent=odd.sent, expected=odd.expected, came=odd.came)
    return outcome("PASS", remark=remark or "")
