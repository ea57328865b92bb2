"""watch rounds at a whole table, dealt by the daemon with simulated devices"""

from __future__ import annotations

import argparse
from typing import Final

from controller.commands import Subparsers, add_command, help_text, whole_number
from controller.errors import printable

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
MAX_ROUNDS: Final = 1000
ROUNDS: Final = 2
_NOTES: Final = """\
On a terminal it runs until Ctrl-C, and prints the addresses of its pages: the dealer's console, the
review, and the bench page, where users see the devices from outside, take a seat, pull cards, press
buttons and cause faults. Badges and PINs are printed too. A user who signs in at the console and
relieves the dealer deals; the robot waits until the bench page asks it to deal again.

A shoe, a shuffler and seven stations are simulated behind real ports; `holecard serve` deals with
them as with any others. A robot dealer reads only the dealer's prompts, pulls cards out of the shoe
and enters what a dealer enters; robot players press the buttons that are lit. --seed determines the
cards. At the end the record is verified. With --dir all files are kept there: the record, the keys,
the daemon's log in daemon.log; the next demo in that folder continues the record.
"""


def register(subparsers: Subparsers) -> None:
    demo = add_command(
        subparsers,
        "demo",
        "watch rounds at a whole table",
        "hil.table.demo.demo:show",
        description="Deals rounds of the games at a whole table with simulated devices.",
        epilog=help_text(
            (
                "demo",
                "demo --game mega --rounds 5 --seats 7",
                "demo --game sf21x --seed 4 --speed fast --plain",
                "demo --game classic --rounds 100 --speed fast --dir run/demo",
            ),
            _NOTES,
            {
                0: "shown, and the record is right",
                1: "the record is wrong, or so damaged that no table is served with it",
                2: "wrong arguments, or a folder that cannot be used",
                70: "the table has failed",
                130: "interrupted, with the summary so far",
            },
        ),
    )
    _add_arguments(demo)


def _add_arguments(demo: argparse.ArgumentParser) -> None:
    demo.add_argument(
        "--game", choices=(*GAMES, "all"), default="all", help="which game (default: all)"
    )
    demo.add_argument(
        "--rounds",
        type=whole_number(1, MAX_ROUNDS),
        metavar="N",
        help=f"rounds of each game, 1 to {MAX_ROUNDS} (default: on a terminal until Ctrl-C, else "
        f"{ROUNDS})",
    )
    demo.add_argument(
        "--seats",
        type=whole_number(1, 7),
        default=4,
        metavar="N",
        help="players, 1 to 7 (default: 4)",
    )
    demo.add_argument(
        "--seed",
        type=whole_number(0, 2**63 - 1),
        default=29,
        metavar="S",
        help="the cards and the players' whims (default: 29)",
    )
    demo.add_argument(
        "--speed",
        type=_speed,
        default=1.0,
        metavar="X",
        help="times the usual speed, or fast: no waiting; off a terminal nothing waits",
    )
    demo.add_argument(
        "--page-port",
        type=whole_number(0, 65535),
        metavar="PORT",
        help="of the bench page on 127.0.0.1; 0: any free one (default: on a terminal 0, else no "
        "page)",
    )
    demo.add_argument("--dir", metavar="DIR", help="keep everything in this folder")
    form = demo.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the summary alone, as JSON")
    form.add_argument(
        "--plain", action="store_true", help="neither colours nor a moving picture on a terminal"
    )


def _speed(text: str) -> float:
    """Parse a factor of speed; 0 means no waiting."""
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
