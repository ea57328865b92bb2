"""Encodes entries to frames with hashes and positions, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple, Self

from msgspec import UNSET, Struct

from controller.audit.format.frames import MOST_BYTES, pack
from controller.audit.format.records import (
    SHORT,
    VERSION,
    BootIdentity,
    ChainPosition,
    Moment,
    RecordEntry,
    WrittenFirst,
    WrittenRest,
    WrittenTime,
    encode,
)


class EntryTooLarge(ValueError):
    """An entry, or a batch, exceeds the size limit."""


class BootFields(NamedTuple):
    """The fields that all records of a boot share."""

    begin: bytes
    """The encoded record up to its seq."""
    sw: str
    conf: str
    proc: str

    @classmethod
    def of(cls, identity: BootIdentity, boot: str) -> Self:
        hashes = (identity.sw[:SHORT], identity.conf[:SHORT], identity.proc[:SHORT])
        first = encode(WrittenFirst(VERSION, identity.table, boot))
        return cls(first[:-1] + b',"seq":', *hashes)


class EncodedEntry(Struct, frozen=True, gc=False):
    """An entry encoded except for its seq and time; can be made in parallel to an append."""

    entry: RecordEntry
    rest: bytes
    """The encoded record behind its time."""


class StagedFrames(Struct, frozen=True, gc=False):
    """Frames ready to be written, with their leaf hashes and positions."""

    data: bytes
    leaves: list[bytes]
    made: list[ChainPosition]


def encode_entry(entry: RecordEntry, head: BootFields) -> EncodedEntry:
    """Encode an entry. Raises TypeError, ValueError."""
    written = encode(
        WrittenRest(
            entry.round,
            entry.kind,
            entry.by,
            head.sw,
            head.conf,
            head.proc,
            entry.cause or UNSET,
            entry.cursor or UNSET,
            entry.data,
        )
    )
    return EncodedEntry(entry, written[1:])


def stage(
    entries: Sequence[EncodedEntry], head: BootFields, moment: Moment, day: str, last: ChainPosition
) -> StagedFrames:
    """Frame the entries as successors of the record `last`. Raises EntryTooLarge.

    One loop with inlined hashing: it is on the append path.
    """
    begin = head.begin
    time = encode(WrittenTime(day, moment.utc, moment.mono, moment.quality))[1:-1]
    before = seq = last.seq
    chain = last.chain
    frames, leaves, made = [], [], []
    for one in entries:
        seq += 1
        data = b"%b%d,%b,%b" % (begin, seq, time, one.rest)
        if len(data) > MOST_BYTES:
            raise EntryTooLarge(f"a {one.entry.kind} of {len(data)} bytes; at most {MOST_BYTES}")
        leaf = sha256(b"\x00" + data).digest()  # Inlined leaf_hash() and chained().
        chain = sha256(chain + leaf).digest()
        frames.append(pack(seq, before, chain, data))
        leaves.append(leaf)
        made.append(ChainPosition(seq, chain))
    return StagedFrames(b"".join(frames), leaves, made)
