"""A whole run: the port, who is there, the keys, pairing where that can be, and the items."""

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
    """What is to be known about the run as a whole."""


async def run(
    plan: RunPlan, operator: Operator, tell: Callable[[ItemOutcome], None] | None
) -> RunReport:
    wire = PortWire(plan.address)
    try:
        await wire.open()
    except PortRefused as refused:
        # It names its port by itself.
        raise UsageProblem("--port", str(refused), "a port that is there and free") from None
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
        done = await run_plan(bench, plan, notices, tell)
    except WireLost as lost:  # outside of the items, which find that themselves
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
    tell: Callable[[ItemOutcome], None] | None,
) -> RunResult:
    answers = await _answers(bench)
    if answers:
        notices += await identify_device(bench)
        answers = await _undone(bench)
    if answers:
        done = await _all(bench, plan, notices, tell)
    else:
        done = await _silent(bench, plan, tell)
        notices.append(f"{_NO_ANSWER}: is {plan.port} the right port, and has it power?")
    if done.broken_off:
        notices.append(f"the run was broken off: {done.broken_off}")
    return done


async def _all(
    bench: ConformBench,
    plan: RunPlan,
    notices: list[str],
    tell: Callable[[ItemOutcome], None] | None,
) -> RunResult:
    bench.unpaired, notice = await ensure_paired(bench, plan.keys)
    if bench.unpaired:
        notices.append(notice)
    else:
        await bench.fresh()
        await drain(bench)
    done = await run_items(bench, plan.items, tell)
    bench.end_sessions()
    return done


async def _answers(bench: ConformBench) -> bool:
    for _ in range(_GREETINGS):
        await bench.fresh()
        try:
            await bench.greet()
        except ItemFinding:
            continue
        return True
    return False


async def _undone(bench: ConformBench) -> bool:
    """What a run that was broken off has left is taken back; False: the device went with it."""
    try:
        await undo(bench)
    except ItemFinding:
        return False
    return True


async def _silent(
    bench: ConformBench, plan: RunPlan, tell: Callable[[ItemOutcome], None] | None
) -> RunResult:
    """Nothing can be found out about a device that does not answer HELLO, but that."""
    first = next(iter(conformance.load_items()))
    done = await run_items(bench, (first,), tell)
    rest = [untried(item, _NO_ANSWER) for item in plan.items if item != first]
    if tell is not None:
        for outcome in rest:
            tell(outcome)
    return RunResult((*done.outcomes, *rest), done.broken_off)


def _device(bench: ConformBench) -> dict[str, str]:
    says = bench.says
    if says is None:
        return {}
    return {
        "class": says.device_class.name.lower(),
        "maker": says.maker,
        "model": says.model,
        "serial": says.serial,
        "fingerprint": says.fingerprint.hex(),
        **({"firmware": bench.firmware.hex()} if bench.firmware else {}),
    }
