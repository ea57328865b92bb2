"""A campaign of random histories: link, faulty line and simulated shoe.

    python -m tests.long.fuzz.link --steps 1000000 --jobs 2
    python -m tests.long.fuzz.link --history 4711 --length 60     one history again

Exit code 0: all that was tried held. 1: one did not; its seed and how to play it again are shown.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections.abc import Iterator
from typing import Final

from tests.long.fuzz.history import Failed, Tally, play

CHUNK: Final = 50
"""Histories that a process plays before it reports."""


def main(arguments: list[str] | None = None) -> int:
    options = _options(arguments)
    start = time.monotonic()
    try:
        tally = _again(options) if options.history is not None else _campaign(options)
    except Failed as failed:
        print(f"FAILED: {failed}")
        return 1
    print(f"seed {options.seed}: {tally}\n{time.monotonic() - start:.0f} s")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.long.fuzz.link", description=__doc__)
    parser.add_argument("--steps", type=_positive, default=1_000_000, help="how many in all")
    parser.add_argument("--length", type=_positive, default=60, help="steps of one history")
    parser.add_argument("--seed", type=_natural, default=0, help="of the first history")
    parser.add_argument("--jobs", type=_positive, default=1, help="processes")
    parser.add_argument("--history", type=_natural, help="play only the history of this seed")
    return parser.parse_args(arguments)


def _positive(text: str) -> int:
    return _least(text, 1)


def _natural(text: str) -> int:
    return _least(text, 0)


def _least(text: str, least: int) -> int:
    if not text.isdecimal() or int(text) < least:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number from {least} on")
    return int(text)


def _again(options: argparse.Namespace) -> Tally:
    return play(options.history, options.length)


def _campaign(options: argparse.Namespace) -> Tally:
    histories = -(-options.steps // options.length)
    chunks = [
        (first, min(CHUNK, options.seed + histories - first), options.length)
        for first in range(options.seed, options.seed + histories, CHUNK)
    ]
    tally = Tally()
    for number, part in enumerate(_played(chunks, options.jobs), 1):
        tally.add(part)
        if number % 20 == 0:
            print(f"{tally.histories:,} histories, {tally.steps:,} steps", flush=True)
    return tally


def _played(chunks: list[tuple[int, int, int]], jobs: int) -> Iterator[Tally]:
    if jobs == 1:
        yield from map(chunk, chunks)
        return
    with multiprocessing.get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap(_reported, chunks):
            if isinstance(result, str):
                raise Failed(result)
            yield result
        pool.close()
        pool.join()


def _reported(which: tuple[int, int, int]) -> Tally | str:
    """A failure is passed between processes as its text."""
    try:
        return chunk(which)
    except Failed as failed:
        return str(failed)


def chunk(which: tuple[int, int, int]) -> Tally:
    """Histories from a seed on: first seed, how many, steps of each."""
    first, count, length = which
    tally = Tally()
    for seed in range(first, first + count):
        tally.add(play(seed, length))
    return tally


if __name__ == "__main__":
    sys.exit(main())
