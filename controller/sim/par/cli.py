"""`holecard par`: play many rounds of a game by a strategy, and report what came of them."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from controller.config import installed, read_settings
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.procedure.model.game import Game
from controller.sim.par import report
from controller.sim.par.exact import enumerate_stand
from controller.sim.par.simulation import SET, ParPlan, game_for, run
from controller.sim.play import POLICIES, PlaySetup, Strategy, basic, load, stakes_for

BASIC: Final = "basic"
_POLICIES: Final = (*POLICIES, BASIC)
_ROUNDS: Final = 100_000
_MOST_SEATS: Final = 7
_NOT_PROVEN: Final = "not proven optimal"

DESCRIPTION = """\
Plays rounds through the procedure's own rows, every effect made, and reports the house edge, how
hands ended, and what side bets came to. Exact values stand beside the simulated ones where they
can be worked out.

Figures of the main wager are fractions of the first main wager, over all seats; doubles and splits
stake more than it. Outcomes count hands, and splits make more hands than wagers. A side bet's
figures are fractions of its own stake. The standard error takes rounds as independent.
"""
EPILOG = """\
policies:
  stand    stands on everything; takes no insurance and no even money
  mimic    draws like a dealer who hits soft 17; never splits, doubles, surrenders or insures
  basic    the strategy file that comes with the game; not proven optimal
  FILE     a strategy file of your own

examples:
  holecard par classic --rounds 2000000 --jobs 2
  holecard par classic --set split.aces_again=false --cut --rounds 2000000 --jobs 2
  holecard par sf21x --policy mimic --decks 8 --seed 7 --json
  holecard par maxtime --exact

The same seed gives the same answer whatever --jobs is. Exit codes: 0 done; 2 wrong arguments, or a
game or strategy that cannot be used; 130 interrupted.
"""


def register(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subparsers.add_parser(
        "par",
        help="play many rounds and report the figures",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("game", metavar="GAME", help="a game, or the file of one")
    add("--policy", metavar="stand|mimic|basic|FILE", help="how every seat plays (default basic)")
    add("--decks", type=int, metavar="N", help="as --set decks=N")
    add("--seats", type=int, default=1, metavar="N", help="seats that play, 1 to 7 (default 1)")
    add("--rounds", type=int, metavar="N", help=f"rounds to play (default {_ROUNDS})")
    add("--seed", type=int, default=1, metavar="S", help="what the cards hang on (default 1)")
    add("--jobs", type=int, default=1, metavar="N", help="processes to play in (default 1)")
    add(SET, dest="settings", action="append", default=[], metavar="OPTION=VALUE",
        help="lay an option over the game, as often as needed")  # fmt: skip
    add("--cut", action="store_true",
        help="deal a shoe to the cut card, not from a fresh shuffle every round")  # fmt: skip
    add("--side", action=argparse.BooleanOptionalAction, default=True,
        help="wager on diamonds and Buster too where they are offered; what the main wager earns "
        "on average does not hang on them (default yes)")  # fmt: skip
    add("--exact", action="store_true",
        help="enumerate every round of the policy stand instead of playing: one seat, a fresh "
        "shuffle; --rounds, --seed and --jobs then mean nothing")  # fmt: skip
    add("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=par)


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
        with _progress(plan.rounds) as told:
            tally = run(plan, args.jobs, told)
        found = report.of_rounds(game, setup, tally)
        rounds = plan.rounds
    if args.json:
        main, side = report.as_json(found)
        head = {"game": game.name, "policy": _policy(args), "decks": game.decks}
        tail = {"rounds": rounds, "seed": args.seed, "main": main, "side": side}
        print(json.dumps(head | tail, indent=2))
        return 0
    for line in _heading(args, game, strategy, rounds):
        print(line)
    for line in report.lines(found, simulated=rounds > 0):
        print(line)
    return 0


# Arguments


def _check_counts(args: argparse.Namespace) -> None:
    if not 1 <= args.seats <= _MOST_SEATS:
        raise UsageProblem("--seats", f"{args.seats} seats", f"1 to {_MOST_SEATS}")
    if args.rounds is not None and args.rounds < 1:
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
            raise UsageProblem("--decks", "stands beside --set decks", "one of them")
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
        rounds=args.rounds or _ROUNDS,
        seed=args.seed,
        cut=args.cut,
        side=args.side,
    )


# What is shown


@contextmanager
def _progress(rounds: int) -> Iterator[Callable[[int], None]]:
    """A bar on stderr, where that is a terminal."""
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
