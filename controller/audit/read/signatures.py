"""Verifies signatures while a record is read: boots, certificates, checkpoints."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Struct

from controller.audit.errors import RecordProblem
from controller.audit.format.notes import (
    TABLE_KEY,
    Certificate,
    Checkpoint,
    KeyKind,
    NoteProblem,
    Signature,
    SignedNote,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import NoteData, OpenedData, Record, RecordPosition
from controller.audit.read.reader import ASK, RecordSegment

_OTHER: Final = "ask the table's floor whether its key was changed, and by whom"


class BadSignature(RecordProblem):
    """A checkpoint or certificate is not signed by the table's key or one that it certified."""


class OtherKey(BadSignature):
    """The table's key has changed, or is not the given one."""


class SignedCheckpoint(Struct, frozen=True):
    """A checkpoint in the record, signed by a certified boot key."""

    seq: int
    """The seq of the checkpoint's own record."""
    boot: str
    note: str
    checkpoint: Checkpoint
    certificate: str
    signature: Signature
    """The boot key's signature, without cosignatures."""


class SignatureReader:
    """Takes records in order, from any segment on. Raises BadSignature."""

    def __init__(self, origin: str, table: VerifierKey | None = None) -> None:
        """`table`: the trusted table key; by default the first that the record names."""
        self._origin = origin
        self.table = table
        self._note = ""
        self._certificate: Certificate | None = None

    def begin(self, segment: RecordSegment) -> None:
        """Start with the boot that the first segment's snapshot describes."""
        snapshot = segment.snapshot
        if snapshot.opened is not UNSET:
            self._opened(str(segment.file), snapshot.opened)
        if snapshot.certificate is not UNSET:
            self._certified(str(segment.file), snapshot.certificate)

    def take(self, place: RecordPosition, record: Record) -> SignedCheckpoint | None:
        """Take the next record; returns the verified checkpoint if it is one."""
        where = str(place)
        try:
            if record.kind == "opened":
                self._opened(where, msgspec.json.decode(record.data, type=OpenedData))
            elif record.kind == "certificate":
                self._certified(where, _note(record))
            elif record.kind == "checkpoint":
                return self._signed(where, record, _note(record))
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise BadSignature(where, f"its {record.kind} cannot be read: {problem}", ASK) from None
        return None

    def _opened(self, where: str, opened: OpenedData) -> None:
        try:
            found = VerifierKey.parse(opened.table_key)
            check_table_key(found, self._origin)
        except NoteProblem as problem:
            raise BadSignature(where, f"its table key is none: {problem}", ASK) from None
        if self.table is None:
            self.table = found
        elif found != self.table:
            raise OtherKey(
                where, f"it names {found!r} as the table's key, not {self.table!r}", _OTHER
            )

    def _certified(self, where: str, note: str) -> None:
        if self.table is None:
            raise BadSignature(where, "a certificate before any table's key", ASK)
        try:
            found = read_certificate(note, self.table)
        except NoteProblem as problem:
            raise BadSignature(
                where, f"{self.table!r} has not certified the key of the boot: {problem}", ASK
            ) from None
        if found.origin != self._origin:
            raise BadSignature(where, f"a certificate of {found.origin}, another record", ASK)
        self._note, self._certificate = note, found

    def _signed(self, where: str, record: Record, text: str) -> SignedCheckpoint:
        key = self._certificate
        if key is None or key.boot != record.boot:
            raise BadSignature(where, "a checkpoint of a boot without a certificate", ASK)
        try:
            note = parse_note(text)
            said = signed_checkpoint(note, key)
        except NoteProblem as problem:
            raise BadSignature(where, f"its checkpoint is none: {problem}", ASK) from None
        if said.size >= record.seq:
            raise BadSignature(
                where,
                f"a checkpoint over {said.size} records, of which not all stand before it",
                ASK,
            )
        return SignedCheckpoint(
            record.seq, record.boot, text, said, self._note, signature_of(note, key)
        )


def signed_checkpoint(note: SignedNote, key: Certificate) -> Checkpoint:
    """Parse a checkpoint signed by this boot's key. Raises NoteProblem."""
    verify_note(note, (key.verifier,))
    said = parse_checkpoint(note.text)
    if said.origin != key.origin:
        raise NoteProblem(f"a checkpoint of {said.origin}, another record")
    return said


def signature_of(note: SignedNote, key: Certificate) -> Signature:
    """The signature of this boot's key, which must be among the note's signatures."""
    mine = (key.verifier.name, key.verifier.key_id)
    return next(one for one in note.signatures if (one.name, one.key_id) == mine)


def check_table_key(key: VerifierKey, origin: str) -> None:
    """Raise NoteProblem unless this can be the table key of this origin."""
    if key.name != origin + TABLE_KEY or key.kind is not KeyKind.ED25519:
        raise NoteProblem(f"{key!r} is no key of the table of {origin}")


def _note(record: Record) -> str:
    return msgspec.json.decode(record.data, type=NoteData).note
