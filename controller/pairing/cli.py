"""`holecard devices`: pair devices with this host, and look at those that are."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from controller import terminal
from controller.errors import UsageProblem
from controller.pairing.pair import EXIT_NO, pair
from controller.terminal import (
    device_json,
    device_line,
    keys_directory_of,
    show,
    usage_errors,
    utc_now,
)
from drivers.keys import PLACE as KEYS
from drivers.keys import KeyStore, Paired
from drivers.ports import OWN_BACKEND, PortRefused, discovery
from firmware_protocol.tablelink.fingerprints import fingerprint_of, fingerprint_text

PORTS: Final = """\
PORT is serial:PATH or /dev/..., adapter:SERIAL (the serial port whose USB adapter has this number),
usb:SERIAL, or usb+BACKEND=ARGUMENT:SERIAL.
"""
PLACE: Final = f"""\
Keys lie in the directory of --keys, else of ${KEYS}, else in ~/.config/holecard/keys. It must
exist, be yours, and be closed to others; `holecard devices init` makes it.
"""
PAIR_EXAMPLES: Final = f"""\
examples:
  holecard devices pair /dev/serial/by-id/usb-EW_Shoe-if00
  holecard devices pair usb:EW-000123 --by "Ann Lee" --and "Bo Chan"
  holecard devices pair adapter:FT4NUM9K --by Ann --and Bo --label - < code

Turn the device's service switch on first. At a terminal what is missing is asked for. The code of
the device's sealed label is better typed than given as an option, which the shell remembers.
Where a device of this number was paired with another key, --replace wants a yes at a terminal, and
--fingerprint where there is none.

{PORTS}Of several USB devices with one number, the one that is meant is named as
`holecard devices ports` lists it, with bus and address.

{PLACE}
Exit codes: 0 paired; 1 not paired; 2 wrong arguments, keys or port.
"""
PORTS_EXAMPLES: Final = f"""\
examples:
  holecard devices ports
  holecard devices ports --json
  holecard devices ports --usb sim=run/bus

BACKEND is {OWN_BACKEND}, or another pyusb backend that is installed: NAME or NAME=ARGUMENT. What
stands first in a line is the PORT of `holecard devices pair`.
{PORTS}
Exit codes: 0 done; 2 wrong arguments.
"""
EXAMPLES: Final = f"""\
examples:
  holecard devices init
  holecard devices ports
  holecard devices pair /dev/serial/by-id/usb-EW_Shoe-if00
  holecard devices list
  holecard devices forget EW-000123 --by Ann --and Bo

{PLACE}"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    devices = subparsers.add_parser(
        "devices",
        help="pair devices with this host",
        description="Pairs devices with this host, and shows and forgets those that are.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = devices.add_subparsers(metavar="COMMAND", required=True)
    init = _command(
        commands,
        "init",
        "make the directory of keys and this host's key",
        init_keys,
        _examples("init", "init --keys run/keys", "init --json"),
    )
    ports = _command(
        commands, "ports", "list what is plugged in", show_ports, PORTS_EXAMPLES, keys=False
    )
    ports.add_argument(
        "--usb", default=OWN_BACKEND, metavar="BACKEND", help="look for USB devices through this"
    )
    pairing = _command(commands, "pair", "pair the device at a port", pair, PAIR_EXAMPLES)
    pairing.add_argument("port", metavar="PORT", help="where the device is plugged in")
    pairing.add_argument(
        "--label", metavar="CODE", help="code of the sealed label; - reads it from standard input"
    )
    pairing.add_argument("--fingerprint", metavar="DIGITS", help="pair only a device with this key")
    pairing.add_argument(
        "--replace", action="store_true", help="also if a device of this number is paired already"
    )
    listing = _command(
        commands,
        "list",
        "list the paired devices",
        list_devices,
        _examples("list", "list --keys run/keys", "list --json"),
    )
    showing = _command(
        commands,
        "show",
        "show one of them",
        show_device,
        _examples("show EW-000123", "show EW-000123 --json"),
    )
    forgetting = _command(
        commands,
        "forget",
        "let go of a device's key",
        forget,
        _examples("forget EW-000123", 'forget EW-000123 --by "Ann Lee" --and "Bo Chan"'),
    )
    for parser in (showing, forgetting):
        parser.add_argument("serial", metavar="SERIAL", help="the device's serial number")
    for parser in (pairing, forgetting):
        parser.add_argument("--by", metavar="NAME", help="the first of two people")
        parser.add_argument("--and", dest="second", metavar="NAME", help="the second of them")
    for parser in (init, ports, pairing, listing, showing, forgetting):
        parser.add_argument("--json", action="store_true", help="print JSON")


def _command(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help_: str,
    func: Callable[[argparse.Namespace], int],
    epilog: str,
    *,
    keys: bool = True,
) -> argparse.ArgumentParser:
    parser = commands.add_parser(
        name,
        help=help_,
        description=f"{help_[0].upper()}{help_[1:]}.",
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if keys:
        parser.add_argument("--keys", metavar="DIR", help="directory of the keys")
    parser.set_defaults(func=func)
    return parser


def _examples(*lines: str) -> str:
    """For the --help of a command that has to do with keys."""
    return "\n".join(
        ["examples:", *(f"  holecard devices {device_line}" for device_line in lines), "", PLACE]
    )


# --- keys -------------------------------------------------------------------------------------


def init_keys(args: argparse.Namespace) -> int:
    """Make the directory and the host's key."""
    with usage_errors():
        place = keys_directory_of(args)
        own = _own_fingerprint(KeyStore.create(place))
    show(args, {"keys": str(place), "host": own}, f"made {place}\nthis host's key: {own}")
    return 0


def list_devices(args: argparse.Namespace) -> int:
    """Print all paired devices."""
    with usage_errors():
        store = KeyStore(keys_directory_of(args))
        own, devices = _own_fingerprint(store), store.devices()
    found = {"host": own, "devices": [device_json(one) for one in devices]}
    lines = [f"this host's key: {own}", *map(device_line, devices)]
    show(args, found, "\n".join(lines if devices else [*lines, "no device is paired"]))
    return 0


def show_device(args: argparse.Namespace) -> int:
    """Print what is known of one device."""
    with usage_errors():
        paired = _find(KeyStore(keys_directory_of(args)), args.serial)
    rows = {
        "class": paired.device_class.name.lower(),
        "maker": paired.maker,
        "model": paired.model,
        "serial number": paired.serial,
        "key": paired.fingerprint,
        "paired": f"{paired.paired_at} by {' and '.join(paired.by)}",
    }
    show(args, device_json(paired), "\n".join(f"{name:<14} {text}" for name, text in rows.items()))
    return 0


def forget(args: argparse.Namespace) -> int:
    """Let go of a device's key."""
    with usage_errors():
        store = KeyStore(keys_directory_of(args))
        paired = _find(store, args.serial)
        try:
            by = terminal.two_people(args)
        except terminal.PromptCancelled:
            print("\nnot forgotten: the question was not answered", file=sys.stderr)
            return EXIT_NO
        store.forget(paired.serial, by, utc_now())
    show(args, device_json(paired), f"forgotten: {device_line(paired)}")
    return 0


def _find(store: KeyStore, serial: str) -> Paired:
    paired = store.find(serial)
    if paired is None:
        known = ", ".join(one.serial for one in store.devices())
        raise UsageProblem("SERIAL", f"{serial} is not paired", known or "none is paired yet")
    return paired


def _own_fingerprint(store: KeyStore) -> str:
    return fingerprint_text(fingerprint_of(store.own()))


# --- ports ------------------------------------------------------------------------------------


def show_ports(args: argparse.Namespace) -> int:
    """Print what is plugged in."""
    if not args.usb:
        raise UsageProblem("--usb", "is empty", "NAME or NAME=ARGUMENT of a USB backend")
    found = discovery.serial_ports()
    try:
        plugged = discovery.usb_devices(args.usb)
        if not plugged and args.usb != OWN_BACKEND:
            print(f"no USB devices are found through {args.usb}", file=sys.stderr)
        found += plugged
    except PortRefused as problem:
        if args.usb != OWN_BACKEND:
            raise UsageProblem("--usb", str(problem)) from None
        print(f"no USB devices are listed: {problem}", file=sys.stderr)
    rows = [
        {
            "port": str(one.address),
            "path": one.path,
            "serial": one.serial,
            "maker": one.maker,
            "model": one.model,
        }
        for one in found
    ]
    lines = []
    for one in found:
        path = None if one.path and str(one.address).endswith(one.path) else one.path
        lines.append("  ".join(filter(None, (str(one.address), path, one.maker, one.model))))
    show(args, {"ports": rows}, "\n".join(lines) or "nothing is plugged in")
    return 0
