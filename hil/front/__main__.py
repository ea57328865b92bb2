"""python -m hil.front shoe --dir D ...: `holecard sim` where the package is not installed."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence

from controller.rules.problem import UsageProblem
from hil.front.sim_cli import register


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m hil.front", allow_abbrev=False)
    register(parser.add_subparsers())
    parsed = parser.parse_args(["sim", *arguments])
    func: Callable[[argparse.Namespace], int] | None = getattr(parsed, "func", None)
    if func is None:
        parser.parse_args(["sim", "--help"])
        return 2
    try:
        return func(parsed)
    except UsageProblem as problem:
        print(f"holecard: {problem}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
