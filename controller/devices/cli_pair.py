"""`holecard devices pair`: two people, a label, and a device with its service switch on."""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Final

from controller.devices import cli_people as people
from controller.devices.cli_keys import as_json, line, mistakes, show, utc
from controller.rules.problem import UsageProblem
from drivers.address import Address, Transport, parse
from drivers.key_store import KeyProblem, KeyStore, Paired, keys_directory
from drivers.pairing_port import Outcome, hold
from firmware_protocol.enums import AlertCode, DeviceState
from firmware_protocol.keys import fingerprint_of, fingerprint_text, label_psk
from firmware_protocol.messages_frames import HelloRsp
from firmware_protocol.pairing import (
    Introduced,
    Introduction,
    Pairing,
    PairingDone,
    PairingFailed,
    Why,
)

EXIT_NO: Final = 1


def pair(args: argparse.Namespace) -> int:
    """Pair the device at a port, when two people say so."""
    # What can be wrong before anything is opened is said before.
    code = people.given_code(args.label)
    expected = people.given_fingerprint(args.fingerprint)
    people.check(args)
    with mistakes():
        address = parse(args.port)
        store = KeyStore(keys_directory(args.keys))
        own = store.own()
        store.check_room()
        outcome = asyncio.run(hold(address, Introduction(fingerprint_of(own))))
        if not isinstance(outcome.end, Introduced):
            return _failed(outcome, args.port)
        device = outcome.end.answer
        _meet(device, address, args, store)
        if expected not in (None, device.fingerprint):
            shown = fingerprint_text(device.fingerprint)
            raise UsageProblem("--fingerprint", "the device's key is another one", shown)
        if not _agreed(device, asking=expected is None):
            return EXIT_NO
        by = people.two(args)
        psk = label_psk(code or people.ask_code())
        # The very device that people have just looked at, or none.
        pairing = Pairing(own, psk, serial=device.serial, fingerprint=device.fingerprint)
        outcome = asyncio.run(hold(address, pairing))
        if not isinstance(outcome.end, PairingDone):
            return _failed(outcome, device.serial)
        paired = _keep(store, outcome.end, by, replace=args.replace)
    show(args, as_json(paired), f"paired: {line(paired)}")
    return 0


def _meet(device: HelloRsp, address: Address, args: argparse.Namespace, store: KeyStore) -> None:
    """Say who is at the port, and refuse what cannot be meant."""
    print(
        f"{device.device_class.name.lower()} {device.serial}, {device.maker} {device.model}\n"
        f"its key: {fingerprint_text(device.fingerprint)}",
        file=sys.stderr,
    )
    if address.transport is Transport.USB and address.where != device.serial:
        raise UsageProblem("PORT", f"the device there says that it is {device.serial}", args.port)
    former = store.find(device.serial)
    if former is not None and not args.replace:
        raise UsageProblem(
            "PORT",
            f"{device.serial} was paired at {former.paired_at} by {' and '.join(former.by)}",
            "--replace, to pair it again",
        )
    if former is None and DeviceState.PAIRED in device.state:
        print("it is paired with another host, which will lose it", file=sys.stderr)


def _agreed(device: HelloRsp, *, asking: bool) -> bool:
    """The service switch is on, and people find that the key is the right one."""
    if DeviceState.SERVICE not in device.state:
        print(f"not paired: the service switch of {device.serial} is off", file=sys.stderr)
        return False
    if asking and people.at_terminal():
        answer = people.ask("Is this the device, and its key the right one? [yes/no] ")
        if answer.lower() not in ("y", "yes"):
            print("not paired: the key was not confirmed", file=sys.stderr)
            return False
    return True


def _keep(store: KeyStore, done: PairingDone, by: tuple[str, str], *, replace: bool) -> Paired:
    answer = done.answer
    paired = Paired(
        answer.device_class,
        answer.serial,
        answer.maker,
        answer.model,
        done.device_key,
        utc(),
        by,
    )
    try:
        store.add(paired, replace=replace)
    except KeyProblem as problem:
        what = f"{problem.what}; {answer.serial} now knows this host: pair it again"
        raise UsageProblem(problem.where, what, problem.allowed) from None
    return paired


_FAILURES: Final = {
    Why.NO_ANSWER: "nothing answered: no device, one without power, or another speed",
    Why.TURNED_AWAY: "it cannot be paired with this host",
    Why.NO_PAIR2: (
        "it does not take part: its service switch is off, or it has seen five wrong codes "
        "(turn the switch off and on)"
    ),
    Why.BAD_PAIR2: "what it answered was changed on the way, or it is not what it says",
    Why.NO_DONE: (
        "it did not agree: most likely the label code is another device's, or an answer was "
        "lost; pair it again. After five wrong codes it refuses until its switch was off and on"
    ),
    Why.BAD_DONE: "it ended the pairing in a way that is not allowed",
    Why.LOST: "the port has gone",
    Why.CLOSED: "it was given up",
}
_HINTS: Final = {
    AlertCode.PAIRING_OFF: "its service switch is off",
    AlertCode.PAIRING_REFUSED: "the label code is not its own",
    AlertCode.NO_VERSION: "it wants another version",
    AlertCode.DEFECT: "it cannot work",
}


def _failed(outcome: Outcome, who: str) -> int:
    end = outcome.end
    assert isinstance(end, PairingFailed)
    text = f"not paired: {who}: {_FAILURES[end.why]}"
    if end.error is not None:
        text += f" ({end.error.name}: {end.error})"
    if outcome.lost is not None:
        text += f": {outcome.lost}"
    for hint in outcome.hints:
        text += f"\nit hints: {_HINTS.get(hint, hint.name.lower())}"
    if outcome.damaged:
        text += f"\n{outcome.damaged} damaged frames came: is this the right port and speed?"
    print(text, file=sys.stderr)
    return EXIT_NO
