"""The people file and its key: badges, names, roles and PIN verifiers.

    people.json                0600, own user   the people
    people.json.history.jsonl  0600, own user   one line for each change, append only
    people.json.lock           0600, own user   locked during a change
    KEYS/people.key            0600, own user   the HMAC key of the PINs

A file that others can write or replace is rejected, and so is a damaged one. All errors are
KeyProblem. A history that does not lead to the people in the file, or is missing, is reported; it
contains no PINs, so a verifier that was replaced by hand is not detected.
"""

from __future__ import annotations

import fcntl
import os
import shlex
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from controller.audit.read.access_log import account
from controller.people.person import (
    BACKUP,
    PLACE,
    Change,
    ChangeKind,
    People,
    Person,
    check_people,
    key_bytes,
    people_bytes,
    read_key,
    read_people,
)
from controller.people.pins import PeopleKey, folded
from drivers.keys import (
    LOCK,
    LOCK_TIMEOUT,
    KeyProblem,
    append_line,
    check_private_directory,
    is_same_file,
    key_problem,
    make_private_directory,
    open_private,
    path_exists,
    private_file_written,
    write_private,
)

KEY: Final = "people.key"
HISTORY: Final = ".history.jsonl"
_LOCK: Final = ".lock"
_OTHERS_WRITE: Final = 0o022

FileMetadata: TypeAlias = tuple[int, ...] | None


def people_place(given: Path | None) -> Path:
    """The path of the people file: as given, from the environment, or in ~/.config. Raises
    KeyProblem if there is no home directory."""
    if given is not None:
        return given
    if named := os.environ.get(PLACE):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    try:
        return Path(base).expanduser() / "holecard" / "people.json"
    except RuntimeError:
        raise KeyProblem(f"${PLACE}", "is not set, and this user has no home", "a path") from None


class PeopleFile:
    """The people file and the directory of the keys. Permissions are checked at each read."""

    def __init__(self, file: Path, keys: Path) -> None:
        self.file = file
        self.keys = keys

    @property
    def key_file(self) -> Path:
        return self.keys / KEY

    @property
    def history_file(self) -> Path:
        return self.file.with_name(self.file.name + HISTORY)

    @property
    def options(self) -> tuple[str, ...]:
        """The options of `holecard people` for these paths."""
        return ("--file", str(self.file), "--keys", str(self.keys))

    @property
    def beginning(self) -> tuple[str, ...]:
        """The arguments of `holecard` that create file and key."""
        return ("people", "init", *self.options)

    @property
    def _makes(self) -> str:
        return f"`{shlex.join(('holecard', *self.beginning))}` makes one"

    # --- reading --------------------------------------------------------------------------

    def metadata(self) -> FileMetadata:
        """Metadata that changes with the file; None if it cannot be read."""
        with suppress(OSError):
            found = os.stat(self.file)
            times = (found.st_mtime_ns, found.st_ctime_ns)
            return (found.st_ino, found.st_size, *times, found.st_mode, found.st_uid)
        return None

    def read(self) -> People:
        """Read the people, without locking."""
        self._check_place()
        if not self.exists():
            raise KeyProblem(str(self.file), "there is no such file", self._makes)
        return read_people(self.file, self.key(), self.key_file)

    def key(self) -> PeopleKey:
        """Read the people key. Raises KeyProblem if it is missing."""
        if not path_exists(self.keys):
            raise KeyProblem(str(self.keys), "there is no such directory", self._makes)
        check_private_directory(self.keys)
        if not path_exists(self.key_file):
            allowed = f"{BACKUP}; without it no PIN is valid"
            raise KeyProblem(str(self.key_file), "is missing", allowed)
        return read_key(self.key_file)

    def exists(self) -> bool:
        """Whether the file exists, valid or not."""
        return path_exists(self.file)

    # --- changing -------------------------------------------------------------------------

    def begin(self) -> People:
        """Create a file without people, and the key if it is missing. Raises KeyProblem if the file
        exists."""
        _make_directory(self.keys)
        check_private_directory(self.keys)
        _make_directory(self.file.parent)
        self._check_place()
        with _locked(self._lock, "the people"):
            if self.exists():
                raise KeyProblem(str(self.file), "exists already", "a different file")
            self._make_key()
            write_private(self.file, people_bytes(People(self.key(), ())), once=True)
        return self.read()

    def change(
        self,
        what: ChangeKind,
        badge: str,
        make: Callable[[People], Person],
        by: tuple[str, ...],
        at: str,
        *,
        timeout: float = LOCK_TIMEOUT,
    ) -> People:
        """Replace the person with this badge by `make(people)`, or add them. Atomic and durable,
        with a line in the history. Returns the changed people."""
        self._check_place()
        with _locked(self._lock, "the people", timeout):
            people = self.read()
            made = make(people)
            former = people.find(badge)
            every = tuple(made if one is former else one for one in people.every)
            after = People(people.key, every if former is not None else (*every, made))
            check_people(self.file, after.every)
            try:
                data = people_bytes(after)
            except ValueError as problem:
                raise KeyProblem(str(self.file), str(problem), "a different file") from None
            line = Change(at, what, by, account(), made.badge, made.name, made.roles)
            with private_file_written(self.file, data):
                append_line(self.history_file, line.encode())
        return after

    @property
    def _lock(self) -> Path:
        return self.file.with_name(self.file.name + _LOCK)

    def _make_key(self) -> None:
        """Create the key unless it exists."""
        with _locked(self.keys / LOCK, "the keys"):
            if not path_exists(self.key_file):
                write_private(self.key_file, key_bytes(PeopleKey.generate()), once=True)

    def _check_place(self) -> None:
        """Raises KeyProblem if other users could replace the file."""
        place = self.file.parent
        try:
            found = place.stat()
        except FileNotFoundError:
            raise KeyProblem(str(place), "there is no such directory", self._makes) from None
        except OSError as problem:
            raise key_problem(place, "cannot be read", problem) from None
        if not stat.S_ISDIR(found.st_mode):
            raise KeyProblem(str(place), "is not a directory", "a directory")
        if found.st_uid not in (os.geteuid(), 0):
            what = f"its owner, user {found.st_uid}, may replace {self.file.name}"
            raise KeyProblem(str(place), what, "a directory of this user")
        if found.st_mode & _OTHERS_WRITE:
            mode = stat.S_IMODE(found.st_mode)
            what = f"others may replace {self.file.name} (mode {mode:o})"
            raise KeyProblem(str(place), what, f"chmod go-w {place}")


def _make_directory(place: Path) -> None:
    """Create a private directory durably, unless it exists."""
    if path_exists(place):
        return
    try:
        place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        raise key_problem(place.parent, "cannot be made", problem) from None
    make_private_directory(place)


@contextmanager
def _locked(file: Path, what: str, timeout: float = LOCK_TIMEOUT) -> Iterator[None]:
    with open_private(file, os.O_RDWR | os.O_CREAT) as lock:
        deadline = time.monotonic() + timeout
        while not _lock(file, lock):
            if time.monotonic() >= deadline:
                raise KeyProblem(str(file), f"another process is changing {what}", "to try again")
            time.sleep(0.02)
        if not is_same_file(file, lock):
            raise KeyProblem(
                str(file), "was removed while this process waited for it", "to try again"
            )
        yield  # closing the file unlocks it


def _lock(file: Path, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise key_problem(file, "cannot be locked", problem) from None
    return True


_LONGEST: Final = 64 * 1024
"""Maximum length of a line in bytes."""
_change: Final = msgspec.json.Decoder(Change).decode
_DISABLED: Final = {"added": False, "disabled": True, "enabled": False}


def history_differences(file: PeopleFile, people: People) -> list[str]:
    """The differences between file and history as texts. Raises KeyProblem."""
    if not path_exists(file.history_file):
        gone = f"{file.history_file} is missing: the origin of these people is unknown"
        return [gone] if people.every else []
    changes, strange = _read(file)
    return [*strange, *_compared(people, changes)]


def _read(file: PeopleFile) -> tuple[dict[str, list[Change]], list[str]]:
    """The changes by badge, and a text for each invalid line."""
    changes: dict[str, list[Change]] = {}
    strange = []
    with (
        open_private(file.history_file, os.O_RDONLY) as descriptor,
        os.fdopen(descriptor, "rb", closefd=False) as lines,
    ):
        number = 0
        try:
            while line := lines.readline(_LONGEST):
                number += 1
                try:
                    change = _change(line)
                except (msgspec.DecodeError, UnicodeDecodeError):
                    strange.append(f"line {number} of {file.history_file} is not a valid change")
                    continue
                changes.setdefault(folded(change.badge), []).append(change)
        except OSError as problem:
            raise key_problem(file.history_file, "cannot be read", problem) from None
    return changes, strange


def _compared(people: People, changes: dict[str, list[Change]]) -> Iterator[str]:
    for one in people.every:
        theirs = changes.pop(folded(one.badge), [])
        if not theirs:
            yield f"{one.badge}, {one.name}, is in the file, but in no line of the history"
            continue
        was, is_ = _made(theirs), (one.name, ", ".join(one.roles), one.disabled)
        if was[:2] != is_[:2] or was[2] not in (None, is_[2]):
            said = f"by the history {_text(*was)}, {_since(theirs)}"
            yield f"{one.badge} is {_text(*is_)} in the file; {said}"
    for theirs in changes.values():
        last = theirs[-1]
        said = f"the history has them, {_since(theirs)}"
        yield f"{last.badge}, {last.name}, is not in the file; {said}"


def _made(changes: list[Change]) -> tuple[str, str, bool | None]:
    """Name, roles, and whether disabled (None if unknown), by the history."""
    known = [_DISABLED[one.what] for one in changes if one.what in _DISABLED]
    last = changes[-1]
    return last.name, ", ".join(last.roles), known[-1] if known else None


def _since(changes: list[Change]) -> str:
    """Time and approvers of the last change by people."""
    by_people = [one for one in changes if one.what != "verifier renewed"]
    last = (by_people or changes)[-1]
    return f"since {last.at}, by {' and '.join(last.by)}"


def _text(name: str, roles: str, disabled: bool | None) -> str:
    return f"{name} ({roles}{', disabled' if disabled else ''})"
