"""Entries become frames: their bytes, hashes and places, before anything is written."""

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
    """One entry, or what is to stand together, is more than there may be."""


class BootFields(NamedTuple):
    """What every record of a boot has."""

    begin: bytes
    """Its bytes up to its seq."""
    sw: str
    conf: str
    proc: str

    @classmethod
    def of(cls, identity: BootIdentity, boot: str) -> Self:
        hashes = (identity.sw[:SHORT], identity.conf[:SHORT], identity.proc[:SHORT])
        first = encode(WrittenFirst(VERSION, identity.table, boot))
        return cls(first[:-1] + b',"seq":', *hashes)


class EncodedEntry(Struct, frozen=True, gc=False):
    """An entry that is written down but for its seq and its time. That can be done by whoever hands
    it in, while others are being recorded."""

    entry: RecordEntry
    rest: bytes
    """What stands behind the time, up to the record's end."""


class StagedFrames(Struct, frozen=True, gc=False):
    """Records on their way: their bytes, and where they lead."""

    data: bytes
    leaves: list[bytes]
    made: list[ChainPosition]


def encode_entry(entry: RecordEntry, head: BootFields) -> EncodedEntry:
    """TypeError, ValueError for what cannot be written down."""
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
    """The frames of these entries right after the record `last`. TooLarge.

    One loop with the hashes written out: everybody who waits for the disk waits for this too."""
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
        leaf = sha256(b"\x00" + data).digest()  # leaf_hash() and chained()
        chain = sha256(chain + leaf).digest()
        frames.append(pack(seq, before, chain, data))
        leaves.append(leaf)
        made.append(ChainPosition(seq, chain))
    return StagedFrames(b"".join(frames), leaves, made)
