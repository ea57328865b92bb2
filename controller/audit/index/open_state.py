"""What stands open at the end of an index: the round at hand, who deals, where the next card goes.

It is kept in the index itself, so that it makes no difference how far each catching up went.
"""

from __future__ import annotations

from msgspec import Struct

from controller.audit.index.schema import ROUNDS, SEGMENTS, SHIFTS, IndexTable

Row = tuple[int, ...]
_NONE = (0, -1)
"""Least and most of no amounts."""


class OpenRound(Struct, gc=False):
    """A row of `rounds`; one ends where the wagers for the next one begin."""

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
    """A row of `segments`: what times and amounts can be found there at all."""

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
    """The first wager for the next round, and when the record before it was made."""

    seq: int
    utc: int
    before: int
    irregularities: int = 0


class OpenState(Struct, gc=False):
    """After the last record."""

    seq: int = 0
    utc: int = 0
    seat: int = 0
    """Where the next card goes; 0: to the dealer, or none is due."""
    unread: int = 0
    """Where the card went that nobody has read yet."""
    round: OpenRound | None = None
    wagers: OpenWagers | None = None
    shift: OpenShift | None = None
    zone: SegmentRange | None = None


class Spans:
    """Rows of what goes over several records, as they change with each."""

    def __init__(self, standing: OpenState) -> None:
        self.standing = standing
        self._rounds: dict[int, OpenRound] = {}
        self._shifts: list[Row] = []
        self._zones: list[Row] = []
        self.corrected: list[tuple[int]] = []
        """Earlier rounds of which a payment was corrected."""

    def record(self, segment: int, seq: int, utc: int) -> None:
        """One more record, before anything else is told of it."""
        now = self.standing
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
        zone = self.standing.zone
        assert zone is not None
        none = (zone.least, zone.most) == _NONE
        zone.least = amount if none else min(zone.least, amount)
        zone.most = amount if none else max(zone.most, amount)

    # --- rounds ---------------------------------------------------------------------------

    def wager(self, utc: int) -> None:
        """One lies on the felt. The first of them begins the next round, if one is dealt."""
        now = self.standing
        if now.wagers is None:
            now.wagers = OpenWagers(now.seq, utc, now.utc)

    def no_wagers(self) -> None:
        """None lies there: the round at hand goes on until there is one."""
        now = self.standing
        if now.wagers is not None and now.round is not None:
            now.round.irregularities += now.wagers.irregularities
        now.wagers = None

    def irregular(self) -> None:
        now = self.standing
        if now.wagers is not None:
            now.wagers.irregularities += 1
        elif now.round is not None:
            now.round.irregularities += 1

    def at_round(self, number: int, utc: int) -> None:
        """The round at hand; it may be a new one."""
        now = self.standing
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
        now = self.standing.round
        found = now if now is not None and now.round == number else self._rounds.get(number)
        if found is not None:
            found.corrected += 1
        else:
            self.corrected.append((number,))

    # --- dealers --------------------------------------------------------------------------

    def deals(self, dealer: int) -> None:
        """From this record on, if nobody else did until now."""
        now = self.standing
        if now.shift is None or now.shift.dealer != dealer:
            self._end_shift(now.seq - 1)
            now.shift = OpenShift(now.seq, dealer)

    def nobody_deals(self) -> None:
        """After this record."""
        self._end_shift(self.standing.seq)
        self.standing.shift = None

    def _end_shift(self, last: int) -> None:
        shift = self.standing.shift
        if shift is not None:
            self._shifts.append((shift.first_seq, last, shift.dealer))

    # --- as rows --------------------------------------------------------------------------

    def changed(self) -> tuple[tuple[IndexTable, list[Row]], ...]:
        """The rows that take the place of those of their keys."""
        now = self.standing
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
