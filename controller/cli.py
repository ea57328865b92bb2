"""The `holecard` command: finds a subcommand, runs it, and turns a user's mistake into one line.

A subcommand is a module with

    def register(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None

which adds the parsers of its commands and sets in each the default `func`, a callable from
`argparse.Namespace` to the exit code. Our own stand in COMMANDS; packages above us add theirs
under the entry point group `holecard.commands`. Only the module of the command that was asked
for is imported.
"""

import controller.early_signals  # noqa: F401 - first of all: it takes signals from here on

# isort: split
import argparse
import ast
import errno
import importlib.util
import os
import resource
import sys
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points, version
from pathlib import Path
from typing import NamedTuple

from controller.audit.errors import (
    CannotWrite,
    Failed,
    IndexBusy,
    IndexNoRoom,
    IndexOfOther,
    IndexPlace,
    InUse,
    NoRecord,
    NotNow,
    OtherTable,
    RecordProblem,
)
from controller.errors import UsageProblem

GROUP = "holecard.commands"
_UNUSABLE = (NoRecord, OtherTable, InUse, CannotWrite, IndexPlace, IndexOfOther, IndexBusy)
"""Places without the right record or index, or that are in use, or that cannot be written."""
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class Command(NamedTuple):
    """A subcommand: its name, "module:function" of its register function, a line for --help, and
    whether it may run drivers, which have lines for engineers."""

    name: str
    target: str
    summary: str
    drives: bool = False


COMMANDS = (
    Command("config", "controller.config.cli:register", "check and explain games and tables"),
    Command("procedure", "controller.publish.cli:register", "a game's dealing procedure in words"),
    Command("script", "controller.audit.simulate.cli:register", "run scripted rounds"),
    Command("par", "controller.sim.par.cli:register", "play many rounds and report the figures"),
    Command("devices", "controller.pairing.cli:register", "pair devices with this host", True),
    Command("keys", "controller.audit.keys.cli:register", "make the keys of the record"),
    Command("audit", "controller.audit.commands.cli:register", "verify, show and export a record"),
    Command("review", "controller.screens.cli:register", "look at a record in a browser"),
    Command("people", "controller.people.cli:register", "keep the people of a house"),
    Command("serve", "controller.daemon.cli:register", "serve a table", True),
    Command(
        "doctor",
        "controller.doctor.cli:register",
        "what is wrong with a table, and what mends it",
    ),
)

EXIT_NO = 1  # a record that is damaged, or is not what the rules make of it
EXIT_USAGE = 2
EXIT_BROKEN = 70  # EX_SOFTWARE: the installation is at fault, not the user
EXIT_OUTPUT = 74  # EX_IOERR: nothing is wrong but the place that the output or a record goes to
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_PIPE = 141  # as a shell reports SIGPIPE

DESCRIPTION = "Controls one blackjack-family table, and explains, checks and simulates its games."
EXAMPLES = """\
examples:
  holecard demo
  holecard config check mytable.toml
  holecard procedure classic --markdown
  holecard par mega --policy basic --rounds 1000000 --jobs 2

Data goes to stdout, words for people to stderr. Exit codes: 0 done; 1 the answer is no, or a
record is not as it must be; 2 wrong arguments, a wrong file, or a place without the right record;
70 a command cannot be loaded; 74 the output or a record cannot be written any more;
130 interrupted; 141 the reader of the output has gone.
`holecard COMMAND --help` explains a command.
"""


class BrokenCommand(Exception):
    """A subcommand that is announced but cannot be loaded."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run `holecard` with these arguments and return its exit code."""
    arguments = sys.argv[1:] if argv is None else list(argv)
    try:
        try:
            code = _run(arguments)
        except SystemExit as stop:  # argparse has said its words; what is left is the code
            code = stop.code if isinstance(stop.code, int) else 1
        if sys.stdout is not None:  # a reader that has gone is noticed here, not at Python's exit
            sys.stdout.flush()
    except UsageProblem as problem:
        return _complain(problem, EXIT_USAGE)
    except RecordProblem as problem:
        return _complain_of_record(problem)
    except BrokenCommand as problem:
        return _complain(problem, EXIT_BROKEN)
    except BrokenPipeError:
        # What is still buffered goes nowhere, or Python would complain about it on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_PIPE
    except OSError as problem:
        if problem.errno not in _NO_ROOM:
            raise
        print(f"holecard: the output cannot be written: {problem.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_OUTPUT
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    return code


def _run(arguments: list[str]) -> int:
    if not arguments:
        _parser().print_help(sys.stderr)
        return EXIT_USAGE
    name = arguments[0]
    if name.startswith("-"):
        _parser().parse_args(arguments)  # --help and --version end here, the rest is refused
        return EXIT_USAGE
    command = _find(name)
    parser = _parser(listing=False)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    _load(command)(subparsers)
    if name not in subparsers.choices:
        raise BrokenCommand(f"{name}: {command.target} adds no parser of that name")
    parsed, rest = parser.parse_known_args(arguments)
    if rest:  # said by the command's own parser, so that its usage stands above the error
        subparsers.choices[name].error(f"unrecognized arguments: {' '.join(rest)}")
    func: Callable[[argparse.Namespace], int] | None = getattr(parsed, "func", None)
    if func is None:
        subparsers.choices[name].print_help(sys.stderr)
        return EXIT_USAGE
    if command.drives:
        from drivers import (
            logging as log_lines,  # loads structlog, which takes longer than most commands
        )

        log_lines.to_stderr()
    _leave_no_core()
    return func(parsed)


def _leave_no_core() -> None:
    """Keys, and cards that lie face down, are in memory: no crash puts them on a disk. What a
    machine's own handler of crashes gets (core_pattern with a pipe) is the machine's to keep."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _parser(listing: bool = True) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="holecard",
        usage="holecard [-h] [--version] COMMAND ..." if listing else None,
        description=DESCRIPTION,
        epilog=f"{_list_commands()}\n\n{EXAMPLES}" if listing else None,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if listing:
        parser.add_argument("--version", action="version", version=f"holecard {_version()}")
    return parser


def _list_commands() -> str:
    added = [found._replace(summary=_summary(found.target)) for found in _added()]
    lines = [f"  {command.name:<12}{command.summary}".rstrip() for command in (*COMMANDS, *added)]
    return "\n".join(["commands:", *lines])


def _version() -> str:
    try:
        return version("holecard")
    except PackageNotFoundError:
        return "(not installed)"


def _find(name: str) -> Command:
    found = _named(name, COMMANDS) or _named(name, _added())
    if not found:
        names = ", ".join(command.name for command in (*COMMANDS, *_added()))
        raise UsageProblem("command", f"there is no {name}", names)
    if len(found) > 1:
        targets = " and ".join(command.target for command in found)
        raise BrokenCommand(f"{name}: announced more than once under {GROUP}: {targets}")
    return found[0]


def _named(name: str, commands: Iterable[Command]) -> list[Command]:
    return [command for command in commands if command.name == name]


def _added() -> list[Command]:
    """The commands that installed packages announce; a name of our own stays ours."""
    announced = {(point.name, point.value) for point in entry_points(group=GROUP)}
    return [
        Command(name, target, summary="", drives=True)
        for name, target in sorted(announced)
        if not _named(name, COMMANDS)
    ]


def _summary(target: str) -> str:
    """The first line of a module's docstring, read without running the module."""
    try:
        spec = importlib.util.find_spec(EntryPoint("", target, GROUP).module)
        source = Path(spec.origin or "").read_bytes() if spec else b""
        docstring = ast.get_docstring(ast.parse(source))
    except (ImportError, OSError, SyntaxError, ValueError):
        docstring = None
    return (docstring or "(cannot be read)").partition("\n")[0]


def _load(command: Command) -> Callable[..., None]:
    try:
        register: Callable[..., None] = EntryPoint(command.name, command.target, GROUP).load()
    except Exception as problem:
        # Whatever a module fails with while it loads, the command's name is what people need.
        cause = f"{type(problem).__name__}: {problem}"
        raise BrokenCommand(f"{command.name}: cannot load {command.target} ({cause})") from problem
    return register


def _complain_of_record(problem: RecordProblem) -> int:
    code = EXIT_NO
    if isinstance(problem, Failed | NotNow | IndexNoRoom):
        code = EXIT_OUTPUT
    elif isinstance(problem, _UNUSABLE):
        code = EXIT_USAGE
    words = str(problem).replace("\n", "\\n")  # one line, whatever its directory is called
    print(f"holecard: {words}", file=sys.stderr)
    return code


def _complain(problem: Exception, code: int) -> int:
    print(f"holecard: {problem}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
