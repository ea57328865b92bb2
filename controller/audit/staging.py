"""Entries become frames: their bytes, hashes and places, before anything is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

from msgspec import UNSET

from controller.audit.frames import MOST_BYTES, chained, pack
from controller.audit.reading import Where
from controller.audit.records import (
    SHORT,
    VERSION,
    Appended,
    Entry,
    Identity,
    Moment,
    Written,
    encode,
)
from controller.audit.tree import leaf_hash


class TooLarge(ValueError):
    """One entry, or what is to stand together, is more than there may be."""


class Head(NamedTuple):
    """What every record of a boot has."""

    table: str
    boot: str
    sw: str
    conf: str
    proc: str

    @classmethod
    def of(cls, identity: Identity, boot: str) -> Self:
        hashes = (identity.sw[:SHORT], identity.conf[:SHORT], identity.proc[:SHORT])
        return cls(identity.table, boot, *hashes)


class Staged(NamedTuple):
    """Records on their way: their bytes, and where they lead."""

    data: bytes
    leaves: list[bytes]
    made: list[Appended]


def stage(entries: Sequence[Entry], head: Head, moment: Moment, day: str, where: Where) -> Staged:
    """The frames of these entries right after `where`. TooLarge."""
    seq, chain = where
    before = seq
    frames, leaves, made = [], [], []
    for entry in entries:
        seq += 1
        data = encode(
            Written(
                VERSION,
                head.table,
                head.boot,
                seq,
                day,
                moment.utc,
                moment.mono,
                moment.quality,
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
        if len(data) > MOST_BYTES:
            raise TooLarge(f"a {entry.kind} of {len(data)} bytes; at most {MOST_BYTES}")
        leaf = leaf_hash(data)
        chain = chained(chain, leaf)
        frames.append(pack(seq, before, chain, data))
        leaves.append(leaf)
        made.append(Appended(seq, chain))
    return Staged(b"".join(frames), leaves, made)
