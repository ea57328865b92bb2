"""Checks that each record of a segment continues the previous one: boot, seq, clocks, cursors.

Almost all records do, so a batch is checked at once; only if that fails, record by record. Both
ways give the same findings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Final

from msgspec import UNSET

from controller.audit.format.records import DeviceCursor
from controller.audit.format.validation import DAY, HEX, HEX16, Strict, StrictCursor
from controller.audit.log import STEP_US
from controller.audit.verify.boots import SegmentBoots
from controller.audit.verify.facts import ClockReading


def clock_error(former: ClockReading, tick: ClockReading) -> str:
    """Return how two consecutive clock readings contradict each other; empty if they do not."""
    told = tick.clock or former.clock
    if tick.utc < former.utc and not told:
        where = "" if tick.boot == former.boot else ", in another boot"
        return f"its time is before that of the record before it{where}, and no clock was set"
    if tick.boot != former.boot:
        return ""
    gone = tick.utc - former.utc
    ahead = gone - (tick.mono - former.mono) // 1000
    if abs(ahead) > STEP_US and not told:
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
_HEAD: Final = attrgetter("boot", "sw", "conf", "proc", "table", "day")
_SEQ: Final = attrgetter("seq")
_UTC: Final = attrgetter("utc")
_MONO: Final = attrgetter("mono")
_KIND: Final = attrgetter("kind")
_CAUSE: Final = attrgetter("cause")
_CURSOR: Final = attrgetter("cursor")
_ADOPTED: Final = b'"what":"adopted"'
"""Two people have accepted the log of a device."""


class Continuity:
    """The expected continuation of the records read so far."""

    def __init__(self, boots: SegmentBoots, cursors: dict[str, DeviceCursor]) -> None:
        """Argument `cursors` is from the segment's snapshot."""
        self._boots = boots
        self._cursors: dict[str, StrictCursor | DeviceCursor] = dict(cursors)
        self._day = ""
        self.mono = 0
        """`mono` of the last record."""
        self.tick = ClockReading("", 0, 0, True)
        """Clocks of the last record that is no snapshot; its boot is empty before the first."""
        self.first: ClockReading | None = None
        """Clocks of the first record that is no snapshot."""

    @property
    def cursors(self) -> dict[str, DeviceCursor]:
        """The last cursor of each device."""
        return {
            device: at.as_kept() if isinstance(at, StrictCursor) else at
            for device, at in self._cursors.items()
        }

    # --- many at once ---------------------------------------------------------------------

    def all_usual(self, rows: Sequence[Strict], kinds: Sequence[str], seq: int) -> bool:
        """Accept a batch that starts with record `seq` if it continues as usual. Otherwise returns
        False, with no side effects."""
        boots, tick = self._boots, self.tick
        head = (boots.name, *boots.ran, boots.table, self._day)
        if boots.unusual or tick.clock or tick.boot != boots.name or not SIMPLE.issuperset(kinds):
            return False
        if list(map(_HEAD, rows)).count(head) != len(rows):
            return False
        if list(map(_SEQ, rows)) != list(range(seq, seq + len(rows))):
            return False
        monos, utcs = list(map(_MONO, rows)), list(map(_UTC, rows))
        if not self._in_pace(monos, utcs) or not self._caused(rows, seq):
            return False
        cursors = [cursor for cursor in map(_CURSOR, rows) if cursor is not UNSET]
        if not self._go_on(cursors):
            return False
        self.mono, self.tick = monos[-1], ClockReading(boots.name, utcs[-1], monos[-1], False)
        return True

    def _in_pace(self, monos: list[int], utcs: list[int]) -> bool:
        """Return whether the clocks are within limits. Stricter than necessary: over the whole
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

    def _go_on(self, cursors: list[StrictCursor]) -> bool:
        chains = [cursor.chain for cursor in cursors]
        if not HEX.fullmatch("".join(chains)) or {*map(len, chains)} - {_CURSOR_CHAIN}:
            return False
        now: dict[str, StrictCursor | DeviceCursor] = {}
        for cursor in cursors:
            known = now.get(cursor.device) or self._cursors.get(cursor.device)
            if known is None or cursor.epoch != known.epoch or cursor.seq <= known.seq:
                return False
            now[cursor.device] = cursor
        self._cursors |= now
        return True

    # --- one by one -----------------------------------------------------------------------

    def take(self, row: Strict, seq: int) -> Iterator[str]:
        """Accept one record, and yield how it fails to continue the previous one."""
        boots = self._boots
        if (row.boot, row.sw, row.conf, row.proc) != (boots.name, *boots.ran):
            same = row.boot == boots.name
            boots.start_boot(row, seq, self.mono)
            self.mono = self.mono if same else 0
        if row.seq != seq or row.table != boots.table:
            yield f"it says seq {row.seq} of table {row.table}, not {seq} of {boots.table}"
        if row.day != self._day and not DAY.fullmatch(row.day):
            yield f"its gaming day is {row.day!r}"
        if row.mono < self.mono:
            yield "its clock that only goes forward went back"
        self._day, self.mono = row.day, row.mono
        if row.kind != "snapshot":
            yield from self._timed(ClockReading(row.boot, row.utc, row.mono, row.kind == "clock"))
        if row.cause is not UNSET and not 0 < row.cause < seq:
            yield f"its cause {row.cause} is no record before it"
        if row.cursor is not UNSET:
            adopted = row.kind == "link" and _ADOPTED in bytes(row.data)
            yield from self._at_cursor(row.cursor, adopted)
        if boots.unusual:
            boots.check_order(row.kind)

    def _timed(self, tick: ClockReading) -> Iterator[str]:
        if self.first is None:
            self.first = tick
        else:
            wrong = clock_error(self.tick, tick)
            if wrong:
                yield wrong
        self.tick = tick

    def _at_cursor(self, cursor: StrictCursor, adopted: bool) -> Iterator[str]:
        device = cursor.device
        known = self._cursors.get(device)
        again = known is not None and known.epoch == cursor.epoch and cursor.seq <= known.seq
        if known is not None and again and not adopted:
            yield f"{device}'s log goes on with {cursor.seq}, it stood at {known.seq} already"
        if not HEX16.fullmatch(cursor.chain):
            yield f"the chain in its cursor is {cursor.chain!r}"
        self._cursors[device] = cursor
