"""Fuzzing of all that decodes, guided by coverage.

    python -m tests.long.fuzz.decoders --seconds 60                all targets, 60 seconds each
    python -m tests.long.fuzz.decoders --target link --runs 100000
    python -m tests.long.fuzz.decoders --list

Exit code 0: nothing was found. 1: something was; the bytes are shown and written to a file. 2: the
arguments are wrong, or atheris is not installed.
"""

from __future__ import annotations

import argparse
import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.long.fuzz.targets import TARGETS

MISSING: Final = (
    "tests.long.fuzz.decoders: atheris is not installed; "
    "pip install 'holecard[fuzz]' brings it (CPython 3.11 to 3.13, Linux)"
)
LONGEST: Final = 4096
"""Bytes of an input."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    if options.list:
        print("\n".join(f"{name:14} {target.__doc__}" for name, target in TARGETS.items()))
        return 0
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 2
    if options.inside:
        _fuzz(atheris, options)
    names = list(TARGETS) if options.target is None else [options.target]
    found = [name for name in names if _run(name, options)]
    print(f"found something: {', '.join(found)}" if found else f"{len(names)} targets held")
    return 1 if found else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.long.fuzz.decoders", description=__doc__)
    parser.add_argument("--target", choices=TARGETS, help="only this one")
    parser.add_argument("--seconds", type=_positive, default=30, help="for each target")
    parser.add_argument("--runs", type=_positive, help="inputs for each target, if that is sooner")
    parser.add_argument("--seed", type=_positive, default=1)
    parser.add_argument("--findings", type=Path, default=Path("build/fuzz"), help="a folder")
    parser.add_argument("--list", action="store_true", help="name the targets")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    if not text.isdecimal() or not int(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from 1 on")
    return int(text)


def _run(name: str, options: argparse.Namespace) -> bool:
    """Returns whether a failure was found. libFuzzer ends the process of each target."""
    options.findings.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-m", "tests.long.fuzz.decoders", "--inside", "--target", name]
    command += ["--seconds", str(options.seconds), "--seed", str(options.seed)]
    command += ["--findings", str(options.findings)]
    if options.runs is not None:
        command += ["--runs", str(options.runs)]
    print(f"--- {name}", flush=True)
    return subprocess.run(command, check=False).returncode != 0


def _fuzz(atheris: Any, options: argparse.Namespace) -> None:
    """Does not return: libFuzzer ends the process, with 0 or with its own code."""
    target = TARGETS[options.target]
    atheris.instrument_all()
    words = [
        options.target,
        f"-max_total_time={options.seconds}",
        f"-max_len={LONGEST}",
        f"-seed={options.seed}",
        f"-artifact_prefix={options.findings}/{options.target}-",
        "-timeout=10",
        "-verbosity=0",
        "-print_final_stats=1",
    ]
    if options.runs is not None:
        words.append(f"-runs={options.runs}")
    atheris.Setup(words, target)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
