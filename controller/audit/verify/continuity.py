"""How the records of a segment continue each other: boots, keys, seq, clocks, cursors.

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

from controller.audit.format.notes import (
    Certificate,
    Checkpoint,
    NoteProblem,
    SignedNote,
    VerifierKey,
    parse_checkpoint,
    parse_note,
    read_certificate,
    verify_note,
)
from controller.audit.format.records import (
    SHORT,
    DeviceCursor,
    NoteData,
    OpenedData,
    TailData,
    encode,
)
from controller.audit.format.validation import (
    DAY,
    HEX,
    HEX16,
    UNREADABLE,
    Strict,
    StrictCursor,
    wrong_opened,
)
from controller.audit.log import STEP_US
from controller.audit.read.reader import PartOfTree
from controller.audit.verify.decisions import DECIDED
from controller.audit.verify.facts import (
    ANY_START,
    DAY_US,
    SECOND,
    BootState,
    ClockReading,
    DayStarts,
    DeferredCheckpoint,
    RecordFinding,
    RunHashes,
    SegmentFindings,
    common_starts,
)

AFTER_CLOSED: Final = frozenset(("checkpoint", "snapshot", "clock", "witnessed"))
"""Kinds of records that may follow `closed`."""
_BEFORE_OPENED: Final = frozenset(("snapshot", "clock"))
"""Kinds of records that may come before `opened` in a boot."""
_COSIGNATURE: Final = 72
"""Bytes of a timestamp and a signature, after the key id."""


class SegmentBoots:
    """Checks the boots of one segment, record by record."""

    def __init__(
        self, origin: str, opened: OpenedData | None, note: str, found: SegmentFindings
    ) -> None:
        """`opened` and `note` are the last boot's data and certificate from the snapshot."""
        self.origin = origin
        self.table = origin.removeprefix("holecard/").rpartition("/")[0]
        self.opened = opened
        self.opened_bytes = b"" if opened is None else encode(opened)
        self.note = note
        self.ended: list[BootState] = []
        """Boots that have ended, with their final state."""
        self.certificates: list[Certificate] = []
        self.checkpoints = self.signed = 0
        self.deferred: list[DeferredCheckpoint] = []
        self.tail_files: set[str] = set()
        self.late = self.longest = 0
        self.now = BootState()
        """The current boot. Its clocks are set when it ends."""
        self.ran: RunHashes = ("", "", "")
        self.begun: bool | None = None
        """Whether its `opened` came first; None until the first record that decides this."""
        self.unusual = True
        """Whether `check_order` must check the next record."""
        self.inherits: RecordFinding | None = None
        """The first record of the segment's first boot if its `opened` is in an earlier segment."""
        self.other: RecordFinding | None = None
        """The first record of the segment's first boot that may not follow `closed`."""
        self.former = 0
        """Seq of the last record before it."""
        self._key: Certificate | None = None
        self._findings = found
        self._given = self._certified(note) if note and opened is not None else None

    # --- every record ---------------------------------------------------------------------

    def start_boot(self, record: Strict, seq: int, mono: int) -> None:
        """Start another boot, or report changed hashes within a boot. `mono` is that of the
        previous record."""
        ran = (record.sw, record.conf, record.proc)
        if record.boot == self.now.name:
            self._findings.report("sw, conf or proc is another than before in its boot")
            self.ran = ran
            return
        if self.now.name:
            self._signed_by(mono)
            self.now.mono = mono
            self.ended.append(self.now)
        self._findings.report_if(
            any(boot.name == record.boot for boot in self.ended), f"boot {record.boot} was over"
        )
        self._findings.report_if(
            not all(map(HEX16.fullmatch, (record.boot, *ran))),
            "its boot, sw, conf or proc is not 16 digits 0 to 9 and a to f",
        )
        self.now, self.ran, self.former = BootState(record.boot), ran, seq - 1
        self.begun = self._key = None
        self.unusual = True

    def check_order(self, kind: str) -> None:
        """Check that this kind of record is allowed at this position in its boot."""
        if self.begun is None and kind not in _BEFORE_OPENED:
            self.begun = kind == "opened"
            if not self.begun:
                self._continue_boot(kind)
        if self.now.unrecorded and kind != "tail":
            self._findings.report(
                f"no tail record tells of {self.now.unrecorded} bytes that were set aside"
            )
            self.now.unrecorded = 0
        if kind not in AFTER_CLOSED:
            self._findings.report_if(self.now.closed, f"a {kind} follows on closed")
            if not self.ended and self.other is None:
                self.other = self._findings.at()
        settled = self.begun is not None and (bool(self.ended) or self.other is not None)
        self.unusual = not settled or self.now.closed or self.now.unrecorded > 0

    def at(self) -> RecordFinding:
        """The current record's position."""
        return self._findings.at()

    def closed_record(self) -> None:
        self.now.closed = self.unusual = True

    def _continue_boot(self, kind: str) -> None:
        """Continue a boot that was opened in an earlier segment; its key may be in the snapshot."""
        if self.ended:
            self._findings.report(f"a boot begins with {kind}, not with opened")
            return
        self.inherits = self._findings.at()
        self._findings.report_if(
            self.opened is not None and self.ran != _short(self.opened),
            "sw, conf or proc is not the beginning of that in its boot's opened",
        )
        given = self._given
        if given is not None and given.boot == self.now.name:
            self._key, self.now.certified = given, given.seq

    # --- kinds ----------------------------------------------------------------------------

    def opened_record(self, record: Strict, seq: int) -> OpenedData:
        opened = msgspec.json.decode(record.bytes, type=OpenedData)
        self._findings.report_if(self.now.opened or not self.begun, "its boot was opened already")
        wrong = wrong_opened(opened, seq)
        if wrong:
            self._findings.report(f"opened: {wrong}")
        elif opened.last != self.former:
            self._findings.report(
                f"the boot found {opened.last} records; {self.former} stand before it"
            )
        self._findings.report_if(
            opened.origin != self.origin, f"the boot is of {opened.origin}, another record"
        )
        self._findings.report_if(
            self.ran != _short(opened),
            "sw, conf or proc is not the beginning of that in its boot's opened",
        )
        self._findings.report_if(
            self.opened is not None and opened.table_key != self.opened.table_key,
            "the table's key is another one than that of the boot before",
        )
        self.opened, self.opened_bytes = opened, encode(opened)
        self.now.opened, self.now.unrecorded = seq, opened.torn
        self.unusual = self.unusual or opened.torn > 0
        return opened

    def tail_record(self, record: Strict) -> TailData | None:
        tail = msgspec.json.decode(record.bytes, type=TailData)
        self.tail_files.add(tail.file)
        if tail.size > self.now.unrecorded or tail.size < 1:
            due = self.now.unrecorded
            self._findings.report(
                f"a tail record of {tail.size} bytes; its boot has {due} left to tell"
            )
            self.now.unrecorded = 0
            return None
        self.now.unrecorded -= tail.size
        self._findings.report_if(
            (tail.verdict == "accepted") != (len(set(tail.two)) == 2 == len(tail.two)),
            "two people are named where they accept a tail, and only there",
        )
        return tail

    def certificate_record(self, record: Strict) -> None:
        note = msgspec.json.decode(record.bytes, type=NoteData).note
        if self._key is not None or self.opened is None:
            self._findings.report(
                "a certificate where none is due: its boot has a key, or was not opened"
            )
            return
        self.note = note
        key = self._key = self._certified(note)
        if key is None:
            return
        self.now.certified = key.seq
        self._findings.report_if(
            key.boot != record.boot or self.now.opened not in (0, key.seq),
            f"the certificate is of boot {key.boot}, opened by record {key.seq}",
        )

    def _certified(self, note: str) -> Certificate | None:
        """Decode the certificate of a boot's key and verify it with the table's key."""
        assert self.opened is not None
        try:
            key = read_certificate(note, VerifierKey.parse(self.opened.table_key))
        except NoteProblem as problem:
            self._findings.report(f"the key of the boot is not certified by the table's: {problem}")
            return None
        if key.origin != self.origin:
            self._findings.report(f"the certificate is of {key.origin}, another record")
            return None
        self.certificates.append(key)
        return key

    def checkpoint_record(self, record: Strict, tree: PartOfTree, seq: int) -> None:
        self.checkpoints += 1
        self._signed_by(record.mono)
        if self.now.signed < 0:
            self.now.signed = record.mono
        note, said = self._read_checkpoint(record)
        if self._key is None:
            self._findings.report("a checkpoint of a boot whose key is not certified before it")
            return
        self._findings.report_if(
            self._key.boot != record.boot,
            f"a checkpoint of boot {record.boot}; the key is that of {self._key.boot}",
        )
        verify_note(note, (self._key.verifier,))
        if self._matches_tree(said, "checkpoint", tree, seq):
            self.signed = max(self.signed, said.size)

    def witnessed_record(self, record: Strict, tree: PartOfTree, seq: int) -> None:
        note, said = self._read_checkpoint(record)
        self._findings.report_if(
            not any(len(one.bytes) == _COSIGNATURE for one in note.signatures),
            "a witnessed checkpoint without a countersignature",
        )
        self._matches_tree(said, "witnessed checkpoint", tree, seq)

    def _read_checkpoint(self, record: Strict) -> tuple[SignedNote, Checkpoint]:
        note = parse_note(msgspec.json.decode(record.bytes, type=NoteData).note)
        return note, parse_checkpoint(note.text)

    def _matches_tree(self, said: Checkpoint, what: str, tree: PartOfTree, seq: int) -> bool:
        if said.origin != self.origin:
            self._findings.report(f"a {what} of {said.origin}, another record")
        elif said.size >= seq:
            self._findings.report(f"a {what} over {said.size} records; {seq - 1} stand before it")
        elif said.size < tree.base:
            self.deferred.append(DeferredCheckpoint(self._findings.at(), said.size, said.root))
        elif said.root != tree.root(said.size):
            self._findings.report(
                f"a {what} over another tree than that of the first {said.size} records"
            )
        else:
            return True
        return False

    def _signed_by(self, mono: int) -> None:
        """Note that a checkpoint covers all records so far, or that their boot has ended."""
        if self.now.unsigned >= 0 and mono - self.now.unsigned > SECOND:
            self.late += 1
            self.longest = max(self.longest, mono - self.now.unsigned)
        self.now.unsigned = -1


def _short(opened: OpenedData) -> RunHashes:
    return opened.sw[:SHORT], opened.conf[:SHORT], opened.proc[:SHORT]


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
_HEAD: Final = attrgetter("boot", "sw", "conf", "proc", "table", "day")
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
        self._moved: set[str] = set()
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
        head = (boots.now.name, *boots.ran, boots.table, self._day)
        if (
            boots.unusual
            or tick.clock
            or tick.boot != boots.now.name
            or not SIMPLE.issuperset(kinds)
        ):
            return False
        if list(map(_HEAD, rows)).count(head) != len(rows):
            return False
        if list(map(_SEQ, rows)) != list(range(seq, seq + len(rows))):
            return False
        monos, utcs = list(map(_MONO, rows)), list(map(_UTC, rows))
        if not self._in_pace(monos, utcs) or not self._caused(rows, seq):
            return False
        starts, rounds = self._day_starts(self._day, utcs[0], utcs[-1]), self._rounds(rows)
        if starts is None or rounds is None:
            return False
        if "link" in kinds and any(_adopted(row) is not None for row in rows):
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
        self._moved |= now.keys()
        return True

    # --- one by one -----------------------------------------------------------------------

    def take(self, row: Strict, seq: int) -> Iterator[str]:
        """Accept one record, and yield how it fails to continue the previous one."""
        boots = self._boots
        same = row.boot == boots.now.name
        if (row.boot, row.sw, row.conf, row.proc) != (boots.now.name, *boots.ran):
            boots.start_boot(row, seq, self.mono)
            self.mono = self.mono if same else 0
        if row.seq != seq or row.table != boots.table:
            yield f"it says seq {row.seq} of table {row.table}, not {seq} of {boots.table}"
        yield from self._at_day(row, same=same)
        yield from self._at_round(row)
        if row.mono < self.mono:
            yield "its clock that only goes forward went back"
        self._day, self.mono = row.day, row.mono
        if row.kind != "snapshot":
            yield from self._timed(ClockReading(row.boot, row.utc, row.mono, row.kind == "clock"))
        if row.cause is not UNSET and not 0 < row.cause < seq:
            yield f"its cause {row.cause} is no record before it"
        adopted = _adopted(row)
        if row.cursor is not UNSET:
            yield from self._at_cursor(row.cursor, adopted is not None)
        if adopted is not None:
            self.adopted.add(adopted)
        if boots.unusual:
            boots.check_order(row.kind)

    def _at_day(self, row: Strict, *, same: bool) -> Iterator[str]:
        """Check that the gaming day is that of utc, for a day that starts at a fixed time."""
        if not same:
            self.starts = ANY_START
        starts = self._day_starts(row.day, row.utc, row.utc)
        if starts is None:
            yield f"its gaming day is {row.day!r}, its time another day's"
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
        """Check that a device's log goes on by one; after an adoption and in a new epoch it may
        continue anywhere."""
        device = cursor.device
        known = self._cursors.get(device)
        if not HEX16.fullmatch(cursor.chain):
            yield f"the chain in its cursor is {cursor.chain!r}"
        if not adopts and known is not None and known.epoch == cursor.epoch:
            wrong = _step_error(device, known.seq, cursor.seq)
            if wrong and device not in self._moved | self.adopted:
                self.jumps[device] = replace(self._boots.at(), what=wrong)
            elif wrong and device not in self.adopted:
                yield wrong
        self.adopted.discard(device)
        self._cursors[device] = cursor
        self._moved.add(device)


class _Link(Struct, frozen=True):
    what: Any = None
    device: Any = None


def _adopted(row: Strict) -> str | None:
    """The device whose log two people accept in this record; None if they accept none."""
    if row.kind != "link":
        return None
    try:
        found = msgspec.json.decode(row.bytes, type=_Link)
        return str(found.device) if found.what == "adopted" else None
    except UNREADABLE:
        return None


def _step_error(device: str, before: int, seq: int) -> str:
    if seq == before + 1:
        return ""
    if seq <= before:
        return f"{device}'s log goes on with {seq}, it stood at {before} already"
    return f"{device}'s log goes on with {seq}, {before + 1} is due: entries of it are missing"
