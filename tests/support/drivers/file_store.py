"""A record store in a file: one JSON line for each record and each adoption."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from drivers.devices import DeviceEvent
from drivers.session import AdoptedRing
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink import EventRecord


class FileStore:
    def __init__(self, path: Path) -> None:
        self._path = path
        self.lines: list[dict[str, Any]] = []
        if path.exists():
            self.lines = [json.loads(line) for line in path.read_text().splitlines()]

    @property
    def seqs(self) -> list[int]:
        return [line["seq"] for line in self.lines if "by" not in line]

    def cursor(self) -> RecordCursor:
        if not self.lines:
            return NO_CURSOR
        last = self.lines[-1]
        return RecordCursor(last["epoch"], last["seq"], bytes.fromhex(last["chain"]))

    def recent(self) -> Mapping[int, bytes]:
        epoch = self.cursor().epoch
        found = (line for line in self.lines if line["epoch"] == epoch and "by" not in line)
        return {line["seq"]: bytes.fromhex(line["chain"]) for line in found}

    async def store(self, record: EventRecord, event: DeviceEvent) -> None:
        self._append(epoch=record.epoch, seq=record.seq, chain=record.chain.hex())

    async def adopt(self, ring: AdoptedRing) -> None:
        to = ring.cursor
        assert to is not None
        self._append(epoch=to.epoch, seq=to.seq, chain=to.chain.hex(), by=ring.by)

    def _append(self, **line: Any) -> None:
        with self._path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        self.lines.append(line)
