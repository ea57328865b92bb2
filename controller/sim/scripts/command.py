"""Runs `holecard script`: plays scripted rounds and compares the results."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from controller.commands import print_json
from controller.commands import say as complain
from controller.errors import EXIT_BROKEN, EXIT_NO, UsageProblem, printable
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import Fact, Prompt
from controller.procedure.model.events import Event, HoleDealt, HoleRevealed
from controller.procedure.model.row import Decision, Refused
from controller.procedure.prompts import MoneyFormat, fact, say
from controller.publish import event_words
from controller.rules.cards import NAMES
from controller.sim.overs import overs
from controller.sim.scripts.format import ScriptRound, read_scripts
from controller.sim.scripts.runner import RoundResult, RoundWatcher, play_script, procedure_for

ENGINE: Final = "engine"
_CENTS: Final = MoneyFormat()
"""Amounts of scripts are cents."""

PlaysScript: TypeAlias = Callable[[ScriptRound, RoundWatcher | None, Procedure], RoundResult]
"""Plays one scripted round."""
Over: TypeAlias = Callable[
    [Sequence[tuple[ScriptRound, Procedure]]], AbstractContextManager[PlaysScript]
]
"""Prepares to play all these rounds. Raises UsageProblem and OverFailed."""


class OverFailed(Exception):
    """The rounds could not be played; there are no results."""


def run_scripts(args: argparse.Namespace) -> int:
    """Play every round of the files; none if a file cannot be used."""
    rounds = usable(args.files)
    if args.over == ENGINE:
        return run_rounds(args, rounds, play_script)
    try:
        with _over(args.over)(rounds) as play:
            return run_rounds(args, rounds, play)
    except OverFailed as problem:
        complain(str(problem))
        return EXIT_BROKEN


def _over(name: str) -> Over:
    point = overs()[name]
    try:
        found: Over = point.load()
    except (ImportError, AttributeError) as problem:
        what = f"{point.value} cannot be loaded: {problem}"
        raise UsageProblem(f"--over {name}", what, f"--over {ENGINE}") from problem
    return found


def run_rounds(
    args: argparse.Namespace, rounds: list[tuple[ScriptRound, Procedure]], play: PlaysScript
) -> int:
    """Play rounds and print their results. Returns the exit code."""
    results = []
    for number, (scripted, procedure) in enumerate(rounds):
        if args.verbose:
            _print(("" if number == 0 else "\n") + f"{_name(scripted)}:")
        result = play(scripted, _watcher() if args.verbose else None, procedure)
        results.append(result)
        if not args.json:
            for line in _lines(scripted, result, several=len(args.files) > 1):
                _print(line)
    if args.json:
        print_json({"rounds": msgspec.to_builtins(results)})
    else:
        _print(_count(results))
    return 0 if all(result.ok for result in results) else EXIT_NO


def usable(files: list[str]) -> list[tuple[ScriptRound, Procedure]]:
    """Parse and validate the files. Returns rounds with procedures; raises UsageProblem."""
    known: dict[bytes, Procedure] = {}
    scripts = [scripted for file in files for scripted in read_scripts(Path(file))]
    return [(scripted, procedure_for(scripted, known)) for scripted in scripts]


def _name(scripted: ScriptRound) -> str:
    return printable(f"{scripted.script.id}  {scripted.script.title}".rstrip())


def _lines(scripted: ScriptRound, result: RoundResult, *, several: bool) -> list[str]:
    """Returns a line for the round and one for each failure, with the file if there are several."""
    if result.ok:
        return [f"ok    {_name(scripted)}"]
    file = f"  ({scripted.where.removesuffix(f': round {printable(scripted.script.id)}')})"
    failures = [f"      {printable(failure)}" for failure in result.failures]
    return [f"FAIL  {_name(scripted)}{file if several else ''}", *failures]


def _count(results: list[RoundResult]) -> str:
    held = sum(result.ok for result in results)
    rounds = "1 round" if len(results) == 1 else f"{len(results)} rounds"
    if not results:
        return f"{rounds}: nothing was checked"
    return f"{rounds}: {held} as expected, {len(results) - held} not"


def _watcher() -> RoundWatcher:
    """Returns a callback that prints each event and its answer."""

    def watch(event: Event, answer: Decision | Refused) -> None:
        _print(f"  > {event_words(type(event))}{_event_detail(event)}")
        if isinstance(answer, Refused):
            _print(f"    refused: {answer.why}")
            return
        for effect in answer.effects:
            if isinstance(effect, Prompt):
                _print(f"    {say(effect, _CENTS)}")
            elif isinstance(effect, Fact):
                _print(f"    * {fact(effect, _CENTS)}")

    return watch


_FIELD_TEXT: Final[dict[str, Callable[[Any], str]]] = {
    "card": NAMES.__getitem__,
    "amount": _CENTS.amount,
    "hand": "hand {}".format,
    "seat": "seat {}".format,
}


def _event_detail(event: Event) -> str:
    """Returns the fields of an event as text: seat, hand, amounts, a face-up card."""
    said = []
    hides = isinstance(event, HoleDealt | HoleRevealed)  # commitments are not printed
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "actor" or value is None or value is False or (hides and name != "card"):
            continue
        said.append(name if value is True else _FIELD_TEXT.get(name, str)(value))
    return f": {', '.join(said)}" if said else ""


def _print(text: str) -> None:
    """Print text; characters that the terminal cannot encode are escaped."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
