"""Parsers of `holecard devices`: pair devices with this host, list, show and forget them."""

from __future__ import annotations

import argparse
from typing import Final

from controller.commands import Subparsers, add_command, add_group, help_text
from drivers.keys import KEYS_VARIABLE as KEYS
from drivers.ports import OWN_BACKEND

_HANDLERS: Final = "controller.pairing.devices"
_PORTS: Final = """\
PORT is serial:PATH or /dev/..., adapter:SERIAL (the serial port whose USB adapter has this number),
usb:SERIAL, or usb+BACKEND=ARGUMENT:SERIAL.
"""
_PLACE: Final = f"""\
Keys are in the directory of --keys, else of ${KEYS}, else in ~/.config/holecard/keys. It must
exist, be yours, and be closed to others; `holecard devices init` makes it.
"""
_PAIRING: Final = f"""\
Turn the device's service switch on first. At a terminal what is missing is asked for. The code of
the device's sealed label is better typed than given as an option, which the shell remembers.
Where a device of this number was paired with another key, --replace wants a yes at a terminal, and
--fingerprint where there is none.

{_PORTS}Of several USB devices with one number, the one that is meant is named as
`holecard devices ports` lists it, with bus and address.

{_PLACE}"""


def _add_pair(commands: Subparsers) -> argparse.ArgumentParser:
    pairing = add_command(
        commands,
        "pair",
        "pair the device at a port",
        "controller.pairing.pair:pair",
        epilog=help_text(
            (
                "devices pair /dev/serial/by-id/usb-EW_Shoe-if00",
                'devices pair usb:EW-000123 --by "Ann Lee" --and "Bo Chan"',
                "devices pair adapter:FT4NUM9K --by Ann --and Bo --label - < code",
            ),
            _PAIRING,
            {0: "paired", 1: "not paired", 2: "wrong arguments, keys or port"},
        ),
        json=True,
    )
    _add_keys(pairing)
    pairing.add_argument("port", metavar="PORT", help="where the device is plugged in")
    pairing.add_argument(
        "--label", metavar="CODE", help="code of the sealed label; - reads it from standard input"
    )
    pairing.add_argument("--fingerprint", metavar="DIGITS", help="pair only a device with this key")
    pairing.add_argument(
        "--replace", action="store_true", help="also if a device of this number is paired already"
    )
    return pairing


def _add_ports(commands: Subparsers) -> None:
    ports = add_command(
        commands,
        "ports",
        "list what is plugged in",
        f"{_HANDLERS}:show_ports",
        epilog=help_text(
            ("devices ports", "devices ports --json", "devices ports --usb sim=run/bus"),
            f"BACKEND is {OWN_BACKEND}, or another pyusb backend that is installed: NAME or "
            f"NAME=ARGUMENT. The first\nword of a line is the PORT of `holecard devices pair`.\n"
            f"{_PORTS}",
            {0: "done", 2: "wrong arguments"},
        ),
        json=True,
    )
    ports.add_argument(
        "--usb", default=OWN_BACKEND, metavar="BACKEND", help="search USB devices through this"
    )


def register(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "devices",
        "pair devices with this host",
        description="Pairs devices with this host, and shows and forgets those that are.",
        epilog=help_text(
            (
                "devices init",
                "devices ports",
                "devices pair /dev/serial/by-id/usb-EW_Shoe-if00",
                "devices list",
                "devices forget EW-000123 --by Ann --and Bo",
            ),
            _PLACE,
        ),
    )
    _command(
        commands,
        "init",
        "make the directory of keys and this host's key",
        "init_keys",
        _examples("init", "init --keys run/keys", "init --json"),
    )
    _add_ports(commands)
    pairing = _add_pair(commands)
    _command(
        commands,
        "list",
        "list the paired devices",
        "list_devices",
        _examples("list", "list --keys run/keys", "list --json"),
    )
    showing = _command(
        commands,
        "show",
        "show one of them",
        "show_device",
        _examples("show EW-000123", "show EW-000123 --json"),
    )
    forgetting = _command(
        commands,
        "forget",
        "delete a device's key",
        "forget",
        _examples("forget EW-000123", 'forget EW-000123 --by "Ann Lee" --and "Bo Chan"'),
    )
    for parser in (showing, forgetting):
        parser.add_argument("serial", metavar="SERIAL", help="the device's serial number")
    for parser in (pairing, forgetting):
        parser.add_argument("--by", metavar="NAME", help="the first of two people")
        parser.add_argument("--and", dest="second", metavar="NAME", help="the second of them")


def _command(
    commands: Subparsers, name: str, does: str, handler: str, epilog: str
) -> argparse.ArgumentParser:
    target = f"{_HANDLERS}:{handler}"
    parser = add_command(commands, name, does, target, epilog=epilog, json=True)
    _add_keys(parser)
    return parser


def _add_keys(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--keys", metavar="DIR", help="directory of the keys")


def _examples(*commands: str) -> str:
    return help_text([f"devices {one}" for one in commands], _PLACE)
