"""Loads the record's keys from a private directory.

  table.key         signs the key of each boot      table.pub         for verifiers
  hole.key          derives nonces of hole cards
  surveillance.key  decrypts hole cards             surveillance.pub  for the table
  witness.key       cosigns checkpoints             witness.pub       for the table

The first two are created at the table. Surveillance and a witness create theirs on their own
machines and hand out the .pub. A private key is valid only with its .pub beside it, so that
corruption is detected. A key is created once and never replaced; a directory or file that others
may access is rejected. All errors are KeyProblem.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from controller.audit.format.hole_cards import HoleKey
from controller.audit.format.notes import SigningKey, VerifierKey
from controller.audit.keys import files
from controller.audit.keys.files import BadKeyText
from drivers.keys import KeyProblem, check_private_directory, key_problem, open_private, path_exists

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
    public = load_surveillance_public(directory).public_bytes_raw()
    _belong(directory, "surveillance", key, public)
    return key


def load_surveillance_public(directory: Path) -> X25519PublicKey:
    """The key that hole cards are encrypted to."""
    file = public_file(directory, "surveillance")
    return _read(file, files.read_surveillance)


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
