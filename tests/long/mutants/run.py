"""Run the tests that reach a mutant's lines, and say whether they find it."""

from __future__ import annotations

import ast
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from tests.long.mutants.operators import mutate
from tests.long.mutants.sample import Mutant, Place, places

Result: TypeAlias = Literal["killed", "survived", "not reached"]
MAX_TESTS: Final = 150
"""Tests per mutant: those that reach the line, spread over all their modules."""
TIMEOUT: Final = 900.0
"""Seconds for one mutant; a mutant that takes longer hangs, and is killed by that."""
TEST_TIMEOUT: Final = "120"
"""Seconds for one test, as pytest's option takes them."""


class Outcome(Struct, frozen=True):
    """What became of a mutant."""

    mutant: Mutant
    result: Result
    by: str = ""
    """The test that found it."""


class Reached:
    """Which tests reach a line: read from coverage.py's file, with a context for each test."""

    def __init__(self, file: Path, root: Path) -> None:
        self._data = sqlite3.connect(f"file:{file}?mode=ro", uri=True, check_same_thread=False)
        self._root = root
        self._breadth = dict(
            self._data.execute("select context_id, count(*) from line_bits group by context_id")
        )

    def tests(self, file: str, lines: range) -> list[str]:
        """The tests that reach any of these lines; those that reach fewest files come first."""
        rows = self._data.execute(
            "select context.id, context.context, line_bits.numbits from line_bits"
            " join file on file.id = line_bits.file_id"
            " join context on context.id = line_bits.context_id where file.path = ?",
            (str(self._root / file),),
        )
        found: dict[str, int] = {}
        for context, name, bits in rows:
            test = name.partition("|")[0]
            if test and any(_has(bits, line) for line in lines):
                found[test] = max(found.get(test, 0), self._breadth[context])
        return sorted(found, key=lambda test: (found[test], test))


def _has(bits: bytes, line: int) -> bool:
    return line // 8 < len(bits) and bool(bits[line // 8] >> line % 8 & 1)


def _place_of(mutant: Mutant, root: Path) -> tuple[Place, ast.Module]:
    source = (root / mutant.file).read_text("utf-8")
    tree = ast.parse(source)
    folder = str(Path(mutant.file).parent)
    for one in places(root, (folder,)):
        same = (one.file, one.function, one.text, one.index)
        if same == (mutant.file, mutant.function, mutant.statement, mutant.index):
            line = one.statement.lineno
            found = next(
                node
                for node in ast.walk(tree)
                if isinstance(node, ast.stmt)
                and node.lineno == line
                and node.col_offset == one.statement.col_offset
            )
            return Place(one.file, one.function, one.text, one.index, found), tree
    raise LookupError(mutant)


def _spread(tests: list[str]) -> list[str]:
    """At most MAX_TESTS, of every module some."""
    if len(tests) <= MAX_TESTS:
        return tests
    step = len(tests) / MAX_TESTS
    return [tests[int(step * number)] for number in range(MAX_TESTS)]


def try_one(mutant: Mutant, root: Path, scratch: Path, reached: Reached) -> Outcome:
    """The tests against the mutant in `scratch`, a copy of the tree `root`."""
    place, tree = _place_of(mutant, root)
    end = place.statement.end_lineno or place.statement.lineno
    if isinstance(place.statement, ast.If):
        end = place.statement.test.end_lineno or place.statement.lineno
    tests = _spread(reached.tests(mutant.file, range(place.statement.lineno, end + 1)))
    if not tests:
        return Outcome(mutant, "not reached")
    mutate(tree, place.statement, mutant.fault)
    file = scratch / mutant.file
    original = file.read_text("utf-8")
    _write(file, ast.unparse(tree))
    try:
        return _run(mutant, scratch, tests)
    finally:
        _write(file, original)


def _write(file: Path, source: str) -> None:
    """Write a module, and drop its bytecode: a second is too coarse to tell two versions apart."""
    file.write_text(source, "utf-8")
    for bytecode in (file.parent / "__pycache__").glob(f"{file.stem}.*.pyc"):
        bytecode.unlink()


def _run(mutant: Mutant, scratch: Path, tests: list[str]) -> Outcome:
    """Run the tests; a test that fails once and then passes is flaky, and is left out."""
    while tests:
        failed = _first_failure(scratch, tests)
        if failed is None:
            return Outcome(mutant, "survived")
        if failed not in tests or _first_failure(scratch, [failed]):
            return Outcome(mutant, "killed", failed)
        tests = [test for test in tests if test != failed]
    return Outcome(mutant, "survived")


def _first_failure(scratch: Path, tests: list[str]) -> str | None:
    """The first of the tests that fails in `scratch`, or what ended the run before one did."""
    command = [sys.executable, "-m", "pytest", "-q", "-x", "--timeout", TEST_TIMEOUT, *tests]
    command += ["-p", "no:cacheprovider", "-p", "no:xdist"]
    process = subprocess.Popen(
        command,
        cwd=scratch,
        env={**os.environ, "PYTHONPATH": str(scratch), "PYTHONDONTWRITEBYTECODE": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        out, _ = process.communicate(timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return "hangs"
    if process.returncode == 0:
        return None
    for line in out.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            return line.split(" - ")[0].partition(" ")[2]
    return out[-200:]


def try_all(
    mutants: list[Mutant], root: Path, coverage: Path, scratch: Path, jobs: int
) -> Iterator[Outcome]:
    """Every mutant, `jobs` at once, each in a copy of the tree of its own."""
    reached = Reached(coverage, root)
    copies: Queue[Path] = Queue()
    for number in range(jobs):
        copy = scratch / f"tree-{number}"
        shutil.rmtree(copy, ignore_errors=True)
        ignored = shutil.ignore_patterns(".venv", ".git", "build", "dist", "__pycache__")
        shutil.copytree(root, copy, ignore=ignored)
        copies.put(copy)

    def work(mutant: Mutant) -> Outcome:
        copy = copies.get()
        try:
            return try_one(mutant, root, copy, reached)
        finally:
            copies.put(copy)

    with ThreadPoolExecutor(jobs) as pool:
        yield from pool.map(work, mutants)
