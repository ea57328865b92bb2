"""`holecard script` and `holecard demo`: scripted rounds judged, and rounds shown to people."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from controller.config.problems import printable
from controller.procedure.effects import Fact, Prompt
from controller.procedure.engine import Procedure
from controller.procedure.events import Event, HoleDealt, HoleRevealed
from controller.procedure.row import Decision, Refused
from controller.procedure.words import Currency, fact, say
from controller.rules.cards import NAMES
from controller.sim.plan import GAMES, MOST_ROUNDS, ROUNDS, SEATS, Plan
from controller.sim.results import RoundResult
from controller.sim.runner import Watch, play_script, procedure_for
from controller.sim.scripts import ScriptRound, read_scripts
from controller.sim.wording import event_words

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130
_CENTS: Final = Currency()
"""Scripts count in cents."""

SCRIPT_EXAMPLES = """\
examples:
  holecard script run rounds.json
  holecard script run tests/scripts/*.json --json
  holecard script run rounds.json --verbose

Exit codes: 0 every expectation held; 1 one did not (which, expected and got); 2 a file cannot be
used (file, round, field, why), and then no round is played.
"""
DEMO_EXAMPLES = """\
examples:
  holecard demo
  holecard demo --game mega --rounds 5 --seats 7
  holecard demo --game sf21x --seed 4 --speed fast --plain

The players and the dealer are robots; the cards come of --seed, so the same seed shows the same
rounds. Exit codes: 0 shown; 2 wrong arguments; 130 interrupted, with the summary so far.
"""


def register_script(
    subparsers: argparse._SubParsersAction[argparse.ArgumentParser],
) -> argparse.ArgumentParser:
    """`holecard script`; what it gives is the parser of `run`, for what rooms above add to it."""
    script = subparsers.add_parser(
        "script",
        help="run scripted rounds",
        description="Plays scripted rounds and holds what came of them against what they expect.",
    )
    commands = script.add_subparsers(metavar="COMMAND", required=True)
    run = commands.add_parser(
        "run",
        help="play the rounds of script files",
        epilog=SCRIPT_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    run.add_argument("files", nargs="+", metavar="FILE", help="a file of scripted rounds")
    run.add_argument(
        "--over",
        choices=("engine",),
        default="engine",
        help="what plays the rounds: engine, the procedure alone; there is nothing else yet",
    )
    form = run.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the results as JSON")
    form.add_argument("--verbose", action="store_true", help="print each event and prompt too")
    run.set_defaults(func=run_scripts)
    return run


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """`holecard demo`."""
    demo = subparsers.add_parser(
        "demo",
        help="play rounds and show them prompt by prompt",
        description="Plays rounds of the games and shows them as the dealer sees them.",
        epilog=DEMO_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    demo.add_argument(
        "--game", choices=(*GAMES, "all"), default="all", help="which game (default: all)"
    )
    demo.add_argument(
        "--rounds",
        type=_whole(1, MOST_ROUNDS),
        default=ROUNDS,
        metavar="N",
        help=f"rounds of each game, 1 to {MOST_ROUNDS} (default: {ROUNDS})",
    )
    demo.add_argument(
        "--seats",
        type=_whole(1, 7),
        default=SEATS,
        metavar="N",
        help=f"players, 1 to 7 (default: {SEATS})",
    )
    demo.add_argument(
        "--seed",
        type=_whole(0, 2**63 - 1),
        metavar="S",
        help="the cards and the players' whims (default: for each game one that shows much)",
    )
    demo.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="X",
        help="times the usual speed, or fast: no waiting; off a terminal nothing waits",
    )
    demo.add_argument(
        "--plain", action="store_true", help="neither colours nor a moving picture on a terminal"
    )
    demo.set_defaults(func=show_demo)


def _whole(low: int, high: int) -> Callable[[str], int]:
    """A type for argparse: a whole number from `low` to `high`."""

    def read(text: str) -> int:
        allowed = f"{low} to {high}"
        if not text.isascii() or not text.isdigit() or not low <= int(text[:20]) <= high:
            raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; allowed: {allowed}")
        return int(text)

    return read


def _speed(text: str) -> float:
    """How many times as fast; 0 stands for no waiting at all."""
    if text == "fast":
        return 0.0
    try:
        speed = float(text)
    except ValueError:
        speed = 0.0
    if not 0.1 <= speed <= 1000:
        allowed = "allowed: 0.1 to 1000, or fast"
        raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; {allowed}")
    return speed


# --- script run ---------------------------------------------------------------------------------


PlaysScript: TypeAlias = Callable[[ScriptRound, Watch | None, Procedure], RoundResult]
"""What plays a scripted round."""


def run_scripts(args: argparse.Namespace) -> int:
    """Play every round of the files; nothing is played when one of them cannot be used."""
    return run_rounds(args, usable(args.files), play_script)


def run_rounds(
    args: argparse.Namespace, rounds: list[tuple[ScriptRound, Procedure]], play: PlaysScript
) -> int:
    """Play these rounds and print what came of them."""
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
        print(json.dumps({"rounds": msgspec.to_builtins(results)}, indent=2))
    else:
        _print(_count(results))
    return 0 if all(result.ok for result in results) else EXIT_FAILED


def usable(files: list[str]) -> list[tuple[ScriptRound, Procedure]]:
    """The rounds of all files, each with what plays it; UsageProblem if one cannot be used."""
    known: dict[bytes, Procedure] = {}
    scripts = [scripted for file in files for scripted in read_scripts(Path(file))]
    return [(scripted, procedure_for(scripted, known)) for scripted in scripts]


def _name(scripted: ScriptRound) -> str:
    return printable(f"{scripted.script.id}  {scripted.script.title}".rstrip())


def _lines(scripted: ScriptRound, result: RoundResult, *, several: bool) -> list[str]:
    """One line for the round, one for each failure; where files are several, the failure's file."""
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


def _watcher() -> Watch:
    """Prints what was handed in, and what came of it."""

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


def _event_detail(event: Event) -> str:
    """What the event says more: seat, hand, amounts, and a card that is face up."""
    said = []
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if name == "actor" or value is None or value is False:
            continue
        if isinstance(event, HoleDealt | HoleRevealed) and name != "card":
            continue  # commitments are for the record
        if value is True:
            said.append(name)
        elif name == "card":
            said.append(NAMES[value])
        elif name == "amount":
            said.append(_CENTS.amount(value))
        elif name == "hand":
            said.append(f"hand {value}")
        else:
            said.append(f"{name} {value}" if name == "seat" else str(value))
    return f": {', '.join(said)}" if said else ""


def _print(text: str) -> None:
    """Prints what the terminal's encoding has, and the rest by its number."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))


# --- demo ---------------------------------------------------------------------------------------


def show_demo(args: argparse.Namespace) -> int:
    """Play and show; an interrupt ends it with the summary so far."""
    from controller.sim.demo import Demo
    from controller.sim.screen import screen_for

    games = GAMES if args.game == "all" else (args.game,)
    plan = Plan(games, args.rounds, args.seats, args.seed)
    screen = screen_for(sys.stdout, speed=args.speed, plain=args.plain)
    demo = Demo(plan, screen)
    interrupted = False
    try:
        demo.run()
    except KeyboardInterrupt:
        interrupted = True
    finally:
        screen.stop()  # a terminal gets its cursor back whatever happened
    demo.summary(interrupted=interrupted)
    return EXIT_INTERRUPTED if interrupted else 0
