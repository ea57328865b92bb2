"""Declares and runs the subcommands of `holecard`: parsers, help, exit codes, errors, output.

A command module has a `register(subparsers)` that calls `add_command` or `add_group`. It imports
no implementation: a handler is named as "module:function" and loaded when the command runs, so
that `--help` stays fast.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import io
import json
import os
import resource
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

from controller.crash_report import complain, no_tracebacks, report_defect
from controller.errors import (
    EXIT_BROKEN,
    EXIT_INTERRUPTED,
    EXIT_OUTPUT,
    EXIT_PIPE,
    EXIT_USAGE,
    CommandError,
    UsageProblem,
    printable,
)

Subparsers: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
Register: TypeAlias = Callable[[Subparsers], None]
Handler: TypeAlias = Callable[[argparse.Namespace], int] | str
"""Runs a command and returns its exit code; as "module:function", imported when it runs."""

PROGRAM: Final = "holecard"
OUT_OF_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG)
"""Errors of the disk, not of the arguments: they end a command with EXIT_OUTPUT."""
INTERRUPTED: Final = {130: "interrupted"}
READER_GONE: Final = {141: "the reader of the output has gone"}
"""Lines for the exit code tables of commands whose help mentions them."""
_WIDTH: Final = 100
_MAX_TEXT: Final = 500


class BrokenCommand(CommandError):
    """A command that is declared but cannot be loaded."""

    exit_code = EXIT_BROKEN


# --- declaring commands -----------------------------------------------------------------------


def add_group(
    subparsers: Subparsers,
    name: str,
    does: str,
    *,
    description: str | None = None,
    epilog: str | None = None,
    metavar: str = "COMMAND",
    required: bool = True,
) -> Subparsers:
    """Declare a command with subcommands. Returns the action to which they are added."""
    parser = _parser(subparsers, name, does, description, epilog)
    return parser.add_subparsers(metavar=metavar, required=required)


def add_command(
    subparsers: Subparsers,
    name: str,
    does: str,
    handler: Handler,
    *,
    description: str | None = None,
    epilog: str | None = None,
    json: bool = False,
) -> argparse.ArgumentParser:
    """Declare a command and return its parser, for its arguments. With `json` it has --json."""
    parser = _parser(subparsers, name, does, description, epilog)
    if json:
        parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(func=handler)
    return parser


def _parser(
    subparsers: Subparsers, name: str, does: str, description: str | None, epilog: str | None
) -> argparse.ArgumentParser:
    return subparsers.add_parser(
        name,
        help=does,
        description=f"{does[0].upper()}{does[1:]}." if description is None else description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def help_text(
    examples: Sequence[str] = (), notes: str = "", exit_codes: Mapping[int, str] | None = None
) -> str:
    """The end of a command's help: example command lines, notes, and the table of exit codes."""
    parts = []
    if examples:
        parts.append("\n".join(["examples:", *(f"  {PROGRAM} {one}" for one in examples)]))
    if notes:
        parts.append(notes.strip("\n"))
    if exit_codes:
        codes = "; ".join(f"{code} {meaning}" for code, meaning in exit_codes.items())
        parts.append(textwrap.fill(f"Exit codes: {codes}.", _WIDTH, break_on_hyphens=False))
    return "\n\n".join(parts) + "\n"


# --- running them -----------------------------------------------------------------------------


def prepare_process() -> None:
    """Make the standard streams usable, whatever the caller has closed, and errors readable.

    A file that is opened later must not get the number of a closed stream: what is printed would be
    written into it. Characters that the terminal cannot encode are escaped.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode = os.O_WRONLY if number else os.O_RDONLY
        try:
            os.fstat(number)
        except OSError:
            opened = os.open(os.devnull, mode)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "w" if number else "r", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")
    no_tracebacks()


def run(argv: Sequence[str], register: Register) -> int:
    """Run the command named by `argv[0]`, which `register` declares, and return the exit code."""
    return exit_code_of(lambda: dispatch(argv, register))


def dispatch(
    argv: Sequence[str], register: Register, before: Callable[[], None] | None = None
) -> int:
    """Parse `argv`, call `before` and the handler. Raises the exceptions of `exit_code_of`."""
    parsed = parse(argv, register)
    handler = load_handler(parsed)
    if before is not None:
        before()
    # Keys, and cards that lie face down, are in memory: no crash may write them to a disk.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    return handler(parsed)


def parse(argv: Sequence[str], register: Register) -> argparse.Namespace:
    """Parse the arguments of the command `argv[0]`. Raises BrokenCommand, and SystemExit."""
    name = argv[0]
    parser = argparse.ArgumentParser(prog=PROGRAM, allow_abbrev=False)
    subparsers = parser.add_subparsers(metavar="COMMAND", required=True)
    register(subparsers)
    if name not in subparsers.choices:
        raise BrokenCommand(f"{name}: {_name_of(register)} adds no parser of that name")
    parsed, rest = parser.parse_known_args(list(argv))
    if rest:  # reported by the command's own parser, so that its usage is printed with the error
        subparsers.choices[name].error(f"unrecognized arguments: {' '.join(rest)}")
    if not hasattr(parsed, "func"):
        subparsers.choices[name].print_help(sys.stderr)
        raise SystemExit(EXIT_USAGE)
    return parsed


def load_handler(parsed: argparse.Namespace) -> Callable[[argparse.Namespace], int]:
    """Returns the function that runs the parsed command. Raises BrokenCommand."""
    handler: Handler = parsed.func
    return load(handler.partition(":")[0], handler) if isinstance(handler, str) else handler


def load(name: str, target: str) -> Any:
    """Import "module:name". Raises BrokenCommand if that fails."""
    module, _, function = target.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except Exception as problem:
        # Any error that a module raises while it is imported is reported with the command's name.
        cause = f"{type(problem).__name__}: {problem}"
        raise BrokenCommand(f"{name}: cannot load {target} ({cause})") from problem
    return found


def _name_of(register: Register) -> str:
    return f"{register.__module__}:{register.__qualname__}"


def exit_code_of(call: Callable[[], int]) -> int:
    """Call `call` and return its exit code. Errors of users and of output become one message, and
    so does a defect: no exception but KeyboardInterrupt in its very last lines leaves."""
    try:
        try:
            code = call()
        except SystemExit as stop:  # argparse has printed its message; only the code is left
            code = stop.code if isinstance(stop.code, int) else 1
        if sys.stdout is not None:  # a closed pipe is noticed here, not at Python's exit
            sys.stdout.flush()
    except CommandError as problem:
        complain(f"{PROGRAM}: {problem.message}")
        code = problem.exit_code
    except BrokenPipeError:
        code = EXIT_PIPE
    except KeyboardInterrupt:
        code = EXIT_INTERRUPTED
    except OSError as problem:
        code = _system_error(problem)
    except Exception as problem:  # noqa: BLE001 - the outermost frame: a defect of ours
        complain(f"{PROGRAM}: {report_defect(problem)}")
        code = EXIT_BROKEN
    _end_output()
    return code


def _system_error(problem: OSError) -> int:
    """Report an error of the operating system that the command did not expect. One that names a
    file is an error of that file or of its place, and not a defect."""
    if problem.errno in OUT_OF_SPACE:
        complain(f"{PROGRAM}: the output cannot be written: {problem.strerror}")
        return EXIT_OUTPUT
    if isinstance(problem.filename, str | bytes):
        complain(f"{PROGRAM}: {printable(os.fsdecode(problem.filename))}: {reason(problem)}")
        return EXIT_USAGE
    complain(f"{PROGRAM}: {report_defect(problem)}")
    return EXIT_BROKEN


def _end_output() -> None:
    """Write what is buffered, or send it nowhere: Python would complain about it when it exits."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


# --- output -----------------------------------------------------------------------------------


def show(args: argparse.Namespace, found: object, text: str) -> None:
    """Print `found` as JSON with --json, else `text`. File names in it need not be UTF-8."""
    if args.json:
        print_json(found)
    else:
        print(text.encode(errors="surrogateescape").decode(errors="replace"))


def print_json(found: object, *, ascii_only: bool = True) -> None:
    print(json.dumps(found, indent=2, ensure_ascii=ascii_only))


def print_bytes(data: bytes) -> None:
    """Write bytes to stdout, independent of its encoding; nothing if stdout is closed."""
    if sys.stdout is None:
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(data)


def say(text: str) -> None:
    """Print a line for people on stderr."""
    complain(f"{PROGRAM}: {printable(text)}")


# --- checks of arguments ----------------------------------------------------------------------


def path_of(option: str, value: str, allowed: str = "a name") -> Path:
    """Returns a path. Raises UsageProblem if it is empty or has a NUL character."""
    if not value:
        raise UsageProblem(option, "is empty", allowed)
    if "\0" in value:
        raise UsageProblem(option, "has a NUL character", allowed)
    return Path(value)


def text_of(option: str, text: str | None) -> str:
    """Returns one line of text, empty if not given. Raises UsageProblem if it is none."""
    if text is None:
        return ""
    if not text.strip() or not text.isprintable() or len(text) > _MAX_TEXT:
        raise UsageProblem(option, "is no text", f"a line of 1 to {_MAX_TEXT} characters")
    return text


def unicode_of(option: str, text: str) -> str:
    """Returns text of any length. Raises UsageProblem if it cannot be encoded as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UsageProblem(option, "is not UTF-8", "text in UTF-8") from None
    return text


def whole_number(low: int, high: int) -> Callable[[str], int]:
    """Returns an argparse type: a whole number from `low` to `high`."""

    def parse(text: str) -> int:
        digits = text.isascii() and text.isdigit()
        if not digits or not low <= int(text[:20]) <= high:
            allowed = f"allowed: {low} to {high}"
            raise argparse.ArgumentTypeError(f"'{printable(text[:40])}'; {allowed}")
        return int(text)

    return parse


def real_path(path: Path) -> Path:
    """The absolute path without links. A loop of links stays: Path.resolve() raises RuntimeError
    for it before Python 3.13."""
    return Path(os.path.realpath(path))


def reason(problem: OSError) -> str:
    """Returns the operating system's error text, in lower case."""
    return (problem.strerror or str(problem)).lower()


@contextmanager
def os_errors(option: str, file: Path | str, allowed: str) -> Iterator[None]:
    """Turn an OSError into a UsageProblem of `option`; a disk that is full passes through."""
    try:
        yield
    except OSError as problem:
        if problem.errno in OUT_OF_SPACE:
            raise
        where = printable(problem.filename or file)
        raise UsageProblem(option, f"{where}: {reason(problem)}", allowed) from None
