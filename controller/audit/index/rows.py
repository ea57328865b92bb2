"""Collects the rows of consecutive records for the index, and the open state at its end.

The open state (current round, dealer, place of the next card) is stored in the index, so that the
size of each update makes no difference.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.index.schema import (
    AMOUNTS,
    BETS,
    CARDS,
    IRREGULARITIES,
    PEOPLE,
    PROBLEMS,
    RECORDS,
    ROUNDS,
    SEATS,
    SEGMENTS,
    SHIFTS,
    IndexTable,
)
from controller.rules.cards import DECK, Card
from controller.rules.money import Amount

Row = tuple[int, ...]
_NONE = (0, -1)
"""Minimum and maximum if there are no amounts."""


Dealer = TypeVar("Dealer", int, str)


class IndexedRound(Struct, Generic[Dealer], frozen=True, gc=False):
    """A round: from its first wager to the record before the wagers of the next round."""

    round: int
    first_seq: int
    last_seq: int
    first_utc: int
    last_utc: int
    over_seq: int
    """When the cards were cleared away; 0 if the round is not over."""
    over_utc: int
    dealer: Dealer
    """Who dealt its first card: the name, or the number of that word."""
    wagered: Amount = 0
    won: Amount = 0
    void: int = 0
    """1 if it was voided."""
    irregularities: int = 0
    corrected: int = 0
    """Number of its payments that were corrected, during it or later."""

    @property
    def row(self) -> Row:
        return tuple(getattr(self, name) for name in ROUNDS.names)


class OpenShift(Struct, gc=False):
    """A row of `shifts`: who deals, and since when."""

    first_seq: int
    dealer: int


class SegmentRange(Struct, gc=False):
    """A row of `segments`: the range of times and amounts in a segment."""

    number: int
    first_seq: int
    last_seq: int
    first_utc: int
    last_utc: int
    least: int = _NONE[0]
    most: int = _NONE[1]

    @property
    def row(self) -> Row:
        return tuple(getattr(self, name) for name in SEGMENTS.names)


class OpenWagers(Struct, gc=False):
    """The first wager for the next round, and the time of the record before it."""

    seq: int
    utc: int
    before: int
    irregularities: int = 0


class OpenState(Struct, gc=False):
    """The state after the last record."""

    seq: int = 0
    utc: int = 0
    seat: int = 0
    """The seat of the next card; 0: the dealer, or no card is due."""
    unread: int = 0
    """The seat of a card that was not read yet."""
    round: IndexedRound[int] | None = None
    wagers: OpenWagers | None = None
    shift: OpenShift | None = None
    zone: SegmentRange | None = None


class Spans:
    """Rows that span several records, and change with each record."""

    def __init__(self, state: OpenState) -> None:
        self.now = state
        self._rounds: dict[int, IndexedRound[int]] = {}
        self._shifts: list[Row] = []
        self._zones: list[Row] = []
        self.corrected: list[tuple[int]] = []
        """Earlier rounds whose payments were corrected."""

    def record(self, segment: int, seq: int, utc: int) -> None:
        """Add a record. Must be called before the other methods."""
        now = self.now
        now.seq = seq
        zone = now.zone
        if zone is None or zone.number != segment:
            if zone is not None:
                self._zones.append(zone.row)
            now.zone = SegmentRange(segment, seq, seq, utc, utc)
            return
        zone.last_seq = seq
        if utc > zone.last_utc:
            zone.last_utc = utc
        elif utc < zone.first_utc:
            zone.first_utc = utc

    def amount(self, amount: int) -> None:
        zone = self.now.zone
        assert zone is not None
        none = (zone.least, zone.most) == _NONE
        zone.least = amount if none else min(zone.least, amount)
        zone.most = amount if none else max(zone.most, amount)

    # --- rounds ---------------------------------------------------------------------------

    def add_wager(self, utc: int) -> None:
        """A wager was placed. The first one starts the next round, if it is dealt."""
        now = self.now
        if now.wagers is None:
            now.wagers = OpenWagers(now.seq, utc, now.utc)

    def drop_wagers(self) -> None:
        """There are no wagers: the current round continues."""
        now = self.now
        if now.wagers is not None and now.round is not None:
            irregularities = now.round.irregularities + now.wagers.irregularities
            now.round = replace(now.round, irregularities=irregularities)
        now.wagers = None

    def count_irregularity(self) -> None:
        now = self.now
        if now.wagers is not None:
            now.wagers.irregularities += 1
        elif now.round is not None:
            now.round = replace(now.round, irregularities=now.round.irregularities + 1)

    def start_round(self, number: int, utc: int) -> None:
        """Set the current round, which may be a new one."""
        now = self.now
        last = now.round
        if number <= 0 if last is None else number <= last.round:
            return
        first = now.wagers or OpenWagers(now.seq, utc, now.utc)
        if last is not None:
            ended = replace(last, last_seq=first.seq - 1, last_utc=first.before)
            self._rounds[last.round] = ended
        dealer = 0 if now.shift is None else now.shift.dealer
        now.round = IndexedRound(
            round=number,
            first_seq=first.seq,
            last_seq=now.seq,
            first_utc=first.utc,
            last_utc=utc,
            over_seq=0,
            over_utc=0,
            dealer=dealer,
            irregularities=first.irregularities,
        )
        now.wagers = None

    def change_round(self, number: int, **changes: int) -> None:
        """Change fields of the current round, if it is this one."""
        now = self.now.round
        if now is not None and now.round == number:
            self.now.round = replace(now, **changes)

    def count_correction(self, number: int) -> None:
        now, earlier = self.now.round, self._rounds.get(number)
        if now is not None and now.round == number:
            self.now.round = replace(now, corrected=now.corrected + 1)
        elif earlier is not None:
            self._rounds[number] = replace(earlier, corrected=earlier.corrected + 1)
        else:
            self.corrected.append((number,))

    # --- dealers --------------------------------------------------------------------------

    def set_dealer(self, dealer: int) -> None:
        """Set the dealer from this record on."""
        now = self.now
        if now.shift is None or now.shift.dealer != dealer:
            self._end_shift(now.seq - 1)
            now.shift = OpenShift(now.seq, dealer)

    def end_shift(self) -> None:
        """End the shift after this record."""
        self._end_shift(self.now.seq)
        self.now.shift = None

    def _end_shift(self, last: int) -> None:
        shift = self.now.shift
        if shift is not None:
            self._shifts.append((shift.first_seq, last, shift.dealer))

    # --- as rows --------------------------------------------------------------------------

    def changed_rows(self) -> tuple[tuple[IndexTable, list[Row]], ...]:
        """The rows that were changed; they replace those with the same keys."""
        now = self.now
        if now.round is not None:
            now.round = replace(now.round, last_seq=now.seq, last_utc=now.utc)
        rounds = [*self._rounds.values(), *([] if now.round is None else [now.round])]
        shift = now.shift
        shifts = [] if shift is None else [(shift.first_seq, now.seq, shift.dealer)]
        return (
            (ROUNDS, [one.row for one in rounds]),
            (SHIFTS, [*self._shifts, *shifts]),
            (SEGMENTS, [*self._zones, *([] if now.zone is None else [now.zone.row])]),
        )


class Words(dict[str, int]):
    """Numbers of words; an unknown word gets the next number."""

    def __init__(self, known: Iterable[tuple[str, int]] = ()) -> None:
        super().__init__(known)
        self._new: list[tuple[int, str]] = []
        if not self:
            self[""]  # gets number 0, which means no word

    def __missing__(self, word: str) -> int:
        number = len(self)
        self[word] = number
        self._new.append((number, word))
        return number

    def take_new(self) -> list[tuple[int, str]]:
        """Returns the new words, and forget that they are new."""
        new, self._new = self._new, []
        return new


INSERTED: Final = (RECORDS, SEATS, CARDS, AMOUNTS, BETS, IRREGULARITIES, PROBLEMS, PEOPLE)


class Rows:
    """Rows to insert. `end` must be called last for each record."""

    def __init__(self, words: Words, state: OpenState) -> None:
        self.words = words
        self.spans = Spans(state)
        self.inserted: dict[str, list[Row]] = {table.name: [] for table in INSERTED}
        """Rows by the name of their table."""
        # Of the current record:
        self._nth = 0
        self._problem = ""
        self._seat_numbers: set[int] = set()
        self._faces: set[Row] = set()

    def end(self, row: Row) -> None:
        """Add the record itself."""
        seq = row[0]
        self.inserted["records"].append(row)
        if self._seat_numbers:
            self.inserted["seats"] += [(seat, seq) for seat in self._seat_numbers]
            self._seat_numbers.clear()
        if self._faces:
            self.inserted["cards"] += self._faces
            self._faces.clear()
        if self._problem:
            self.inserted["problems"].append((seq, self.words[self._problem]))
            self._problem = ""
        self._nth = 0

    def seat(self, seat: int) -> None:
        """The record is about this seat."""
        if seat > 0:
            self._seat_numbers.add(seat)

    def card(self, seq: int, card: Card, seat: int, how: str) -> None:
        """A card lies face up."""
        if 0 <= card < len(DECK):
            self._faces.add((card, seq, seat, self.words[how]))
            self.seat(seat)

    def amount(self, seq: int, what: str, seat: int, bet: str, amount: Amount) -> None:
        w = self.words
        self.inserted["amounts"].append((seq, self._next(), w[what], seat, w[bet], amount))
        self.spans.amount(amount)
        self.seat(seat)

    def add_bet(self, seq: int, numbers: Row, bet: str, outcome: str, why: str) -> None:
        """Argument `numbers` has round, seat, hand, stake and returned amount."""
        w = self.words
        round_, seat, hand, stake, returned = numbers
        words = (w[bet], w[outcome], w[why])
        self.inserted["bets"].append(
            (seq, self._next(), round_, seat, hand, *words[:2], stake, returned, words[2])
        )

    def irregularity(self, seq: int, what: str, seat: int) -> None:
        """An irregularity was found; a ruling about it gets its own row."""
        self.inserted["irregularities"].append((self.words[what], seq, self._next(), seat, 0, 0, 0))
        self.seat(seat)
        self.problem(what)
        self.spans.count_irregularity()

    def add_ruling(self, seq: int, what: str, way: str, by: str, second: str) -> None:
        w = self.words
        self.inserted["irregularities"].append(
            (w[what], seq, self._next(), 0, w[way], w[by], w[second])
        )

    def problem(self, what: str) -> None:
        """Only the first problem of a record is listed."""
        self._problem = self._problem or what

    def person(self, seq: int, name: str, part: str) -> None:
        self.inserted["people"].append((self.words[name], seq, self.words[part]))

    def _next(self) -> int:
        """The number of a row within its record."""
        self._nth += 1
        return self._nth
