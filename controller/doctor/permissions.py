"""Checks of owners and permissions of the record and key directories, and their solutions.

A solution never changes the permissions of shared directories or of other users' files.
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
    warning,
    wrong,
)

OTHERS: Final = 0o077
WRITING: Final = 0o022
USE: Final = os.R_OK | os.W_OK | os.X_OK
_TOP: Final = "bin boot dev etc home lib media mnt opt proc root run sbin srv sys tmp usr var"
_BELOW: Final = "dev/shm usr/local usr/local/lib var/lib var/log var/tmp"
_SYSTEM: Final = frozenset(("/", *(f"/{one}" for one in f"{_TOP} {_BELOW}".split())))
"""Shared system directories, independent of their permissions."""


class PathStatus(NamedTuple):
    """A file or directory with its metadata."""

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
        """Whether others use the directory too, so that a change would affect them."""
        return bool(self.about.st_mode & stat.S_ISVTX) or os.path.realpath(self.place) in _SYSTEM

    def has(self, bits: int) -> bool:
        return bool(stat.S_IMODE(self.about.st_mode) & bits)


def path_status(place: Path) -> PathStatus | DoctorProblem | None:
    """Returns the metadata of a path, None if it does not exist, a problem if it is not
    accessible."""
    try:
        return PathStatus(place, place.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        return wrong(
            f"{place} cannot be accessed: {reason}",
            line("namei", "-l", place),
            mend="let this user enter each directory of the path; to see them",
        )


def inside(place: Path) -> list[PathStatus]:
    """Returns the files and directories below, without symbolic links."""
    every = []
    for folder, names, files in os.walk(place):
        for name in sorted((*names, *files)):
            below = Path(folder) / name
            one = None if below.is_symlink() else path_status(below)
            if isinstance(one, PathStatus):
                every.append(one)
    return every


def nearest(place: Path) -> Path:
    """Returns the path if it exists, else its nearest existing ancestor."""
    return next((one for one in (place, *place.parents) if one.exists()), Path("/"))


def listed(places: Sequence[Path]) -> str:
    """The first path, and the number of others."""
    first = str(places[0])
    return first if len(places) == 1 else f"{first} and {len(places) - 1} more"


# --- solutions --------------------------------------------------------------------------------


def making(case: DoctorCase, place: Path, mode: str) -> str:
    """Returns a command that creates this directory for the user who serves the table."""
    if case.machine.login and case.machine.may(nearest(place), USE):
        return line("mkdir", "-p", "-m", mode, place)
    return case.admin("install", "-d", "-o", case.machine.user, "-m", mode, place)


def not_a_directory(case: DoctorCase, place: Path, what: str) -> DoctorProblem:
    return wrong(f"{place} is not a directory", mend=f"name a different {what} in {case.file}")


# --- owners -----------------------------------------------------------------------------------


def belongs_to_others(case: DoctorCase, there: PathStatus) -> DoctorProblem:
    """A private path has a different owner. If that is root, probably by mistake, the solution is
    chown; files of other users are not taken from them."""
    owner = name_of_user(there.about.st_uid)
    what = f"{there.place} belongs to {owner}, not to {case.machine.user}"
    if there.about.st_uid != 0:
        return wrong(
            what,
            as_user(case, owner),
            mend=f"the table must be served by {owner}: run the checks as that user",
        )
    options = ("-R",) if there.directory else ()
    return wrong(what, case.admin("chown", *options, f"{case.machine.user}:", there.place))


def strays(
    case: DoctorCase, there: PathStatus, below: Sequence[PathStatus]
) -> Iterator[DoctorProblem]:
    """Files of other users in a directory, which block its owner."""
    found = [one for one in below if one.about.st_uid != there.about.st_uid]
    if found:
        others = ", ".join(sorted({name_of_user(one.about.st_uid) for one in found}))
        owner = name_of_user(there.about.st_uid)
        yield wrong(
            f"{listed([one.place for one in found])} belongs to {others}, and all others there to "
            f"{owner}: probably a command was run as {others}",
            case.admin("chown", "-R", f"{owner}:", there.place),
        )


def as_user(case: DoctorCase, name: str) -> str:
    """Returns the command that runs the doctor as that user."""
    look = f"{case.machine.holecard} {line('doctor', case.file)}"
    return f"{case.admin('runuser', '-u', name, '--')} {look}"


def forbidden(case: DoctorCase, there: PathStatus) -> DoctorProblem:
    """The user may not use a directory of their own or of root."""
    owner, user = name_of_user(there.about.st_uid), case.machine.user
    if owner != user and there.about.st_uid == 0:
        what = f"{there.place} belongs to {owner}, and {user} may not write there"
        return wrong(what, case.admin("chown", f"{user}:", there.place))
    if owner != user:
        return belongs_to_others(case, there)
    if not there.has(0o700) or stat.S_IMODE(there.about.st_mode) & 0o700 != 0o700:
        what = f"{there.place} is closed to its owner (mode {there.mode})"
        return wrong(what, line("chmod", "u+rwx", there.place))
    what = f"{there.place} cannot be written, independent of its permissions"
    return wrong(
        what,
        line("findmnt", "-T", there.place),
        mend="its file system is mounted read-only, or has its own rules; to see it",
    )


_WORLD: Final = 0o007
FIRST: Final = frozenset({LOCK, DIRECTORY, "keys"})
"""Names that a record directory may contain before the record exists."""
_KEYS: Final = (".key", ".pub", ".json", ".jsonl", ".new")
_BESIDE: Final = frozenset({LOCK, "devices"})


# --- record directory -------------------------------------------------------------------------


def record_place(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """Owners and permissions of the record directory and its content."""
    place = case.record.directory
    there = path_status(place)
    if isinstance(there, DoctorProblem):
        return there
    if there is None:
        return _to_be_made(case, place)
    if not there.directory:
        return not_a_directory(case, place, "record")
    if there.shared or _of_something_else(place):
        return wrong(
            f"{place} is not used by the record only",
            mend=f"name a directory of its own in {case.file} at [record]",
        )
    problems = [*_owners(case, there), *_modes(place)]
    if not problems and not case.machine.may(place, USE):
        problems = [forbidden(case, there)]
    return found(f"{place} (mode {there.mode})", problems)


def _to_be_made(case: DoctorCase, place: Path) -> CheckFindings | DoctorProblem:
    """The directory does not exist: the first start creates it, if its parent exists."""
    if place.is_symlink():
        to = place.parent / os.readlink(place)
        what = f"{place} is a link to {to}, which does not exist"
        return wrong(what, making(case, to, "750"))
    parent = place.parent
    there = path_status(parent)
    if isinstance(there, DoctorProblem):
        return there
    if there is None:
        what = f"{parent}, the directory of {place.name}, does not exist"
        return wrong(what, making(case, parent, "700"))
    if not there.directory:
        return not_a_directory(case, parent, "directory above")
    if not case.machine.may(parent, USE):
        what = f"{case.machine.user} may not create {place.name} in {parent}"
        return wrong(what, making(case, place, "750"))
    return found(f"{place} is created at the first start")


def _of_something_else(place: Path) -> bool:
    """Whether the directory contains other files and no record."""
    return not (place / DIRECTORY).is_dir() and bool(set(os.listdir(place)) - FIRST)


def _owners(case: DoctorCase, there: PathStatus) -> Iterator[DoctorProblem]:
    """Only one user writes the record: files of other users block that."""
    if case.machine.uid not in (there.about.st_uid, 0):
        yield belongs_to_others(case, there)
    yield from strays(case, there, inside(there.place))


def _modes(place: Path) -> Iterator[DoctorProblem]:
    """The group may read the record, for surveillance; others may not."""
    own = path_status(place)
    every = [*([own] if isinstance(own, PathStatus) else []), *inside(place)]
    written = [one.place for one in every if one.has(WRITING)]
    if written:
        what = f"users other than its owner may change {listed(written)}"
        yield wrong(what, line("chmod", "-R", "go-w", place))
    read = [one.place for one in every if one.has(_WORLD & ~WRITING)]
    if read:
        what = f"every user of this machine may read {listed(read)}"
        yield warning(what, line("chmod", "-R", "o-rwx", place))


# --- key directory ----------------------------------------------------------------------------


def keys_place(case: DoctorCase) -> CheckFindings | DoctorProblem:
    """The key directory and its content are private to the user."""
    place = case.keys
    there = path_status(place)
    if isinstance(there, DoctorProblem):
        return there
    if there is None:
        init = case.ours("devices", "init", "--keys", place)
        above = () if case.machine.may(nearest(place), USE) else (making(case, place, "700"),)
        return wrong(f"{place} does not exist", *above, init)
    if not there.directory:
        return not_a_directory(case, place, "directory of keys")
    names = os.listdir(place) if case.machine.may(place, os.R_OK) else []
    strange = [name for name in names if not _is_key(Path(name))]
    if there.shared or strange:
        what = f"{place} is not used by keys only" + (f": it has {min(strange)}" if strange else "")
        return wrong(what, mend=f"name a directory of their own in {case.file} at [keys]")
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
        yield wrong(f"others may read {listed(folders)}", line("chmod", "700", *folders))
    files = [one.place for one in below if not one.directory and one.has(OTHERS)]
    if files:
        yield wrong(f"others may access {listed(files)}", line("chmod", "600", *files))
