"""What the first segments of a record come to, read once: all that has to stay of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec

from controller.audit.errors import RecordProblem
from controller.audit.format.frames import Frame
from controller.audit.format.merkle import Hash, Span, leaf_hash, merged
from controller.audit.format.notes import VerifierKey, parse_checkpoint, parse_note
from controller.audit.format.notes_forms import NoteProblem
from controller.audit.format.records import NoteData, Record, TailSet
from controller.audit.read.reader import Segment, record_of, segments
from controller.audit.read.retirements import Step, Sums, kept_in, root_of, step
from controller.audit.read.signatures import Signatures, Signed
from controller.audit.verify.decisions import event_of
from controller.audit.verify.finding import Finding
from controller.audit.verify.hole_cards import HIDDEN, Hidden, Holes
from controller.audit.witness.cosignatures import COSIGNED

_NOTE: Final = re.compile(r"([1-9][0-9]{0,17})\.note")


class Unsigned(RecordProblem):
    """No checkpoint is over all of it."""


def summed(
    record: Path, origin: str, last: int, table: VerifierKey, tell: Callable[[int], None]
) -> Sums:
    """Of all segments up to this one. Unsigned; Damaged, BadSignature."""
    work = _Sums(record, origin, last, table)
    wanted = witnessed_sizes(record)
    for segment in segments(record):
        tell(segment.number)
        work.take(segment, wanted)
        if work.signed is not None:
            return work.done()
    todo = "start the table once: it signs when it begins"
    raise Unsigned(record, f"segment {last} has no checkpoint over all of it yet", todo)


def witnessed_sizes(record: Path) -> set[int]:
    """Of all checkpoints that a witness has countersigned, as the record and its directory tell."""
    place = record / COSIGNED
    names = [one.name for one in place.iterdir()] if place.is_dir() else []
    sizes = {int(found[1]) for name in names if (found := _NOTE.fullmatch(name))}
    for segment in segments(record):
        if b'"kind":"witnessed"' in segment.buffer:
            sizes.update(_sizes(segment))
    return sizes


def _sizes(segment: Segment) -> Iterator[int]:
    for frame in segment.frames:
        found = record_of(segment.file, frame)
        if found.kind == "witnessed":
            note = msgspec.json.decode(found.data, type=NoteData).note
            try:
                yield parse_checkpoint(parse_note(note).text).size
            except NoteProblem:  # whoever verifies says so
                continue


class _Sums:
    def __init__(self, record: Path, origin: str, last: int, table: VerifierKey) -> None:
        self._last = last
        self._signatures = Signatures(origin, table)
        self._holes = Holes(whole=True)
        kept = kept_in(record)
        if kept and kept[-1].said is not None:
            self._holes.goes_on(kept[-1].said.hole, kept[-1].said.drawn)
        self._segments = self._records = (0, 0)
        self._part = Span(0)
        """The tree since the last step."""
        self._behind: list[Hash] = []
        """Leaves of records behind the last one that is retired."""
        self._root = ""
        self._days: set[str] = set()
        self._rounds: set[int] = set()
        self._tails: list[str] = []
        self._steps: list[Step] = []
        self._certificates: dict[str, str] = {}
        self._chain = b""
        self._tree = Span(0)
        self.signed: Signed | None = None
        """The first checkpoint over all of them."""

    def take(self, segment: Segment, wanted: set[int]) -> None:
        if not self._segments[0]:
            self._begin(segment)
        for frame in segment.frames:
            found = record_of(segment.file, frame)
            signed = self._signatures.take(segment.place(frame), found)
            if signed is not None and signed.checkpoint.size in wanted:
                self._certificates[signed.boot] = signed.certificate
            if segment.number <= self._last:
                self._grow(frame, last=frame is segment.frames[-1], wanted=wanted)
                self._tell(segment, frame, found)
            elif signed is not None and signed.checkpoint.size >= self._records[1]:
                self._sign(signed)
                return
            else:
                self._behind.append(leaf_hash(frame.data))
        if segment.number <= self._last:
            self._segments = (self._segments[0], segment.number)

    def _begin(self, segment: Segment) -> None:
        """Where the record begins, its first snapshot says what stands before it: that was held
        against the retirement before."""
        seq = segment.before.seq
        hashes = [bytes.fromhex(one) for one in segment.snapshot.frontier]
        self._tree, self._part = Span.of(0, seq, hashes), Span(seq)
        self._segments, self._records = (segment.number, 0), (seq + 1, 0)
        self._signatures.begin(segment)

    def _grow(self, frame: Frame, *, last: bool, wanted: set[int]) -> None:
        self._part.add(leaf_hash(frame.data))
        self._chain = frame.chain
        self._records = (self._records[0], frame.seq)
        if last or frame.seq in wanted:
            self._step()

    def _step(self) -> None:
        self._steps.append(step(self._part))
        self._tree = merged(self._tree, self._part)
        self._part = Span(self._tree.end)

    def _tell(self, segment: Segment, frame: Frame, found: Record) -> None:
        self._days.add(found.day)
        self._rounds.add(found.round)
        if found.kind == "tail":
            self._tails.append(msgspec.json.decode(found.data, type=TailSet).file)
        elif found.kind == "decision" and event_of(bytes(found.data)) in HIDDEN:
            at = Finding(segment.number, frame.offset, frame.seq, found.round, "", 0)
            self._holes.take(Hidden(at, found.table, found.cursor, bytes(found.data)))

    def _sign(self, signed: Signed) -> None:
        self.signed = signed
        self._certificates[signed.boot] = signed.certificate
        self._root = root_of(self._tree).hex()
        for leaf in self._behind[: signed.checkpoint.size - self._records[1]]:
            self._part.add(leaf)
        if self._part.end > self._records[1]:
            self._step()

    def done(self) -> Sums:
        assert self.signed is not None
        hole, drawn = self._holes.down
        rounds = sorted(self._rounds - {0}) or [0]
        return Sums(
            self._segments,
            self._records,
            (rounds[0], rounds[-1]),
            (min(self._days), max(self._days)),
            self._root,
            self._chain.hex(),
            tuple(self._steps),
            self.signed.note,
            tuple(self._certificates.values()),
            hole,
            drawn,
            tuple(self._tails),
        )
