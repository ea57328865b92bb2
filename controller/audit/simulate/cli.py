"""`holecard script`, with a record of what is played."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Final

from controller.audit.keys import (
    Role,
    create_key,
    key_file,
    load_hole_key,
    load_surveillance_public,
    load_table_private,
)
from controller.audit.log import RecordOpening
from controller.audit.simulate.recorder import Recorder, RecorderKeys
from controller.audit.simulate.rounds import SCRIPTS, SCRIPTS_SIZE, check_recordable, play_recorded
from controller.errors import UsageProblem, printable
from controller.procedure.engine import Procedure
from controller.sim.scripts import (
    ENGINE,
    RoundResult,
    RoundWatcher,
    ScriptRound,
    register_script,
    run_rounds,
    run_scripts,
    usable,
)
from controller.terminal import usage_errors
from drivers.keys import path_exists

RECORD_EXAMPLES: Final = """\
records:
  holecard script run rounds.json --record run/scripts
  holecard script run rounds.json --record run/scripts --keys run/keys

With --record every event stands in the record DIR, signed, its hole cards bound and sealed, before
anything is shown. A record that is there already is continued; it must be one of scripts. Each
round is dealt from a shuffle, so the rounds' numbers go on; one that is not the first of its
shuffle has a plain round before it, and one that the script leaves open is voided.

More exit codes with --record: 1 the record is damaged, or is not what the rules make of it; 2 DIR
is no record of scripts, is in use, or cannot be written; 74 the disk has failed or is full. What
was recorded by then stays, and the next run goes on from there.
"""
DEMO_KEYS: Final = "keys"
_ROLES: Final[tuple[Role, ...]] = ("table", "hole", "surveillance")
_DEMO: Final = (
    "holecard: {place}: demo keys, beside the record that they sign: who can read them can write "
    "it anew. Keys that prove something are made by: holecard keys new"
)


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    run = register_script(subparsers)
    run.add_argument("--record", metavar="DIR", help="record every event in this directory")
    run.add_argument(
        "--keys",
        metavar="DIR",
        help="the directory of the keys for --record: those of the table, of hole cards and "
        "surveillance.pub (default: demo keys, made in the record's own directory)",
    )
    run.epilog = f"{run.epilog}\n{RECORD_EXAMPLES}"
    run.set_defaults(func=play)


def play(args: argparse.Namespace) -> int:
    """Play every round of the files, into a record where one is wanted."""
    if args.record is None:
        if args.keys is not None:
            raise UsageProblem("--keys", "nothing is recorded", "--record DIR beside it")
        return run_scripts(args)
    if args.over != ENGINE:
        what = f"--over {args.over} keeps a record of its own"
        raise UsageProblem("--record", what, f"--over {ENGINE}")
    for option, value in (("--record", args.record), ("--keys", args.keys)):
        if value is not None and (not value or "\0" in value):
            raise UsageProblem(option, "is no directory's name", "a directory")
    return _record(args, Path(args.record))


def _record(args: argparse.Namespace, place: Path) -> int:
    rounds = usable(args.files)
    for scripted, procedure in rounds:
        check_recordable(scripted, procedure)

    keyring = _Keyring(place, args.keys)
    recorder = Recorder(place, SCRIPTS, keyring, size=SCRIPTS_SIZE)
    recorder.tell = _say

    def played(
        scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        return play_recorded(recorder, scripted, watch, procedure)

    try:
        with recorder:
            return run_rounds(args, rounds, played)
    finally:  # also where the disk is full, or somebody has had enough
        if recorder.seq:
            words = f"{printable(place)}: recorded, the last record is {recorder.seq}"
            print(f"holecard: {words}", file=sys.stderr)


def _say(words: str) -> None:
    print(f"holecard: {words}", file=sys.stderr)


class _Keyring:
    """Those that were named, or demo keys beside the record; for every boot the same."""

    def __init__(self, place: Path, given: str | None) -> None:
        self._demo = given is None
        self._directory = place / DEMO_KEYS if given is None else Path(given)
        self._keys: RecorderKeys | None = None

    def __call__(self, opening: RecordOpening) -> RecorderKeys:
        if self._keys is None:
            with usage_errors():
                if self._demo:
                    self._make_missing(begun=opening.snapshot is not None)
                self._keys = RecorderKeys(
                    load_table_private(self._directory),
                    load_hole_key(self._directory),
                    load_surveillance_public(self._directory),
                )
        return self._keys

    def _make_missing(self, *, begun: bool) -> None:
        place = self._directory
        missing = [role for role in _ROLES if not path_exists(key_file(place, role))]
        if missing and begun:
            what = f"the record was begun with other keys than demo keys: {place} has none"
            raise UsageProblem("--keys", what, "the directory of the keys that it was begun with")
        for role in missing:
            create_key(place, role)
        print(_DEMO.format(place=printable(place)), file=sys.stderr)
