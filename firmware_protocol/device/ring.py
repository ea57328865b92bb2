"""The ring: a device's records in a file that represents its non-volatile memory.

    header   magic 8, form 2, slot size 2, capacity 4, epoch 4, CRC-32C 4
    slots    72 bytes each; the record with `seq` is in slot (seq - 1) % capacity
    slot     acknowledged seq 4, its chain 8, CRC-32C 4 of both; the record 56

A record is stored as encoded on the wire, so its chain shows whether it is complete. What was
acknowledged when it was committed is before it, so a complete record has it too. It is not sent
and not chained. The file is opened and closed for each commit, so that a dropped device leaks
nothing.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Final, Self

from msgspec import Struct

from firmware_protocol.device.folder import FolderProblem, read_file, write_at, write_atomic
from firmware_protocol.messages import PlaintextType
from firmware_protocol.tablelink import CHAIN_SIZE, NO_CHAIN, crc32c, next_chain

RECORD_SIZE: Final = 56
HASHED: Final = RECORD_SIZE - CHAIN_SIZE
_BLANK: Final = bytes(RECORD_SIZE)
_MAGIC: Final = b"TL ring\0"
_FORM: Final = 2
_HEADER: Final = struct.Struct("<8sHHII")
_CRC: Final = struct.Struct("<I")
_ACKED: Final = struct.Struct(f"<I{CHAIN_SIZE}s")
MARK_SIZE: Final = _ACKED.size + _CRC.size
"""Bytes of a slot before its record."""
SLOT_SIZE: Final = MARK_SIZE + RECORD_SIZE
_START: Final = _HEADER.size + _CRC.size
_RECORD: Final = struct.Struct("<BBII")

ChainCheck = Callable[[bytes, bytes], bool]
"""Whether a record (56 bytes) follows one with this chain."""


def follows(record: bytes, previous: bytes) -> bool:
    return record[HASHED:] == next_chain(previous, record[:HASHED])


class AckedPosition(Struct, frozen=True):
    """The highest acknowledged record."""

    seq: int
    chain: bytes
    """Zeros for seq 0, and if the device does not have it any more."""

    def encode(self) -> bytes:
        data = _ACKED.pack(self.seq, self.chain)
        return data + _CRC.pack(crc32c(data))


NOTHING_ACKED: Final = AckedPosition(0, NO_CHAIN)


def _read_acked(slot: bytes) -> AckedPosition | None:
    """The acknowledged position of a slot; None if it is damaged."""
    data, crc = slot[: _ACKED.size], slot[_ACKED.size : MARK_SIZE]
    return AckedPosition(*_ACKED.unpack(data)) if _CRC.pack(crc32c(data)) == crc else None


class Ring:
    """The records of one epoch. The caller of commit() checks that a slot is free."""

    def __init__(self, path: Path, epoch: int, slots: list[bytes], *, sync: bool) -> None:
        """`slots` without what was acknowledged."""
        self.path = path
        self.epoch = epoch
        self.acked = NOTHING_ACKED
        """Stored with the next record. When the file was opened, that of the last record."""
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
        slots = bytes(SLOT_SIZE * capacity)
        write_atomic(path, header + _CRC.pack(crc32c(header)) + slots, sync=sync)
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
        ring = cls(path, epoch, [slot[MARK_SIZE:] for slot in slots], sync=sync)
        ring._find(fits)
        ring._find_acked(slots)
        return ring

    @property
    def capacity(self) -> int:
        return len(self._slots)

    @property
    def chain(self) -> bytes:
        """The chain of the last record; zeros in an empty ring."""
        return self.record(self.head)[HASHED:] if self.head else NO_CHAIN

    def position(self, seq: int) -> AckedPosition:
        """The position after this record; its chain is zeros if the record is not in the ring."""
        if seq == self.acked.seq:
            return self.acked
        return AckedPosition(seq, self.record(seq)[HASHED:] if self.holds(seq) else NO_CHAIN)

    def holds(self, seq: int) -> bool:
        return self.oldest <= seq <= self.head

    def record(self, seq: int) -> bytes:
        if not self.holds(seq):
            raise LookupError(f"record {seq} is not in the ring: {self.oldest} to {self.head}")
        return self._slots[self._slot(seq)]

    def commit(self, record: bytes) -> None:
        """Append this record durably, with what is acknowledged."""
        self._write(self.acked.encode() + record)
        self._slots[self._slot(self.head + 1)] = record
        self.head += 1
        self.oldest = max(self.oldest, self.head - self.capacity + 1)
        self.torn = False

    def tear(self, record: bytes, size: int) -> None:
        """Write only the first `size` bytes of the next record's slot, as in a power cut."""
        self._write((self.acked.encode() + record)[:size])

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

    def _find_acked(self, slots: list[bytes]) -> None:
        """Read what was acknowledged at the last commit. A damaged position is that of the record
        before."""
        for seq in range(self.head, self.oldest - 1, -1):
            acked = _read_acked(slots[self._slot(seq)])
            if acked is not None:
                self.acked = acked
                return

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
        again = f"form {_FORM}; a device whose folder is removed is created again"
        raise FolderProblem(path, f"is a ring of form {form} with slots of {slot}", again)
    return epoch, capacity
