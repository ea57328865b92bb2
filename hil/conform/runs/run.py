"""A conformance run: opens the port, identifies and pairs the device, and runs the items."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from controller.errors import UsageProblem
from drivers.ports import Address, PortRefused
from firmware_protocol import conformance
from firmware_protocol.conformance import ConformanceItem, Profile
from hil.conform.runs.identify import ensure_paired, identify_device
from hil.conform.runs.keys import Keyring
from hil.conform.runs.report import RunSettings
from hil.conform.runs.runner import ItemOutcome, RunResult, run_items, untried
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemFinding
from hil.conform.tester.operators import Operator
from hil.conform.tester.recovery import drain, undo
from hil.conform.tester.wire import PortWire, WireLost

_NO_KEY: Final = bytes(32)
_GREETINGS: Final = 3
_NO_ANSWER: Final = "the device does not answer HELLO"


class RunPlan(Struct, frozen=True):
    profile: Profile
    port: str
    address: Address
    keys: Keyring
    items: tuple[ConformanceItem, ...]
    seed: int


class RunReport(Struct, frozen=True):
    setting: RunSettings
    result: RunResult
    notices: tuple[str, ...]
    """Notices about the whole run."""


async def run(
    plan: RunPlan, operator: Operator, on_outcome: Callable[[ItemOutcome], None] | None
) -> RunReport:
    wire = PortWire(plan.address)
    try:
        await wire.open()
    except PortRefused as refused:
        # Its text names the port.
        raise UsageProblem("--port", str(refused), "a port that exists and is free") from None
    bench = ConformBench(
        wire,
        plan.profile,
        operator,
        own=plan.keys.own,
        device_key=_NO_KEY,
        seed=plan.seed,
    )
    began = datetime.now(UTC).isoformat(timespec="seconds")
    notices: list[str] = []
    try:
        done = await run_plan(bench, plan, notices, on_outcome)
    except WireLost as lost:  # outside of an item; an item reports it as a finding
        raise UsageProblem("--port", f"{plan.port}: {lost}", "a port that stays") from None
    finally:
        await wire.close()
    setting = RunSettings(
        profile=plan.profile,
        port=plan.port,
        operator=operator.name,
        seed=plan.seed,
        simulated_time=wire.simulated,
        began=began,
        device=_device(bench),
    )
    return RunReport(setting, done, tuple(notices))


async def run_plan(
    bench: ConformBench,
    plan: RunPlan,
    notices: list[str],
    on_outcome: Callable[[ItemOutcome], None] | None,
) -> RunResult:
    answers = await _responds(bench)
    if answers:
        notices += await identify_device(bench)
        answers = await _undo(bench)
    if answers:
        done = await _all(bench, plan, notices, on_outcome)
    else:
        done = await _run_silent(bench, plan, on_outcome)
        notices.append(f"{_NO_ANSWER}: is {plan.port} the right port, and is the power on?")
    if done.broken_off:
        notices.append(f"the run was broken off: {done.broken_off}")
    return done


async def _all(
    bench: ConformBench,
    plan: RunPlan,
    notices: list[str],
    on_outcome: Callable[[ItemOutcome], None] | None,
) -> RunResult:
    bench.unpaired, notice = await ensure_paired(bench, plan.keys)
    if bench.unpaired:
        notices.append(notice)
    else:
        await bench.reset()
        await drain(bench)
    done = await run_items(bench, plan.items, on_outcome)
    bench.end_sessions()
    return done


async def _responds(bench: ConformBench) -> bool:
    for _ in range(_GREETINGS):
        await bench.reset()
        try:
            await bench.greet()
        except ItemFinding:
            continue
        return True
    return False


async def _undo(bench: ConformBench) -> bool:
    """Undo what an interrupted run has left. Returns False if the device does not restart."""
    try:
        await undo(bench)
    except ItemFinding:
        return False
    return True


async def _run_silent(
    bench: ConformBench, plan: RunPlan, on_outcome: Callable[[ItemOutcome], None] | None
) -> RunResult:
    """For a device that does not answer HELLO, only the first item is run."""
    first = next(iter(conformance.load_items()))
    done = await run_items(bench, (first,), on_outcome)
    rest = [untried(item, _NO_ANSWER) for item in plan.items if item != first]
    if on_outcome is not None:
        for outcome in rest:
            on_outcome(outcome)
    return RunResult((*done.outcomes, *rest), done.broken_off)


def _device(bench: ConformBench) -> dict[str, str]:
    hello_rsp = bench.hello_rsp
    if hello_rsp is None:
        return {}
    return {
        "class": hello_rsp.device_class.name.lower(),
        "maker": hello_rsp.maker,
        "model": hello_rsp.model,
        "serial": hello_rsp.serial,
        "fingerprint": hello_rsp.fingerprint.hex(),
        **({"firmware": bench.firmware.hex()} if bench.firmware else {}),
    }
