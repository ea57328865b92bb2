"""Two-person approval to quarantine a tail that no power loss explains.

with TailApproval.at(record, ("Ann", "Bo")) as found:    # read only
    found.accept(table_key)                # a boot begins, records the quarantine, and ends
"""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec.structs import replace

from controller.audit.errors import RecordProblem
from controller.audit.format.records import SHORT, table_of
from controller.audit.format.segments import numbers
from controller.audit.format.tail import TailVerdict
from controller.audit.keys import check_table_key, with_previous_keys
from controller.audit.log import Log, RecordOpening
from controller.audit.read.lookup import head
from controller.audit.read.reader import in_words
from controller.audit.replay.identity import identity_of, procedure_of
from controller.audit.replay.replay import OtherProcedure, replay_opening

_SHOWN: Final = 32
"""Number of bytes that are shown."""


class NothingToApprove(RecordProblem):
    """The tail needs no approval."""


class UnexplainedBytes(NamedTuple):
    """The bytes to quarantine."""

    segment: int
    offset: int
    size: int
    sha256: str
    begin: bytes
    """The first bytes."""


class TailApproval:
    """A record with an unexplained tail, locked."""

    def __init__(self, opening: RecordOpening) -> None:
        self._opening = opening

    @classmethod
    def at(cls, record: Path, two: tuple[str, str]) -> Self:
        """Raises NoRecord, InUse, RecordDamaged, RecordsMissing, CannotWrite; NothingToApprove."""
        there = numbers(record)
        if not there:
            raise _nothing(record, "the record has not begun")
        table = table_of(head(record, there[-1]).snapshot.origin)
        opening = RecordOpening.at(record, table=table, accept=two)
        if opening.tail is None or opening.tail.verdict is not TailVerdict.UNEXPLAINED:
            opening.close()
            raise _nothing(record, _why(opening))
        return cls(opening)

    @property
    def bytes(self) -> UnexplainedBytes:
        segment, tail = self._opening.segment, self._opening.tail
        assert segment is not None and tail is not None  # noqa: PT018 - at() has seen to both
        data = segment.buffer[tail.offset : tail.offset + tail.size]
        return UnexplainedBytes(
            segment.number, tail.offset, tail.size, sha256(data).hexdigest(), data[:_SHOWN]
        )

    def accept(self, table_key: Ed25519PrivateKey) -> int:
        """Quarantine the tail and record it; returns the seq of the last record.

        Raises OtherTable, OtherProcedure, ReplayMismatch, LogFailed, DiskFull. Record and key
        are validated before anything is changed.
        """
        opening = self._opening
        opened = opening.opened()
        if opened is None:
            raise _nothing(opening.record, "the record has no boot yet")
        check_table_key(opening.record, opened, table_key)
        procedure = procedure_of(opened)
        if procedure is None:
            raise OtherProcedure(
                opening.record,
                f"was written by {opened.software}, of other code ({opened.code[:SHORT]})",
                f"do it with {opened.software}",
            )
        folded = replay_opening(opening, procedure)
        last = opening.last
        assert last is not None
        # This boot keeps the game of the one before, so that the next one can continue an open
        # round.
        identity = replace(identity_of(last.table, procedure.game), conf=opened.conf)
        identity = with_previous_keys(identity, opened)
        log = Log.begin(opening, identity, table_key, state=folded.state)
        log.close()
        return log.where.seq

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._opening.close()


def _why(opening: RecordOpening) -> str:
    segment, tail = opening.segment, opening.tail
    if segment is None or tail is None or tail.verdict is TailVerdict.CLEAN:
        return "nothing stands behind the last record"
    return f"{in_words(tail, segment)}: the next start sets them aside by itself"


def _nothing(record: Path, what: str) -> NothingToApprove:
    return NothingToApprove(record, what, "nobody has to accept anything")
