"""Checks of the record: whether it opens, its table and key, its state and times, its disk.

They are read-only.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import tempfile
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

import msgspec

from controller.audit.errors import RecordProblem
from controller.audit.files import LOCK, Disk, WriterLock
from controller.audit.format.notes import SigningKey, VerifierKey, table_name
from controller.audit.format.records import table_of
from controller.audit.format.segments import DIRECTORY, SPARE, numbers, spare_file
from controller.audit.format.tail import TailVerdict
from controller.audit.keys import load_table_private
from controller.audit.log import COSIGNED, RecordOpening, unsigned_faults
from controller.audit.read.reader import in_words, read_segment, record_of
from controller.audit.replay import OtherProcedure, ReplayMismatch, proc_of, replay_opening
from controller.audit.text import format_time, minutes_words
from controller.doctor.check import (
    CannotCheck,
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    skipped,
    warning,
    wrong,
)
from controller.doctor.host import Process, locking, set_clock
from controller.doctor.permissions import FIRST, nearest
from controller.games import game_of_table
from controller.procedure.engine import Procedure
from controller.table.restart import MAX_BEHIND
from controller.table.running import bytes_an_hour
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
    opening = RecordOpening(record, Disk(), WriterLock(-1, ()))
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
    record = case.record.directory
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
    problems = [*_other_table(case, opening), *_behind(opening)]
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
    theirs = "" if opening.snapshot is None else table_of(opening.snapshot.origin)
    if case.name and theirs != case.name:
        yield wrong(
            f"{opening.record} is the record of table {theirs}, not of {case.name}",
            mend=f"name the record of {case.name} in {case.file} at [record]",
        )


def _behind(opening: RecordOpening) -> Iterator[DoctorProblem]:
    """Devices that were told that later events are stored, and whose log two people have not taken
    up since: by the last segment."""
    held: dict[str, str] = {}
    for one in opening.records:
        if one.kind != "link":
            continue
        link = msgspec.json.decode(one.data)
        if link["what"] == "Held" and link["verdict"] == "behind":
            held[link["device"]] = f"the {one.by.name} {link['device']}"
        elif link["what"] in ("adopted", "Resumed"):
            held.pop(link["device"], None)
    for device in held.values():
        told = f"events that {device} was told are stored"
        yield wrong(
            f"{opening.record} ends before {told}: an older copy?",
            mend="put the newer record back if there is one; else two people take the log up at "
            "the dealer's screen",
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
    opening = _readable(case.record.directory)
    last = None if opening is None else opening.last_not_snapshot
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


HOURS: Final = 24
FEW_DAYS: Final = 2
SOME_DAYS: Final = 30
FEW_FILES: Final = 100
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30

_FORGETS: Final = frozenset({"tmpfs", "ramfs", "devtmpfs"})
_LAYERED: Final = frozenset({"overlay", "aufs", "squashfs"})
_AWAY: Final = frozenset({"nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "glusterfs", "afs"})
_PLAIN: Final = frozenset({"vfat", "exfat", "msdos", "ntfs", "ntfs3", "fuseblk"})
_OCTAL: Final = re.compile(r"\\([0-7]{3})")

PAGE: Final = 4096
SYNCS: Final = 12
SLOW_MS: Final = 20.0
"""Limit for the median sync time: longer delays are visible at each prompt."""


def bytes_a_day(seats: int) -> int:
    """Bytes per day of a table that never closes, with the busiest number of players."""
    return bytes_an_hour(seats) * HOURS


# --- free space -------------------------------------------------------------------------------


def room(case: DoctorCase) -> CheckFindings:
    """There is enough free space for the record of the coming days."""
    record = case.record
    place = nearest(record.directory)
    about = os.statvfs(place)
    free = about.f_bavail * about.f_frsize
    seats = 7 if case.config is None else case.config.seats
    daily = bytes_a_day(seats)
    days = free // daily
    said = f"{free / _GIB:.1f} GiB free, {days} days of {daily / _MIB:.0f} MiB, if never closed"
    look = line("df", "-h", place)
    mend = "free space on that disk, or move the record to a larger one; to see it"
    problems = []
    if free < 3 * record.segment_mib * _MIB or days < FEW_DAYS:
        full = _play_left(case, free, seats)
        problems.append(wrong(f"{place} has {said}{full}", look, mend=mend))
    elif days < SOME_DAYS:
        problems.append(warning(f"{place} has {said}", look, mend=mend))
    if about.f_files and about.f_favail < FEW_FILES:
        problems.append(
            wrong(
                f"{place} has space for only {about.f_favail} more files",
                line("df", "-i", place),
                mend=mend,
            )
        )
    return found(said, problems)


def _play_left(case: DoctorCase, free: int, seats: int) -> str:
    """The play that is left to a table that is being served and cannot make its next segment;
    empty for all others."""
    record = case.record.directory
    if not serving(case) or spare_file(record).exists():
        return ""
    try:
        opening = read(record)
    except (OSError, RecordProblem):
        return ""  # the check of the record reports it
    segment = None if opening is None else opening.segment
    if segment is None or free >= len(segment.buffer):
        return ""  # it is being made
    left = len(segment.buffer) - segment.end
    words = minutes_words(left * 60 // bytes_an_hour(seats))
    return f"; the next segment of the record cannot be made: {words} of play can be recorded"


# --- file system ------------------------------------------------------------------------------


class Mount(NamedTuple):
    """A mounted file system."""

    at: str
    kind: str
    readonly: bool


def mounts(mountinfo: str) -> list[Mount]:
    """Parse /proc/self/mountinfo, see proc(5)."""
    every = []
    for words in map(str.split, mountinfo.splitlines()):
        if "-" not in words[6:]:
            continue
        dash = words.index("-", 6)
        at = _OCTAL.sub(lambda octal: chr(int(octal[1], 8)), words[4])
        options = {*words[5].split(","), *words[dash + 3].split(",")}
        every.append(Mount(at, words[dash + 1], "ro" in options))
    return every


def mount_of(place: Path, every: list[Mount]) -> Mount | None:
    """Returns the mount of a path: the longest mount point, and the last one of several there."""
    real = os.path.realpath(place)
    above = [one for one in every if real == one.at or real.startswith(one.at.rstrip("/") + "/")]
    return max(enumerate(above), key=lambda one: (len(one[1].at), one[0]))[1] if above else None


def file_system(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The file system makes synced data durable."""
    place = nearest(case.record.directory)
    mount = mount_of(place, mounts(case.machine.text("/proc/self/mountinfo") or ""))
    if mount is None:
        return skipped("the mounts of this machine are unknown")
    mend = f"name a directory on a disk of this machine in {case.file} at [record]"
    where = f"{place} is on {mount.kind} ({mount.at})"
    if mount.readonly:
        return wrong(
            f"{where}, which is mounted read-only",
            case.admin("mount", "-o", "remount,rw", mount.at),
            mend="a failing disk is remounted like that: check it first",
        )
    why = _unfit(mount.kind)
    return found(where, [warning(f"{where}: {why}", mend=mend)] if why else [])


def _unfit(kind: str) -> str:
    if kind in _FORGETS:
        return "the record is lost at a power failure"
    if kind in _LAYERED:
        return "the record may be deleted with the container"
    if kind in _AWAY or (kind.startswith("fuse.") and kind != "fuse.ext4"):
        return "its syncs and locks depend on another machine"
    if kind in _PLAIN:
        return "it has no permissions, or does not keep the order of writes"
    return ""


# --- sync times -------------------------------------------------------------------------------


def syncs(place: Path, count: int = SYNCS) -> list[float]:
    """Milliseconds of each durable overwrite of 4 KiB, in an unnamed file."""
    taken = []
    with tempfile.TemporaryFile(dir=place) as file:
        fd = file.fileno()
        os.pwrite(fd, bytes(PAGE * count), 0)
        os.fsync(fd)
        for at in range(count):
            data = os.urandom(PAGE)
            begun = time.perf_counter()
            os.pwrite(fd, data, at * PAGE)
            os.fdatasync(fd)
            taken.append((time.perf_counter() - begun) * 1000)
    return taken


def syncing(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """Durable writes are fast enough, since each append waits for one."""
    place = nearest(case.record.directory)
    if not place.is_dir() or not case.machine.may(place, os.W_OK | os.X_OK):
        return skipped(f"{case.machine.user} may not write in {place}")
    try:
        taken = syncs(place)
    except OSError as problem:
        what = f"{place} cannot be written and synced: {problem.strerror}"
        mend = "the disk is full or failing; to see messages of the kernel"
        return wrong(what, case.admin("dmesg", "--level", "err,warn"), mend=mend)
    half, most = median(taken), max(taken)
    said = f"4 KiB durable in {half:.2f} ms, at most {most:.2f} ms of {len(taken)}"
    if half <= SLOW_MS:
        return found(said)
    mend = "the table waits for that at every card: use a faster disk for the record"
    return warning(f"{place}: {said}", mend=mend)
