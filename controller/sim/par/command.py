"""`holecard par`: plays many rounds of a game by a strategy, and reports the figures."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.commands import print_json
from controller.config import installed, read_settings
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.sim.par import report
from controller.sim.par.exact import enumerate_stand
from controller.sim.par.simulation import ParPlan, game_for, run
from controller.sim.play import POLICIES, PlaySetup, Strategy, basic, load, stakes_for

BASIC: Final = "basic"
_POLICIES: Final = (*POLICIES, BASIC)
_MAX_SEATS: Final = 7
_NOT_PROVEN: Final = "not proven optimal"


def par(args: argparse.Namespace) -> int:
    _check_counts(args)
    game = game_for(args.game, _settings(args))
    strategy = _strategy(args, game)
    setup = PlaySetup(args.seats, stakes_for(game, side=args.side), args.cut)
    if args.exact:
        found = report.of_enumeration(game, enumerate_stand(Procedure(game)), setup)
        rounds = 0
    else:
        plan = _plan(args, game, strategy)
        with _progress(plan.rounds) as on_progress:
            tally = run(plan, args.jobs, on_progress)
        found = report.of_rounds(game, setup, tally)
        rounds = plan.rounds
    if args.json:
        main, side = report.as_json(found)
        head = {"game": game.name, "policy": _policy(args), "decks": game.decks}
        print_json(head | {"rounds": rounds, "seed": args.seed, "main": main, "side": side})
        return 0
    for line in _heading(args, game, strategy, rounds):
        print(line)
    for line in report.lines(found, simulated=rounds > 0):
        print(line)
    return 0


# Arguments


def _check_counts(args: argparse.Namespace) -> None:
    if not 1 <= args.seats <= _MAX_SEATS:
        raise UsageProblem("--seats", f"{args.seats} seats", f"1 to {_MAX_SEATS}")
    if args.rounds < 1:
        raise UsageProblem("--rounds", f"{args.rounds} rounds", "1 or more")
    if args.jobs < 1:
        raise UsageProblem("--jobs", f"{args.jobs} jobs", "1 or more")
    if args.exact and (args.seats > 1 or args.cut):
        what = "--seats" if args.seats > 1 else "--cut"
        raise UsageProblem(what, "does not go with --exact", "one seat and a fresh shuffle")


def _settings(args: argparse.Namespace) -> dict[str, object]:
    settings = read_settings(args.settings)
    if args.decks is not None:
        if "decks" in settings:
            raise UsageProblem("--decks", "conflicts with --set decks", "one of them")
        settings["decks"] = args.decks
    return settings


def _policy(args: argparse.Namespace) -> str:
    if args.policy is None:
        return "stand" if args.exact else BASIC
    return str(args.policy)


def _strategy(args: argparse.Namespace, game: Game) -> Strategy:
    policy = _policy(args)
    if args.exact and policy != "stand":
        raise UsageProblem("--policy", f"--exact does not enumerate '{policy}'", "stand")
    if policy in POLICIES:
        return POLICIES[policy]
    if policy == BASIC:
        return _basic(game)
    path = Path(policy)
    if not path.is_file():
        named = f"'{policy}' is no policy and no file"
        raise UsageProblem("--policy", named, f"{', '.join(_POLICIES)}, or a strategy file")
    return load(path)


def _basic(game: Game) -> Strategy:
    if game.name not in installed("game"):
        raise UsageProblem(
            "--policy",
            f"no basic strategy comes with {game.name}",
            "stand, mimic, or a strategy file",
        )
    return basic(game.name)


def _plan(args: argparse.Namespace, game: Game, strategy: Strategy) -> ParPlan:
    return ParPlan(
        game=args.game,
        settings=_settings(args),
        options=game.options,
        strategy=strategy,
        seats=args.seats,
        rounds=args.rounds,
        seed=args.seed,
        cut=args.cut,
        side=args.side,
    )


# What is shown


@contextmanager
def _progress(rounds: int) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda played: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rounds", total=rounds)
        yield lambda played: bar.advance(task, played)


def _heading(
    args: argparse.Namespace, game: Game, strategy: Strategy, rounds: int
) -> Iterator[str]:
    decks = "1 deck" if game.decks == 1 else f"{game.decks} decks"
    seats = "1 seat" if args.seats == 1 else f"{args.seats} seats"
    yield f"{game.title}: {decks}, {seats}, policy {_policy(args)}"
    if rounds:
        behind = game.options.cut_behind
        cards = f"a shoe with {behind} cards behind the cut card" if args.cut else "a fresh shuffle"
        yield f"{rounds} rounds, seed {args.seed}, {cards}{'' if args.cut else ' every round'}"
    else:
        yield "every round enumerated"
    if strategy.note:
        yield f"strategy: {strategy.note}"
    if _policy(args) == BASIC and _NOT_PROVEN not in strategy.note:
        yield f"basic is {_NOT_PROVEN}"
    yield ""
