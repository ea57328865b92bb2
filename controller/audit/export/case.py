"""A sealed case: some rounds of a record, a day or all of it, for readers without our software.

    CASE/FORMAT.md, verify_record.py     description of the format, and a verifier
    CASE/record/                         whole segments with the requested records
    CASE/checkpoints/, certificates/     signed notes from these segments
    CASE/witnessed/                      the last countersigned note, if it is later
    CASE/proofs/                         one file for each requested round
    CASE/manifest.json                   size and SHA-256 of each file

The record may be in use: nothing is locked. The export is deterministic. A case shows no more of a
face-down card than the record: its commitment, and the copy that is sealed to surveillance.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import UNSET, Struct

from controller.audit.errors import CannotProve, CannotWrite, RecordProblem
from controller.audit.export.case_folder import (
    FORMAT,
    MANIFEST,
    CaseBoot,
    CaseFolder,
    ExportScope,
    Manifest,
    ProofCheckpoint,
    case_folder,
    check_free,
    packed,
    seal_of,
)
from controller.audit.files import NotRegularFile, open_regular
from controller.audit.format.records import OpenedData, Record, TailData
from controller.audit.format.segments import (
    DIRECTORY,
    LARGEST,
    RecordFrame,
    numbers,
    segment_file,
    segment_name,
)
from controller.audit.format.tail import TailVerdict
from controller.audit.proofs import FORMAT as PROOF
from controller.audit.proofs import (
    Proof,
    ProvedRecord,
    TreeHashes,
    last_signed,
    no_progress,
    signed_as,
)
from controller.audit.proofs import encode_proof as packed_proof
from controller.audit.read.access_log import AccessLogger, account, log_access
from controller.audit.read.lookup import (
    Match,
    Selection,
    first_head,
    gone_before,
    matches,
    no_match,
    segment_of,
)
from controller.audit.read.reader import RecordSegment, closed, in_words, read_segment, record_of
from controller.audit.read.retirements import note_file, retirement_files, where_retired
from controller.audit.read.signatures import SignatureReader, SignedCheckpoint
from controller.audit.replay import software_name
from controller.audit.witness import COSIGNED
from controller.commands import real_path
from controller.errors import UsageProblem

_NOTE: Final = re.compile(r"([1-9][0-9]{0,18})\.note")
_WITH_IT: Final = ("FORMAT.md", "verify_record.py")


class SealedCase(Struct, frozen=True):
    """A case that was made."""

    out: Path
    seal: str
    manifest: Manifest


def export_case(
    record: Path,
    out: Path,
    pick: Selection,
    *,
    who: str = "",
    reason: str = "",
    on_segment: Callable[[int], None] = no_progress,
    noted: AccessLogger | None = None,
) -> SealedCase:
    """Export a case, and log that in the access log, or with `noted`.

    Raises RecordProblem, UsageProblem and OSError; then nothing is left at `out`.
    """
    note = noted or log_access
    check_free(out)
    if real_path(record) in real_path(out).parents:
        raise UsageProblem("--out", "lies in the record's own directory", "another place")
    first_head(record)  # fails before the access is logged if there is no record
    note(record, "export", str(pick), who=who, reason=reason, out=_name(out), seal="")
    with case_folder(out) as folder:
        making = _CaseBuilder(record, pick, folder, on_segment)
        making.fill()
        manifest = making.manifest(who or account(), reason)
        data = packed(manifest)
        folder.put(MANIFEST, data)
        seal = seal_of(data)
        note(record, "exported", str(pick), who=who, reason=reason, out=_name(out), seal=seal)
    return SealedCase(out, seal, manifest)


class _CaseBuilder:
    """Fills the folder of one case."""

    def __init__(
        self, record: Path, pick: Selection, folder: CaseFolder, on_segment: Callable[[int], None]
    ) -> None:
        self._record, self._pick, self._folder, self._on_segment = record, pick, folder, on_segment
        # Listed first: the records that are read later include those that these notes cover.
        self._cosigned = cosigned_sizes(record)
        self._there = numbers(record)
        self._origin = first_head(record).snapshot.origin
        self._signatures = SignatureReader(self._origin)
        self._notes: dict[str, str] = {}
        self._boots: dict[str, CaseBoot] = {}
        before = gone_before(record)
        self._remarks: list[str] = [before] if before else []
        self._seqs = (0, 0)
        self._segments = (self._there[0], self._there[-1])
        self._against: SignedCheckpoint | None = None
        self._wanted: list[Match] = []

    def fill(self) -> None:
        if self._pick.until:
            self._segments = (self._there[0], self._pick.until)
        elif not self._pick.everything:
            self._find()
        first, last = self._segments
        for number in [one for one in self._there if first <= one <= last]:
            self._on_segment(number)
            self._segment(number)
        self._witnesses()
        self._retired()
        self._prove()
        for path, text in self._notes.items():
            self._folder.put(path, text.encode())
        for name in _WITH_IT:
            self._folder.put(name, files("controller.audit").joinpath(name).read_bytes())

    def manifest(self, by: str, reason: str) -> Manifest:
        pick, signed, table = self._pick, self._against, self._signatures.table
        against = None
        if signed is not None:
            said = signed.checkpoint
            against = ProofCheckpoint(said.size, said.root.hex(), f"checkpoints/{said.size}.note")
        what: Literal["rounds", "day", "all", "retired"] = (
            "rounds" if pick.first else "day" if pick.day else "retired" if pick.until else "all"
        )
        return Manifest(
            FORMAT,
            self._origin,
            "" if table is None else str(table),
            ExportScope(what, pick.first, pick.last, pick.day),
            by,
            reason,
            software_name(),
            self._segments,
            self._seqs,
            against,
            tuple(self._boots.values()),
            tuple(self._remarks),
            tuple(sorted(self._folder.files)),
        )

    # --- what is asked for ----------------------------------------------------------------

    def _find(self) -> None:
        """Find the requested records, their segments up to a checkpoint over them, and the
        checkpoint of the proofs: one that a witness has countersigned, if there is any."""
        self._wanted = list(matches(self._record, self._pick, self._on_segment))
        if not self._wanted:
            raise no_match(self._record, self._pick, "name rounds or a day that the record has")
        part = where_retired(
            self._record, rounds=(self._pick.first, self._pick.last), day=self._pick.day
        )
        if part:
            self._remarks.append(part)
        told = [one.seq for one in self._wanted if not one.signs]
        last = max(told, default=self._wanted[-1].seq)
        signed = self._witnessed_over(last) or last_signed(self._record)
        unsigned = [seq for seq in told if seq > signed.checkpoint.size]
        if unsigned:
            self._remarks.append(f"records from {unsigned[0]} on were not signed yet: no proofs")
        self._against = signed
        ends = max(self._signed_in(last), self._wanted[-1].segment)
        self._segments = (self._wanted[0].segment, min(ends, self._there[-1]))

    def _signed_in(self, seq: int) -> int:
        """The segment with the first checkpoint over this record."""
        start = segment_of(self._record, seq)
        for number in [one for one in self._there if one >= start]:
            segment = read_segment(self._record, number)
            signatures = SignatureReader(self._origin)
            signatures.begin(segment)
            for frame in segment.frames:
                signed = signatures.take(segment.place(frame), record_of(segment.file, frame))
                if signed is not None and signed.checkpoint.size >= seq:
                    return number
        return start

    def _witnessed_over(self, seq: int) -> SignedCheckpoint | None:
        for size in reversed(self._cosigned):
            if size < seq:
                return None
            name = f"{COSIGNED}/{size}.note"
            try:
                return signed_as(self._record, name, (self._record / name).read_bytes())
            except CannotProve as problem:
                self._remarks.append(f"{name}: {problem.what}")
        return None

    # --- segments -------------------------------------------------------------------------

    def _segment(self, number: int) -> None:
        path = f"record/{DIRECTORY}/{segment_name(number)}"
        file = segment_file(self._record, number)
        try:
            segment = read_segment(self._record, number)
        except CannotWrite:
            raise
        except RecordProblem as problem:
            self._remarks.append(f"segment {number}: {problem.what}")
            self._as_it_is(path, file)
            return
        buffer = segment.buffer
        try:
            if number != self._there[-1]:
                closed(segment)
            else:
                segment, buffer = self._last(segment)
        except RecordProblem as problem:
            self._remarks.append(f"segment {number}: {problem.what}")
        self._folder.put(path, buffer)
        begins = self._seqs[0] or segment.frames[0].seq
        self._seqs = (begins, segment.after.seq)
        try:
            self._take(segment)
        except RecordProblem as problem:
            self._remarks.append(f"segment {number}: {problem.where}: {problem.what}")

    def _last(self, segment: RecordSegment) -> tuple[RecordSegment, bytes]:
        """Read the last segment again if bytes follow its last record: it may be in use.

        Bytes that stay the same are exported; bytes that change are not part of the record yet.
        """
        tail = segment.tail()
        if tail.verdict is TailVerdict.CLEAN:
            return segment, segment.buffer
        again = read_segment(self._record, segment.number)
        if again.buffer == segment.buffer:
            self._remarks.append(f"segment {segment.number}: {in_words(tail, segment)}")
            return segment, segment.buffer
        return again, again.buffer[: again.end].ljust(len(again.buffer), b"\0")

    def _take(self, segment: RecordSegment) -> None:
        """Collect signed notes, boots and quarantine files. Raises RecordProblem."""
        self._signatures.begin(segment)
        opened = segment.snapshot.opened
        if opened is not UNSET and not self._boots:
            self._boot(record_of(segment.file, segment.frames[0]).boot, opened)
        last: SignedCheckpoint | None = None
        for frame in segment.frames:
            last = self._record_taken(segment, frame) or last
        if last is not None:
            self._noted(last)

    def _record_taken(self, segment: RecordSegment, frame: RecordFrame) -> SignedCheckpoint | None:
        found = record_of(segment.file, frame)
        if found.kind == "opened":
            self._boot(found.boot, msgspec.json.decode(found.data, type=OpenedData))
        elif found.kind == "tail":
            self._tail(found)
        return self._signatures.take(segment.place(frame), found)

    def _boot(self, boot: str, opened: OpenedData) -> None:
        self._boots[boot] = CaseBoot(
            boot, opened.software, opened.sw, opened.conf, opened.proc, opened.code
        )

    def _tail(self, found: Record) -> None:
        name = msgspec.json.decode(found.data, type=TailData).file
        file = self._record / name
        if re.fullmatch(r"tails/[0-9-]+\.json", name) and file.is_file():
            self._folder.put(f"record/{name}", file.read_bytes())
        else:
            self._remarks.append(f"{name!a}: is not in the record's directory")

    def _as_it_is(self, path: str, file: Path) -> None:
        """Copy a damaged segment, if it is a regular file of a possible size."""
        with suppress(NotRegularFile), open_regular(file) as opened:
            if os.fstat(opened.fileno()).st_size <= LARGEST:
                self._folder.put(path, opened.read(LARGEST))
                return
        self._remarks.append(f"{path}: is no segment, and not in this case")

    def _noted(self, signed: SignedCheckpoint) -> None:
        self._notes[f"checkpoints/{signed.checkpoint.size}.note"] = signed.note
        self._notes[f"certificates/{signed.boot}.note"] = signed.certificate

    # --- witnesses and proofs -------------------------------------------------------------

    def _witnesses(self) -> None:
        """Copy the notes over these segments, and the last note.

        A note over more records than exist shows that the record was cut off.
        """
        first, last = self._seqs
        whole = self._segments[1] == self._there[-1]
        for size in self._cosigned:
            inside = first - 1 <= size and (size <= last or whole)
            if inside or size == self._cosigned[-1]:
                place = "record/cosigned" if inside else "witnessed"
                self._folder.put(
                    f"{place}/{size}.note", (self._record / COSIGNED / f"{size}.note").read_bytes()
                )

    def _retired(self) -> None:
        """Copy the retirement notes if the case begins where the record begins."""
        for kept in retirement_files(self._record) if self._segments[0] == self._there[0] else ():
            if kept.number < self._segments[0]:
                self._folder.put(
                    f"record/{kept.name}", note_file(self._record, kept.number).read_bytes()
                )

    def _prove(self) -> None:
        """Write a proof file for each round. Only the records of unfinished rounds are held in
        memory."""
        signed = self._against
        if signed is None:
            return
        self._noted(signed)
        of = {
            one.seq: one.round
            for one in self._wanted
            if one.round and one.seq <= signed.checkpoint.size
        }
        if not of:
            return
        hashes = TreeHashes(self._record, list(of), signed)
        hashes.gather(self._on_segment)
        left = Counter(of.values())
        waiting: dict[int, list[ProvedRecord]] = {turn: [] for turn in left}
        for frame in self._frames():
            turn = of.get(frame.seq, 0)
            if not turn:
                continue
            waiting[turn].append(
                ProvedRecord(frame.seq, frame.data.decode(), hashes.inclusion(frame.seq))
            )
            if len(waiting[turn]) == left[turn]:
                records = tuple(waiting.pop(turn))
                self._folder.put(
                    f"proofs/round-{turn:08d}.json",
                    packed_proof(
                        Proof(PROOF, self._origin, signed.note, signed.certificate, records, ())
                    ),
                )

    def _frames(self) -> Iterator[RecordFrame]:
        """The frames of the segments in the case."""
        first, last = self._segments
        for number in range(first, last + 1):
            self._on_segment(number)
            yield from read_segment(self._folder.place / "record", number).frames


def cosigned_sizes(record: Path) -> list[int]:
    """Sizes of the checkpoints that a witness countersigned, sorted."""
    place = record / COSIGNED
    names = [one.name for one in place.iterdir() if one.is_file()] if place.is_dir() else []
    return sorted(int(found[1]) for name in names if (found := _NOTE.fullmatch(name)))


def _name(out: Path) -> str:
    return out.name.encode("unicode_escape", "backslashreplace").decode("ascii")
