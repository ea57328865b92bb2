"""One segment held against everything that it says of itself.

What it says of the segments before it (chain, tree, cursors, state, keys) is taken as said here,
and held against them by `verify_joins`: so segments are verified side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import replace

from controller.audit.findings import Finding
from controller.audit.log import STEP_US
from controller.audit.notes import NoteProblem
from controller.audit.reading import Segment, in_words
from controller.audit.records import KINDS, DeviceCursor, Place, TailSet, encode
from controller.audit.scanning import Scanned, roots
from controller.audit.strict import (
    DAY,
    HEX,
    HEX16,
    UNREADABLE,
    Strict,
    StrictCursor,
    read_all,
)
from controller.audit.tails import Verdict, classify
from controller.audit.verify_boots import Boots
from controller.audit.verify_clocks import clock_wrong
from controller.audit.verify_data import WrongData, check_data, wrong_snapshot
from controller.audit.verify_decisions import DECIDED, Decisions
from controller.audit.verify_facts import (
    MOST_FINDINGS,
    Edge,
    Start,
    Tick,
    Verified,
    Wanted,
)
from controller.audit.verify_reading import Whole, tree_of, whole
from controller.audit.verify_tails import wrong_place, wrong_tail

TOGETHER: Final = 256
"""Records that are read at once: they and what is made of them stay in the processor's cache."""


class _Glance(Struct, frozen=True, gc=False):
    """What a finding needs of a record."""

    utc: int = 0
    mono: int = 0
    round: int = 0


_glance: Final = msgspec.json.Decoder(_Glance).decode


def verify_segment(record: Path, number: int, last: bool, wanted: Wanted) -> Verified:
    """All that can be said of it by itself. CannotWrite where its file cannot be read."""
    found = whole(record, number)
    if isinstance(found, Finding):
        return Verified(number, [found])
    return _Work(record, *found, wanted).done(last)


class _Work:
    """The reading of one segment, record by record."""

    def __init__(self, record: Path, segment: Segment, scanned: Scanned, wanted: Wanted) -> None:
        self._record, self._segment, self._scanned = record, segment, scanned
        self._wanted = wanted
        said = segment.snapshot
        self._findings: list[Finding] = []
        self._more = 0
        self._index = 0
        """Of the record at hand, from 0."""
        self._tree = tree_of(Whole(segment, scanned))
        frontier = self._tree.frontier(segment.before.seq)
        opened, note = said.opened or None, said.certificate or ""
        told = b"" if opened is None else encode(opened)
        cursors = dict(said.cursors)
        state = bytes(said.state)
        decided = state != b"null"
        self._before = Edge(segment.before, frontier, cursors, told, note, state, decided)
        self._boots = Boots(said.origin, opened, note, self._found, self._at)
        self._cursors: dict[str, StrictCursor | DeviceCursor] = dict(cursors)
        self._decisions = Decisions(record, opened, self._at, replay=wanted.replay)
        self._kinds: Counter[str] = Counter()
        self._tails: list[tuple[Finding, TailSet]] = []
        self._first_tick: Tick | None = None
        self._tick = Tick("", 0, 0, True)
        """The clocks of the last record that is no snapshot."""
        self._mono = 0
        self._day = ""
        self._torn = ""

    def done(self, last: bool) -> Verified:
        records = self._scanned.records
        for start in range(0, len(records), TOGETHER):
            rows = read_all(records[start : start + TOGETHER])
            former = self._boots.name
            self._look(start, rows)
            self._look_at_durable(start, rows, former)
            self._look_at_chains(start, rows)
            self._kinds.update([row.kind for row in rows if not isinstance(row, str)])
        self._look_at_the_end(last)
        return self._verified()

    # --- what is found --------------------------------------------------------------------

    def _at(self) -> Finding:
        """The place of the record at hand, and nothing found yet."""
        index, scanned = self._index, self._scanned
        round_ = _glanced(scanned.records[index]).round
        since = _glanced(scanned.records[index - 1]).utc if index else 0
        seq = self._segment.before.seq + 1 + index
        return Finding(self._segment.number, scanned.offsets[index], seq, round_, "", since)

    def _found(self, what: str) -> None:
        if len(self._findings) < MOST_FINDINGS:
            self._findings.append(replace(self._at(), what=what))
        else:
            self._more += 1

    # --- every record ---------------------------------------------------------------------

    def _look(self, start: int, rows: Sequence[Strict | str]) -> None:
        """What every record goes through: what is as usual costs some comparisons."""
        boots, cursors, skims = self._boots, self._cursors, not self._decisions.asked
        name, (sw, conf, proc), table = boots.name, boots.ran, boots.table
        mono, day, tick = self._mono, self._day, self._tick
        timed, utc, paced, was_set = tick.boot, tick.utc, tick.mono, tick.clock
        seq = self._segment.before.seq + start
        for index, row in enumerate(rows, start):
            seq += 1
            self._index = index
            if isinstance(row, str):
                self._found(row)
                continue
            now, kind = row.mono, row.kind
            if row.boot != name or row.sw != sw or row.conf != conf or row.proc != proc:
                boots.goes_on(row, seq, mono)
                mono = mono if row.boot == name else 0
                name, (sw, conf, proc) = boots.name, boots.ran
            if row.seq != seq or row.table != table or row.day != day:
                day = self._look_at_the_place(row, seq)
            if now < mono:
                self._found("its clock that only goes forward went back")
            mono = now
            if kind != "snapshot":
                gone = row.utc - utc
                if not (gone >= 0 and -STEP_US <= gone - (now - paced) // 1000 <= STEP_US):
                    self._look_at_the_clock(Tick(timed, utc, paced, was_set), row)
                timed, utc, paced, was_set = name, row.utc, now, kind == "clock"
            cursor = row.cursor
            if cursor is not UNSET:
                device = cursor.device
                known = cursors.get(device)
                if known is None or cursor.epoch != known.epoch or cursor.seq <= known.seq:
                    self._look_at_the_cursor(cursor, known)
                cursors[device] = cursor
            if boots.unusual or row.cause is not UNSET:
                self._look_at_the_turn(row, seq)
            if boots.unsigned < 0 and kind != "checkpoint":
                boots.unsigned = now
            if not skims or kind not in DECIDED or self._decisions.may_hide(row):
                self._look_at_the_kind(row, seq)
        self._mono, self._day, self._tick = mono, day, Tick(timed, utc, paced, was_set)

    def _look_at_the_kind(self, row: Strict, seq: int) -> None:
        try:
            _LOOKS[row.kind](self, row, seq)
        except (NoteProblem, WrongData) as problem:
            self._found(f"{row.kind}: {problem}")

    def _look_at_the_place(self, row: Strict, seq: int) -> str:
        """Gives the gaming day."""
        table = self._boots.table
        if row.seq != seq or row.table != table:
            self._found(f"it says seq {row.seq} of table {row.table}, not {seq} of {table}")
        if not DAY.fullmatch(row.day):
            self._found(f"its gaming day is {row.day!r}")
        return row.day

    def _look_at_the_turn(self, row: Strict, seq: int) -> None:
        if self._boots.unusual:
            self._boots.takes_kind(row.kind)
        if row.cause is not UNSET and not 0 < row.cause < seq:
            self._found(f"its cause {row.cause} is no record before it")

    def _look_at_the_clock(self, former: Tick, row: Strict) -> None:
        tick = Tick(row.boot, row.utc, row.mono, row.kind == "clock")
        if self._first_tick is None:
            self._first_tick = tick
        elif wrong := clock_wrong(former, tick):
            self._found(wrong)

    def _look_at_the_cursor(
        self, cursor: StrictCursor, known: StrictCursor | DeviceCursor | None
    ) -> None:
        if known is not None and known.epoch == cursor.epoch:
            stood = f"it stood at {known.seq} already"
            self._found(f"{cursor.device}'s log goes on with {cursor.seq}, {stood}")

    def _look_at_chains(self, start: int, rows: Sequence[Strict | str]) -> None:
        """Of all cursors together, for each by itself costs as much as reading the record."""
        cursors = [row.cursor for row in rows if not isinstance(row, str)]
        chains = [cursor.chain for cursor in cursors if cursor is not UNSET]
        if HEX.fullmatch("".join(chains)) and not any(len(chain) != 16 for chain in chains):
            return
        for index, row in enumerate(rows, start):
            if isinstance(row, str) or row.cursor is UNSET or HEX16.fullmatch(row.cursor.chain):
                continue
            self._index = index
            self._found(f"the chain in its cursor is {row.cursor.chain!r}")

    def _look_at_durable(self, start: int, rows: Sequence[Strict | str], former: str) -> None:
        """Within a boot, what is known to be on the disk does not become less."""
        for index in self._scanned.back:
            if not start <= index < start + len(rows):
                continue
            row = rows[index - start]
            before = rows[index - start - 1] if index > start else former
            name = before if isinstance(before, str) else before.boot
            if not isinstance(row, str) and row.boot == name:
                self._index = index
                self._found("it says that less was on the disk than the record before it")

    # --- single kinds ---------------------------------------------------------------------

    def _snapshot_record(self, row: Strict, seq: int) -> None:
        if self._index:
            self._found("a snapshot that no segment begins with")
            return
        for wrong in wrong_snapshot(row.bytes, self._segment.snapshot, row.seq):
            self._found(wrong)
        self._says(self._decisions.begins(*self._this(seq)))

    def _opened_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        opened = self._boots.opened_record(row, seq)
        self._says(self._decisions.opened(*self._this(seq), opened))

    def _tail_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        tail = self._boots.tail_record(row)
        if tail is None:
            return
        index = self._boots.former - self._segment.before.seq
        wrong = wrong_tail(self._record, tail)
        if index > 0:
            end = self._scanned.offsets[index]
            wrong = wrong or wrong_place(tail, self._segment.number, end)
        else:
            self._tails.append((self._at(), tail))
        if wrong:
            self._found(wrong)

    def _certificate_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        self._boots.certificate_record(row)

    def _checkpoint_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        self._boots.checkpoint_record(row, self._tree, seq)

    def _witnessed_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        self._boots.witnessed_record(row, self._tree, seq)

    def _decision_record(self, row: Strict, seq: int) -> None:
        self._decisions.hides(row)
        if self._decisions.asked:
            self._says(self._decisions.decided(*self._this(seq), row))

    def _refusal_record(self, row: Strict, seq: int) -> None:
        self._says(self._decisions.tells(row))
        if self._decisions.asked:
            self._says(self._decisions.decided(*self._this(seq), row))

    def _closed_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)
        self._boots.closed_record()

    def _other_record(self, row: Strict, seq: int) -> None:
        check_data(row.kind, row.bytes)

    def _this(self, seq: int) -> tuple[bytes, Place]:
        """The record at hand, and where it lies."""
        offset = self._scanned.offsets[self._index]
        return self._scanned.records[self._index], Place(self._segment.number, offset, seq)

    def _says(self, wrong: str) -> None:
        if wrong:
            self._found(wrong)

    # --- the end --------------------------------------------------------------------------

    def _look_at_the_end(self, last: bool) -> None:
        segment, scanned = self._segment, self._scanned
        if not scanned.why:
            return
        tail = classify(segment.buffer, scanned.end, scanned.where.seq)
        words = in_words(tail, segment)
        if last and tail.verdict is Verdict.TORN:
            self._torn = words
            return
        self._index = len(scanned.records) - 1
        at = self._at()
        since = _glanced(scanned.records[-1]).utc
        what = f"{scanned.why}; {words}"
        self._findings.append(
            replace(at, offset=scanned.end, seq=scanned.where.seq + 1, what=what, since=since)
        )

    def _verified(self) -> Verified:
        segment, scanned, boots = self._segment, self._scanned, self._boots
        decisions = self._decisions
        boot = boots.boot(self._mono, scanned.durable[1])
        cursors = {device: _kept(at) for device, at in self._cursors.items()}
        known, frontier = decisions.known, self._tree.frontier(self._tree.size)
        decided = self._before.decided or self._kinds["decision"] > 0
        told = boots.opened_bytes
        after = Edge(scanned.where, frontier, cursors, told, boots.note, known, decided)
        first = boots.left[0] if boots.left else boot
        start = Start(
            first,
            boots.first_ran,
            _glanced(scanned.records[0]).mono,
            scanned.durable[0],
            boots.other,
            tuple(self._tails),
            self._first_tick,
        )
        return Verified(
            segment.number,
            self._findings,
            self._more,
            not scanned.why,
            segment.snapshot.origin,
            self._before,
            start,
            after,
            boot,
            self._tick if self._tick.boot else None,
            scanned.end,
            (*(one.name for one in boots.left), boot.name),
            tuple(boots.certificates),
            decisions.hidden,
            boots.held,
            dict(self._kinds),
            len(scanned.records),
            boots.checkpoints,
            boots.signed,
            decisions.again,
            dict(decisions.taken),
            decisions.unread,
            boots.late,
            boots.longest,
            roots(self._tree, self._wanted.sizes),
            frozenset(boots.told),
            self._torn,
            (_glanced(scanned.records[0]).utc, _glanced(scanned.records[-1]).utc),
        )


_LOOKS: Final[dict[str, Callable[[_Work, Strict, int], None]]] = {
    **dict.fromkeys(KINDS, _Work._other_record),
    "snapshot": _Work._snapshot_record,
    "opened": _Work._opened_record,
    "certificate": _Work._certificate_record,
    "checkpoint": _Work._checkpoint_record,
    "witnessed": _Work._witnessed_record,
    "tail": _Work._tail_record,
    "closed": _Work._closed_record,
    "decision": _Work._decision_record,
    "refusal": _Work._refusal_record,
}


def _glanced(record: bytes) -> _Glance:
    """Zeros where it is no record."""
    try:
        return _glance(record)
    except UNREADABLE:
        return _Glance()


def _kept(at: StrictCursor | DeviceCursor) -> DeviceCursor:
    return at.as_kept() if isinstance(at, StrictCursor) else at
