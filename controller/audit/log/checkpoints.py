"""Signing of checkpoints, and the check that a record was signed as it must be.

Before a checkpoint is signed, everything written since the last one is read back from the disk and
hashed independently. A signature over what is only in memory could bind the table to a record that
the disk does not have.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import RecordDamaged, RecordProblem
from controller.audit.files import ReadBack
from controller.audit.format.merkle import Span, leaf_hash
from controller.audit.format.notes import (
    Checkpoint,
    SigningKey,
    VerifierKey,
    certificate,
    format_note,
    table_name,
)
from controller.audit.format.records import ChainPosition, Record
from controller.audit.format.segments import segment_file
from controller.audit.log.opening import RecordOpening
from controller.audit.read.reader import ASK, RecordSegment, scan
from controller.audit.read.signatures import BadSignature, SignatureReader


class CheckpointSigner:
    """Signs with the key of one boot, which exists only in this process."""

    def __init__(self, record: Path, origin: str, frontier: Span) -> None:
        self._record = record
        self._origin = origin
        self._key = SigningKey(origin, Ed25519PrivateKey.generate())
        self._tree = frontier.copy()
        """Fed only from bytes that were read back, never from memory."""
        self._back: ReadBack | None = None
        self._number = 0
        self._at = 0

    def certificate(self, boot: str, seq: int, table_key: Ed25519PrivateKey) -> str:
        key = SigningKey(table_name(self._origin), table_key)
        return certificate(self._origin, boot, self._key.verifier.key, seq, key)

    @property
    def way(self) -> Literal["direct", "cached"]:
        return "direct" if self._back is None else self._back.way

    def begin(self, number: int, at: int) -> None:
        """Continue in segment `number`, at offset `at`."""
        self.close()
        self._back = ReadBack(segment_file(self._record, number))
        self._number, self._at = number, at

    def read_back(self, end: int, before: ChainPosition, after: ChainPosition) -> None:
        """Verify the bytes written since the last call, up to offset `end`: they must lead from
        `before` to `after`. Raises RecordDamaged if the disk returns anything else."""
        assert self._back is not None
        found = scan(self._back.read(self._at, end), 0, before)
        self._tree.grow(found.leaves)
        if found.where != after:
            file = segment_file(self._record, self._number)
            seq = found.where.seq
            raise RecordDamaged(
                file, f"the disk gives back something else than was written after seq {seq}", ASK
            )
        self._at = end

    def checkpoint(self, tree: Span) -> str:
        """The signed note over `tree`, which must equal the tree that was read back."""
        root = tree.root()
        if (tree.end, root) != (self._tree.end, self._tree.root()):
            raise RecordDamaged(
                self._record,
                f"the tree of {self._tree.end} records on the disk is not the one in memory",
                ASK,
            )
        text = Checkpoint(self._origin, tree.end, root).text()
        return format_note(text, self._key.sign(text))

    def close(self) -> None:
        back, self._back = self._back, None
        if back is not None:
            back.close()


MAX_UNSIGNED_NS: Final = 10_000_000_000
"""A running controller has signed within this time, however slow its disk is."""
_BEFORE_THE_FIRST: Final = frozenset(
    {"snapshot", "opened", "tail", "fault", "clock", "certificate"}
)
_TODO: Final = "two people may accept that: holecard audit accept-tail"


class UnsignedRecords(RecordProblem):
    """Records that should have been signed and are not."""


def unsigned_faults(opening: RecordOpening, table: VerifierKey) -> list[dict[str, object]]:
    """Faults to record for unsigned records that two people have accepted. Raises BadSignature and
    UnsignedRecords if they have not."""
    if opening.segment is None:
        return []
    try:
        check_signed(opening.segment, opening.records, table)
    except (BadSignature, UnsignedRecords) as problem:
        if opening.accept is None:
            raise
        return [
            {"what": "unsigned", "detail": {"problem": problem.what, "two": list(opening.accept)}}
        ]
    return []


def check_signed(segment: RecordSegment, records: list[Record], table: VerifierKey) -> None:
    """Raise BadSignature or UnsignedRecords unless every boot has signed its records in time."""
    signatures = SignatureReader(segment.snapshot.origin, table)
    signatures.begin(segment)
    tree = segment.tree
    roots: dict[int, bytes] = {tree.end: tree.root()} if tree.end else {}
    first: Record | None = None
    """The first record that no checkpoint covers."""
    began = ""
    for frame, record in zip(segment.frames, records, strict=True):
        place = segment.place(frame)
        found = signatures.take(place, record)
        if record.kind == "opened":
            began = record.boot
        if found is not None:
            size = found.checkpoint.size
            if size in roots and roots[size] != found.checkpoint.root:
                raise UnsignedRecords(
                    segment.file, f"{place}: its checkpoint is over other records", _TODO
                )
            began, first = "", None
        elif began and record.kind not in _BEFORE_THE_FIRST:
            raise UnsignedRecords(
                segment.file,
                f"{place}: boot {began} recorded this before it had signed anything",
                _TODO,
            )
        elif (
            first is not None
            and record.boot == first.boot
            and record.mono - first.mono > MAX_UNSIGNED_NS
        ):
            raise UnsignedRecords(
                segment.file,
                f"{place}: boot {record.boot} had signed nothing for over"
                f" {MAX_UNSIGNED_NS // 10**9} s",
                _TODO,
            )
        elif first is None and record.kind not in _BEFORE_THE_FIRST:
            first = record
        tree.add(leaf_hash(frame.data))
        roots[tree.end] = tree.root()
