"""A journal at a path, opened and closed as often as a test wants; and what is written into it."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from drivers.journal import Journal
from drivers.journal_entries import ENTRY_SIZE
from drivers.session import Adoption
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.messages.common import LogPressure
from firmware_protocol.messages.enums import Verdict
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, chained

PRINT = bytes(range(14)) + b"\0\0"
EPOCH = 77


def ring(count: int, *, epoch: int = EPOCH, first: int = 1) -> list[EventRecord]:
    records: list[EventRecord] = []
    chain = NO_CHAIN
    for seq in range(first, first + count):
        event = LogPressure(seq % 100)
        records.append(chained(chain, epoch=epoch, seq=seq, boot=1, t_us=seq, event=event))
        chain = records[-1].chain
    return records


def cursor(record: EventRecord) -> RecordCursor:
    return RecordCursor(record.epoch, record.seq, record.chain)


def adoption(**changes: Any) -> Adoption:
    fields = {
        "verdict": Verdict.GAP,
        "former": NO_CURSOR,
        "epoch": EPOCH,
        "oldest": 5,
        "head": 9,
        "chain": b"headhead",
        "next": 5,
        "by": ("Ann", "Bob"),
    }
    return Adoption(**{**fields, **changes})


class Book:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.options: dict[str, Any] = {"sync": lambda file: None}

    def open(self, **options: Any) -> Journal:
        fields = {"serial": "SH-1", "fingerprint": PRINT, **self.options, **options}
        return Journal.open(self.path, **fields)

    def do(self, *steps: Any, **options: Any) -> tuple[RecordCursor, dict[int, bytes]]:
        """Keep these lists of records and adoptions; the cursor and chains afterwards."""

        async def main() -> tuple[RecordCursor, dict[int, bytes]]:
            journal = self.open(**options)
            try:
                for step in steps:
                    if isinstance(step, Adoption):
                        await journal.adopt(step)
                    else:
                        await journal.keep(step)
                return journal.cursor(), dict(journal.recent())
            finally:
                await journal.close()

        return asyncio.run(main())

    @property
    def entries(self) -> list[bytes]:
        data = self.path.read_bytes()
        return [data[at : at + ENTRY_SIZE] for at in range(0, len(data), ENTRY_SIZE)]
