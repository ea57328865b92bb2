"""Checks of the record's disk: free space in days of play, file system, sync times."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    skipped,
    warning,
    wrong,
)
from controller.doctor.permissions import nearest

RECORD_BYTES: Final = 1000
"""Approximate size of a record entry with its frame and its part of the index."""
ROUND_RECORDS: Final = 12
SEAT_RECORDS: Final = 13
"""Approximate number of entries of a round, and of each seat in it."""
ROUNDS_AN_HOUR: Final = 420
"""Divided by players plus dealer: about 210 with one player, 52 with seven."""
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
    hourly = (
        ROUNDS_AN_HOUR * (ROUND_RECORDS + SEAT_RECORDS * players) // (players + 1)
        for players in range(1, seats + 1)
    )
    return max(hourly) * RECORD_BYTES * HOURS


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
        problems.append(wrong(f"{place} has {said}", look, mend=mend))
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
    record = case.record
    place = nearest(record.directory)
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
    record = case.record
    place = nearest(record.directory)
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
