"""Creates the record's keys, atomically and durably."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.audit.format.hole_cards import HOLE_KEY_SIZE, HoleKey
from controller.audit.format.notes import NoteProblem, SigningKey, check_name
from controller.audit.keys import files as key_texts
from controller.audit.keys.list import KeyStatus, find_key
from controller.audit.keys.store import Role, key_file, public_file, read_bytes
from drivers.keys import (
    LOCK,
    KeyProblem,
    is_same_file,
    key_problem,
    make_private_directory,
    open_private,
    path_exists,
    private_file_written,
    remove_file,
)

NAMED: Final = "the witness's name, as floor.example/archive: no spaces, no +"
_ANOTHER: Final = "another directory: a key is made once and never replaced"


def create_key(directory: Path, role: Role, name: str | None = None) -> KeyStatus:
    """Create a key, and the directory if missing, and read it back. Raises KeyProblem if any file
    of this key exists. A witness's key needs a name; other keys have none."""
    if role == "witness" and name is None:
        raise KeyProblem("--name", "is missing: a witness signs with its name", NAMED)
    if role != "witness" and name is not None:
        raise KeyProblem("--name", f"no {role} has one when its key is made", "for a witness only")
    texts = _MAKE[role](name or "")
    _make_directory(directory)
    with _alone(directory):
        _refuse_existing(directory, role)
        return _write(directory, role, texts)


class _Texts(NamedTuple):
    """The contents of a key's files."""

    private: bytes
    public: bytes | None


def _table(_: str) -> _Texts:
    key = Ed25519PrivateKey.generate()
    public = key_texts.table_text(key.public_key().public_bytes_raw())
    return _Texts(key_texts.private_text(key), public)


def _hole(_: str) -> _Texts:
    return _Texts(key_texts.hole_text(HoleKey(os.urandom(HOLE_KEY_SIZE))), None)


def _surveillance(_: str) -> _Texts:
    key = X25519PrivateKey.generate()
    public = key_texts.surveillance_text(key.public_key().public_bytes_raw())
    return _Texts(key_texts.private_text(key), public)


def _witness(name: str) -> _Texts:
    problem = KeyProblem("--name", f"{name!a} is no name of a key", NAMED)
    if not name.isprintable():
        raise problem
    try:
        check_name(name)
    except NoteProblem:
        raise problem from None
    key = Ed25519PrivateKey.generate()
    public = key_texts.witness_text(SigningKey(name, key).cosigner)
    return _Texts(key_texts.private_text(key), public)


_MAKE: Final[dict[Role, Callable[[str], _Texts]]] = {
    "table": _table,
    "hole": _hole,
    "surveillance": _surveillance,
    "witness": _witness,
}


def _make_directory(place: Path) -> None:
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise key_problem(place.parent, "cannot be made", problem) from None
    make_private_directory(place)


def _refuse_existing(directory: Path, role: Role) -> None:
    private, public = key_file(directory, role), public_file(directory, role)
    is_private, is_public = path_exists(private), path_exists(public)
    if is_private and not is_public and role != "hole":
        raise KeyProblem(
            str(private),
            f"is there already, without its {public.name}",
            f"{public.name} from a backup; if the key was never used, remove it and make it anew",
        )
    if is_private or is_public:
        raise KeyProblem(str(private if is_private else public), "is there already", _ANOTHER)


def _write(directory: Path, role: Role, texts: _Texts) -> KeyStatus:
    """Write both files or none. The secret one is written first, so that a power loss in between
    never leaves a .pub without its secret key."""
    files = {key_file(directory, role): texts.private}
    if texts.public is not None:
        files[public_file(directory, role)] = texts.public
    try:
        with ExitStack() as last_first:
            for file, data in reversed(files.items()):
                last_first.enter_context(private_file_written(file, data, once=True))
        made = find_key(directory, role)
        if made.problem is not None:
            raise made.problem
    except KeyProblem:
        for file, data in files.items():
            with suppress(KeyProblem):  # the first error is reported
                if path_exists(file) and read_bytes(file) == data:
                    remove_file(file)
        raise
    return made


@contextmanager
def _alone(directory: Path) -> Iterator[None]:
    """Hold the directory's lock, without waiting: creating a key takes milliseconds."""
    file = directory / LOCK
    with open_private(file, os.O_RDWR | os.O_CREAT) as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            free = is_same_file(file, lock)
        except BlockingIOError:
            free = False
        except OSError as problem:
            raise key_problem(file, "cannot be locked", problem) from None
        if not free:
            raise KeyProblem(str(file), "another program changes the keys", "to try again")
        yield  # closing the file releases the lock
