"""The open state at the end of an index: current round, dealer, place of the next card.

It is stored in the index, so that the size of each update makes no difference.
"""

from __future__ import annotations

from msgspec import Struct

from controller.audit.index.schema import ROUNDS, SEGMENTS, SHIFTS, IndexTable

Row = tuple[int, ...]
_NONE = (0, -1)
"""Minimum and maximum if there are no amounts."""


class OpenRound(Struct, gc=False):
    """A row of `rounds`. A round ends where the wagers for the next one begin."""

    round: int
    first_seq: int
    last_seq: int
    first_utc: int
    last_utc: int
    dealer: int
    over_seq: int = 0
    over_utc: int = 0
    wagered: int = 0
    won: int = 0
    void: int = 0
    irregularities: int = 0
    corrected: int = 0

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
    round: OpenRound | None = None
    wagers: OpenWagers | None = None
    shift: OpenShift | None = None
    zone: SegmentRange | None = None


class Spans:
    """Rows that span several records, and change with each record."""

    def __init__(self, state: OpenState) -> None:
        self.now = state
        self._rounds: dict[int, OpenRound] = {}
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

    def wager(self, utc: int) -> None:
        """A wager was placed. The first one starts the next round, if it is dealt."""
        now = self.now
        if now.wagers is None:
            now.wagers = OpenWagers(now.seq, utc, now.utc)

    def no_wagers(self) -> None:
        """There are no wagers: the current round continues."""
        now = self.now
        if now.wagers is not None and now.round is not None:
            now.round.irregularities += now.wagers.irregularities
        now.wagers = None

    def irregular(self) -> None:
        now = self.now
        if now.wagers is not None:
            now.wagers.irregularities += 1
        elif now.round is not None:
            now.round.irregularities += 1

    def at_round(self, number: int, utc: int) -> None:
        """Set the current round, which may be a new one."""
        now = self.now
        last = now.round
        if number <= 0 if last is None else number <= last.round:
            return
        first = now.wagers or OpenWagers(now.seq, utc, now.utc)
        if last is not None:
            last.last_seq, last.last_utc = first.seq - 1, first.before
            self._rounds[last.round] = last
        dealer = 0 if now.shift is None else now.shift.dealer
        now.round = OpenRound(number, first.seq, now.seq, first.utc, utc, dealer)
        now.round.irregularities = first.irregularities
        now.wagers = None

    def correct(self, number: int) -> None:
        now = self.now.round
        found = now if now is not None and now.round == number else self._rounds.get(number)
        if found is not None:
            found.corrected += 1
        else:
            self.corrected.append((number,))

    # --- dealers --------------------------------------------------------------------------

    def deals(self, dealer: int) -> None:
        """Set the dealer from this record on."""
        now = self.now
        if now.shift is None or now.shift.dealer != dealer:
            self._end_shift(now.seq - 1)
            now.shift = OpenShift(now.seq, dealer)

    def nobody_deals(self) -> None:
        """End the shift after this record."""
        self._end_shift(self.now.seq)
        self.now.shift = None

    def _end_shift(self, last: int) -> None:
        shift = self.now.shift
        if shift is not None:
            self._shifts.append((shift.first_seq, last, shift.dealer))

    # --- as rows --------------------------------------------------------------------------

    def changed(self) -> tuple[tuple[IndexTable, list[Row]], ...]:
        """The rows that were changed; they replace those with the same keys."""
        now = self.now
        if now.round is not None:
            now.round.last_seq, now.round.last_utc = now.seq, now.utc
        rounds = [*self._rounds.values(), *([] if now.round is None else [now.round])]
        shift = now.shift
        shifts = [] if shift is None else [(shift.first_seq, now.seq, shift.dealer)]
        zones = [] if now.zone is None else [now.zone.row]
        return (
            (ROUNDS, [one.row for one in rounds]),
            (SHIFTS, [*self._shifts, *shifts]),
            (SEGMENTS, [*self._zones, *zones]),
        )
