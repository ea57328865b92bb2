"""How the records of a segment continue each other: seq, rounds, days, clocks, cursors.

Almost all records continue the previous one as usual, so a batch is checked at once; only if that
fails, record by record. Both ways give the same findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from controller.audit.format.records import (
    DAY_US,
    DeviceCursor,
    utc_date,
)
from controller.audit.format.validation import (
    DAY,
    HEX,
    HEX16,
    UNREADABLE,
    Strict,
    StrictCursor,
    envelope_error,
)
from controller.audit.log import STEP_US
from controller.audit.verify.boots import SegmentBoots, run_hashes
from controller.audit.verify.decisions import DECIDED
from controller.audit.verify.facts import (
    ANY_START,
    ClockReading,
    DayStarts,
    RecordFinding,
    common_starts,
)


def clock_error(former: ClockReading, tick: ClockReading) -> str:
    """Returns how two consecutive clock readings contradict each other; empty if they do not."""
    was_set = tick.clock or former.clock
    if tick.utc < former.utc and not was_set:
        where = "" if tick.boot == former.boot else ", in another boot"
        return f"its time is before that of the record before it{where}, and no clock was set"
    if tick.boot != former.boot:
        return ""
    ahead = (tick.utc - former.utc) - (tick.mono - former.mono) // 1000
    if abs(ahead) > STEP_US and not was_set:
        return f"its time left the pace by {ahead / 1e6:+.3f} s and no clock was set"
    return ""


SIMPLE: Final = frozenset(
    (
        *("decision", "refusal", "device", "link", "person", "checkpoint"),
        *("witnessed", "unwitnessed", "fault", "note"),
    )
)
"""Kinds of records that have no effect on how the next one continues."""
_CURSOR_CHAIN: Final = 16
_HEAD: Final = attrgetter("v", "boot", "sw", "conf", "proc", "table", "day")
_SEQ: Final = attrgetter("seq")
_UTC: Final = attrgetter("utc")
_MONO: Final = attrgetter("mono")
_KIND: Final = attrgetter("kind")
_CAUSE: Final = attrgetter("cause")
_CURSOR: Final = attrgetter("cursor")
_EPOCH: Final = date(1970, 1, 1).toordinal()


def _day_begin(day: str) -> int | None:
    """utc of the midnight at which this date begins; None if there is no such date."""
    try:
        number = date.fromisoformat(day).toordinal() - _EPOCH
    except ValueError:
        return None
    return number * DAY_US if DAY.fullmatch(day) else None


class _Effect(Struct, frozen=True):
    type: Any = None
    round: Any = None


class _Effects(Struct, frozen=True):
    effects: list[_Effect] = []


def _locked(row: Strict) -> list[Any]:
    """The rounds whose wagers are locked in the record."""
    data = row.bytes if row.kind == "decision" else b""
    if b"WagersLocked" not in data and b"\\" not in data:
        return []
    try:
        found = msgspec.json.decode(data, type=_Effects).effects
    except UNREADABLE:
        return []
    return [one.round for one in found if one.type == "WagersLocked"]


class Continuity:
    """The expected continuation of the records read so far."""

    def __init__(
        self, boots: SegmentBoots, cursors: dict[str, DeviceCursor], round_: int, *, decided: bool
    ) -> None:
        """Argument `cursors` is from the segment's snapshot; `round_` is -1 if it is unknown.
        `decided`: there was a decision before."""
        self._boots = boots
        self._cursors: dict[str, StrictCursor | DeviceCursor] = dict(cursors)
        self._day = ""
        self._head: tuple[object, ...] = ()
        """The fields of the last record that all records of a boot and of a day share."""
        self._days: dict[str, int | None] = {}
        self.mono = 0
        """`mono` of the last record."""
        self.tick = ClockReading("", 0, 0, True)
        """Clocks of the last record that is no snapshot; its boot is empty before the first."""
        self.first: ClockReading | None = None
        """Clocks of the first record that is no snapshot."""
        self.adopted: set[str] = set()
        """Devices whose log two people have accepted: the next cursor may be any."""
        self.jumps: dict[str, RecordFinding] = {}
        """First cursors of devices that do not follow that of the snapshot: right only if the log
        was accepted in an earlier segment."""
        self.moved: set[str] = set()
        """Devices with a cursor in this segment."""
        self.round = round_
        self._decided = decided
        self._began = -1
        """`mono` of the decision that began the round: what was written with it may still name the
        round before."""
        self.first_starts = ANY_START
        """When the gaming day starts, as the first boot's records say, and the last boot's."""
        self.starts = ANY_START

    @property
    def cursors(self) -> dict[str, DeviceCursor]:
        """The last cursor of each device."""
        return {
            device: at.as_kept() if isinstance(at, StrictCursor) else at
            for device, at in self._cursors.items()
        }

    # --- many at once ---------------------------------------------------------------------

    def accept_batch(self, rows: Sequence[Strict], kinds: Sequence[str], seq: int) -> bool:
        """Accept a batch that starts with record `seq` if it continues as usual. Otherwise returns
        False, with no side effects."""
        boots, tick = self._boots, self.tick
        if (
            boots.unusual
            or tick.clock
            or tick.boot != boots.now.name
            or not SIMPLE.issuperset(kinds)
        ):
            return False
        if list(map(_HEAD, rows)).count(self._head) != len(rows):
            return False
        if list(map(_SEQ, rows)) != list(range(seq, seq + len(rows))):
            return False
        monos, utcs = list(map(_MONO, rows)), list(map(_UTC, rows))
        if not self._in_pace(monos, utcs) or not self._caused(rows, seq):
            return False
        starts = self._day_starts(self._day, utcs[0], utcs[-1])
        if rows[0].day is UNSET and {utc_date(utcs[0]), utc_date(utcs[-1])} != {self._day}:
            starts = None
        rounds = self._rounds(rows)
        if starts is None or rounds is None:
            return False
        if "link" in kinds and any(_adoption(row) is not None for row in rows):
            return False
        if not self._advance_cursors(
            [cursor for cursor in map(_CURSOR, rows) if cursor is not UNSET]
        ):
            return False
        self._set_starts(starts)
        self.round, self._began = rounds
        self._decided = self._decided or "decision" in kinds
        self.mono, self.tick = monos[-1], ClockReading(boots.now.name, utcs[-1], monos[-1], False)
        return True

    def _in_pace(self, monos: list[int], utcs: list[int]) -> bool:
        """Returns whether the clocks are within limits. Stricter than necessary: over the whole
        batch."""
        if monos[0] < self.mono or utcs[0] < self.tick.utc:
            return False
        if monos != sorted(monos) or utcs != sorted(utcs):
            return False
        paces = [utc - mono // 1000 for utc, mono in zip(utcs, monos, strict=True)]
        before = self.tick.utc - self.tick.mono // 1000
        return max(*paces, before) - min(*paces, before) < STEP_US

    def _caused(self, rows: Sequence[Strict], seq: int) -> bool:
        causes = list(map(_CAUSE, rows))
        if causes.count(UNSET) == len(causes):
            return True
        return all(cause is UNSET or 0 < cause < at for at, cause in enumerate(causes, seq))

    def _advance_cursors(self, cursors: list[StrictCursor]) -> bool:
        chains = [cursor.chain for cursor in cursors]
        if not HEX.fullmatch("".join(chains)) or {*map(len, chains)} - {_CURSOR_CHAIN}:
            return False
        now: dict[str, StrictCursor | DeviceCursor] = {}
        for cursor in cursors:
            known = now.get(cursor.device) or self._cursors.get(cursor.device)
            if known is None or cursor.epoch != known.epoch or cursor.seq != known.seq + 1:
                return False
            now[cursor.device] = cursor
        if not self.adopted.isdisjoint(now):
            return False
        self._cursors |= now
        self.moved |= now.keys()
        return True

    # --- one by one -----------------------------------------------------------------------

    def take(self, row: Strict, seq: int) -> Iterator[str]:
        """Accept one record, and yield how it fails to continue the previous one."""
        boots = self._boots
        same = row.boot == boots.now.name
        if wrong := envelope_error(row):
            yield wrong
        if (row.v, row.boot, *run_hashes(row)) != (boots.version, boots.now.name, *boots.ran):
            boots.start_boot(row, seq, self.mono)
            self.mono = self.mono if same else 0
        table = row.table or boots.table
        if row.seq != seq or table != boots.table:
            yield f"it says seq {row.seq} of table {table}, not {seq} of {boots.table}"
        yield from self._at_day(row, same=same)
        yield from self._at_round(row)
        if row.mono < self.mono:
            yield "its clock that only goes forward went back"
        self._day, self.mono, self._head = row.gaming_day, row.mono, _HEAD(row)
        if row.kind != "snapshot":
            yield from self._timed(ClockReading(row.boot, row.utc, row.mono, row.kind == "clock"))
        if row.cause is not UNSET and not 0 < row.cause < seq:
            yield f"its cause {row.cause} is no record before it"
        adoption = _adoption(row)
        if row.cursor is not UNSET:
            yield from self._at_cursor(row.cursor, adoption is not None)
        if adoption is not None:
            if wrong := _adoption_error(adoption):
                yield wrong
            else:
                self.adopted.add(adoption.device)
        if boots.unusual:
            boots.check_order(row.kind)

    def _at_day(self, row: Strict, *, same: bool) -> Iterator[str]:
        """Check that the gaming day is that of utc, for a day that starts at a fixed time."""
        if not same:
            self.starts = ANY_START
        starts = self._day_starts(row.gaming_day, row.utc, row.utc)
        if starts is None:
            yield f"its gaming day is {row.gaming_day!r}, its time another day's"
        else:
            self._set_starts(starts)

    def _set_starts(self, starts: DayStarts) -> None:
        self.starts = starts
        if not self._boots.ended:
            self.first_starts = starts

    def _day_starts(self, day: str, first: int, last: int) -> DayStarts | None:
        """When the gaming day may start, given the utc of its records; None if that is never."""
        if day not in self._days:
            self._days[day] = _day_begin(day)
        begin = self._days[day]
        if begin is None:
            return None
        return common_starts(self.starts, (last - begin - DAY_US + 1, first - begin))

    def _rounds(self, rows: Sequence[Strict]) -> tuple[int, int] | None:
        """The round after these records, and when it began; None if one is of another round."""
        current, began = self.round, self._began
        for row in rows:
            if locked := _locked(row):
                if not locked == [row.round] == [current + 1]:
                    return None
                current, began = row.round, row.mono
            elif row.round > current and not self._decided and row.kind != "decision":
                current = row.round  # the first decision shows whether that is right
            elif row.round != current and (
                row.mono != began or row.kind in DECIDED or row.round != current - 1
            ):
                return None
        return current, began

    def _at_round(self, row: Strict) -> Iterator[str]:
        rounds = (row.round, -1) if self.round < 0 else self._rounds((row,))
        if rounds is None:
            yield f"its round is {row.round}; it is in round {self.round}"
        else:
            self.round, self._began = rounds
        self._decided = self._decided or row.kind == "decision"

    def _timed(self, tick: ClockReading) -> Iterator[str]:
        if self.first is None:
            self.first = tick
        else:
            wrong = clock_error(self.tick, tick)
            if wrong:
                yield wrong
        self.tick = tick

    def _at_cursor(self, cursor: StrictCursor, adopts: bool) -> Iterator[str]:
        """Check that a device's log goes on by one in its epoch; after an adoption it may continue
        anywhere."""
        device = cursor.device
        known = self._cursors.get(device)
        if not HEX16.fullmatch(cursor.chain):
            yield f"the chain in its cursor is {cursor.chain!r}"
        if not adopts and known is not None:
            wrong = _step_error(known, cursor)
            if wrong and device not in self.moved | self.adopted:
                self.jumps[device] = replace(self._boots.at(), what=wrong)
            elif wrong and device not in self.adopted:
                yield wrong
        self.adopted.discard(device)
        self._cursors[device] = cursor
        self.moved.add(device)


class _Adoption(Struct, frozen=True):
    """What a link record may have of a device's log that two people accept."""

    what: Any = None
    device: Any = None
    two: Any = None


def _adoption(row: Strict) -> _Adoption | None:
    """The adoption in this record; None if it is no record of an adoption."""
    if row.kind != "link":
        return None
    try:
        found = msgspec.json.decode(row.bytes, type=_Adoption)
    except UNREADABLE:
        return None
    return found if found.what == "adopted" else None


def _adoption_error(adoption: _Adoption) -> str:
    """Why an adoption is invalid; empty if a device and two different people are named."""
    if not isinstance(adoption.device, str):
        return "adopted: its device is no string"
    try:
        first, second = msgspec.convert(adoption.two, tuple[str, str])
    except msgspec.ValidationError:
        return "adopted: two people accept the log of a device, and it does not name two"
    return "adopted: the two people who accept the log are one" if first == second else ""


def _step_error(known: StrictCursor | DeviceCursor, cursor: StrictCursor) -> str:
    device, before, seq = cursor.device, known.seq, cursor.seq
    if cursor.epoch != known.epoch:
        return f"{device}'s log is another than before, and two people have not accepted it"
    if seq == before + 1:
        return ""
    if seq <= before:
        return f"{device}'s log goes on with {seq}, it stood at {before} already"
    return f"{device}'s log goes on with {seq}, {before + 1} is due: entries of it are missing"
