"""A conformance run: reads the keys, opens the port, identifies and pairs, runs the items."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import Struct

from controller.errors import UsageProblem
from drivers.keys import KeyProblem, KeyStore, keys_directory
from drivers.ports import Address, PortRefused
from firmware_protocol import conformance
from firmware_protocol.conformance import ConformanceItem, Profile
from firmware_protocol.device import Describe
from firmware_protocol.messages import DeviceState, FrameKind, HelloRsp
from firmware_protocol.tablelink import fingerprint, fingerprint_text
from hil.conform.runs.runner import ItemOutcome, RunResult, RunSettings, run_items, untried
from hil.conform.tester import (
    ConformBench,
    ItemFinding,
    ItemSkipped,
    Operator,
    PortWire,
    RequestDenied,
    WireLost,
    drain,
    pair_for_run,
    undo,
)

_HEX: Final = re.compile(r"[0-9A-Fa-f]{64}")
_DIGITS: Final = "64 hexadecimal digits"
NOT_PAIRED: Final = "not paired; pair with `holecard devices pair`"
_HOW: Final = (
    "`holecard devices pair` pairs it, with its service switch on and the code of its label"
)
_CANNOT_PAIR: Final = "not paired, and it cannot be paired here"
_SHAKES: Final = 2
"""A noisy line may drop the first one."""
_NO_KEY: Final = bytes(32)
_GREETINGS: Final = 3
_NO_ANSWER: Final = "the device does not answer HELLO"


class Keyring:
    """The host's key, and the device's key if it is known."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.absent = ""
        """Why the key of a device is unknown; empty: it is not in the store."""
        self._store: KeyStore | None = None
        self._device = _device_key(args.device_key)
        if args.keys is not None and (args.host_key is not None or self._device):
            raise UsageProblem("--keys", "the keys come from one place", "--keys or --host-key")
        if args.device_key is not None and args.host_key is None:
            raise UsageProblem("--device-key", "it belongs to a host key", "--host-key FILE too")
        if args.host_key is not None:
            self.own = _host_key(args.host_key)
            self.absent = "--device-key does not give the device's public key"
        elif args.control is not None and args.keys is None:
            self.own = X25519PrivateKey.generate()  # the simulated device will be paired with it
        elif args.keys is None and _missing(keys_directory(None)):
            # A new device of a maker cannot be paired yet.
            self.own = X25519PrivateKey.generate()
            self.absent = (
                f"there is no key store {keys_directory(None)}; `holecard devices init` makes one"
            )
        else:
            self._store, self.own = _opened(keys_directory(args.keys))

    def device(self, serial: str) -> bytes | None:
        """The device's public key, or None."""
        if self._store is None:
            return self._device
        try:
            found = self._store.find(serial)
        except KeyProblem as problem:
            raise UsageProblem(problem.where, problem.what, problem.allowed) from None
        return None if found is None else found.key


def _missing(directory: Path) -> bool:
    try:
        directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass  # the key store reports the error
    return False


def _opened(directory: Path) -> tuple[KeyStore, X25519PrivateKey]:
    try:
        store = KeyStore(directory)
        return store, store.own()
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None


def _host_key(file: Path) -> X25519PrivateKey:
    try:
        if file.stat().st_mode & 0o077:
            raise UsageProblem("--host-key", f"{file} is open to others", f"chmod 600 {file}")
        text = file.read_text(encoding="ascii").strip()
    except OSError as problem:
        raise UsageProblem("--host-key", f"{file}: {problem.strerror}", "a file") from None
    except UnicodeDecodeError:
        text = ""
    if not _HEX.fullmatch(text):
        raise UsageProblem("--host-key", f"{file} has no private key", _DIGITS)
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def _device_key(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not _HEX.fullmatch(text):
        raise UsageProblem("--device-key", f"{text!r} is no public key", _DIGITS)
    key = bytes.fromhex(text)
    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        raise UsageProblem("--device-key", f"{text!r} is no device's key", _DIGITS) from None
    return key


# --- identity ---------------------------------------------------------------------------------


async def identify_device(bench: ConformBench) -> list[str]:
    """Check that the device that answered HELLO has the profile's class and is the operator's.
    Returns notices. Raises UsageProblem, without side effects."""
    hello_rsp = bench.hello_rsp
    assert hello_rsp is not None
    if hello_rsp.device_class is not bench.device_class:
        name = hello_rsp.device_class.name.lower()
        raise UsageProblem(
            "--profile",
            f"{hello_rsp.serial} reports that it is a {name}",
            f"{name}; a {bench.profile} must report its class in HELLO_RSP (HE-2)",
        )
    if not bench.operator.exact:
        return []
    try:
        fields = await bench.request(Describe())
    except (RequestDenied, ItemSkipped):
        fields = {}
    serial = hello_rsp.serial
    if fields.get("powered") is False or fields.get("frozen") is True:
        raise _other(f"it is of a device that does not run, and {serial} answers at the port")
    # Simulated devices often have the same serial number.
    own = {"serial": serial, "fingerprint": fingerprint_text(hello_rsp.fingerprint)}
    known = {name: fields[name] for name in own if isinstance(fields.get(name), str)}
    for name, found in known.items():
        if found != own[name]:
            raise _other(
                f"it is the socket of a device with {name} {found}, "
                f"and at the port is {serial}, with {name} {own[name]}"
            )
    if known:
        return []
    return [f"the control socket does not identify its device: assumed to be {serial}'s"]


def _other(what: str) -> UsageProblem:
    return UsageProblem("--control", what, "the control socket of the device at the port")


# --- pairing ----------------------------------------------------------------------------------


async def ensure_paired(bench: ConformBench, keys: Keyring) -> tuple[str, str]:
    """Pair the device if necessary and possible. Returns why no session is possible, in short and
    as a notice; both are empty if one is."""
    assert bench.hello_rsp is not None
    serial = bench.hello_rsp.serial
    key = keys.device(serial)
    if key is not None:
        bench.device_key = key
        if await _served(bench):
            return "", ""
    if bench.operator.exact:
        return await _pair(bench)
    return NOT_PAIRED, f"not paired: {_reason(bench.hello_rsp, key, keys)}; {_HOW}"


def _reason(hello_rsp: HelloRsp, key: bytes | None, keys: Keyring) -> str:
    if key is None:
        return keys.absent or f"{hello_rsp.serial} is not paired with this host"
    if fingerprint(key) != hello_rsp.fingerprint:
        return (
            f"{hello_rsp.serial} reports the key {fingerprint_text(hello_rsp.fingerprint)}; "
            f"the paired one is {fingerprint_text(fingerprint(key))}"
        )
    if DeviceState.PAIRED not in hello_rsp.state:
        return f"{hello_rsp.serial} reports that it is paired with no host"
    return (
        f"{hello_rsp.serial} does not answer this host's HS1: it is paired with another "
        "host, or its handshake does not work"
    )


async def _served(bench: ConformBench) -> bool:
    """Whether HS1 is answered. The items check the answer."""
    for _ in range(_SHAKES):
        await bench.reset()
        try:
            await bench.shake()
        except ItemFinding:
            if bench.frames(FrameKind.HS2):
                return True
            continue
        return True
    return False


async def _pair(bench: ConformBench) -> tuple[str, str]:
    await bench.reset()
    try:
        bench.device_key = await pair_for_run(bench)
    except ItemFinding as finding:
        why = f"{finding.expected} was expected, {finding.came} came"
    except ItemSkipped as lacking:
        why = f"that needs {lacking.why}"
    except RequestDenied as refused:
        why = refused.why
    else:
        return "", ""
    return _CANNOT_PAIR, f"not paired, and it cannot be paired here: {why}"


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
