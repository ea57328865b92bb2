"""The disk that the record lies on: its room in days of play, its file system, its syncs."""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final, NamedTuple

from controller.doctor.check import CheckFindings, DoctorCase, found, line, skipped, warning, wrong
from controller.doctor.permissions import nearest

RECORD_BYTES: Final = 1000
"""Of a record with its frame, about, and its part of the index."""
ROUND_RECORDS: Final = 12
SEAT_RECORDS: Final = 13
"""About, of a round, and of each seat that plays in it: wagers, cards, decisions, payments."""
ROUNDS_AN_HOUR: Final = 420
"""Divided by the players and the dealer: some 210 with one player, 52 with seven."""
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
"""A record waits so long for the disk at most, or whoever waits for its prompt notices."""


def bytes_a_day(seats: int) -> int:
    """Of a table that is never closed, with as many players as make the most of it."""
    hourly = (
        ROUNDS_AN_HOUR * (ROUND_RECORDS + SEAT_RECORDS * players) // (players + 1)
        for players in range(1, seats + 1)
    )
    return max(hourly) * RECORD_BYTES * HOURS


# --- room -------------------------------------------------------------------------------------


def room(case: DoctorCase) -> CheckFindings:
    """Room for the record of days to come."""
    record = case.equipment.record
    if record is None:
        return skipped("no [record]")
    place = nearest(record.directory)
    about = os.statvfs(place)
    free = about.f_bavail * about.f_frsize
    seats = 7 if case.config is None else case.config.seats
    daily = bytes_a_day(seats)
    days = free // daily
    said = f"{free / _GIB:.1f} GiB free, {days} days of {daily / _MIB:.0f} MiB, if never closed"
    look = line("df", "-h", place)
    mend = "take elsewhere what lies on that disk, or move the record to a larger one; to see it"
    problems = []
    if free < 3 * record.segment_mib * _MIB or days < FEW_DAYS:
        problems.append(wrong(f"{place} has {said}", look, mend=mend))
    elif days < SOME_DAYS:
        problems.append(warning(f"{place} has {said}", look, mend=mend))
    if about.f_files and about.f_favail < FEW_FILES:
        what = f"{place} has room for {about.f_favail} files more"
        problems.append(wrong(what, line("df", "-i", place), mend=mend))
    return found(said, problems)


# --- file system ------------------------------------------------------------------------------


class Mount(NamedTuple):
    """Where a file system is."""

    at: str
    kind: str
    readonly: bool


def mounts(mountinfo: str) -> list[Mount]:
    """As proc(5) has them."""
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
    """The one that this path is on: the longest, and of several there the last."""
    real = os.path.realpath(place)
    above = [one for one in every if real == one.at or real.startswith(one.at.rstrip("/") + "/")]
    return max(enumerate(above), key=lambda one: (len(one[1].at), one[0]))[1] if above else None


def file_system(case: DoctorCase) -> CheckFindings:
    """One that keeps what it has acknowledged."""
    record = case.equipment.record
    if record is None:
        return skipped("no [record]")
    place = nearest(record.directory)
    mount = mount_of(place, mounts(case.machine.text("/proc/self/mountinfo") or ""))
    if mount is None:
        return skipped("the machine does not say")
    mend = f"name a directory on a disk of this machine in {case.file} at [record]"
    where = f"{place} is on {mount.kind} ({mount.at})"
    if mount.readonly:
        again = case.admin("mount", "-o", "remount,rw", mount.at)
        what = f"{where}, which is mounted for reading only"
        return found("", [wrong(what, again, mend="a disk that fails is mounted so: look first")])
    why = _unfit(mount.kind)
    return found(where, [warning(f"{where}: {why}", mend=mend)] if why else [])


def _unfit(kind: str) -> str:
    if kind in _FORGETS:
        return "the record is gone with the power"
    if kind in _LAYERED:
        return "what a container writes may go with it"
    if kind in _AWAY or (kind.startswith("fuse.") and kind != "fuse.ext4"):
        return "its syncs and locks are another machine's to keep"
    if kind in _PLAIN:
        return "it keeps no rights, or no order of what is written"
    return ""


# --- syncs ------------------------------------------------------------------------------------


def syncs(place: Path, count: int = SYNCS) -> list[float]:
    """Milliseconds of each 4 KiB written over, and on the disk, in a file without a name."""
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


def syncing(case: DoctorCase) -> CheckFindings:
    """Each record waits for this."""
    record = case.equipment.record
    if record is None:
        return skipped("no [record]")
    place = nearest(record.directory)
    if not place.is_dir() or not case.machine.may(place, os.W_OK | os.X_OK):
        return skipped(f"{case.machine.user} may not write in {place}")
    try:
        taken = syncs(place)
    except OSError as problem:
        what = f"{place} cannot be written and synced: {problem.strerror}"
        mend = "a disk that is full or failing; what the kernel says of it"
        return found("", [wrong(what, case.admin("dmesg", "--level", "err,warn"), mend=mend)])
    half, most = median(taken), max(taken)
    said = f"4 KiB on the disk in {half:.2f} ms, {most:.2f} ms at most of {len(taken)}"
    if half <= SLOW_MS:
        return found(said)
    mend = "the table waits for that at every card: use another disk for the record"
    return found("", [warning(f"{place}: {said}", mend=mend)])
