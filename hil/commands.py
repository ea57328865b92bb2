"""Our subcommands by the names of their modules, where the package is not installed."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from controller.errors import UsageProblem

Register = Callable[["argparse._SubParsersAction[argparse.ArgumentParser]"], None]


def run(register: Register, command: str, arguments: Sequence[str]) -> int:
    """`holecard COMMAND ARGUMENTS`, and its exit code."""
    parser = argparse.ArgumentParser(prog="holecard", allow_abbrev=False)
    register(parser.add_subparsers())
    parsed = parser.parse_args([command, *arguments])
    func: Callable[[argparse.Namespace], int] | None = getattr(parsed, "func", None)
    if func is None:
        parser.parse_args([command, "--help"])
        return 2
    try:
        code = func(parsed)
        if sys.stdout is not None:
            sys.stdout.flush()
        return code
    except UsageProblem as problem:
        print(f"holecard: {problem}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # as the command says it: the reader of the output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
