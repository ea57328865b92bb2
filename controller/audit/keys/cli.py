"""`holecard keys`: create the record's keys, and list them without showing secrets."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from controller.audit.keys.store import (
    AT_THE_TABLE,
    ROLES,
    KeyStatus,
    Role,
    create_key,
    list_keys,
    misplaced_keys,
    mode,
)
from controller.commands import Subparsers, add_command, add_group, show
from controller.errors import UsageProblem, printable
from controller.terminal import usage_errors
from drivers.keys import KEYS_VARIABLE, keys_directory

KINDS: Final = """\
kinds of keys:
  table         signs the record; made at the table
  hole          binds hole cards before they are turned over; made at the table
  surveillance  opens the hole card of a voided round; made on surveillance's own machine,
                and only its surveillance.pub is brought to the table
  witness       countersigns the record; made on the witness's own machine with --name,
                and only its witness.pub is brought to the table
"""
PLACES: Final = f"""\
Keys lie in the directory of --dir, else of ${KEYS_VARIABLE}, else in ~/.config/holecard/keys.
It must be yours and closed to others (mode 700), and so must be each file (mode 600), a .pub too.
A key is never replaced.

Exit codes: 0 done; 2 wrong arguments, or a directory or file that cannot be used.
"""
NEW_EXAMPLES: Final = """\
examples:
  holecard keys new table
  holecard keys new hole --dir run/keys
  holecard keys new surveillance
  holecard keys new witness --name floor.example/archive
"""
SHOW_EXAMPLES: Final = """\
examples:
  holecard keys show
  holecard keys show --dir run/keys --json
"""
_STAYS: Final = "{role}.key stays on this machine; bring only {role}.pub to the table."
_COMPARE: Final = "Compare the fingerprint there: holecard keys show"
_BACKUP: Final = "Keep a backup of {role}.key; nobody can make it again."


def register(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "keys",
        "make and show the keys of the record",
        description="Makes the keys of the record, and shows which there are. Shows no secret.",
        epilog="\n".join((KINDS, NEW_EXAMPLES + SHOW_EXAMPLES.partition("\n")[2], PLACES)),
    )
    new = add_command(
        commands,
        "new",
        "make a key, once",
        new_key,
        epilog=f"{KINDS}\n{NEW_EXAMPLES}\n{PLACES}",
        json=True,
    )
    new.add_argument("kind", metavar="KIND", help=", ".join(ROLES))
    new.add_argument("--name", metavar="NAME", help="the witness's name; for a witness only")
    show_ = add_command(
        commands,
        "show",
        "show which keys there are, their fingerprints and modes",
        show_keys,
        epilog=f"{SHOW_EXAMPLES}\n{PLACES}",
        json=True,
    )
    for parser in (new, show_):
        parser.add_argument("--dir", metavar="DIR", help="directory of the keys")


def new_key(args: argparse.Namespace) -> int:
    """Make a key."""
    role = _role(args.kind)
    with usage_errors():
        place = _place(args.dir)
        made = create_key(place, role, args.name)
        every = list_keys(place)
    files = "\n".join(f"made {printable(file)} (mode {bits})" for file, bits in made.files)
    show(args, {"directory": str(place), **_as_json(made)}, f"{files}\n{_described(made)}")
    words = [_BACKUP] if role in AT_THE_TABLE else [_STAYS, _COMPARE]
    _tell(*(text.format(role=role) for text in words), *misplaced_keys(every))
    return 0


def show_keys(args: argparse.Namespace) -> int:
    """List the keys. An unusable key is listed too, and the command exits with 2."""
    with usage_errors():
        place = _place(args.dir)
        every = list_keys(place)
        bits = mode(place)
    found = {"directory": str(place), "mode": bits, "keys": [_as_json(one) for one in every]}
    lines = [f"{printable(place)} (mode {bits})", *(_line(one) for one in every)]
    show(args, found, "\n".join(lines if every else [*lines, "no key of the record is there"]))
    _tell(*misplaced_keys(every))
    with usage_errors():
        for one in every:
            if one.problem is not None:
                raise one.problem
    return 0


def _role(kind: str) -> Role:
    for role in ROLES:
        if role == kind:
            return role
    raise UsageProblem("KIND", f"there is no key {kind!r}", ", ".join(ROLES))


def _place(given: str | None) -> Path:
    if given == "":
        raise UsageProblem("--dir", "is empty", "a directory")
    return keys_directory(None if given is None else Path(given))


def _described(found: KeyStatus) -> str:
    if found.problem is not None:
        return f"cannot be used: {Path(found.problem.where).name} {found.problem.what}"
    return f"fingerprint {found.fingerprint}" + (f"  {found.name}" if found.name else "")


def _line(found: KeyStatus) -> str:
    files = ", ".join(f"{file.name} ({bits})" for file, bits in found.files)
    return f"{found.role:<13} {_described(found)}  {files}"


def _as_json(found: KeyStatus) -> dict[str, object]:
    return {
        "kind": found.role,
        "files": [{"file": file.name, "mode": bits} for file, bits in found.files],
        "fingerprint": found.fingerprint,
        "public": found.public,
        "name": found.name,
        "problem": found.problem and str(found.problem),
    }


def _tell(*words: str) -> None:
    for text in words:
        print(text, file=sys.stderr)
