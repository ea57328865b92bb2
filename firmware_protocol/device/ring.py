"""The ring: a device's records in a file that represents its non-volatile memory.

    header   magic 8, form 2, slot size 2, capacity 4, epoch 4, CRC-32C 4
    slots    56 bytes each; the record with `seq` is in slot (seq - 1) % capacity

A slot has the 56 bytes of the record as encoded on the wire, so its chain shows whether it is
complete. The file is opened and closed for each commit, so that a dropped device leaks nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from firmware_protocol.device.folder import FolderProblem, read_file, write_at, write_atomic
from firmware_protocol.messages import PlaintextType
from firmware_protocol.tablelink import CHAIN_SIZE, NO_CHAIN, crc32c, next_chain

SLOT_SIZE: Final = 56
HASHED: Final = SLOT_SIZE - CHAIN_SIZE
_BLANK: Final = bytes(SLOT_SIZE)
_MAGIC: Final = b"TL ring\0"
_FORM: Final = 1
_HEADER: Final = struct.Struct("<8sHHII")
_CRC: Final = struct.Struct("<I")
_START: Final = _HEADER.size + _CRC.size
_RECORD: Final = struct.Struct("<BBII")

ChainCheck = Callable[[bytes, bytes], bool]
"""Whether a record (56 bytes) follows one with this chain."""


def follows(record: bytes, previous: bytes) -> bool:
    return record[HASHED:] == next_chain(previous, record[:HASHED])


class Ring:
    """The records of one epoch. The caller of commit() checks that a slot is free."""

    def __init__(self, path: Path, epoch: int, slots: list[bytes], *, sync: bool) -> None:
        self.path = path
        self.epoch = epoch
        self.head = 0
        """Highest seq; 0 in an empty ring."""
        self.oldest = 1
        """Lowest seq; head + 1 in an empty ring."""
        self.torn = False
        """Whether an incomplete record followed the last complete one when the file was opened."""
        self.damaged = 0
        """Highest seq of a damaged record; 0 for none. The records before it are lost."""
        self._slots = slots
        self._sync = sync

    @classmethod
    def create(cls, path: Path, epoch: int, capacity: int, *, sync: bool) -> Self:
        """Create a new ring; it replaces an existing file."""
        header = _HEADER.pack(_MAGIC, _FORM, SLOT_SIZE, capacity, epoch)
        write_atomic(path, header + _CRC.pack(crc32c(header)) + _BLANK * capacity, sync=sync)
        return cls(path, epoch, [_BLANK] * capacity, sync=sync)

    @classmethod
    def open(cls, path: Path, *, sync: bool, fits: ChainCheck = follows) -> Self:
        """Read the ring from its file. Raises FolderProblem."""
        data = read_file(path)
        epoch, capacity = _read_header(path, data)
        slots = [data[at : at + SLOT_SIZE] for at in range(_START, len(data), SLOT_SIZE)]
        if len(slots) != capacity or len(slots[-1]) != SLOT_SIZE:
            raise FolderProblem(
                path, f"has {len(data)} bytes", f"{_START + SLOT_SIZE * capacity} bytes"
            )
        ring = cls(path, epoch, slots, sync=sync)
        ring._find(fits)
        return ring

    @property
    def capacity(self) -> int:
        return len(self._slots)

    @property
    def chain(self) -> bytes:
        """The chain of the last record; zeros in an empty ring."""
        return self.record(self.head)[HASHED:] if self.head else NO_CHAIN

    def holds(self, seq: int) -> bool:
        return self.oldest <= seq <= self.head

    def record(self, seq: int) -> bytes:
        if not self.holds(seq):
            raise LookupError(f"record {seq} is not in the ring: {self.oldest} to {self.head}")
        return self._slots[self._slot(seq)]

    def commit(self, record: bytes) -> None:
        """Append this record durably."""
        self._write(record)
        self._slots[self._slot(self.head + 1)] = record
        self.head += 1
        self.oldest = max(self.oldest, self.head - self.capacity + 1)
        self.torn = False

    def tear(self, record: bytes, size: int) -> None:
        """Write only the first `size` bytes of the next record, as in a power cut."""
        self._write(record[:size])

    def _write(self, data: bytes) -> None:
        at = _START + SLOT_SIZE * self._slot(self.head + 1)
        write_at(self.path, data, at, sync=self._sync)

    def _slot(self, seq: int) -> int:
        return (seq - 1) % self.capacity

    # --- finding head and oldest after a start ---

    def _find(self, fits: ChainCheck) -> None:
        whole = self._candidates()
        self.head = next(
            (seq for seq in sorted(whole, reverse=True) if self._follows_on(whole, seq, fits)), 0
        )
        last = self._slots[self._slot(self.head + 1)]
        lap_before = self.head + 1 - self.capacity
        self.torn = last != _BLANK and lap_before not in whole
        if not self.head and any(slot != _BLANK for slot in self._slots[1:]):
            raise FolderProblem(self.path, "has no complete record", "a new ring")
        self.oldest = self._find_oldest(whole, fits)

    def _candidates(self) -> dict[int, bytes]:
        """Slots with the header of a record of this ring, by seq. Their chain is not checked."""
        out = {}
        for slot, record in enumerate(self._slots):
            kind, flags, epoch, seq = _RECORD.unpack_from(record)
            ours = (kind, flags, epoch) == (PlaintextType.EVENT, 0, self.epoch)
            if ours and seq and self._slot(seq) == slot:
                out[seq] = record
        return out

    def _follows_on(self, whole: dict[int, bytes], seq: int, fits: ChainCheck) -> bool:
        """Whether the chain of the record continues that of the record before it."""
        if seq == 1:
            return fits(whole[seq], NO_CHAIN)
        before = whole.get(seq - 1)
        return before is not None and fits(whole[seq], before[HASHED:])

    def _find_oldest(self, whole: dict[int, bytes], fits: ChainCheck) -> int:
        """Search back from the head until a record is incomplete. The oldest record of a full lap
        cannot be checked itself, because the one before it is overwritten: the next one does."""
        lowest = max(1, self.head - self.capacity + 1)
        if self.torn:
            lowest = max(lowest, self.head - self.capacity + 2)
        seq = self.head
        while seq > lowest:
            if seq - 1 not in whole:
                self.damaged = seq - 1
                return seq
            if not self._follows_on(whole, seq, fits):
                self.damaged = seq
                return seq + 1
            seq -= 1
        if seq == 1 and self.head and not self._follows_on(whole, 1, fits):
            self.damaged = 1
            return 2
        return seq if self.head else 1


def _read_header(path: Path, data: bytes) -> tuple[int, int]:
    allowed = "a ring that this kind of device created"
    if len(data) < _START or not data.startswith(_MAGIC):
        raise FolderProblem(path, "is not a ring", allowed)
    header, crc = data[: _HEADER.size], data[_HEADER.size : _START]
    if _CRC.pack(crc32c(header)) != crc:
        raise FolderProblem(path, "has a damaged header", allowed)
    _, form, slot, capacity, epoch = _HEADER.unpack(header)
    if (form, slot) != (_FORM, SLOT_SIZE) or not epoch or not capacity:
        raise FolderProblem(path, f"is a ring of form {form} with slots of {slot}", allowed)
    return epoch, capacity
