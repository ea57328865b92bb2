"""Parser of `holecard procedure`: a game's dealing procedure as text."""

from __future__ import annotations

from controller.commands import Subparsers, add_command, help_text
from controller.config import add_settings, installed


def register(subparsers: Subparsers) -> None:
    games = ", ".join(installed("game"))
    parser = add_command(
        subparsers,
        "procedure",
        "a game's dealing procedure in words",
        "controller.publish.command:run",
        description="Prints the rows that run a game, in words and in the order of play.",
        epilog=help_text(
            (
                "procedure classic",
                "procedure mytable.toml --markdown > mytable.md",
                "procedure mega --diagram --whole",
                "procedure sf21x --set blackjack.tie=push --json",
                "procedure --check",
            ),
            "A game's name stands for its sheet under the default jurisdiction; a table's file "
            "names its own.",
            {
                0: "done",
                1: "with --check, a published page is stale",
                2: "the file or an option cannot be used",
            },
        ),
    )
    parser.add_argument(
        "game", nargs="?", metavar="GAME", help=f"the file of a game or table, or {games}"
    )
    form = parser.add_mutually_exclusive_group()
    form.add_argument(
        "--markdown", action="store_true", help="print the page for people who approve games"
    )
    form.add_argument("--diagram", action="store_true", help="print the rows of play as Mermaid")
    form.add_argument("--json", action="store_true", help="print all that the page has, as JSON")
    form.add_argument(
        "--check", action="store_true", help="say which of our published pages are stale"
    )
    form.add_argument("--write", action="store_true", help="write our published pages again")
    parser.add_argument(
        "--whole", action="store_true", help="with --diagram: irregularities and rulings too"
    )
    add_settings(parser)
