"""A log writer whose disk can be full."""

from collections.abc import Callable

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.audit.log import Log, LogWriter
from controller.table.loop import TableEnvironment


class Bad(LogWriter):
    """A record whose disk can be full."""

    def __init__(self, log: Log, failed: Callable[[LogFailed], None]) -> None:
        self.full = False
        super().__init__(log, failed)

    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]:
        if self.full:
            raise DiskFull("record", "the disk is full", "make room")
        return await super().append(*entries)


def world() -> tuple[TableEnvironment, list[Bad]]:
    made: list[Bad] = []

    def write(log: Log, failed: Callable[[LogFailed], None]) -> Bad:
        made.append(Bad(log, failed))
        return made[0]

    return TableEnvironment(write=write), made
