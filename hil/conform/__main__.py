"""python -m hil.conform --profile shoe ...: `holecard conform` where it is not installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from controller.rules.problem import UsageProblem
from hil.conform.cli import register


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="holecard", allow_abbrev=False)
    register(parser.add_subparsers())
    parsed = parser.parse_args(["conform", *arguments])
    func: Callable[[argparse.Namespace], int] = parsed.func
    try:
        return func(parsed)
    except UsageProblem as problem:
        print(f"holecard: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
