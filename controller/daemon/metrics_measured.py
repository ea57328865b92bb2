"""The record's writer with a stopwatch, and with a word when nothing can be written any more."""

from __future__ import annotations

import time
from collections.abc import Callable

from controller.audit.errors import Failed
from controller.audit.format.records import Appended, Entry
from controller.table.loop.parts import Writing


class Measured:
    """A writer, measured."""

    def __init__(self, inner: Writing, took: Callable[[float], None]) -> None:
        self._inner = inner
        self._took = took

    @property
    def failed(self) -> Failed | None:
        return self._inner.failed

    async def append(self, *entries: Entry) -> tuple[Appended, ...]:
        """As the writer itself; what is not on the disk is not measured."""
        began = time.perf_counter()
        made = await self._inner.append(*entries)
        self._took(time.perf_counter() - began)
        return made

    async def close(self) -> None:
        await self._inner.close()
