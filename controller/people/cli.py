"""`holecard people`: declares the commands for badges, names, roles and PINs."""

from __future__ import annotations

import argparse
from typing import Final

from controller.commands import Subparsers, add_command, add_group, help_text
from controller.people.person import PLACE, ROLES
from controller.people.pins import ALLOWED
from drivers.keys import KEYS_VARIABLE as KEYS

OPTION: Final = "--pin-fd"
_RUN: Final = "controller.people.commands"
_NOTES: Final = f"""\
At a terminal what is missing is asked for, a PIN twice and without being shown. In a script the
PIN comes from an open file descriptor: {OPTION} 3 3< file. It is never an argument.
A PIN has {ALLOWED}; the PINs that are guessed first are rejected.

People are stored in the file of --file, else of ${PLACE}, else in ~/.config/holecard/people.json.
The key of their PINs is people.key in the directory of --keys, else of ${KEYS},
else in ~/.config/holecard/keys. Both must be yours and closed to others. A running table sees a
change at the next sign-in. Every change is appended to a history file beside the people.
"""
_CODES: Final = {0: "done", 1: "not done", 2: "wrong arguments, file, key or PIN"}


def register(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "people",
        "manage the people of a house",
        description="Manages badges, names, roles and PINs of the people of a house.",
        epilog=help_text(
            [
                "people init",
                'people add F-2 --name "Bo Chan" --roles floor',
                "people list",
                'people roles F-2 floor,dealer --by "Ann Lee" --and "Cy Moss"',
                f"people reset F-2 {OPTION} 3 --by Ann --and Cy 3< pin",
                "people disable F-2",
            ],
            f"roles: {', '.join(ROLES)}. A badge is a name, not a secret.\n\n{_NOTES}",
            _CODES,
        ),
    )
    _command(
        commands,
        "init",
        "create a people file without people, and its key",
        "init --file run/people.json",
    )
    _command(commands, "list", "list the people", "list --json")
    ann = 'add D-17 --name "Ann Lee" --roles dealer'
    adding = _command(
        commands, "add", "add a person", ann, f"{ann} --by Bo --and Cy {OPTION} 3 3< pin"
    )
    disabling = _command(commands, "disable", "disable the badge of a person", "disable D-17")
    enabling = _command(commands, "enable", "enable a disabled badge", "enable D-17")
    resetting = _command(commands, "reset", "set a new PIN for a person", "reset D-17")
    changing = _command(commands, "roles", "set the roles of a person", "roles D-17 dealer,floor")
    for parser in (adding, disabling, enabling, resetting, changing):
        parser.add_argument("badge", metavar="BADGE", help="the badge of the person")
        parser.add_argument("--by", metavar="NAME", help="the name of the first approver")
        parser.add_argument(
            "--and", dest="second", metavar="NAME", help="the name of the second approver"
        )
    adding.add_argument("--name", metavar="NAME", required=True, help="the name for the record")
    adding.add_argument("--roles", metavar="ROLES", required=True, help=",".join(ROLES))
    changing.add_argument("roles", metavar="ROLES", help=",".join(ROLES))
    for parser in (adding, resetting):
        parser.add_argument(
            OPTION,
            metavar="N",
            type=_descriptor,
            help="read the PIN from this open file descriptor",
        )


def _command(commands: Subparsers, name: str, does: str, *examples: str) -> argparse.ArgumentParser:
    parser = add_command(
        commands,
        name,
        does,
        f"{_RUN}:run_{name}",
        epilog=help_text([f"people {one}" for one in (name, *examples)], _NOTES, _CODES),
        json=True,
    )
    parser.add_argument("--file", metavar="FILE", help="the people file")
    parser.add_argument("--keys", metavar="DIR", help="the directory of the keys")
    return parser


def _descriptor(text: str) -> int:
    if not text.isascii() or not text.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not the number of a file descriptor")
    return int(text)
