"""Whoever keeps what devices tell, and how far each one's record goes.

At a running table the keeper is the audit record: event and cursor are one write. `journal.py` is
a smaller one that keeps cursors only, for tools and for tables without a record of their own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct

from firmware_protocol.host import RecordCursor
from firmware_protocol.messages.enums import Verdict
from firmware_protocol.messages.limits import REREAD_DEPTH
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord

RECENT: Final = 2 * REREAD_DEPTH
"""Chains of so many last records are remembered, to tell a known record from a forged one."""


class Adoption(Struct, frozen=True):
    """Two people have accepted a device's ring although it does not continue the record."""

    verdict: Verdict
    former: RecordCursor
    """Where the record stood."""
    epoch: int
    """The ring that was accepted, as it stood then."""
    oldest: int
    head: int
    chain: bytes
    """Chain of `head`."""
    next: int
    """The first record that is wanted of it: `oldest`, or head + 1 where the rest is let go."""
    by: tuple[str, str]

    @property
    def cursor(self) -> RecordCursor | None:
        """Where the record stands from now on; None where the chain before `next` is not known,
        so that it stands where it stood until that record has come."""
        if self.next == self.head + 1:
            return RecordCursor(self.epoch, self.head, self.chain)
        return RecordCursor(self.epoch, 0, NO_CHAIN) if self.next == 1 else None


class Keeper(Protocol):
    """Keeps one device's records, one call at a time. What keep() or adopt() raises, whatever it
    is, and a call that is called off, mean that nobody knows what is kept: another keeper, or this
    one when it is mended, says so with cursor(). One that cannot say so raises: without that no
    session begins."""

    def cursor(self) -> RecordCursor:
        """The last record that is kept, or NO_CURSOR. Does not wait."""

    def recent(self) -> Mapping[int, bytes]:
        """Chains of the last records of the cursor's ring, by seq. Does not wait."""

    async def keep(self, records: Sequence[EventRecord]) -> None:
        """Keep these, in their order, in one transaction with the cursor. Durable on return."""

    async def adopt(self, adoption: Adoption) -> None:
        """Keep that the next record may be any of that ring, and who said so. Durable.

        Until one of it has come, the record after cursor() may come as well: the ring that was
        adopted may be gone before it could be done."""
