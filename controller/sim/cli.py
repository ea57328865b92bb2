"""Parsers of `holecard par` and `holecard script`."""

from __future__ import annotations

import argparse
from typing import Final

from controller.commands import Subparsers, add_command, add_group, help_text
from controller.config import add_settings
from controller.sim.overs import overs

_ROUNDS: Final = 100_000
_PAR: Final = """\
Plays rounds through the procedure's own rows, every effect made, and reports the house edge, how
hands ended, and what side bets came to. Exact values stand beside the simulated ones where they
can be worked out.

Figures of the main wager are fractions of the first main wager, over all seats; doubles and splits
stake more than it. Outcomes count hands, and splits make more hands than wagers. A side bet's
figures are fractions of its own stake. The standard error takes rounds as independent.
"""
_POLICIES: Final = """\
policies:
  stand    stands on everything; takes no insurance and no even money
  mimic    draws like a dealer who hits soft 17; never splits, doubles, surrenders or insures
  basic    the strategy file that comes with the game; not proven optimal
  FILE     a strategy file of your own

"""
_RECORDS: Final = """
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


def register_par(subparsers: Subparsers) -> None:
    parser = add_command(
        subparsers,
        "par",
        "play many rounds and report the figures",
        "controller.sim.par.command:par",
        description=_PAR,
        epilog=_POLICIES
        + help_text(
            (
                "par classic --rounds 2000000 --jobs 2",
                "par classic --set split.aces_again=false --cut --rounds 2000000 --jobs 2",
                "par sf21x --policy mimic --decks 8 --seed 7 --json",
                "par maxtime --exact",
            ),
            "The same seed gives the same answer whatever --jobs is.",
            {
                0: "done",
                2: "wrong arguments, or a game or strategy that cannot be used",
                130: "interrupted",
            },
        ),
        json=True,
    )
    add = parser.add_argument
    add("game", metavar="GAME", help="a game, or the file of one")
    add("--policy", metavar="stand|mimic|basic|FILE", help="how every seat plays (default basic)")
    add("--decks", type=int, metavar="N", help="as --set decks=N")
    add("--seats", type=int, default=1, metavar="N", help="seats that play, 1 to 7 (default 1)")
    add(
        "--rounds",
        type=int,
        default=_ROUNDS,
        metavar="N",
        help=f"rounds to play (default {_ROUNDS})",
    )
    add("--seed", type=int, default=1, metavar="S", help="of the cards (default 1)")
    add("--jobs", type=int, default=1, metavar="N", help="processes to play in (default 1)")
    add_settings(parser)
    add(
        "--cut",
        action="store_true",
        help="deal a shoe to the cut card, not from a fresh shuffle every round",
    )
    add(
        "--side",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="wager on diamonds and Buster too where they are offered; what the main wager earns "
        "on average does not depend on them (default yes)",
    )
    add(
        "--exact",
        action="store_true",
        help="enumerate every round of the policy stand instead of playing: one seat, a fresh "
        "shuffle; --rounds, --seed and --jobs then mean nothing",
    )


def register_script(subparsers: Subparsers) -> None:
    commands = add_group(
        subparsers,
        "script",
        "run scripted rounds",
        description="Plays scripted rounds and compares the results with what they expect.",
    )
    parser = add_command(
        commands,
        "run",
        "play the rounds of script files",
        "controller.audit.simulate.rounds:play",
        epilog=help_text(
            (
                "script run rounds.json",
                "script run tests/scripts/*.json --json",
                "script run rounds.json --verbose",
                "script run rounds.json --over wire",
            ),
            exit_codes={
                0: "every expectation held",
                1: "one did not (which, expected and got)",
                2: "a file cannot be used (file, round, field, why), and then no round is played",
                70: "with --over wire: the table failed",
            },
        )
        + _RECORDS,
    )
    add = parser.add_argument
    add("files", nargs="+", metavar="FILE", help="a file of scripted rounds")
    add(
        "--over",
        choices=("engine", *sorted(overs())),
        default="engine",
        help="what plays the rounds: engine, the procedure alone (default); wire, a whole table: "
        "the daemon, with simulated devices behind real ports",
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the results as JSON")
    form.add_argument("--verbose", action="store_true", help="print each event and prompt too")
    add("--record", metavar="DIR", help="record every event in this directory")
    add(
        "--keys",
        metavar="DIR",
        help="the directory of the keys for --record: those of the table, of hole cards and "
        "surveillance.pub (default: demo keys, made in the record's own directory)",
    )
