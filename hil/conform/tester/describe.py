"""Reads fields of `describe`, which a maker's own simulator may not have."""

from __future__ import annotations

from typing import Any, TypeVar

from firmware_protocol.device.control import Describe
from firmware_protocol.device.interfaces import Answer
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemSkipped

_T = TypeVar("_T")


def field(answer: Answer, path: str, kind: type[_T]) -> _T:
    """A field of the answer to `describe`. Raises ItemSkipped if it has no such field."""
    found: Any = answer
    for name in path.split("."):
        found = found.get(name) if isinstance(found, dict) else None
    if not isinstance(found, kind):
        raise ItemSkipped(f"a device whose 'describe' has {path}")
    return found


async def described(bench: ConformBench, path: str, kind: type[_T]) -> _T:
    return field(await bench.request(Describe()), path, kind)
