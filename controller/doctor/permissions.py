"""Files and directories as they lie there: whose they are, who may touch them, and whether what
mends one of them would do something to others.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.doctor.check import Case, Problem, line, name_of_user, wrong

OTHERS: Final = 0o077
WRITING: Final = 0o022
USE: Final = os.R_OK | os.W_OK | os.X_OK
_TOP: Final = "bin boot dev etc home lib media mnt opt proc root run sbin srv sys tmp usr var"
_BELOW: Final = "dev/shm usr/local usr/local/lib var/lib var/log var/tmp"
_SYSTEM: Final = frozenset(("/", *(f"/{one}" for one in f"{_TOP} {_BELOW}".split())))
"""Directories that are nobody's alone, whatever their rights."""


class Seen(NamedTuple):
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


def seen(place: Path) -> Seen | Problem | None:
    """What is there; None where nothing is."""
    try:
        return Seen(place, place.stat())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        return wrong(
            f"{place} cannot be looked at: {reason}",
            line("namei", "-l", place),
            mend="let this user pass every directory on the way to it, which these are",
        )


def inside(place: Path) -> list[Seen]:
    """The files and directories below. A link leads elsewhere, and is somebody else's matter."""
    every = []
    for folder, names, files in os.walk(place):
        for name in sorted((*names, *files)):
            below = Path(folder) / name
            one = None if below.is_symlink() else seen(below)
            if isinstance(one, Seen):
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


def making(case: Case, place: Path, mode: str) -> str:
    """A command that makes this directory, for whoever serves the table."""
    if case.machine.login and case.machine.may(nearest(place), USE):
        return line("mkdir", "-p", "-m", mode, place)
    return case.admin("install", "-d", "-o", case.machine.user, "-m", mode, place)


def not_a_directory(case: Case, place: Path, what: str) -> Problem:
    return wrong(f"{place} is no directory", mend=f"name another {what} in {case.file}")


# --- whose they are ---------------------------------------------------------------------------


def belongs_to_others(case: Case, there: Seen) -> Problem:
    """What only its owner is to use. Nobody is told to take it from another user; what root has
    made, most likely by mistake, is given to whoever asks."""
    owner = name_of_user(there.about.st_uid)
    what = f"{there.place} belongs to {owner}, not to {case.machine.user}"
    if there.about.st_uid != 0:
        mend = f"the table is to be served by {owner}: look as that one"
        return wrong(what, as_user(case, owner), mend=mend)
    options = ("-R",) if there.directory else ()
    return wrong(what, case.admin("chown", *options, f"{case.machine.user}:", there.place))


def strays(case: Case, there: Seen, below: Sequence[Seen]) -> Iterator[Problem]:
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


def as_user(case: Case, name: str) -> str:
    """This look, as that user takes it."""
    look = f"{case.machine.holecard} {line('doctor', case.file)}"
    return f"{case.admin('runuser', '-u', name, '--')} {look}"


def forbidden(case: Case, there: Seen) -> Problem:
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
