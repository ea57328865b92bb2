"""Checks of the record: whether it opens, its table and key, its state and times. Read-only."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Final

from controller.audit.errors import RecordProblem
from controller.audit.files import LOCK, RealDisk, WriterLock
from controller.audit.format.notes import SigningKey, VerifierKey, table_name
from controller.audit.format.segments import DIRECTORY, SPARE, numbers
from controller.audit.format.tail import TailVerdict
from controller.audit.keys import load_table_private
from controller.audit.log import COSIGNED, RecordOpening, unsigned_faults
from controller.audit.read.reader import in_words, read_segment, record_of
from controller.audit.replay import OtherProcedure, ReplayMismatch, proc_of, replay_opening
from controller.audit.text import format_time
from controller.doctor.check import (
    CannotCheck,
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    skipped,
    warning,
    wrong,
)
from controller.doctor.host import Process, locking, set_clock
from controller.doctor.permissions import FIRST
from controller.games import game_of_table
from controller.procedure.engine import Procedure
from controller.table.restart import MAX_BEHIND
from drivers.keys import KeyProblem

NONE_YET: Final = "none yet: the first start creates it"
_ARCHIVE: Final = (
    "call a technician, and change nothing; parts of it can be restored from the archive; to see "
    "how much of it is intact"
)
_AGAIN: Final = "the next start quarantines it, records that, and has the felt compared"


# --- reading, without a lock ------------------------------------------------------------------


def serving(case: DoctorCase) -> list[Process]:
    """Returns the processes that lock the record; Process(0, "") if the system hides them."""
    record = case.equipment.record
    if record is None:
        return []
    lock = record.directory / LOCK
    return locking(case.machine, lock) or ([Process(0, "")] if _locked(lock) else [])


def _locked(lock: Path) -> bool:
    """Whether the file is locked, by trying a shared lock that is released at once."""
    try:
        fd = os.open(lock, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as problem:
        return problem.errno in (errno.EWOULDBLOCK, errno.EACCES)
    finally:
        os.close(fd)
    return False


def read(record: Path) -> RecordOpening | None:
    """Read the last segment as a boot does; None if there is no record yet. Raises
    RecordProblem."""
    if not (record / DIRECTORY).exists() or not (there := numbers(record)):
        return None
    opening = RecordOpening(record, RealDisk(), WriterLock(-1, ()))
    segment = opening.segment = read_segment(record, there[-1])
    opening.records = [record_of(segment.file, frame) for frame in segment.frames]
    opening.tail = segment.tail()
    return opening


def _readable(record: Path) -> RecordOpening | None:
    """read(), or CannotCheck: the check of the record reports why."""
    try:
        return read(record)
    except (OSError, RecordProblem):
        raise CannotCheck("the record does not open") from None


# --- opening ----------------------------------------------------------------------------------


def record_opens(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The part of the record that a start decodes is intact, and of this table."""
    place = case.record
    record = place.directory
    if record.exists() and not record.is_dir():
        return skipped(f"{record} is not a directory")
    before = serving(case)
    try:
        opening = read(record)
    except RecordProblem as problem:
        return _damaged(case, record, problem)
    busy = before or serving(case)
    if opening is None:
        return found(NONE_YET, _foreign_files(case, record))
    problems = list(_other_table(case, opening))
    if not busy:  # an append in progress looks like a tail
        problems += [*_witnessed(case, opening), *_tail(case, opening)]
    return found(f"{_summary(opening)}{_busy(busy)}", problems)


def _summary(opening: RecordOpening) -> str:
    last = opening.last
    assert last is not None  # a segment has at least one record
    return f"{last.seq} records, the last at {format_time(last.utc)}"


def _busy(busy: list[Process]) -> str:
    if not busy:
        return ""
    who = ", ".join(str(one) for one in busy if one.pid)
    return f"; the table is being served{f' by {who}' if who else ''}"


def _foreign_files(case: DoctorCase, record: Path) -> Iterator[DoctorProblem]:
    for place, own in ((record, FIRST), (record / DIRECTORY, frozenset({SPARE}))):
        foreign = sorted(set(os.listdir(place)) - own) if place.is_dir() else []
        if foreign:
            yield wrong(
                f"{place} contains no record, but {foreign[0]}",
                mend=f"name an empty or a new directory in {case.file} at [record]",
            )
            return


def _damaged(case: DoctorCase, record: Path, problem: RecordProblem) -> DoctorProblem:
    return wrong(
        f"{problem.where}: {problem.what}", case.ours("audit", "verify", record), mend=_ARCHIVE
    )


def _other_table(case: DoctorCase, opening: RecordOpening) -> Iterator[DoctorProblem]:
    theirs = opening.records[0].table
    if case.name and theirs != case.name:
        yield wrong(
            f"{opening.record} is the record of table {theirs}, not of {case.name}",
            mend=f"name the record of {case.name} in {case.file} at [record]",
        )


def _witnessed(case: DoctorCase, opening: RecordOpening) -> Iterator[DoctorProblem]:
    sizes = [file.stem for file in (opening.record / COSIGNED).glob("*.note")]
    most = max((int(one) for one in sizes if one.isdecimal() and one.isascii()), default=0)
    last = opening.last
    if last is not None and most > last.seq:
        yield wrong(
            f"{opening.record} ends with record {last.seq}; a witness has cosigned {most}",
            case.ours("audit", "verify", opening.record),
            mend=_ARCHIVE,
        )


def _tail(case: DoctorCase, opening: RecordOpening) -> Iterator[DoctorProblem]:
    segment, tail = opening.segment, opening.tail
    assert segment is not None
    assert tail is not None
    if tail.verdict is TailVerdict.CLEAN:
        return
    what = f"{segment.file}: offset {tail.offset}: {in_words(tail, segment)}"
    match tail.verdict:
        case TailVerdict.TORN:
            yield warning(what, mend=f"nothing acknowledged is missing; {_AGAIN}")
        case TailVerdict.MISSING:
            yield wrong(what, case.ours("audit", "verify", opening.record), mend=_ARCHIVE)
        case _:
            keys = case.equipment.keys
            given = ("--keys", keys) if keys is not None else ()
            yield wrong(
                what,
                case.ours("audit", "accept-tail", opening.record, *given),
                mend="the disk may be failing, or the file was changed; two people may accept it",
            )


# --- keys -------------------------------------------------------------------------------------


def record_key(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The record is signed by the table's key."""
    record, keys = case.record, case.keys
    opening = _readable(record.directory)
    opened = None if opening is None else opening.opened()
    if opening is None or opened is None:
        return found(NONE_YET)
    try:
        key = load_table_private(keys)
    except KeyProblem:
        return skipped("the table's key cannot be used")
    verifier = SigningKey(table_name(opened.origin), key).verifier
    if str(verifier) == opened.table_key:
        problems = [] if serving(case) else _unsigned(case, opening, verifier)
        return found("was created with table.key, and is signed", problems)
    return wrong(
        f"{record.directory} was created with a different table key than {keys}/table.key",
        mend=f"name the keys that it was created with in {case.file} at [keys]; its key is "
        f"{opened.table_key}",
    )


def _unsigned(
    case: DoctorCase, opening: RecordOpening, table: VerifierKey
) -> Iterator[DoctorProblem]:
    """Parts that no boot has signed: a later boot does not sign them."""
    try:
        unsigned_faults(opening, table)
    except RecordProblem as problem:
        yield wrong(
            f"{problem.where}: {problem.what}",
            case.ours("audit", "verify", opening.record),
            mend=f"{problem.todo}; to check first",
        )


# --- state ------------------------------------------------------------------------------------


def round_open(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The state with which a start continues, by the installed rules and the table file."""
    record = case.record
    if case.config is None:
        return skipped("the table file is not valid")
    if serving(case):
        return found("the table is being served")
    opening = _readable(record.directory)
    if opening is None:
        return found(NONE_YET)
    game = game_of_table(case.config)
    try:
        folded = replay_opening(opening, Procedure(game))
    except OtherProcedure as problem:
        return wrong(f"{problem.where}: {problem.what}", mend=problem.todo)
    except ReplayMismatch as problem:
        return wrong(
            f"{problem.where}: {problem.what}",
            case.ours("audit", "verify", opening.record),
            mend=_ARCHIVE,
        )
    except RecordProblem as problem:
        return _damaged(case, opening.record, problem)
    opened = opening.opened()
    changed = opened is not None and opened.proc != proc_of(game)
    where = f"round {folded.now.round}, at {folded.now.step.value}"
    return found(
        f"{where}; the rules have changed, which is allowed while the table is closed"
        if changed
        else where
    )


# --- clock ------------------------------------------------------------------------------------


def clock_goes_on(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The clock is not before the record's last entry."""
    record = case.record
    opening = _readable(record.directory)
    last = None if opening is None else opening.last_told
    if last is None:
        return found(NONE_YET)
    now = case.machine.clock().utc
    if now >= last.utc:
        return found(f"{format_time(now)}, after the last record")
    behind = timedelta(microseconds=last.utc - now)
    what = f"the clock says {format_time(now)}, and the record ends at {format_time(last.utc)}"
    if behind <= MAX_BEHIND:
        mend = "the next start records that the clock was set back"
        return warning(what, *set_clock(case), mend=mend)
    serve = case.ours("serve", case.file, "--believe-clock")
    mend = f"if it is right now, and was wrong then, two people start once with {serve}; else"
    return wrong(what, *set_clock(case), mend=mend)
