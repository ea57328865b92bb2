"""Before the first item: whether it is the device that is meant, and whether it is paired."""

from __future__ import annotations

from typing import Final

from controller.errors import UsageProblem
from firmware_protocol.device.control import Describe
from firmware_protocol.device.interfaces import Answer
from firmware_protocol.messages.enums import DeviceState, FrameKind
from firmware_protocol.messages.registry import HelloRsp
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
"""A line that is not clean may swallow the first."""


# --- who is there -----------------------------------------------------------------------------


async def identify_device(bench: ConformBench) -> list[str]:
    """The device that has answered HELLO is of the profile's class, and the hands are at it; else
    UsageProblem, and nothing was done to it. What is to be told about it."""
    says = bench.says
    assert says is not None
    if says.device_class is not bench.device_class:
        name = says.device_class.name.lower()
        raise UsageProblem(
            "--profile",
            f"{says.serial} says that it is a {name}",
            f"{name}; a {bench.profile} must say in HELLO_RSP that it is one (HE-2)",
        )
    if not bench.operator.exact:
        return []
    told = await _described(bench)
    _check_power(told, says)
    known = [_check(told, says, name, value) for name, value in _names(says).items()]
    if any(known):
        return []
    return [f"the control socket does not tell whose it is: taken for {says.serial}'s"]


async def _described(bench: ConformBench) -> Answer:
    try:
        return await bench.hand(Describe())
    except (RequestDenied, ItemSkipped):
        return {}


def _names(says: HelloRsp) -> dict[str, str]:
    """What tells one device from another. Serial numbers of simulated ones are often the same."""
    return {"serial": says.serial, "fingerprint": fingerprint_text(says.fingerprint)}


def _check_power(told: Answer, says: HelloRsp) -> None:
    if told.get("powered") is False or told.get("frozen") is True:
        raise _other(f"it is of a device that does not run, and {says.serial} answers at the port")


def _check(told: Answer, says: HelloRsp, name: str, value: str) -> bool:
    """Whether the control socket tells it. UsageProblem if it tells another one."""
    found = told.get(name)
    if not isinstance(found, str):
        return False
    if found != value:
        raise _other(
            f"it is the socket of a device with {name} {found}, "
            f"and at the port is {says.serial}, with {name} {value}"
        )
    return True


def _other(what: str) -> UsageProblem:
    return UsageProblem("--control", what, "the control socket of the device at the port")


# --- whose it is ------------------------------------------------------------------------------


async def ensure_paired(bench: ConformBench, keys: Keyring) -> tuple[str, str]:
    """Why there can be no session, in a few words and as a notice; both empty when there can. Where
    hands can pair the device they do."""
    assert bench.says is not None
    serial = bench.says.serial
    key = keys.device(serial)
    if key is not None:
        bench.device_key = key
        if await _served(bench):
            return "", ""
    if bench.operator.exact:
        return await _pair(bench)
    return NOT_PAIRED, f"not paired: {_reason(bench.says, key, keys)}; {_HOW}"


def _reason(says: HelloRsp, key: bytes | None, keys: Keyring) -> str:
    if key is None:
        return keys.absent or f"{says.serial} is not paired with this host"
    if fingerprint(key) != says.fingerprint:
        return (
            f"{says.serial} says that its key is {fingerprint_text(says.fingerprint)}; "
            f"the one that was paired is {fingerprint_text(fingerprint(key))}"
        )
    if DeviceState.PAIRED not in says.state:
        return f"{says.serial} says that it is paired with no host"
    return (
        f"{says.serial} does not answer this host's HS1: it is paired with another host, or its "
        "handshake does not work"
    )


async def _served(bench: ConformBench) -> bool:
    """HS1 is answered, right or wrong: what is wrong with the answer is for the items to say."""
    for _ in range(_SHAKES):
        await bench.fresh()
        try:
            await bench.shake()
        except ItemFinding:
            if bench.frames(FrameKind.HS2):
                return True
            continue
        return True
    return False


async def _pair(bench: ConformBench) -> tuple[str, str]:
    await bench.fresh()
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
