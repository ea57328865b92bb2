"""Mutation operators: each makes one small fault in a statement."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

COMPARISONS: Final[dict[type[ast.cmpop], type[ast.cmpop]]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}
ARITHMETIC: Final[dict[type[ast.operator], type[ast.operator]]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
SIMPLE: Final = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return, ast.Expr, ast.Raise, ast.If)
"""Statements that are mutated; what is in them is mutated with them, bodies are not."""


class Fault(NamedTuple):
    """One mutation of a statement: the `node`-th node of its head that `operator` applies to."""

    operator: str
    node: int


def _compare(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
        return node
    return None


def _arithmetic(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BinOp | ast.AugAssign) and type(node.op) in ARITHMETIC:
        node.op = ARITHMETIC[type(node.op)]()
        return node
    return None


def _boolean(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node
    return None


def _not(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return None


def _number(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += 1
        return node
    return None


def _truth(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and type(node.value) is bool:
        node.value = not node.value
        return node
    return None


OPERATORS: Final[dict[str, Callable[[ast.AST], ast.AST | None]]] = {
    "compare": _compare,
    "arithmetic": _arithmetic,
    "boolean": _boolean,
    "not": _not,
    "number": _number,
    "truth": _truth,
}
REMOVE: Final = "remove"
"""The whole statement is left out."""


def head(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement in order; of an `if` those of its condition only."""
    root: ast.AST = statement.test if isinstance(statement, ast.If) else statement
    return list(ast.walk(root))


def faults(statement: ast.stmt) -> Iterator[Fault]:
    """The mutations that this statement can have."""
    if not isinstance(statement, SIMPLE):
        return
    for number, node in enumerate(head(statement)):
        for name, change in OPERATORS.items():
            if change(copy.deepcopy(node)) is not None:
                yield Fault(name, number)
    removable = isinstance(statement, ast.Expr) and isinstance(
        statement.value, ast.Call | ast.Await
    )
    if removable or isinstance(statement, ast.Raise | ast.AugAssign):
        yield Fault(REMOVE, 0)


class _Replace(ast.NodeTransformer):
    def __init__(self, old: ast.AST, new: ast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: ast.AST) -> ast.AST:
        return self._new if node is self._old else super().generic_visit(node)


def mutate(tree: ast.Module, statement: ast.stmt, fault: Fault) -> None:
    """Put the fault into the statement of this tree."""
    if fault.operator == REMOVE:
        new: ast.AST = ast.Pass()
        _Replace(statement, ast.copy_location(new, statement)).visit(tree)
    else:
        node = head(statement)[fault.node]
        changed = OPERATORS[fault.operator](node)
        assert changed is not None
        if changed is not node:
            _Replace(node, changed).visit(tree)
    ast.fix_missing_locations(tree)
