"""A round as frames: each record, and the felt after it, as a restart computes it.

The state is folded from the snapshot of the segment. Decisions of another code version are not
computed again: then the state is None.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from threading import Lock
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged
from controller.audit.format.records import OpenedData, Record
from controller.audit.format.segments import HEADER_SIZE, segment_file, unpack
from controller.audit.read.reader import ASK, load, record_of, snapshot_of
from controller.audit.replay import decode_event, procedure_of
from controller.audit.text import TimelineLine, problem_words
from controller.procedure.engine import Procedure, RowFault
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from controller.procedure.prompts import AmountFormat, PromptTerms, irregularity
from controller.procedure.rows import shut
from controller.screens.common.felt import Felt, FeltDrawing, felt_of
from controller.screens.common.texts import load as load_texts

_TEXTS: Final = load_texts()


def shown_felt(s: State, money: AmountFormat, seats: int) -> Felt:
    """The felt in our words, with what holds the table. `seats`: of the table."""
    held = [irregularity(hold.what.value) for hold in s.holds]
    notes = [(f"Held: {one}", "held") for one in held]
    if s.due and s.step is Step.PAYING:
        due = s.due[0]
        notes.append((f"To settle: seat {due.seat}: {money.amount(due.moves)}", "due"))
    more = (f"Held: {', '.join(held)}",) if held else ()
    return felt_of(s, seats, PromptTerms(_TEXTS, money), notes=tuple(notes), more=more)


_DRAWING: Final = FeltDrawing()


class ReplayFrame(Struct, frozen=True):
    """The round after one record."""

    seq: int
    at: int
    """Milliseconds since the first frame."""
    time: str
    who: str
    what: str
    more: tuple[str, ...]
    prompts: tuple[str, ...]
    refused: str
    problem: str
    """As text."""
    picture: int
    """The index of its picture; -1: the state is unknown."""


class RoundReplay(Struct, frozen=True):
    round: int
    pictures: tuple[str, ...]
    frames: tuple[ReplayFrame, ...]

    @property
    def known(self) -> bool:
        """Whether the felt is known."""
        return any(frame.picture >= 0 for frame in self.frames)


def replay_of(
    number: int,
    lines: Sequence[TimelineLine],
    states: Iterable[State | None],
    money: AmountFormat,
    seats: int,
) -> RoundReplay:
    """Records that do not concern the table are skipped."""
    numbers: dict[str, int] = {}
    frames: list[ReplayFrame] = []
    began = lines[0].utc if lines else 0
    at = 0
    for line, state in zip(lines, states, strict=True):
        if line.quiet or line.look:
            continue
        at = max(at, (line.utc - began) // 1000)  # a clock that was set back
        which = -1
        if state is not None:
            which = numbers.setdefault(
                _DRAWING.picture(shown_felt(state, money, seats)), len(numbers)
            )
        frames.append(
            ReplayFrame(
                line.seq,
                at,
                line.time,
                line.who,
                line.what,
                line.facts,
                line.prompts,
                line.refused,
                problem_words(line.problem) if line.problem else "",
                which,
            )
        )
    return RoundReplay(number, tuple(numbers), tuple(frames))


MAX_CACHED: Final = 16
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError)
_DECIDED: Final = b'"kind":"decision"'
_OPENED: Final = b'"kind":"opened"'


class TableReplay(Struct):
    """The state after a record; None if it is unknown."""

    state: State | None = None
    procedure: Procedure | None = None
    proc: str = ""

    def take(self, record: Record) -> None:
        """Apply the next record. Raises RecordDamaged."""
        if record.kind == "opened":
            self._serve(msgspec.json.decode(record.data, type=OpenedData))
        elif record.kind == "decision" and self.state is not None and self.procedure is not None:
            try:
                answer = self.procedure.step(self.state, decode_event(record).event)
            except (msgspec.DecodeError, *_CANNOT):
                self.state = None
                return
            # The rules refuse it: `verify` reports that, and the state is unknown.
            self.state = answer.state if isinstance(answer, Decision) else None

    def _serve(self, opened: OpenedData) -> None:
        if opened.proc != self.proc and self.state is not None:
            self.state = shut(self.state)
        self.proc = opened.proc
        self.procedure = procedure_of(opened)
        if self.procedure is None:
            self.state = None


class ReplayCache:
    """A cache of the states before records; later ones are folded from them. Thread-safe."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._kept: dict[tuple[int, int], TableReplay] = {}
        self._lock = Lock()

    def before(self, number: int, offset: int) -> TableReplay:
        """Returns the state before the record at this offset. Raises RecordDamaged, CannotWrite."""
        with self._lock:
            near = [at for at in self._kept if at[0] == number and at[1] <= offset]
            known = replace(self._kept[max(near)]) if near else None
        since = max(near)[1] if near else 0
        found = before(self._record, number, offset, since, known)
        with self._lock:
            self._kept.pop((number, offset), None)
            self._kept[number, offset] = replace(found)
            if len(self._kept) > MAX_CACHED:
                del self._kept[next(iter(self._kept))]
        return found


def before(
    record: Path, number: int, offset: int, since: int = 0, known: TableReplay | None = None
) -> TableReplay:
    """Returns the state before the record at this offset, from the segment's snapshot or from a
    known state at `since`. Raises RecordDamaged, CannotWrite."""
    file = segment_file(record, number)
    buffer = load(file, number)
    try:
        if known is None:
            known, since = _begun(file, number, buffer)
        at = since
        while at < offset:
            frame = unpack(buffer, at)
            if frame is None:
                raise RecordDamaged(file, f"offset {at}: a record is not whole", ASK)
            # Most records need not be decoded.
            if _DECIDED in frame.data or _OPENED in frame.data:
                known.take(record_of(file, frame))
            at = frame.end
    except msgspec.DecodeError as problem:
        raise RecordDamaged(file, f"cannot be read: {problem}", ASK) from None
    return known


def _begun(file: Path, number: int, buffer: bytes) -> tuple[TableReplay, int]:
    """Returns the state of the snapshot, and the offset of the second record. Raises RecordDamaged,
    DecodeError."""
    first = unpack(buffer, HEADER_SIZE)
    if first is None:
        raise RecordDamaged(file, f"offset {HEADER_SIZE}: its first record is not whole", ASK)
    snapshot = snapshot_of(file, number, record_of(file, first))
    standing = TableReplay()
    if snapshot.opened:
        standing.proc = snapshot.opened.proc
        standing.procedure = procedure_of(snapshot.opened)
    if standing.procedure is not None or not snapshot.opened:
        standing.state = msgspec.json.decode(snapshot.state, type=State | None) or State()
    return standing, first.end


def states(standing: TableReplay, records: Sequence[Record]) -> Iterator[State | None]:
    """Yield the state after each of these records."""
    for record in records:
        standing.take(record)
        yield standing.state
