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
from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts import BETS, AmountFormat, card_words, irregularity
from controller.procedure.rows import shut
from controller.rules.cards import NAMES, Card
from controller.rules.hands import Hand
from controller.screens.common.felt import (
    DOWN,
    Felt,
    FeltDrawing,
    FeltHand,
    FeltSeat,
    bets_at,
    dealers_cards,
    hands_at,
    is_asked,
    names_of,
    spare_card,
    tags_of,
)

_TURNS: Final = (Step.TURN, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.HAND_CARD)
_ASKS: Final = (Step.NATURALS, Step.INSURANCE, Step.INSURANCE_CONFIRM)
_BESIDE: Final = "Beside the shoe"
_CARDS: Final = {name: card_words(card) for card, name in enumerate(NAMES)} | {DOWN: "face down"}


def felt_of(s: State, money: AmountFormat, seats: int) -> Felt:
    """`seats`: of the table."""
    by_number = {seat.number: seat for seat in s.seats}
    numbers = range(1, max(seats, *by_number, 0) + 1)
    notes = [(f"Held: {irregularity(hold.what.value)}", "held") for hold in s.holds]
    if s.due and s.step is Step.PAYING:
        due = s.due[0]
        notes.append((f"To settle: seat {due.seat}: {money.amount(due.moves)}", "due"))
    felt = Felt(
        "Dealer",
        dealers_cards(s),
        _total(s.dealer_total, s.dealer_soft, s.dealer),
        tuple(_seat(s, number, by_number.get(number), money) for number in numbers),
        spare_card(s),
        _BESIDE,
        notes=tuple(notes),
    )
    said = [f"Dealer: {_listed(felt.dealer)}"] if felt.dealer else []
    said += [seat.words for seat in felt.seats if seat.plays]
    said += [f"{_BESIDE}: {_CARDS[felt.spare]}"] if felt.spare else []
    held = ", ".join(irregularity(hold.what.value) for hold in s.holds)
    said += [f"Held: {held}"] if held else []
    return replace(felt, words=tuple(said) or ("Nothing lies on the felt",))


def _seat(s: State, number: int, seat: Seat | None, money: AmountFormat) -> FeltSeat:
    name = f"Seat {number}"
    if seat is None:
        return FeltSeat(number, name)
    hands = tuple(_hand(s, turn, hand, money) for turn, hand in hands_at(s, seat))
    bets = tuple((BETS[bet], money.amount(amount)) for bet, amount in bets_at(s, seat))
    said = "; ".join([*(hand.words for hand in hands), *(f"{bet} {had}" for bet, had in bets)])
    asked = s.step in _ASKS and is_asked(s, seat)
    return FeltSeat(number, name, True, bets, hands, asked, f"{name}: {said or 'nothing'}")


def _hand(s: State, turn: int, hand: Hand, money: AmountFormat) -> FeltHand:
    total = _total(hand.total, hand.soft, hand.cards)
    cards, wager, tags = names_of(hand.cards), money.amount(hand.wager), tags_of(hand)
    mine = s.step in _TURNS and turn == s.turn
    said = [_listed(cards), total, f"wager {wager}", *tags, "in turn" if mine else ""]
    return FeltHand(cards, total, wager, tags, mine, words=", ".join(filter(None, said)))


def _listed(cards: tuple[str, ...]) -> str:
    return ", ".join(_CARDS[name] for name in cards) or "no cards"


def _total(total: int, soft: bool, cards: tuple[Card, ...]) -> str:
    if not cards:
        return ""
    return f"soft {total}" if soft and total < 21 else str(total)


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
            which = numbers.setdefault(_DRAWING.picture(felt_of(state, money, seats)), len(numbers))
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
                answer = self.procedure.step(self.state, decode_event(record.data).event)
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
