"""The record's keys in a private directory: creating, loading and listing them.

  table.key         signs the key of each boot      table.pub         for verifiers
  hole.key          derives nonces of hole cards
  surveillance.key  decrypts hole cards             surveillance.pub  for the table
  witness.key       cosigns checkpoints             witness.pub       for the table

The first two are created at the table. Surveillance and a witness create theirs on their own
machines and hand out the .pub. A private key is valid only with its .pub beside it, so that
corruption is detected. A key is created once, atomically and durably, and never replaced; a
directory or file that others may access is rejected. A listing shows no secret part. All errors are
KeyProblem.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from msgspec import Struct

from controller.audit.format.hole_cards import HOLE_KEY_SIZE, HoleKey
from controller.audit.format.notes import (
    NoteProblem,
    SigningKey,
    VerifierKey,
    base64,
    check_name,
)
from controller.audit.keys import files
from controller.audit.keys.files import BadKeyText
from drivers.keys import (
    LOCK,
    KeyProblem,
    check_private_directory,
    is_same_file,
    key_problem,
    make_private_directory,
    open_private,
    path_exists,
    private_file_written,
    remove_file,
)

Role: TypeAlias = Literal["table", "hole", "surveillance", "witness"]
ROLES: Final[tuple[Role, ...]] = get_args(Role)

MAX_FILE_BYTES: Final = 4096
"""Maximum size of a key file in bytes."""
_BACKUP: Final = "the file from a backup"
_OWN: Final = "the file from a backup; for a new table, `holecard keys new {}` makes it"
_BROUGHT: Final = "the file that `holecard keys new {0}` has made on the machine of {0}"
_WHENCE: Final = {
    "table.key": _OWN.format("table"),
    "table.pub": _BACKUP,
    "hole.key": _OWN.format("hole"),
    "surveillance.key": _BROUGHT.format("surveillance"),
    "surveillance.pub": _BROUGHT.format("surveillance"),
    "witness.key": _BROUGHT.format("witness"),
    "witness.pub": _BROUGHT.format("witness"),
}
"""How to get a missing file."""
_NAMED: Final = "the witness's name, as floor.example/archive: no spaces, no +"
_ANOTHER: Final = "another directory: a key is made once and never replaced"

AT_THE_TABLE: Final = frozenset[Role]({"table", "hole"})
"""Keys whose secret part the table needs."""

_T = TypeVar("_T")


def key_file(directory: Path, role: Role) -> Path:
    """The path of the secret part."""
    return directory / f"{role}.key"


def public_file(directory: Path, role: Role) -> Path:
    """The path of the public part. A hole key has none."""
    return directory / f"{role}.pub"


# --- loading ----------------------------------------------------------------------------------


def load_table_private(directory: Path) -> Ed25519PrivateKey:
    """The table's key, which is not bound to an origin."""
    key = _read(key_file(directory, "table"), files.read_ed25519)
    _belong(directory, "table", key, load_table_public(directory))
    return key


def load_table_public(directory: Path) -> bytes:
    return _read(public_file(directory, "table"), files.read_table)


def load_hole_key(directory: Path) -> HoleKey:
    return _read(key_file(directory, "hole"), files.read_hole)


def load_surveillance_private(directory: Path) -> X25519PrivateKey:
    """The key that decrypts hole cards, on surveillance's machine."""
    key = _read(key_file(directory, "surveillance"), files.read_x25519)
    _belong(directory, "surveillance", key, load_surveillance_public(directory).public_bytes_raw())
    return key


def load_surveillance_public(directory: Path) -> X25519PublicKey:
    """The key that hole cards are encrypted to."""
    return _read(public_file(directory, "surveillance"), files.read_surveillance)


def load_witness_key(directory: Path) -> SigningKey:
    """A witness's key with its name, on the witness's machine."""
    key = _read(key_file(directory, "witness"), files.read_ed25519)
    public = load_witness_public(directory)
    _belong(directory, "witness", key, public.key)
    return SigningKey(public.name, key)


def load_witness_public(directory: Path) -> VerifierKey:
    """The key that verifies a witness's cosignatures."""
    return _read(public_file(directory, "witness"), files.read_witness)


# --- files ------------------------------------------------------------------------------------


def check_directory(place: Path) -> None:
    if not path_exists(place):
        raise KeyProblem(str(place), "there is no such directory", "`holecard keys new` makes one")
    check_private_directory(place)


def read_bytes(file: Path) -> bytes:
    """Read a file of this user only, up to the maximum size of a key."""
    with open_private(file, os.O_RDONLY) as descriptor:
        try:
            return os.read(descriptor, MAX_FILE_BYTES)
        except OSError as problem:
            raise key_problem(file, "cannot be read", problem) from None


def _read(file: Path, read: Callable[[bytes], _T]) -> _T:
    check_directory(file.parent)
    if not path_exists(file):
        raise KeyProblem(str(file), "is missing", _WHENCE[file.name])
    data = read_bytes(file)
    try:
        return read(data)
    except BadKeyText as bad:
        problem = KeyProblem(str(file), bad.what, bad.allowed)
    # Raised outside of the handler: its frames contain the rejected text.
    del data
    raise problem


def _belong(
    directory: Path, role: Role, key: Ed25519PrivateKey | X25519PrivateKey, public: bytes
) -> None:
    if key.public_key().public_bytes_raw() != public:
        raise KeyProblem(
            str(key_file(directory, role)),
            f"does not belong to {role}.pub: one of them is damaged or another key's",
            "both files as they were made",
        )


# --- listing ----------------------------------------------------------------------------------


class KeyStatus(Struct, frozen=True):
    """The files of a key, and whether it is usable."""

    role: Role
    files: tuple[tuple[Path, str], ...]
    """Paths and modes."""
    fingerprint: str | None = None
    """None if the key is unusable."""
    public: str | None = None
    """As in its .pub file. A hole key has no public part."""
    name: str | None = None
    """The name of a witness."""
    problem: KeyProblem | None = None
    """Why it is unusable."""

    @property
    def private(self) -> bool:
        """Whether the secret part exists."""
        return any(file.suffix == ".key" for file, _ in self.files)


def list_keys(directory: Path) -> tuple[KeyStatus, ...]:
    """All existing keys, usable or not. Raises KeyProblem if the directory is open to others."""
    check_directory(directory)
    every = (find_key(directory, role) for role in ROLES)
    return tuple(found for found in every if found.files)


def find_key(directory: Path, role: Role) -> KeyStatus:
    """The status of one key."""
    both = (key_file(directory, role), public_file(directory, role))
    try:
        existing = tuple((file, mode(file)) for file in both if path_exists(file))
    except KeyProblem as problem:
        return KeyStatus(role, tuple((file, "?") for file in both), problem=problem)
    found = KeyStatus(role, existing)
    if not existing:
        return found
    try:
        return KeyStatus(role, existing, *_shown(directory, role, private=found.private))
    except KeyProblem as problem:
        return KeyStatus(role, existing, problem=problem)


_LOAD_PRIVATE: Final[dict[Role, Callable[[Path], object]]] = {
    "table": load_table_private,
    "surveillance": load_surveillance_private,
    "witness": load_witness_key,
}


def _shown(directory: Path, role: Role, *, private: bool) -> tuple[str, str | None, str | None]:
    """Load the key: its fingerprint, public part and name."""
    if role == "hole":
        return files.hole_fingerprint(load_hole_key(directory)), None, None
    if private:
        _LOAD_PRIVATE[role](directory)
    if role == "witness":
        key = load_witness_public(directory)
        return files.fingerprint(key.key), str(key), key.name
    if role == "table":
        public = load_table_public(directory)
    else:
        public = load_surveillance_public(directory).public_bytes_raw()
    return files.fingerprint(public), base64(public), None


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


# --- creating ---------------------------------------------------------------------------------


def create_key(directory: Path, role: Role, name: str | None = None) -> KeyStatus:
    """Create a key, and the directory if missing, and read it back. Raises KeyProblem if any file
    of this key exists. A witness's key needs a name; other keys have none."""
    if role == "witness":
        _check_witness_name(name)
    elif name is not None:
        raise KeyProblem("--name", f"no {role} has one when its key is made", "for a witness only")
    contents = _new_key(directory, role, name or "")
    _make_directory(directory)
    with _alone(directory):
        _refuse_existing(directory, role)
        return _write(directory, role, contents)


def _check_witness_name(name: str | None) -> None:
    if name is None:
        raise KeyProblem("--name", "is missing: a witness signs with its name", _NAMED)
    problem = KeyProblem("--name", f"{name!a} is no name of a key", _NAMED)
    if not name.isprintable():
        raise problem
    try:
        check_name(name)
    except NoteProblem:
        raise problem from None


def _new_key(directory: Path, role: Role, name: str) -> dict[Path, bytes]:
    """The files of a new key with their contents, the secret one first."""
    private, public = key_file(directory, role), public_file(directory, role)
    if role == "hole":
        return {private: files.hole_text(HoleKey(os.urandom(HOLE_KEY_SIZE)))}
    if role == "surveillance":
        decrypts = X25519PrivateKey.generate()
        shared = files.surveillance_text(decrypts.public_key().public_bytes_raw())
        return {private: files.private_text(decrypts), public: shared}
    signs = Ed25519PrivateKey.generate()
    if role == "table":
        shared = files.table_text(signs.public_key().public_bytes_raw())
    else:
        shared = files.witness_text(SigningKey(name, signs).cosigner)
    return {private: files.private_text(signs), public: shared}


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


def _write(directory: Path, role: Role, contents: dict[Path, bytes]) -> KeyStatus:
    """Write both files or none. The secret one is written first, so that a power loss in between
    never leaves a .pub without its secret key."""
    try:
        with ExitStack() as last_first:
            for file, data in reversed(contents.items()):
                last_first.enter_context(private_file_written(file, data, once=True))
        made = find_key(directory, role)
        if made.problem is not None:
            raise made.problem
    except KeyProblem:
        for file, data in contents.items():
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
