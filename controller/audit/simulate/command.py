"""Runs `holecard script run`, with a record of what is played if --record is given."""

from __future__ import annotations

import argparse
from functools import partial
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
from controller.commands import say
from controller.errors import UsageProblem
from controller.sim.scripts import (
    ENGINE,
    run_rounds,
    run_scripts,
    usable,
)
from controller.terminal import usage_errors
from drivers.keys import path_exists

DEMO_KEYS: Final = "keys"
_ROLES: Final[tuple[Role, ...]] = ("table", "hole", "surveillance")
_DEMO: Final = (
    "{place}: demo keys, beside the record that they sign: who can read them can write "
    "it anew. Keys that prove something are made by: holecard keys new"
)


def play(args: argparse.Namespace) -> int:
    """Play every round of the files; with --record, into a record."""
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
    recorder.on_warning = say

    try:
        with recorder:
            return run_rounds(args, rounds, partial(play_recorded, recorder))
    finally:  # also if the disk is full, or the user has interrupted it
        if recorder.seq:
            say(f"{place}: recorded, the last record is {recorder.seq}")


class _Keyring:
    """The keys of --keys, or demo keys beside the record; the same ones for every boot."""

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
        say(_DEMO.format(place=place))
