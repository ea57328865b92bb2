"""Key files and the key store of the host."""

from __future__ import annotations

from drivers.keys.names import (
    ALLOWED,
    MAX_NAME_BYTES,
    BadName,
    TwoPeopleNeeded,
    name_of,
    same_person,
    two_people,
)
from drivers.keys.private_files import (
    KeyProblem,
    append_line,
    check_private_directory,
    is_same_file,
    key_problem,
    make_private_directory,
    open_private,
    path_exists,
    private_file_written,
    remove_file,
    write_private,
)
from drivers.keys.store import (
    HOST,
    KEYS_VARIABLE,
    LOCK,
    LOCK_TIMEOUT,
    KeyStore,
    PairedDevice,
    keys_directory,
)

__all__ = [
    "ALLOWED",
    "HOST",
    "KEYS_VARIABLE",
    "LOCK",
    "LOCK_TIMEOUT",
    "MAX_NAME_BYTES",
    "BadName",
    "KeyProblem",
    "KeyStore",
    "PairedDevice",
    "TwoPeopleNeeded",
    "append_line",
    "check_private_directory",
    "is_same_file",
    "key_problem",
    "keys_directory",
    "make_private_directory",
    "name_of",
    "open_private",
    "path_exists",
    "private_file_written",
    "remove_file",
    "same_person",
    "two_people",
    "write_private",
]
