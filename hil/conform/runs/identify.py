"""Before the first item: checks that it is the right device, and whether it is paired."""

from __future__ import annotations

from typing import Final

from controller.errors import UsageProblem
from firmware_protocol.device.control import Describe
from firmware_protocol.device.interfaces import Answer
from firmware_protocol.messages import DeviceState, FrameKind, HelloRsp
from firmware_protocol.tablelink.fingerprints import fingerprint, fingerprint_text
from hil.conform.runs.keys import Keyring
from hil.conform.tester import pairing
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemFinding, ItemSkipped, RequestDenied

NOT_PAIRED: Final = "not paired; pair with `holecard devices pair`"
_HOW: Final = (
    "`holecard devices pair` pairs it, with its service switch on and the code of its label"
)
_CANNOT_PAIR: Final = "not paired, and it cannot be paired here"
_SHAKES: Final = 2
"""A noisy line may drop the first one."""


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
    fields = await _described(bench)
    _check_power(fields, hello_rsp)
    known = [_check(fields, hello_rsp, name, value) for name, value in _names(hello_rsp).items()]
    if any(known):
        return []
    return [f"the control socket does not identify its device: assumed to be {hello_rsp.serial}'s"]


async def _described(bench: ConformBench) -> Answer:
    try:
        return await bench.request(Describe())
    except (RequestDenied, ItemSkipped):
        return {}


def _names(hello_rsp: HelloRsp) -> dict[str, str]:
    """The identity of a device. Simulated devices often have the same serial number."""
    return {"serial": hello_rsp.serial, "fingerprint": fingerprint_text(hello_rsp.fingerprint)}


def _check_power(fields: Answer, hello_rsp: HelloRsp) -> None:
    if fields.get("powered") is False or fields.get("frozen") is True:
        raise _other(
            f"it is of a device that does not run, and {hello_rsp.serial} answers at the port"
        )


def _check(fields: Answer, hello_rsp: HelloRsp, name: str, value: str) -> bool:
    """Whether the control socket returns the field. Raises UsageProblem if it differs."""
    found = fields.get(name)
    if not isinstance(found, str):
        return False
    if found != value:
        raise _other(
            f"it is the socket of a device with {name} {found}, "
            f"and at the port is {hello_rsp.serial}, with {name} {value}"
        )
    return True


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
        bench.device_key = await pairing.pair_for_run(bench)
    except ItemFinding as finding:
        why = f"{finding.expected} was expected, {finding.came} came"
    except ItemSkipped as lacking:
        why = f"that needs {lacking.needs}"
    except RequestDenied as refused:
        why = refused.why
    else:
        return "", ""
    return _CANNOT_PAIR, f"not paired, and it cannot be paired here: {why}"
