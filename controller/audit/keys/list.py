"""Lists the keys in a directory, without secret parts."""

from __future__ import annotations

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from controller.audit.format.notes import base64
from controller.audit.keys import files as key_texts
from controller.audit.keys import store
from controller.audit.keys.store import ROLES, Role, key_file, public_file
from drivers.keys import KeyProblem, key_problem, path_exists

AT_THE_TABLE: Final = frozenset[Role]({"table", "hole"})
"""Keys whose secret part the table needs."""


class KeySummary(Struct, frozen=True):
    """A usable key."""

    fingerprint: str
    public: str | None = None
    """As in its .pub file. A hole key has no public part."""
    name: str | None = None
    """The name of a witness."""


class KeyStatus(Struct, frozen=True):
    """The files of a key, and whether it is usable."""

    role: Role
    files: tuple[tuple[Path, str], ...]
    """Paths and modes."""
    shown: KeySummary | None = None
    problem: KeyProblem | None = None
    """Why it is unusable."""

    @property
    def private(self) -> bool:
        """Whether the secret part exists."""
        return any(file.suffix == ".key" for file, _ in self.files)


def list_keys(directory: Path) -> tuple[KeyStatus, ...]:
    """All existing keys, usable or not. Raises KeyProblem if the directory is open to others."""
    store.check_directory(directory)
    every = (find_key(directory, role) for role in ROLES)
    return tuple(found for found in every if found.files)


def find_key(directory: Path, role: Role) -> KeyStatus:
    """The status of one key."""
    both = (key_file(directory, role), public_file(directory, role))
    try:
        files = tuple((file, mode(file)) for file in both if path_exists(file))
    except KeyProblem as problem:
        return KeyStatus(role, tuple((file, "?") for file in both), None, problem)
    found = KeyStatus(role, files)
    if not files:
        return found
    try:
        return KeyStatus(role, files, _SHOW[role](directory, found.private))
    except KeyProblem as problem:
        return KeyStatus(role, files, None, problem)


def misplaced_keys(every: tuple[KeyStatus, ...]) -> tuple[str, ...]:
    """Warnings for secret keys that must not be in one directory."""
    ours = [found.role for found in every if found.private and found.role in AT_THE_TABLE]
    theirs = [found.role for found in every if found.private and found.role not in AT_THE_TABLE]
    return tuple(
        f"{role}.key lies beside {ours[0]}.key; it belongs on a machine of its own, and only"
        f" {role}.pub at the table"
        for role in theirs
        if ours
    )


def mode(place: Path) -> str:
    """The file mode as chmod takes it."""
    try:
        return f"{stat.S_IMODE(place.lstat().st_mode):o}"
    except OSError as problem:
        raise key_problem(place, "cannot be looked at", problem) from None


def _table(directory: Path, private: bool) -> KeySummary:
    if private:
        store.load_table_private(directory)
    public = store.load_table_public(directory)
    return KeySummary(key_texts.fingerprint(public), base64(public))


def _hole(directory: Path, _: bool) -> KeySummary:
    return KeySummary(key_texts.hole_fingerprint(store.load_hole_key(directory)))


def _surveillance(directory: Path, private: bool) -> KeySummary:
    if private:
        store.load_surveillance_private(directory)
    public = store.load_surveillance_public(directory).public_bytes_raw()
    return KeySummary(key_texts.fingerprint(public), base64(public))


def _witness(directory: Path, private: bool) -> KeySummary:
    if private:
        store.load_witness_key(directory)
    key = store.load_witness_public(directory)
    return KeySummary(key_texts.fingerprint(key.key), str(key), key.name)


_SHOW: Final[dict[Role, Callable[[Path, bool], KeySummary]]] = {
    "table": _table,
    "hole": _hole,
    "surveillance": _surveillance,
    "witness": _witness,
}
