"""What a session has received, and the position of the tester in the ring."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from firmware_protocol.messages.enums import PlaintextType
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, Plaintext


class RingCursor(Struct, frozen=True):
    """The last record that the tester has accepted."""

    epoch: int
    seq: int
    chain: bytes


NO_CURSOR: Final = RingCursor(0, 0, NO_CHAIN)


class ReceivedPlaintext(Struct, frozen=True):
    """A plaintext and its arrival."""

    at: int
    counter: int
    data: bytes
    what: Plaintext


class ReceivedRecord(Struct, frozen=True):
    """One arrival of a record."""

    at: int
    counter: int
    data: bytes
    record: EventRecord


def call_bytes(
    kind: int,
    ident: int,
    boot: int,
    body: bytes = b"",
    *,
    length: int | None = None,
    flags: int = 0,
    size: int = 56,
) -> bytes:
    """Encode a COMMAND without validation, for malformed ones."""
    head = bytes((PlaintextType.COMMAND, flags, kind, len(body) if length is None else length))
    numbers = ident.to_bytes(4, "little") + boot.to_bytes(8, "little")
    return (head + numbers + body).ljust(size, b"\0")
