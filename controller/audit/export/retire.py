"""Retirement of old gaming days: whole segments are moved from a record to a sealed case.

    retire_segments(record, "2026-05-01", out, ("Ann", "Bo"), table_key)

The order makes it safe to interrupt: a case is written, synced and checked; a note about it is
signed and synced; then the segments are removed in order, each durably. After an interruption the
rest is a valid record, and the same command completes the retirement.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import Final

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct
from msgspec.structs import asdict

from controller.audit.errors import OtherTable, RecordProblem
from controller.audit.export.case import SealedCase, cosigned_sizes, export_case
from controller.audit.export.case_folder import check_case, check_free
from controller.audit.files import (
    Disk,
    acquire_writer_lock,
    make_directory,
    remove_created,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.format.merkle import Hash, Span, leaf_hash, merged
from controller.audit.format.notes import (
    NoteProblem,
    SigningKey,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    table_name,
)
from controller.audit.format.records import NoteData, Record, TailData, table_of
from controller.audit.format.segments import (
    DIRECTORY,
    RecordFrame,
    numbers,
    segment_file,
    segment_name,
)
from controller.audit.proofs import no_progress
from controller.audit.read.access_log import log_access
from controller.audit.read.lookup import Selection, first_head
from controller.audit.read.reader import RecordSegment, read_segment, record_of, segments
from controller.audit.read.retirements import (
    RETIRED,
    Retirement,
    RetirementFile,
    SegmentSummary,
    TreeStep,
    note_file,
    retirement_files,
    sha256_of,
    step,
    written,
)
from controller.audit.read.signatures import SignatureReader, SignedCheckpoint
from controller.audit.replay import other_code_state, other_code_state_after
from controller.audit.verify import (
    FACE_DOWN_EVENTS,
    FaceDownDecision,
    HoleCardTracker,
    RecordFinding,
    event_type,
    verify,
)
from controller.errors import UsageProblem


class NotSigned(RecordProblem):
    """No checkpoint covers all of the segments."""


def sum_segments(
    record: Path, origin: str, last: int, table: VerifierKey, on_segment: Callable[[int], None]
) -> SegmentSummary:
    """Summarise all segments up to `last`. Raises NotSigned, RecordDamaged and BadSignature."""
    wanted = _all_cosigned_sizes(record)
    found = segments(record)
    first = next(found)
    work = _SegmentSums(record, SignatureReader(origin, table), first, last)
    for segment in chain((first,), found):
        on_segment(segment.number)
        summary = work.take(segment, wanted)
        if summary is not None:
            return summary
    raise NotSigned(
        record,
        f"segment {last} has no checkpoint over all of it yet",
        "start the table once: it signs when it begins",
    )


def _all_cosigned_sizes(record: Path) -> set[int]:
    """Sizes of all countersigned checkpoints, from the record and from `cosigned/`."""
    sizes = set(cosigned_sizes(record))
    for segment in segments(record):
        if b'"kind":"witnessed"' in segment.buffer:
            sizes.update(_sizes(segment))
    return sizes


def _sizes(segment: RecordSegment) -> Iterator[int]:
    for frame in segment.frames:
        found = record_of(segment.file, frame)
        if found.kind == "witnessed":
            note = msgspec.json.decode(found.data, type=NoteData).note
            try:
                yield parse_checkpoint(parse_note(note).text).size
            except NoteProblem:  # reported by a verification
                continue


class _SegmentSums:
    """Collects the summary of the segments from `first` to `last`, in order."""

    def __init__(
        self, record: Path, signatures: SignatureReader, first: RecordSegment, last: int
    ) -> None:
        """An earlier retirement was verified against the snapshot of `first`."""
        self._last = last
        self._signatures = signatures
        self._signatures.begin(first)
        self._holes = HoleCardTracker(whole=True)
        kept = retirement_files(record)
        if kept and kept[-1].said is not None:
            self._holes.start_with(kept[-1].said.hole, kept[-1].said.drawn)
        self._begins = (first.number, first.before.seq + 1)
        """Number of the first segment, and seq of its first record."""
        self._tree = first.tree
        """The tree up to the last step."""
        self._part = Span(first.before.seq)
        """The tree since the last step."""
        self._behind: list[Hash] = []
        """Leaves of the records after the last retired one."""
        self._days: set[str] = set()
        self._rounds: set[int] = set()
        self._tails: list[str] = []
        self._steps: list[TreeStep] = []
        self._certificates: dict[str, str] = {}
        self._chain = b""

    def take(self, segment: RecordSegment, wanted: set[int]) -> SegmentSummary | None:
        """Add a segment; returns the summary at the first checkpoint over all of them."""
        for frame in segment.frames:
            found = record_of(segment.file, frame)
            signed = self._signatures.take(segment.place(frame), found)
            if signed is not None and signed.checkpoint.size in wanted:
                self._certificates[signed.boot] = signed.certificate
            if segment.number <= self._last:
                self._part.add(leaf_hash(frame.data))
                if frame is segment.frames[-1] or frame.seq in wanted:
                    self._step()
                self._collect(segment, frame, found)
            elif signed is not None and signed.checkpoint.size >= self._tree.end:
                return self._summary(signed)
            else:
                self._behind.append(leaf_hash(frame.data))
        return None

    def _step(self) -> None:
        self._steps.append(step(self._part))
        self._tree = merged(self._tree, self._part)
        self._part = Span(self._tree.end)

    def _collect(self, segment: RecordSegment, frame: RecordFrame, found: Record) -> None:
        self._chain = frame.chain
        self._days.add(found.day)
        self._rounds.add(found.round)
        if found.kind == "tail":
            self._tails.append(msgspec.json.decode(found.data, type=TailData).file)
        elif found.kind == "decision" and event_type(bytes(found.data)) in FACE_DOWN_EVENTS:
            at = RecordFinding(segment.number, frame.offset, frame.seq, found.round, "", 0)
            table = table_of(segment.snapshot.origin)
            self._holes.take(FaceDownDecision(at, table, found.cursor, bytes(found.data)))

    def _summary(self, signed: SignedCheckpoint) -> SegmentSummary:
        """Argument `signed` is the first checkpoint over all of them."""
        self._certificates[signed.boot] = signed.certificate
        end, root = self._tree.end, self._tree.root().hex()
        for leaf in self._behind[: signed.checkpoint.size - end]:
            self._part.add(leaf)
        if self._part.end > end:
            self._step()
        hole, drawn = self._holes.face_down
        rounds = sorted(self._rounds - {0}) or [0]
        number, seq = self._begins
        return SegmentSummary(
            (number, self._last),
            (seq, end),
            (rounds[0], rounds[-1]),
            (min(self._days), max(self._days)),
            root,
            self._chain.hex(),
            tuple(self._steps),
            signed.note,
            tuple(self._certificates.values()),
            hole,
            drawn,
            tuple(self._tails),
        )


_STARTS: Final = 2
"""Records of the last segment that a start needs; with fewer it reads the segment before."""
_WRITABLE: Final = "let this user write there, and give it room"


class NothingToRetire(RecordProblem):
    """No whole closed segment is old enough."""


class InvalidRecord(RecordProblem):
    """The record is invalid or cannot be checked completely, so it is not changed."""


class BadCase(RecordProblem):
    """The case does not match the record: nothing was removed."""


class UnfinishedRetirement(RecordProblem):
    """An earlier retirement was interrupted, and its case was not given."""


class RetireResult(Struct, frozen=True):
    """What was retired."""

    retirement: Retirement
    note: str
    """Its path in the record's directory."""
    ended: bool
    """Whether this ended an interrupted retirement."""


def retire_segments(  # noqa: PLR0913 - all but the first five have a usual value
    record: Path,
    before: str,
    out: Path,
    two: tuple[str, str],
    table_key: Ed25519PrivateKey,
    *,
    disk: Disk | None = None,
    now: Callable[[], float] = time.time,
    jobs: int = 1,
    on_segment: Callable[[int], None] = no_progress,
) -> RetireResult:
    """Move all whole closed segments of gaming days before `before` to a case at `out`.

    Raises NothingToRetire, InvalidRecord, BadCase, UnfinishedRetirement, InUse, OtherTable, other
    RecordProblem, UsageProblem and OSError. Nothing was removed then, unless the error is one of
    removing.
    """
    with _locked(record):
        work = _RetireRun(record, out, two, table_key, disk or Disk(), on_segment)
        unfinished = work.unfinished()
        if unfinished is not None and os.path.lexists(out):
            return work.finish(unfinished)
        check_free(out)
        work.require_all_segments(unfinished)
        last = work.last_retirable(before)
        work.verify_record(jobs)
        if unfinished is not None:
            work.remove_note(unfinished)
        return work.retire(last, before, int(now() * 1e6))


@contextmanager
def _locked(record: Path) -> Iterator[None]:
    first_head(record)  # fails before a lock file is created if there is no record
    lock = acquire_writer_lock(record)
    try:
        yield
    finally:
        remove_created(lock.made)
        os.close(lock.fd)


class _RetireRun:
    def __init__(
        self,
        record: Path,
        out: Path,
        two: tuple[str, str],
        table_key: Ed25519PrivateKey,
        disk: Disk,
        on_segment: Callable[[int], None],
    ) -> None:
        self._record, self._out, self._two, self._disk = record, out, two, disk
        self._on_segment = on_segment
        self._origin = first_head(record).snapshot.origin
        self._key = SigningKey(table_name(self._origin), table_key)
        self._there = numbers(record)

    # --- one that was cut short -----------------------------------------------------------

    def unfinished(self) -> RetirementFile | None:
        """The last retirement, if some of its segments still exist."""
        kept = retirement_files(self._record)
        if not kept or kept[-1].said is None or self._there[0] > kept[-1].number:
            return None
        return kept[-1]

    def finish(self, kept: RetirementFile) -> RetireResult:
        """Finish it with its case. Raises UsageProblem if `out` is a different case."""
        said = kept.said
        assert said is not None
        self.verify_record(1)  # this verifies the note too
        if not self._out.is_file() or sha256_of(self._out) != said.case:
            what = f"is not the case of {kept.name}, which was cut short: sha256 {said.case}"
            raise UsageProblem("--out", f"{str(self._out)!a} {what}", "that case")
        self._check(None)
        self._remove(said)
        return RetireResult(said, kept.name, True)

    def require_all_segments(self, kept: RetirementFile | None) -> None:
        """Raise UnfinishedRetirement if some of its segments were removed already."""
        if kept is not None and kept.said is not None and self._there[0] > kept.said.segments[0]:
            case = kept.said.case
            raise UnfinishedRetirement(
                self._record,
                f"the retirement of {kept.name} was cut short: sha256 of its case {case}",
                "name that case with --out",
            )

    def remove_note(self, kept: RetirementFile) -> None:
        """Remove the note of a retirement that removed nothing and whose case was not given."""
        with reporting_write_errors(self._record / RETIRED, _WRITABLE):
            self._disk.remove(note_file(self._record, kept.number))
            self._disk.sync_directory(self._record / RETIRED)

    # --- what is to be taken --------------------------------------------------------------

    def last_retirable(self, before: str) -> int:
        """The last segment to retire: old enough, closed, and in no open round. Raises
        NothingToRetire."""
        ends = 0
        for number in [one for one in self._there if one < self._first_kept()]:
            segment = read_segment(self._record, number)
            if max({record_of(segment.file, frame).day for frame in segment.frames}) >= before:
                break
            ends = number
        if not ends:
            raise NothingToRetire(
                self._record,
                f"no whole closed segment has only gaming days before {before}",
                "name a later day, or come back later",
            )
        return ends

    def _first_kept(self) -> int:
        """The first segment that stays: the open one, the one before it if a start reads that, and
        all since a moment when no round was open."""
        open_ = read_segment(self._record, self._there[-1])
        kinds = [record_of(open_.file, frame).kind for frame in open_.frames]
        told = [kind for kind in kinds if kind != "snapshot"]
        keeps = open_.number
        if "opened" not in kinds or len(told) < _STARTS:
            keeps -= 1
        if not _at_rest_points(open_)[-1]:  # the open round began in an earlier segment
            segments = (read_segment(self._record, one) for one in reversed(self._there))
            begins = (one.number for one in segments if any(_at_rest_points(one)))
            keeps = min(keeps, next(begins, self._there[0]))
        return keeps

    def verify_record(self, jobs: int) -> None:
        """Verify the record. Raises InvalidRecord, and OtherTable if another key signed it."""
        report = verify(self._record, replay=False, table_key=self._key.verifier, jobs=jobs)
        if report.table_key != str(self._key.verifier):
            what = "was signed with another table's key than the one that is given"
            raise OtherTable(self._record, what, "name the keys that it was begun with")
        if report.findings or report.unchecked:
            why = [str(one) for one in report.findings] or list(report.unchecked)
            what = f"is not right, and stays as it is: {'; '.join(why[:3])}"
            raise InvalidRecord(self._record, what, "see `holecard audit verify`")

    # --- taking it ------------------------------------------------------------------------

    def retire(self, last: int, before: str, utc: int) -> RetireResult:
        record, disk = self._record, self._disk
        sums = sum_segments(record, self._origin, last, self._key.verifier, self._on_segment)
        who, why = " and ".join(self._two), f"retired: gaming days before {before}"
        pick = Selection(until=last)
        case = export_case(
            record, self._out, pick, who=who, reason=why, on_segment=self._on_segment
        )
        self._check(case)
        said = Retirement(
            **asdict(sums), case=sha256_of(self._out), seal=case.seal, utc=utc, two=self._two
        )
        name = f"{RETIRED}/{last:08d}.note"
        log_access(
            record, "retire", str(pick), who=who, reason=why, out=self._out.name, seal=case.seal
        )
        with reporting_write_errors(record / RETIRED, _WRITABLE):
            make_directory(disk, record / RETIRED)
            write_atomically(disk, note_file(record, last), written(said, self._origin, self._key))
        self._remove(said)
        return RetireResult(said, name, False)

    def _check(self, case: SealedCase | None) -> None:
        """Compare the case with the segments. Raises BadCase, and removes a case that was just
        made."""
        found = check_case(self._out)
        wrong = list(found.wrong)
        in_it = {one.path: one.sha256 for one in found.manifest.files}
        first, last = found.manifest.segments
        for number in [one for one in self._there if first <= one <= last]:
            path = f"record/{DIRECTORY}/{segment_name(number)}"
            if in_it.get(path) != sha256_of(segment_file(self._record, number)):
                wrong.append(f"{path}: is not the segment that lies here")
        if case is not None:
            wrong += case.manifest.remarks
            if found.seal != case.seal:
                wrong.append("its seal is another one")
        if not wrong:
            return
        if case is not None:
            with suppress(OSError):  # the first problem is the one to report
                self._out.unlink()
        raise BadCase(
            self._out,
            f"the case does not check: {wrong[0]}; nothing was removed",
            "look at the disk, and retire again",
        )

    def _remove(self, said: Retirement) -> None:
        """Remove the segments in order, each durably, without a gap. Raises CannotWrite."""
        place = self._record / DIRECTORY
        first, last = said.segments
        with reporting_write_errors(place, "retire again with the same case: that goes on with it"):
            for number in [one for one in self._there if first <= one <= last]:
                self._disk.remove(segment_file(self._record, number))
                self._disk.sync_directory(place)


def _at_rest_points(segment: RecordSegment) -> list[bool]:
    """Whether no round was open: at the start of the segment, and after each decision."""
    standing = other_code_state(bytes(segment.snapshot.state))
    found = [standing.rests]
    for frame in segment.frames:
        record = record_of(segment.file, frame)
        if record.kind == "decision":
            standing = other_code_state_after(standing, record)
            found.append(standing.rests)
    return found
