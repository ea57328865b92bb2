"""A sample of mutants of one tree, and the same statements found again in another one."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Final

from msgspec import Struct

from tests.long.mutants.operators import Fault, faults

PACKAGES: Final = (
    "controller/rules",
    "controller/procedure",
    "controller/audit",
    "controller/table",
    "drivers",
)
LEFT_OUT: Final = ("controller/audit/verify_record.py",)
ALIKE: Final = 0.75
"""How alike a statement must be at least to be the same one after renames."""


class Mutant(Struct, frozen=True):
    """A fault in a statement: where it is in its tree."""

    file: str
    function: str
    statement: str
    """As `ast.unparse` writes it; of an `if` its condition only."""
    index: int
    """Which of the same statements in this function."""
    operator: str
    node: int

    @property
    def fault(self) -> Fault:
        return Fault(self.operator, self.node)


class Place(Struct, frozen=True):
    """A statement of a tree."""

    file: str
    function: str
    text: str
    index: int
    statement: ast.stmt


def text_of(statement: ast.stmt) -> str:
    if isinstance(statement, ast.If):
        return f"if {ast.unparse(statement.test)}:"
    return ast.unparse(statement)


def places(root: Path, packages: tuple[str, ...] = PACKAGES) -> Iterator[Place]:
    """The statements in functions of these packages."""
    for package in packages:
        for path in sorted((root / package).rglob("*.py")):
            file = path.relative_to(root).as_posix()
            if file not in LEFT_OUT:
                yield from _of_module(file, ast.parse(path.read_text("utf-8")))


def _of_module(file: str, tree: ast.Module) -> Iterator[Place]:
    for name, function in _functions(tree, ""):
        seen: dict[str, int] = {}
        for statement in _statements(function.body):
            text = text_of(statement)
            seen[text] = seen.get(text, -1) + 1
            yield Place(file, name, text, seen[text], statement)


def _functions(
    node: ast.AST, prefix: str
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{child.name}", child
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for statement in body:
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _statements(getattr(statement, name, []))
        for handler in getattr(statement, "handlers", []):
            yield from _statements(handler.body)


def sample(root: Path, count: int, seed: int) -> list[Mutant]:
    """`count` mutants by chance, every package with its share."""
    every = [
        Mutant(one.file, one.function, one.text, one.index, *fault)
        for one in places(root)
        for fault in faults(one.statement)
    ]
    return Random(seed).sample(every, count)


@cache
def _words(text: str) -> list[str]:
    return re.findall(r"\w+|[^\w\s]", text)


def match(mutants: list[Mutant], root: Path, packages: tuple[str, ...]) -> list[Mutant | None]:
    """Each mutant in another tree: the same text, or else the statement most like it that can have
    the same fault. None where nothing is like it: the statement is gone."""
    every = list(places(root, packages))
    by_text: dict[str, list[Place]] = {}
    for one in every:
        by_text.setdefault(one.text, []).append(one)
    return [_match(mutant, by_text.get(mutant.statement) or every) for mutant in mutants]


def _match(mutant: Mutant, found: list[Place]) -> Mutant | None:
    wanted = _words(mutant.statement)
    function = mutant.function.rpartition(".")[2]
    best: tuple[float, Place] | None = None
    for one in found:
        words = _words(one.text)
        if not 0.5 <= len(words) / len(wanted) <= 2:
            continue
        matcher = difflib.SequenceMatcher(None, wanted, words, autojunk=False)
        if matcher.quick_ratio() < ALIKE:
            continue
        alike = matcher.ratio() + 0.2 * (one.function.rpartition(".")[2] == function)
        alike += 0.1 * (one.index == mutant.index)
        better = best is None or alike > best[0]
        if better and mutant.fault in faults(one.statement):  # last, as it is slow
            best = (alike, one)
    if best is None or best[0] < ALIKE:
        return None
    one = best[1]
    return Mutant(one.file, one.function, one.text, one.index, mutant.operator, mutant.node)
