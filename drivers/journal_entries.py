"""What stands in a cursor journal: entries of 256 bytes, and what a whole file of them says.

Each entry has a number, one more than the one before, and the number up to which the file was
known to be durable when it was written. So an entry that was torn by a power cut, which nobody was
told about, differs from one that was kept, acknowledged, and is gone now. Of a record there is
its place and its chain; nothing in here is or tells a card.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from msgspec import Struct

from drivers.keys import MOST_BYTES
from drivers.session import Adoption
from firmware_protocol.host import NO_CURSOR, RecordCursor
from firmware_protocol.tablelink.fingerprints import FINGERPRINT_SIZE
from firmware_protocol.tablelink.plaintext import CHAIN_SIZE, NO_CHAIN, EventRecord

ENTRY_SIZE: Final = 256
TEXT_SIZE: Final = MOST_BYTES
_BODY: Final = struct.Struct(f"<2sBBQQII{CHAIN_SIZE}s{TEXT_SIZE}s{TEXT_SIZE}s")
_CRC: Final = struct.Struct("<I")
_MAGIC: Final = b"TJ"


class JournalRefused(Exception):
    """The journal cannot be used: which file, what is wrong, and what is allowed."""

    def __init__(self, path: object, what: str) -> None:
        super().__init__(path, what)
        self.what = what

    def __str__(self) -> str:
        return f"{self.args[0]}: {self.what}"


class Kind(IntEnum):
    BEGIN = 1
    """First entry: whose journal it is, and where the record stood when the file was made."""
    KEPT = 2
    """A record is kept."""
    ADOPTED = 3
    """Two people accepted the ring as it is; the next record may be any of that ring. `seq` is the
    one before it, `chain` its chain, or zeros where that is not known. If that ring is gone before
    a record of it has come, the next one may be the one after where the record stands."""
    CARRIED = 4
    """An adoption that an older file held: who accepted what. It changes nothing."""


class Entry(Struct, frozen=True):
    kind: Kind
    epoch: int = 0
    seq: int = 0
    chain: bytes = NO_CHAIN
    verdict: int = 0
    first: bytes = b""
    """BEGIN: the device's serial number. ADOPTED, CARRIED: one of the two."""
    second: bytes = b""
    """BEGIN: the fingerprint of its key. ADOPTED, CARRIED: the other."""

    @property
    def cursor(self) -> RecordCursor | None:
        """Where the record stands after this; None: where it stood before."""
        if self.kind is Kind.CARRIED or not self.epoch or (self.seq and self.chain == NO_CHAIN):
            return None
        return RecordCursor(self.epoch, self.seq, self.chain)


class Numbered(Struct, frozen=True):
    """An entry as it stands in the file."""

    number: int
    durable: int
    entry: Entry


class Reading(Struct, frozen=True):
    """What a file says."""

    entries: tuple[Numbered, ...]
    torn: int
    """Bytes at the end that are no entry, and that nobody was told about."""


def begin(serial: str, fingerprint: bytes) -> Entry:
    if len(fingerprint) != FINGERPRINT_SIZE:
        raise ValueError(f"a fingerprint has {FINGERPRINT_SIZE} bytes, not {len(fingerprint)}")
    return Entry(Kind.BEGIN, first=serial.encode("ascii"), second=fingerprint)


def kept(record: EventRecord) -> Entry:
    return Entry(Kind.KEPT, record.epoch, record.seq, record.chain)


def adopted(adoption: Adoption) -> Entry:
    chain = NO_CHAIN if adoption.cursor is None else adoption.cursor.chain
    first, second = adoption.by
    return Entry(
        Kind.ADOPTED,
        adoption.epoch,
        adoption.next - 1,
        chain,
        int(adoption.verdict),
        _name(first),
        _name(second),
    )


def _name(text: str) -> bytes:
    raw = text.encode()
    if not 1 <= len(raw) <= TEXT_SIZE or "\0" in text:
        raise ValueError(f"the name {text!r} does not have 1 to {TEXT_SIZE} bytes in UTF-8")
    return raw


def pack(entry: Entry, number: int, durable: int) -> bytes:
    body = _BODY.pack(
        _MAGIC,
        entry.kind,
        entry.verdict,
        number,
        durable,
        entry.epoch,
        entry.seq,
        entry.chain,
        entry.first,
        entry.second,
    )
    return body + _CRC.pack(zlib.crc32(body))


def unpack(raw: bytes) -> Numbered | None:
    """The entry that these bytes are, or None."""
    if len(raw) != ENTRY_SIZE or not raw.startswith(_MAGIC):
        return None
    body = raw[: _BODY.size]
    if _CRC.pack(zlib.crc32(body)) != raw[_BODY.size :]:
        return None
    _, kind, verdict, number, durable, epoch, seq, chain, first, second = _BODY.unpack(body)
    if kind not in set(Kind):
        return None
    # A fingerprint may end in zeros, which were not filling.
    plain = second[:FINGERPRINT_SIZE] if kind == Kind.BEGIN else second.rstrip(b"\0")
    entry = Entry(Kind(kind), epoch, seq, chain, verdict, first.rstrip(b"\0"), plain)
    return Numbered(number, durable, entry)


def read(path: object, data: bytes) -> Reading:
    """What the file says, or JournalRefused where something that was kept is missing."""
    found = [unpack(data[at : at + ENTRY_SIZE]) for at in range(0, len(data), ENTRY_SIZE)]
    good: list[Numbered] = []
    for one in found:
        if one is None:
            break
        good.append(one)
    if not good:
        raise JournalRefused(path, "its first entry is damaged: whose journal is it?")
    _check_numbers(path, good)
    for one in found[len(good) :]:
        if one is not None and one.durable > good[-1].number:
            raise JournalRefused(
                path,
                f"entries {good[-1].number + 1} to {one.durable} were kept, and are damaged or "
                "missing",
            )
    _check_sequence(path, [one.entry for one in good])
    return Reading(tuple(good), len(data) - len(good) * ENTRY_SIZE)


def _check_numbers(path: object, good: list[Numbered]) -> None:
    for at, one in enumerate(good):
        if one.number != at + 1:
            raise JournalRefused(path, f"entry {at + 1} has the number {one.number}")


def _check_sequence(path: object, entries: Iterable[Entry]) -> None:
    """Each record kept is the one after that before it, save after an adoption."""
    last: Entry | None = None
    stands = NO_CURSOR
    for number, entry in enumerate(entries, 1):
        if (entry.kind is Kind.BEGIN) != (number == 1):
            raise JournalRefused(path, f"entry {number} is a {entry.kind.name}")
        if last is not None and not may_follow(last, stands, entry):
            raise JournalRefused(
                path, f"entry {number} keeps record {entry.seq}, which is not the next one"
            )
        last, stands = entry, entry.cursor or stands


def may_follow(last: Entry, stands: RecordCursor, entry: Entry) -> bool:
    """Whether `entry` may stand after `last`, where the record stands so."""
    if entry.kind is not Kind.KEPT:
        carried = entry.kind is Kind.CARRIED and last.kind in (Kind.BEGIN, Kind.CARRIED)
        return entry.kind is Kind.ADOPTED or carried
    if last.kind is Kind.ADOPTED and entry.epoch == last.epoch:
        return True
    if not stands.epoch:
        return last.kind is not Kind.ADOPTED  # nothing is kept so far
    return (entry.epoch, entry.seq) == (stands.epoch, stands.seq + 1)
