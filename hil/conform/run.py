"""A whole run: the port, the keys, pairing where that can be, and the items."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct

from controller.rules.problem import UsageProblem
from drivers.address import Address
from drivers.port import PortRefused
from firmware_protocol import conformance
from firmware_protocol.conformance import Item, Profile
from firmware_protocol.enums import DeviceState
from hil.conform import pairing
from hil.conform.bench import Bench
from hil.conform.findings import Finding, Lacking
from hil.conform.keys import Keyring
from hil.conform.operators import Operator
from hil.conform.report import Setting
from hil.conform.runner import Outcome, attempt
from hil.conform.trials import TRIALS
from hil.conform.wire import PortWire, WireLost

_NO_KEY: Final = bytes(32)
_GREETINGS: Final = 3


class Plan(Struct, frozen=True):
    profile: Profile
    port: str
    address: Address
    keys: Keyring
    items: tuple[Item, ...]
    seed: int


class Ran(Struct, frozen=True):
    setting: Setting
    outcomes: Sequence[Outcome]


async def run(plan: Plan, operator: Operator, tell: Callable[[Outcome], None] | None) -> Ran:
    wire = PortWire(plan.address)
    try:
        await wire.open()
    except PortRefused as refused:
        raise UsageProblem("--port", f"{plan.port}: {refused}", "a port that is free") from None
    bench = Bench(
        wire,
        plan.profile,
        operator,
        own=plan.keys.own,
        device_key=_NO_KEY,
        seed=plan.seed,
    )
    began = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        outcomes = await _outcomes(bench, plan, tell)
        setting = Setting(
            profile=plan.profile,
            port=plan.port,
            operator=type(operator).__name__.lower(),
            seed=plan.seed,
            simulated_time=wire.simulated,
            began=began,
            device=_device(bench),
        )
    except WireLost as lost:  # outside of the items, which find that themselves
        raise UsageProblem("--port", f"{plan.port}: {lost}", "a port that stays") from None
    finally:
        await wire.close()
    return Ran(setting, outcomes)


async def _outcomes(
    bench: Bench, plan: Plan, tell: Callable[[Outcome], None] | None
) -> list[Outcome]:
    out: list[Outcome] = []
    if not await _answers(bench):
        return [_told(tell, outcome) for outcome in await _silent(bench, plan)]
    await _make_sure_of_keys(bench, plan)
    for item in plan.items:
        outcome = await attempt(bench, item, TRIALS[item.id])
        out.append(_told(tell, outcome))
    bench.end_sessions()
    return out


def _told(tell: Callable[[Outcome], None] | None, outcome: Outcome) -> Outcome:
    if tell is not None:
        tell(outcome)
    return outcome


async def _answers(bench: Bench) -> bool:
    for _ in range(_GREETINGS):
        await bench.fresh()
        try:
            await bench.greet()
        except Finding:
            continue
        return True
    return False


async def _silent(bench: Bench, plan: Plan) -> list[Outcome]:
    """Nothing can be found out about a device that does not answer HELLO, but that."""
    item = next(iter(conformance.load()))
    first = await attempt(bench, item, TRIALS[item.id])
    rest = [
        Outcome(item, "SKIP", 0.0, 0.0, remark="needs an answer to HELLO")
        for item in plan.items
        if item != first.item
    ]
    return [first, *rest]


async def _make_sure_of_keys(bench: Bench, plan: Plan) -> None:
    assert bench.says is not None
    serial = bench.says.serial
    key = plan.keys.device(serial)
    if key is not None:
        bench.device_key = key
        if await _served(bench):
            return
    if bench.operator.exact:
        await _pair(bench)
        return
    what = f"{serial} is not paired with this host"
    if key is not None and DeviceState.PAIRED in bench.says.state:
        what = f"{serial} does not answer this host's HS1: it is paired with another one"
    raise UsageProblem(
        "conform",
        what,
        "`holecard devices pair` pairs it, with its service switch on and the code of its label",
    )


async def _served(bench: Bench) -> bool:
    try:
        await bench.shake()
    except Finding:
        return False
    return True


async def _pair(bench: Bench) -> None:
    try:
        bench.device_key = await pairing.pair_for_run(bench)
    except Finding as finding:
        raise UsageProblem(
            "--control",
            f"the device cannot be paired: {finding.expected} was expected, {finding.came} came",
            "a device that pairs, or --keys",
        ) from None
    except Lacking as lacking:
        raise UsageProblem(
            "--control",
            f"the device cannot be paired: that needs {lacking.needs}",
            "a device that pairs, or --keys",
        ) from None


def _device(bench: Bench) -> dict[str, str]:
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
