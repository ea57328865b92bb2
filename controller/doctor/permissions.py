"""Files and directories as they lie there: whose they are, who may touch them, and whether what
mends one of them would do something to others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.files import LOCK
from controller.audit.format.segments import DIRECTORY
from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    name_of_user,
    skipped,
    warning,
    wrong,
)

OTHERS: Final = 0o077
WRITING: Final = 0o022
USE: Final = os.R_OK | os.W_OK | os.X_OK
_TOP: Final = "bin boot dev etc home lib media mnt opt proc root run sbin srv sys tmp usr var"
_BELOW: Final = "dev/shm usr/local usr/local/lib var/lib var/log var/tmp"
_SYSTEM: Final = frozenset(("/", *(f"/{one}" for one in f"{_TOP} {_BELOW}".split())))
"""Directories that are nobody's alone, whatever their rights."""


class PathStatus(NamedTuple):
    """A file or directory, and what stat says of it."""

    place: Path
    about: os.stat_result

    @property
    def mode(self) -> str:
        return f"{stat.S_IMODE(self.about.st_mode):o}"

    @property
    def directory(self) -> bool:
        return stat.S_ISDIR(self.about.st_mode)

    @property
    def shared(self) -> bool:
        """Others have things there: what is done to it is done to them."""
        return bool(self.about.st_mode & stat.S_ISVTX) or os.path.realpath(self.place) in _SYSTEM

    def has(self, bits: int) -> bool:
        return bool(stat.S_IMODE(self.about.st_mode) & bits)


def path_status(place: Path) -> PathStatus | DoctorProblem | None:
    """What is there; None where nothing is."""
    try:
        return PathStatus(place, place.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        return wrong(
            f"{place} cannot be looked at: {reason}",
            line("namei", "-l", place),
            mend="let this user pass every directory on the way to it, which these are",
        )


def inside(place: Path) -> list[PathStatus]:
    """The files and directories below. A link leads elsewhere, and is somebody else's matter."""
    every = []
    for folder, names, files in os.walk(place):
        for name in sorted((*names, *files)):
            below = Path(folder) / name
            one = None if below.is_symlink() else path_status(below)
            if isinstance(one, PathStatus):
                every.append(one)
    return every


def nearest(place: Path) -> Path:
    """What is there of this path."""
    return next((one for one in (place, *place.parents) if one.exists()), Path("/"))


def listed(places: Sequence[Path]) -> str:
    """The first, and how many more."""
    first = str(places[0])
    return first if len(places) == 1 else f"{first} and {len(places) - 1} more"


# --- what is to be made -----------------------------------------------------------------------


def making(case: DoctorCase, place: Path, mode: str) -> str:
    """A command that makes this directory, for whoever serves the table."""
    if case.machine.login and case.machine.may(nearest(place), USE):
        return line("mkdir", "-p", "-m", mode, place)
    return case.admin("install", "-d", "-o", case.machine.user, "-m", mode, place)


def not_a_directory(case: DoctorCase, place: Path, what: str) -> DoctorProblem:
    return wrong(f"{place} is no directory", mend=f"name another {what} in {case.file}")


# --- whose they are ---------------------------------------------------------------------------


def belongs_to_others(case: DoctorCase, there: PathStatus) -> DoctorProblem:
    """What only its owner is to use. Nobody is told to take it from another user; what root has
    made, most likely by mistake, is given to whoever asks."""
    owner = name_of_user(there.about.st_uid)
    what = f"{there.place} belongs to {owner}, not to {case.machine.user}"
    if there.about.st_uid != 0:
        mend = f"the table is to be served by {owner}: look as that one"
        return wrong(what, as_user(case, owner), mend=mend)
    options = ("-R",) if there.directory else ()
    return wrong(what, case.admin("chown", *options, f"{case.machine.user}:", there.place))


def strays(
    case: DoctorCase, there: PathStatus, below: Sequence[PathStatus]
) -> Iterator[DoctorProblem]:
    """What another user has left there stops its owner."""
    found = [one for one in below if one.about.st_uid != there.about.st_uid]
    if found:
        others = ", ".join(sorted({name_of_user(one.about.st_uid) for one in found}))
        owner = name_of_user(there.about.st_uid)
        yield wrong(
            f"{listed([one.place for one in found])} belongs to {others}, and all else there to "
            f"{owner}: most likely somebody ran a command as {others}",
            case.admin("chown", "-R", f"{owner}:", there.place),
        )


def as_user(case: DoctorCase, name: str) -> str:
    """This look, as that user takes it."""
    look = f"{case.machine.holecard} {line('doctor', case.file)}"
    return f"{case.admin('runuser', '-u', name, '--')} {look}"


def forbidden(case: DoctorCase, there: PathStatus) -> DoctorProblem:
    """This user may not use a directory that is his, or nobody's else."""
    owner, user = name_of_user(there.about.st_uid), case.machine.user
    if owner != user and there.about.st_uid == 0:
        what = f"{there.place} belongs to {owner}, and {user} may not write there"
        return wrong(what, case.admin("chown", f"{user}:", there.place))
    if owner != user:
        return belongs_to_others(case, there)
    if not there.has(0o700) or stat.S_IMODE(there.about.st_mode) & 0o700 != 0o700:
        what = f"{there.place} is closed to its owner (mode {there.mode})"
        return wrong(what, line("chmod", "u+rwx", there.place))
    what = f"{there.place} cannot be written, whatever its rights"
    mend = "its file system is mounted for reading only, or has rules of its own; what it is says"
    return wrong(what, line("findmnt", "-T", there.place), mend=mend)


_STRANGERS: Final = 0o007
FIRST: Final = frozenset({LOCK, DIRECTORY, "keys"})
"""What may lie in a record's directory before the record does."""
_KEYS: Final = (".key", ".pub", ".json", ".jsonl", ".new")
_BESIDE: Final = frozenset({LOCK, "devices"})


# --- the record's place -----------------------------------------------------------------------


def record_place(case: DoctorCase) -> CheckFindings:
    """The record's directory, and whatever lies in it."""
    record = case.equipment.record
    if record is None:
        return skipped("no [record]")
    place = record.directory
    there = path_status(place)
    if isinstance(there, DoctorProblem):
        return found("", [there])
    if there is None:
        return _to_be_made(case, place)
    if not there.directory:
        return found("", [not_a_directory(case, place, "record")])
    if there.shared or _of_something_else(place):
        what = f"{place} is not the record's alone"
        mend = f"name a directory of its own in {case.file} at [record]"
        return found("", [wrong(what, mend=mend)])
    problems = [*_owners(case, there), *_modes(place)]
    if not problems and not case.machine.may(place, USE):
        problems = [forbidden(case, there)]
    return found(f"{place} (mode {there.mode})", problems)


def _to_be_made(case: DoctorCase, place: Path) -> CheckFindings:
    """What the first start makes, if it finds the directory above."""
    if place.is_symlink():
        to = place.parent / os.readlink(place)
        what = f"{place} is a link to {to}, where nothing is"
        return found("", [wrong(what, making(case, to, "750"))])
    parent = place.parent
    there = path_status(parent)
    if isinstance(there, DoctorProblem):
        return found("", [there])
    if there is None:
        what = f"{parent}, which is to hold {place.name}, is not there"
        return found("", [wrong(what, making(case, parent, "700"))])
    if not there.directory:
        return found("", [not_a_directory(case, parent, "directory above")])
    if not case.machine.may(parent, USE):
        what = f"{case.machine.user} may not make {place.name} in {parent}"
        return found("", [wrong(what, making(case, place, "750"))])
    return found(f"{place} is made at the first start")


def _of_something_else(place: Path) -> bool:
    """What is done to a record is not done to what is none."""
    return not (place / DIRECTORY).is_dir() and bool(set(os.listdir(place)) - FIRST)


def _owners(case: DoctorCase, there: PathStatus) -> Iterator[DoctorProblem]:
    """One user writes the record: what another one has left there stops him."""
    if case.machine.uid not in (there.about.st_uid, 0):
        yield belongs_to_others(case, there)
    yield from strays(case, there, inside(there.place))


def _modes(place: Path) -> Iterator[DoctorProblem]:
    """Its group may read: surveillance."""
    own = path_status(place)
    every = [*([own] if isinstance(own, PathStatus) else []), *inside(place)]
    written = [one.place for one in every if one.has(WRITING)]
    if written:
        what = f"others than its owner may change {listed(written)}"
        yield wrong(what, line("chmod", "-R", "go-w", place))
    read = [one.place for one in every if one.has(_STRANGERS & ~WRITING)]
    if read:
        what = f"everybody on this machine may read {listed(read)}"
        yield warning(what, line("chmod", "-R", "o-rwx", place))


# --- the keys' place --------------------------------------------------------------------------


def keys_place(case: DoctorCase) -> CheckFindings:
    """The directory of the keys, and whatever lies in it: ours alone."""
    place = case.equipment.keys
    if place is None:
        return skipped("no [keys]")
    there = path_status(place)
    if isinstance(there, DoctorProblem):
        return found("", [there])
    if there is None:
        init = case.ours("devices", "init", "--keys", place)
        above = () if case.machine.may(nearest(place), USE) else (making(case, place, "700"),)
        return found("", [wrong(f"{place} is not there", *above, init)])
    if not there.directory:
        return found("", [not_a_directory(case, place, "directory of keys")])
    names = os.listdir(place) if case.machine.may(place, os.R_OK) else []
    strange = [name for name in names if not _is_key(Path(name))]
    if there.shared or strange:
        what = f"{place} is not the keys' alone" + (f": it holds {min(strange)}" if strange else "")
        mend = f"name a directory of their own in {case.file} at [keys]"
        return found("", [wrong(what, mend=mend)])
    return found(f"{place} (mode {there.mode})", _alone(case, there))


def _is_key(place: Path) -> bool:
    return place.suffix in _KEYS or place.name in _BESIDE


def _alone(case: DoctorCase, there: PathStatus) -> Iterator[DoctorProblem]:
    below = inside(there.place)
    if there.about.st_uid != case.machine.uid:
        yield belongs_to_others(case, there)
    yield from strays(case, there, below)
    folders = [one.place for one in (there, *below) if one.directory and one.has(OTHERS)]
    if folders:
        yield wrong(f"others may look into {listed(folders)}", line("chmod", "700", *folders))
    files = [one.place for one in below if not one.directory and one.has(OTHERS)]
    if files:
        yield wrong(f"others may touch {listed(files)}", line("chmod", "600", *files))
