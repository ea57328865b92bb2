"""Notes of retired segments, which were exported to a case and removed from the record.

  RECORD/retired/00000007.note   segments up to 7 were retired

The first line is JSON with their tree, chain and face-down cards; a signed note over its SHA-256
follows. So the table's public key verifies both the remaining record and a case that is restored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from controller.audit.format.merkle import Hash, Span, merged
from controller.audit.format.notes import (
    Certificate,
    NoteProblem,
    SigningKey,
    VerifierKey,
    format_note,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import ChainPosition, DeviceCursor
from controller.audit.format.validation import wrong_json
from controller.audit.read.signatures import check_table_key, signed_checkpoint

RETIRED: Final = "retired"
TITLE: Final = "holecard retired 1"
NAME: Final = re.compile(r"([0-9]{8})\.note")
_MAX_FILE_BYTES: Final = 1 << 26
"""Maximum file size in bytes."""
_PIECE: Final = 1 << 20
_LATEST: Final = 253_402_300_800_000_000
"""Microseconds at the end of the year 9999."""
_HEX: Final = re.compile(r"[0-9a-f]{64}")


class TreeStep(Struct, frozen=True, forbid_unknown_fields=True):
    """A growth of the tree, from the size of the step before to this one."""

    size: int
    hashes: tuple[str, ...]
    """Of the largest complete subtrees in between, in order."""


class RetiredCard(Struct, frozen=True, forbid_unknown_fields=True):
    """A card dealt face down in retired segments that may be turned over after them."""

    round: int
    commitment: str
    cursor: DeviceCursor | None
    """The device record that the commitment binds; null if it was in no segment that was present.
    """


class SegmentSummary(Struct, frozen=True):
    """Summary of consecutive segments."""

    segments: tuple[int, int]
    records: tuple[int, int]
    rounds: tuple[int, int]
    """First and last round of their records; 0 and 0 before the first round."""
    days: tuple[str, str]
    """First and last gaming day."""
    root: str
    """Of the tree over all records up to the last of them."""
    chain: str
    tree: tuple[TreeStep, ...]
    """From the record before the first of them on: a step at each cosigned checkpoint, at the last
    record, and at `checkpoint`."""
    checkpoint: str
    """The first signed note that covers all of them."""
    certificates: tuple[str, ...]
    """Of the boots that signed these checkpoints."""
    hole: RetiredCard | None
    drawn: tuple[RetiredCard, ...]
    tails: tuple[str, ...]
    """Quarantine files that their records name."""


class Retirement(SegmentSummary, frozen=True, forbid_unknown_fields=True):
    """Consecutive segments that were retired together."""

    case: str
    """SHA-256 of the case file."""
    seal: str
    utc: int
    two: tuple[str, str]

    @property
    def when(self) -> str:
        return f"{datetime.fromtimestamp(self.utc // 10**6, UTC):%Y-%m-%d %H:%M:%S} UTC"


class RetirementFile(NamedTuple):
    """A retirement's file, parsed; its signature is not verified yet."""

    name: str
    """Path in the record's directory."""
    number: int
    """The last segment, from the file name."""
    said: Retirement | None
    """None if it cannot be parsed."""
    digest: str
    """SHA-256 of the first line."""
    note: str
    wrong: str
    """Why it cannot be parsed."""


class RetiredPart(NamedTuple):
    """All retirements of a record together."""

    segment: int
    """The last retired segment."""
    where: ChainPosition
    frontier: tuple[Hash, ...]
    roots: dict[int, Hash]
    """By size: at cosigned checkpoints and at the end of each retirement."""
    boots: tuple[Certificate, ...]
    signed: int
    """The number of records that the last one's checkpoint covers."""


class RetirementChanged(ValueError):
    """A retirement's file is not what the table's key signed."""


# --- the file ---------------------------------------------------------------------------------


def written(said: Retirement, origin: str, key: SigningKey) -> bytes:
    line = msgspec.json.encode(said)
    text = f"{TITLE}\n{origin}\n{sha256(line).hexdigest()}\n"
    return line + b"\n" + format_note(text, key.sign(text)).encode()


def note_file(record: Path, number: int) -> Path:
    return record / RETIRED / f"{number:08d}.note"


def retirement_files(record: Path) -> list[RetirementFile]:
    """The existing files, in order."""
    place = record / RETIRED
    names = sorted(one.name for one in place.iterdir()) if place.is_dir() else []
    return [_kept(place / name) for name in names if NAME.fullmatch(name)]


def _kept(file: Path) -> RetirementFile:
    name, number = f"{RETIRED}/{file.name}", int(file.stem)
    try:
        with file.open("rb") as opened:
            line, _, rest = opened.read(_MAX_FILE_BYTES).partition(b"\n")
        wrong, note = wrong_json(line), rest.decode()
        if isinstance(wrong, str):
            return RetirementFile(name, number, None, "", "", wrong)
        said = msgspec.json.decode(line, type=Retirement)
    except OSError as problem:
        return RetirementFile(name, number, None, "", "", f"cannot be read: {problem.strerror}")
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        return RetirementFile(name, number, None, "", "", f"cannot be read: {problem}")
    hashes = (said.root, said.chain, said.case, said.seal)
    if not all(map(_HEX.fullmatch, hashes)) or not 0 <= said.utc < _LATEST:
        return RetirementFile(name, number, None, "", "", "has no right hashes, or time")
    return RetirementFile(name, number, said, sha256(line).hexdigest(), note, "")


def sha256_of(file: Path) -> str:
    """Hash a case file. Raises OSError."""
    digest = sha256()
    with file.open("rb") as opened:
        while piece := opened.read(_PIECE):
            digest.update(piece)
    return digest.hexdigest()


# --- what they come to ------------------------------------------------------------------------


def before(kept: Sequence[RetirementFile], origin: str, table: VerifierKey) -> RetiredPart:
    """Verify and combine all retirements from the first record on. Raises RetirementChanged if one
    is not signed by this table's key or does not continue the one before."""
    segment = seq = size = 0
    tree = Span(0)
    chain = b""
    roots: dict[int, Hash] = {}
    boots: list[Certificate] = []
    for one in kept:
        try:
            said = _signed(one, origin, table)
            if said.segments[0] != segment + 1 or said.records[0] != seq + 1:
                raise RetirementChanged(f"does not go on from segment {segment}, record {seq}")
            if said.segments[1] != one.number:
                raise RetirementChanged(f"is of segments up to {said.segments[1]}")
            grown = list(_grown(tree, said))
            if not grown:
                raise RetirementChanged("has no tree")
            segment, seq, size = one.number, said.records[1], grown[-1].end
            tree = next((span for span in grown if span.end == seq), tree)
            if tree.end != seq or tree.root().hex() != said.root:
                raise RetirementChanged(f"its tree has another root at record {seq}")
            certified = [read_certificate(note, table) for note in said.certificates]
            _check_checkpoint(said, grown[-1], certified)
        except (RetirementChanged, NoteProblem, ValueError) as problem:
            raise RetirementChanged(f"{one.name}: {problem}") from None
        chain = bytes.fromhex(said.chain)
        roots |= {span.end: span.root() for span in grown if span.end <= seq}
        boots += certified
    return RetiredPart(segment, ChainPosition(seq, chain), tree.hashes, roots, tuple(boots), size)


def _signed(one: RetirementFile, origin: str, table: VerifierKey) -> Retirement:
    if one.said is None:
        raise RetirementChanged(one.wrong)
    check_table_key(table, origin)
    note = parse_note(one.note)
    verify_note(note, (table,))
    if note.text != f"{TITLE}\n{origin}\n{one.digest}\n":
        raise RetirementChanged("is not what the table's key has signed")
    return one.said


def _grown(tree: Span, said: Retirement) -> Iterator[Span]:
    """The tree at each step. Raises ValueError."""
    for step in said.tree:
        if step.size <= tree.end:
            raise RetirementChanged("the steps of its tree do not go on")
        hashes = [bytes.fromhex(one) for one in step.hashes]
        tree = merged(tree, Span.of(tree.end, step.size, hashes))
        yield tree


def _check_checkpoint(said: Retirement, tree: Span, boots: Iterable[Certificate]) -> None:
    """Verify that a boot signed the tree that these records grew into. Raises NoteProblem."""
    note = parse_note(said.checkpoint)
    checkpoint = parse_checkpoint(note.text)
    ids = {(one.name, one.key_id) for one in note.signatures}
    for boot in boots:
        if (boot.verifier.name, boot.verifier.key_id) in ids:
            signed_checkpoint(note, boot)
            if (checkpoint.size, checkpoint.root) != (tree.end, tree.root()):
                raise RetirementChanged("its checkpoint is over another tree")
            return
    raise RetirementChanged("its checkpoint is signed by no boot of the record")


def step(tree: Span) -> TreeStep:
    return TreeStep(tree.end, tuple(one.hex() for one in tree.hashes))


# --- as text ----------------------------------------------------------------------------------


def in_words(said: Retirement) -> str:
    (first, last), who = said.records, " and ".join(said.two)
    retired = f"records {first} to {last} were retired on {said.when} by {who}"
    return f"{retired}, root {said.root}; case sha256 {said.case}"


def where_retired(
    record: Path,
    *,
    rounds: tuple[int, int] = (0, 0),
    seqs: tuple[int, int] = (0, 0),
    day: str = "",
) -> str:
    """Which of these were retired and to which case, as text; empty if none. Not verified: a hint
    where to search."""
    summaries = [one.said for one in retirement_files(record) if one.said is not None]
    for said in summaries:
        found = _asked(said, rounds, seqs, day)
        if found:
            part = "" if _whole(said, rounds, seqs) else "a part of "
            were = "were" if "s " in found else "was"
            return f"{part}{found} {were} retired on {said.when}, case sha256 {said.case}"
    return ""


def _asked(said: Retirement, rounds: tuple[int, int], seqs: tuple[int, int], day: str) -> str:
    if day:
        return f"gaming day {day}" if said.days[0] <= day <= said.days[1] else ""
    for name, (first, last), (begins, ends) in (
        ("round", rounds, said.rounds),
        ("record", seqs, said.records),
    ):
        if last and first <= ends and begins <= last:
            low, high = max(first, begins), min(last, ends)
            return f"{name} {low}" if low == high else f"{name}s {low} to {high}"
    return ""


def _whole(said: Retirement, rounds: tuple[int, int], seqs: tuple[int, int]) -> bool:
    """Whether no part is missing: the last round of a retirement may continue after it."""
    first, last = rounds
    return not last or not first <= said.rounds[1] <= last
