"""Key files and the key store of the host."""

from __future__ import annotations

from drivers.keys.names import (
    ALLOWED,
    MOST_BYTES,
    BadName,
    TwoPeopleNeeded,
    name_of,
    same_person,
    two_people,
)
from drivers.keys.private_files import KeyProblem
from drivers.keys.store import HOST, LOCK, LOCK_SECONDS, PLACE, KeyStore, Paired, keys_directory

__all__ = [
    "ALLOWED",
    "HOST",
    "LOCK",
    "LOCK_SECONDS",
    "MOST_BYTES",
    "PLACE",
    "BadName",
    "KeyProblem",
    "KeyStore",
    "Paired",
    "TwoPeopleNeeded",
    "keys_directory",
    "name_of",
    "same_person",
    "two_people",
]
