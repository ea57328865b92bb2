"""The boots of a segment: what each must begin with, its keys, and its order of records."""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET

from controller.audit.format.notes import (
    Certificate,
    Checkpoint,
    NoteProblem,
    SignedNote,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import (
    SHORT,
    VOCABULARY,
    NoteData,
    OpenedData,
    TailData,
    table_of,
)
from controller.audit.format.validation import (
    HEX16,
    Strict,
    wrong_opened,
)
from controller.audit.read.reader import PartOfTree
from controller.audit.verify.facts import (
    SECOND,
    BootState,
    DeferredCheckpoint,
    RecordFinding,
    RunHashes,
    SegmentFindings,
)

AFTER_CLOSED: Final = frozenset(("checkpoint", "snapshot", "clock", "witnessed"))
"""Kinds of records that may follow `closed`."""
_BEFORE_OPENED: Final = frozenset(("snapshot", "clock"))
"""Kinds of records that may come before `opened` in a boot."""
_COSIGNATURE: Final = 72
"""Bytes of a timestamp and a signature, after the key id."""


class SegmentBoots:
    """Checks the boots of one segment, record by record."""

    def __init__(
        self,
        origin: str,
        opened: OpenedData | None,
        opened_bytes: bytes,
        note: str,
        found: SegmentFindings,
    ) -> None:
        """`opened` and `note` are the last boot's data and certificate from the snapshot."""
        self.origin = origin
        self.table = table_of(origin)
        self.opened = opened
        self.opened_bytes = opened_bytes
        self.note = note
        self.ended: list[BootState] = []
        """Boots that have ended, with their final state."""
        self.certificates: list[Certificate] = []
        self.checkpoints = self.signed = 0
        self.deferred: list[DeferredCheckpoint] = []
        self.tail_files: set[str] = set()
        self.late = self.longest = 0
        self.now = BootState()
        """The current boot. Its clocks are set when it ends."""
        self.ran: RunHashes = ("", "", "")
        self.version = 0
        """That of the last record."""
        self.begun: bool | None = None
        """Whether its `opened` came first; None until the first record that decides this."""
        self.unusual = True
        """Whether `check_order` must check the next record."""
        self.inherits: RecordFinding | None = None
        """The first record of the segment's first boot if its `opened` is in an earlier segment."""
        self.other: RecordFinding | None = None
        """The first record of the segment's first boot that may not follow `closed`."""
        self.former = 0
        """Seq of the last record before it."""
        self._key: Certificate | None = None
        self._findings = found
        self._given = self._certified(note) if note and opened is not None else None

    @property
    def later_vocabulary(self) -> bool:
        """Whether the boot may contain words that this software does not know."""
        if self.opened is None or self.opened.vocabulary is UNSET:
            return False
        return self.now.version > 1 and self.opened.vocabulary > VOCABULARY

    # --- every record ---------------------------------------------------------------------

    def start_boot(self, record: Strict, seq: int, mono: int) -> None:
        """Start another boot, or report changed hashes within a boot. `mono` is that of the
        previous record."""
        ran = run_hashes(record)
        if record.boot == self.now.name:
            self._findings.report("v, sw, conf or proc is another than before in its boot")
            self.ran, self.version = ran, record.v
            return
        self._findings.report_if(
            record.v < self.version, f"version {record.v} after version {self.version}"
        )
        if self.now.name:
            self._signed_by(mono)
            self.now.mono = mono
            self.ended.append(self.now)
        self._findings.report_if(
            any(boot.name == record.boot for boot in self.ended), f"boot {record.boot} was over"
        )
        self._findings.report_if(
            not all(map(HEX16.fullmatch, (record.boot, *(ran if record.v == 1 else ())))),
            "its boot, sw, conf or proc is not 16 digits 0 to 9 and a to f",
        )
        self.now, self.ran, self.former = BootState(record.boot, record.v), ran, seq - 1
        self.version = record.v
        self.begun = self._key = None
        self.unusual = True

    def check_order(self, kind: str) -> None:
        """Check that this kind of record is allowed at this position in its boot."""
        if self.begun is None and kind not in _BEFORE_OPENED:
            self.begun = kind == "opened"
            if not self.begun:
                self._continue_boot(kind)
        if self.now.unrecorded and kind != "tail":
            self._findings.report(
                f"no tail record tells of {self.now.unrecorded} bytes that were set aside"
            )
            self.now.unrecorded = 0
        if kind not in AFTER_CLOSED:
            self._findings.report_if(self.now.closed, f"a {kind} follows on closed")
            if not self.ended and self.other is None:
                self.other = self._findings.at()
        settled = self.begun is not None and (bool(self.ended) or self.other is not None)
        self.unusual = not settled or self.now.closed or self.now.unrecorded > 0

    def at(self) -> RecordFinding:
        """The current record's position."""
        return self._findings.at()

    def closed_record(self) -> None:
        self.now.closed = self.unusual = True

    def _continue_boot(self, kind: str) -> None:
        """Continue a boot that was opened in an earlier segment; its key may be in the snapshot."""
        if self.ended:
            self._findings.report(f"a boot begins with {kind}, not with opened")
            return
        self.inherits = self._findings.at()
        self._findings.report_if(
            self.now.version == 1 and self.opened is not None and self.ran != _short(self.opened),
            "sw, conf or proc is not the beginning of that in its boot's opened",
        )
        given = self._given
        if given is not None and given.boot == self.now.name:
            self._key, self.now.certified = given, given.seq

    # --- kinds ----------------------------------------------------------------------------

    def opened_record(self, record: Strict, seq: int) -> OpenedData:
        opened = msgspec.json.decode(record.bytes, type=OpenedData)
        self._findings.report_if(self.now.opened or not self.begun, "its boot was opened already")
        wrong = wrong_opened(opened, seq, record.v)
        if wrong:
            self._findings.report(f"opened: {wrong}")
        elif opened.last != self.former:
            self._findings.report(
                f"the boot found {opened.last} records; {self.former} stand before it"
            )
        self._findings.report_if(
            opened.origin != self.origin, f"the boot is of {opened.origin}, another record"
        )
        self._findings.report_if(
            record.v == 1 and self.ran != _short(opened),
            "sw, conf or proc is not the beginning of that in its boot's opened",
        )
        self._findings.report_if(
            self.opened is not None and opened.table_key != self.opened.table_key,
            "the table's key is another one than that of the boot before",
        )
        self.opened, self.opened_bytes = opened, record.bytes
        self.now.opened, self.now.unrecorded = seq, opened.torn
        self.unusual = self.unusual or opened.torn > 0
        return opened

    def tail_record(self, record: Strict) -> TailData | None:
        tail = msgspec.json.decode(record.bytes, type=TailData)
        self.tail_files.add(tail.file)
        if tail.size > self.now.unrecorded or tail.size < 1:
            due = self.now.unrecorded
            self._findings.report(
                f"a tail record of {tail.size} bytes; its boot has {due} left to tell"
            )
            self.now.unrecorded = 0
            return None
        self.now.unrecorded -= tail.size
        self._findings.report_if(
            (tail.verdict == "accepted") != (len(set(tail.two)) == 2 == len(tail.two)),
            "two people are named where they accept a tail, and only there",
        )
        return tail

    def certificate_record(self, record: Strict) -> None:
        note = msgspec.json.decode(record.bytes, type=NoteData).note
        if self._key is not None or self.opened is None:
            self._findings.report(
                "a certificate where none is due: its boot has a key, or was not opened"
            )
            return
        self.note = note
        key = self._key = self._certified(note)
        if key is None:
            return
        self.now.certified = key.seq
        self._findings.report_if(
            key.boot != record.boot or self.now.opened not in (0, key.seq),
            f"the certificate is of boot {key.boot}, opened by record {key.seq}",
        )

    def _certified(self, note: str) -> Certificate | None:
        """Decode the certificate of a boot's key and verify it with the table's key."""
        assert self.opened is not None
        try:
            key = read_certificate(note, VerifierKey.parse(self.opened.table_key))
        except NoteProblem as problem:
            self._findings.report(f"the key of the boot is not certified by the table's: {problem}")
            return None
        if key.origin != self.origin:
            self._findings.report(f"the certificate is of {key.origin}, another record")
            return None
        self.certificates.append(key)
        return key

    def checkpoint_record(self, record: Strict, tree: PartOfTree, seq: int) -> None:
        self.checkpoints += 1
        self._signed_by(record.mono)
        if self.now.signed < 0:
            self.now.signed = record.mono
        note, said = self._read_checkpoint(record)
        if self._key is None:
            self._findings.report("a checkpoint of a boot whose key is not certified before it")
            return
        self._findings.report_if(
            self._key.boot != record.boot,
            f"a checkpoint of boot {record.boot}; the key is that of {self._key.boot}",
        )
        verify_note(note, (self._key.verifier,))
        if self._matches_tree(said, "checkpoint", tree, seq):
            self.signed = max(self.signed, said.size)

    def witnessed_record(self, record: Strict, tree: PartOfTree, seq: int) -> None:
        note, said = self._read_checkpoint(record)
        self._findings.report_if(
            not any(len(one.bytes) == _COSIGNATURE for one in note.signatures),
            "a witnessed checkpoint without a countersignature",
        )
        self._matches_tree(said, "witnessed checkpoint", tree, seq)

    def _read_checkpoint(self, record: Strict) -> tuple[SignedNote, Checkpoint]:
        note = parse_note(msgspec.json.decode(record.bytes, type=NoteData).note)
        return note, parse_checkpoint(note.text)

    def _matches_tree(self, said: Checkpoint, what: str, tree: PartOfTree, seq: int) -> bool:
        if said.origin != self.origin:
            self._findings.report(f"a {what} of {said.origin}, another record")
        elif said.size >= seq:
            self._findings.report(f"a {what} over {said.size} records; {seq - 1} stand before it")
        elif said.size < tree.base:
            self.deferred.append(DeferredCheckpoint(self._findings.at(), said.size, said.root))
        elif said.root != tree.root(said.size):
            self._findings.report(
                f"a {what} over another tree than that of the first {said.size} records"
            )
        else:
            return True
        return False

    def _signed_by(self, mono: int) -> None:
        """Note that a checkpoint covers all records so far, or that their boot has ended."""
        if self.now.unsigned >= 0 and mono - self.now.unsigned > SECOND:
            self.late += 1
            self.longest = max(self.longest, mono - self.now.unsigned)
        self.now.unsigned = -1


def run_hashes(record: Strict) -> RunHashes:
    return record.sw or "", record.conf or "", record.proc or ""


def _short(opened: OpenedData) -> RunHashes:
    return opened.sw[:SHORT], opened.conf[:SHORT], opened.proc[:SHORT]
