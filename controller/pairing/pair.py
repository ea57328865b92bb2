"""`holecard devices pair`: two people, a label, and a device with its service switch on."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
from typing import Final

from controller import terminal
from controller.commands import show
from controller.errors import EXIT_NO, UsageProblem
from controller.pairing.devices import device_json, device_line
from controller.terminal import (
    PromptCancelled,
    ask,
    check_two_people,
    echo_restored,
    input_line,
    keys_directory_of,
    two_people,
    usage_errors,
    utc_now,
)
from drivers.keys import KeyProblem, KeyStore, PairedDevice
from drivers.pairing import IntroductionOutcome, run_introduction
from drivers.ports import Address, Transport, parse_placed, usb_devices
from firmware_protocol.host import (
    DeviceIntroduced,
    HostPairing,
    Introduction,
    PairingDone,
    PairingFailed,
    PairingFailure,
)
from firmware_protocol.messages import AlertCode, BadLabelCode, DeviceState, HelloRsp
from firmware_protocol.tablelink import (
    FINGERPRINT_SIZE,
    fingerprint,
    fingerprint_of,
    fingerprint_text,
    label_psk,
    read_label,
)

_MAX_TRIES: Final = 3
"""For typing the code; typing errors are found here and never reach the device."""
_LABEL: Final = "the 36 digits that are printed under the device's seal"


def given_code(option: str | None) -> bytes | None:
    """The code of --label, or None if it is to be asked for."""
    if option is None and not terminal.at_terminal():
        raise UsageProblem("--label", "is missing", "CODE, or - to read it from standard input")
    if option is None or (option == "-" and terminal.at_terminal()):
        return None  # It is typed, so that it is not shown.
    try:
        return read_label(input_line() if option == "-" else option)
    except BadLabelCode as problem:
        raise UsageProblem("--label", str(problem), _LABEL) from None


def ask_code() -> bytes:
    """Ask for the code without echo, up to three times. Raises PromptCancelled."""
    for _ in range(_MAX_TRIES):
        try:
            with echo_restored():
                typed = getpass.getpass("Code of the label (not shown): ")
            return read_label(typed)
        except (BadLabelCode, UnicodeDecodeError) as problem:
            what = problem if isinstance(problem, BadLabelCode) else "that is no text"
            print(f"{what}; try again", file=sys.stderr)
        except EOFError:
            raise PromptCancelled from None
    what = f"no code in {_MAX_TRIES} tries; the device has not been asked"
    raise UsageProblem("label", what, _LABEL)


def given_fingerprint(option: str | None) -> bytes | None:
    """The fingerprint of --fingerprint. Case, blanks and dashes are ignored."""
    if option is None:
        return None
    try:
        raw = bytes.fromhex("".join(option.split()).replace("-", ""))
    except ValueError:
        raw = b""
    if len(raw) != FINGERPRINT_SIZE:
        raise UsageProblem(
            "--fingerprint", f"{option!r} is none", f"{2 * FINGERPRINT_SIZE} digits 0 to 9, A to F"
        )
    return raw


def pair(args: argparse.Namespace) -> int:
    """Pair the device at a port, with the approval of two people."""
    # Arguments are checked before a port is opened.
    code = given_code(args.label)
    expected = given_fingerprint(args.fingerprint)
    check_two_people(args)
    try:
        with usage_errors():
            return _pair(args, code, expected)
    except PromptCancelled:
        print("\nnot paired: the question was not answered", file=sys.stderr)
        return EXIT_NO


def _pair(args: argparse.Namespace, code: bytes | None, expected: bytes | None) -> int:
    address = _address(args.port)
    store = KeyStore(keys_directory_of(args))
    own = store.own()
    store.check_room()
    outcome = asyncio.run(run_introduction(address, Introduction(fingerprint_of(own))))
    if not isinstance(outcome.end, DeviceIntroduced):
        return _failed(outcome, args.port)
    device = outcome.end.answer
    _check_device(device, address, args, expected)
    change = _change(device, args, store, expected)
    if not _agreed(device, change, asking=expected is None):
        return EXIT_NO
    by = two_people(args)
    psk = label_psk(code or ask_code())
    # Only the device that was just confirmed: this serial number with this key.
    pairing = HostPairing(own, psk, serial=device.serial, fingerprint=device.fingerprint)
    outcome = asyncio.run(run_introduction(address, pairing))
    if not isinstance(outcome.end, PairingDone):
        return _failed(outcome, device.serial)
    paired = _store(store, outcome.end, by, replace=args.replace)
    show(args, device_json(paired), f"paired: {device_line(paired)}")
    return 0


def _address(text: str) -> Address:
    """The address to open. Raises UsageProblem if several USB devices have the serial number: one
    of them is not what it claims, and the user names it as `holecard devices ports` does."""
    address = parse_placed(text)
    if address.transport is not Transport.USB or address.place is not None:
        return address  # a number that several adapters have is refused when it is opened
    found = usb_devices(address.backend)
    same = [f"{one.address}" for one in found if one.serial == address.where]
    if len(same) > 1:
        what = f"{len(same)} devices say that they are {address.where}"
        listed = " or ".join(f"{one!r}" for one in same)
        raise UsageProblem("PORT", what, f"{listed}; or pull the others")
    return address


def _check_device(
    device: HelloRsp, address: Address, args: argparse.Namespace, expected: bytes | None
) -> None:
    """Print which device is at the port. Raises UsageProblem if it is not the expected one."""
    name = device.device_class.name.lower()
    print(f"{name} {device.serial}, {device.maker} {device.model}", file=sys.stderr)
    if address.transport is Transport.USB and address.where != device.serial:
        raise UsageProblem("PORT", f"the device there says that it is {device.serial}", args.port)
    if expected not in (None, device.fingerprint):
        # Its own key is not shown: it would only be typed in place of the right one.
        raise UsageProblem(
            "--fingerprint",
            "it does not match: the device there has another key, and may not be what it says",
            f"the key on the label or in the papers of {device.serial}; where that is what was "
            "typed, do not pair this device",
        )
    print(f"its key: {fingerprint_text(device.fingerprint)}", file=sys.stderr)


def _change(
    device: HelloRsp, args: argparse.Namespace, store: KeyStore, expected: bytes | None
) -> str | None:
    """A warning if the device's key has changed since it was paired here. Raises UsageProblem if
    it is paired already and --replace or --fingerprint is missing."""
    former = store.find(device.serial)
    if former is None:
        if DeviceState.PAIRED in device.state:
            print("it is paired with another host, which will lose it", file=sys.stderr)
        return None
    changed = fingerprint(former.key) != device.fingerprint
    if not args.replace:
        other = f", with another key: {former.fingerprint}" if changed else ""
        raise UsageProblem(
            "PORT",
            f"{device.serial} was paired at {former.paired_at} by {' and '.join(former.by)}{other}",
            "--replace, to pair it again",
        )
    if not changed:
        print("it was paired with the same key", file=sys.stderr)
        return None
    print(f"the key that it was paired with: {former.fingerprint}", file=sys.stderr)
    if expected is None and not terminal.at_terminal():
        raise UsageProblem(
            "--replace",
            f"{device.serial} has another key than the one that it was paired with, and nobody "
            "is there to confirm it",
            "--fingerprint with the key on its label or in its papers",
        )
    return "It has another key than the one that it was paired with, which this one replaces."


def _agreed(device: HelloRsp, change: str | None, *, asking: bool) -> bool:
    """Whether the service switch is on and the key was confirmed at the terminal."""
    if DeviceState.SERVICE not in device.state:
        print(f"not paired: the service switch of {device.serial} is off", file=sys.stderr)
        return False
    if change is not None:
        print(change, file=sys.stderr)
    if asking and terminal.at_terminal():
        answer = ask("Is this the device, and its key the right one? [yes/no] ")
        if answer.lower() not in ("y", "yes"):
            print("not paired: the key was not confirmed", file=sys.stderr)
            return False
    return True


def _store(
    store: KeyStore, done: PairingDone, by: tuple[str, str], *, replace: bool
) -> PairedDevice:
    answer = done.answer
    paired = PairedDevice(
        answer.device_class,
        answer.serial,
        answer.maker,
        answer.model,
        done.device_key,
        utc_now(),
        by,
    )
    try:
        store.add(paired, replace=replace)
    except KeyProblem as problem:
        what = f"{problem.what}; {answer.serial} now knows this host: pair it again"
        raise UsageProblem(problem.where, what, problem.allowed) from None
    return paired


_FAILURES: Final = {
    PairingFailure.NO_ANSWER: "nothing answered: no device, one without power, or another speed",
    PairingFailure.TURNED_AWAY: "it cannot be paired with this host",
    PairingFailure.NO_PAIR2: (
        "it does not take part: its service switch is off, or it has seen five wrong codes "
        "(turn the switch off and on)"
    ),
    PairingFailure.BAD_PAIR2: "what it answered was changed on the way, or it is not what it says",
    PairingFailure.NO_DONE: (
        "it did not agree: most likely the label code is another device's, or an answer was "
        "lost; pair it again. After five wrong codes it refuses until its switch was off and on"
    ),
    PairingFailure.BAD_DONE: "it ended the pairing in a way that is not allowed",
    PairingFailure.LOST: "the port has gone",
    PairingFailure.CLOSED: "it was given up",
}
_HINTS: Final = {
    AlertCode.PAIRING_OFF: "its service switch is off",
    AlertCode.PAIRING_REFUSED: "the label code is not its own",
    AlertCode.NO_VERSION: "it wants another version",
    AlertCode.DEFECT: "it cannot work",
}


def _failed(outcome: IntroductionOutcome, who: str) -> int:
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
