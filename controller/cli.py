"""The `holecard` command: finds the module of a subcommand and runs it.

Our subcommands are in COMMANDS; other packages add theirs under the entry point group
`holecard.commands`, as "module:function" of a `register(subparsers)` like those of
`controller.commands`. Only the module of the command that was asked for is imported.
"""

from controller import early_signals  # must be first: it handles signals from here on

# isort: split
import argparse
import ast
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import NamedTuple

from controller.commands import (
    BrokenCommand,
    Register,
    dispatch,
    exit_code_of,
    load,
    prepare_process,
)
from controller.errors import EXIT_USAGE, UsageProblem

GROUP = "holecard.commands"


class Subcommand(NamedTuple):
    """A subcommand: name, "module:function" of its register function, a line for --help, and
    whether it runs drivers, which write log lines."""

    name: str
    target: str
    summary: str
    drives: bool = False

    def load(self) -> Register:
        """The register function. Raises BrokenCommand."""
        found: Register = load(self.name, self.target)
        return found


COMMANDS = (
    Subcommand("config", "controller.config.cli:register", "check and explain games and tables"),
    Subcommand(
        "procedure", "controller.publish.cli:register", "a game's dealing procedure in words"
    ),
    Subcommand("script", "controller.sim.cli:register_script", "run scripted rounds"),
    Subcommand("par", "controller.sim.cli:register_par", "play many rounds and report the figures"),
    Subcommand("devices", "controller.pairing.cli:register", "pair devices with this host", True),
    Subcommand("keys", "controller.audit.keys.cli:register", "make the keys of the record"),
    Subcommand("audit", "controller.audit.cli:register", "verify, show and export a record"),
    Subcommand("review", "controller.screens.cli:register", "look at a record in a browser"),
    Subcommand("people", "controller.people.cli:register", "keep the people of a house"),
    Subcommand("serve", "controller.daemon.cli:register", "serve a table", True),
    Subcommand(
        "doctor",
        "controller.doctor.cli:register",
        "what is wrong with a table, and what fixes it",
    ),
)

DESCRIPTION = "Controls one blackjack-family table, and explains, checks and simulates its games."
EXAMPLES = """\
examples:
  holecard demo
  holecard config check mytable.toml
  holecard procedure classic --markdown
  holecard par mega --policy basic --rounds 1000000 --jobs 2

Data goes to stdout, words for people to stderr. Exit codes: 0 done; 1 the answer is no, or a
record is not as it must be; 2 wrong arguments, a wrong file, or a place without the right record;
70 a command cannot be loaded, or an error of this software; 74 the output or a record cannot be
written any more; 130 interrupted; 141 the reader of the output has gone.
`holecard COMMAND --help` explains a command. A report of an error of this software is a file, which
is named; with HOLECARD_TRACEBACK=1 it is printed instead.
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs `holecard` with these arguments. Returns its exit code."""
    if argv is not None:
        arguments = list(argv)
        return exit_code_of(lambda: _run(arguments))
    prepare_process()
    code = exit_code_of(_run_program)
    early_signals.end_at_interrupts()  # from here on Python cleans up
    return code


def _run_program() -> int:
    early_signals.raise_interrupts()
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageProblem(
            "working directory", "does not exist any more", "a directory that exists: cd /"
        ) from None
    return _run(sys.argv[1:])


def _run(arguments: list[str]) -> int:
    if not arguments:
        _parser().print_help(sys.stderr)
        return EXIT_USAGE
    if arguments[0].startswith("-"):
        _parser().parse_args(arguments)  # --help and --version exit here, the rest is an error
        return EXIT_USAGE
    command = find(arguments[0])
    return dispatch(arguments, command.load(), _log_to_stderr if command.drives else None)


def _log_to_stderr() -> None:
    from drivers import logging  # loads structlog, which takes longer than most commands

    logging.to_stderr()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holecard",
        usage="holecard [-h] [--version] COMMAND ...",
        description=DESCRIPTION,
        epilog=f"{_list_commands()}\n\n{EXAMPLES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"holecard {_version()}")
    return parser


def _list_commands() -> str:
    added = [found._replace(summary=_summary(found.target)) for found in _added()]
    lines = [f"  {command.name:<12}{command.summary}".rstrip() for command in (*COMMANDS, *added)]
    return "\n".join(["commands:", *lines])


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("holecard")
    except PackageNotFoundError:
        return "(not installed)"


def find(name: str) -> Subcommand:
    """The command of this name. Raises UsageProblem, and BrokenCommand if there are several."""
    found = _named(name, COMMANDS) or _named(name, _added())
    if not found:
        names = ", ".join(command.name for command in (*COMMANDS, *_added()))
        raise UsageProblem("command", f"there is no {name}", names)
    if len(found) > 1:
        targets = " and ".join(command.target for command in found)
        raise BrokenCommand(f"{name}: announced more than once under {GROUP}: {targets}")
    return found[0]


def _named(name: str, commands: Iterable[Subcommand]) -> list[Subcommand]:
    return [command for command in commands if command.name == name]


def _added() -> list[Subcommand]:
    """Returns the commands of installed packages, except those with a built-in name."""
    from importlib.metadata import entry_points  # slow to import

    announced = {(point.name, point.value) for point in entry_points(group=GROUP)}
    return [
        Subcommand(name, target, summary="", drives=True)
        for name, target in sorted(announced)
        if not _named(name, COMMANDS)
    ]


def _summary(target: str) -> str:
    """The first line of a module's docstring, read without importing it or its packages."""
    package, *path = target.partition(":")[0].split(".")
    try:
        spec = importlib.util.find_spec(package)
        for name in path:
            if spec is None:
                break
            package = f"{package}.{name}"
            spec = PathFinder.find_spec(package, spec.submodule_search_locations)
        source = Path(spec.origin or "").read_bytes() if spec else b""
        docstring = ast.get_docstring(ast.parse(source))
    except (ImportError, OSError, SyntaxError, ValueError):
        docstring = None
    return (docstring or "(cannot be read)").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
