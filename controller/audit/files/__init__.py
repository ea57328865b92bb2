"""File access of the record, replaceable by a failing disk in tests."""

from __future__ import annotations

from controller.audit.files.atomic import (
    lock_with_timeout,
    make_directory,
    reporting_write_errors,
    write_atomically,
)
from controller.audit.files.disk import (
    DIRECTORY_MODE,
    MODE,
    Disk,
    NotRegularFile,
    ReadBack,
    RealDisk,
    open_regular,
    read_file,
    write_all,
)
from controller.audit.files.lock import (
    LOCK,
    WriterLock,
    acquire_writer_lock,
    release_lock,
    remove_created,
    store_origin,
    stored_origin,
)

__all__ = [
    "DIRECTORY_MODE",
    "LOCK",
    "MODE",
    "Disk",
    "NotRegularFile",
    "ReadBack",
    "RealDisk",
    "WriterLock",
    "acquire_writer_lock",
    "lock_with_timeout",
    "make_directory",
    "open_regular",
    "read_file",
    "release_lock",
    "remove_created",
    "reporting_write_errors",
    "store_origin",
    "stored_origin",
    "write_all",
    "write_atomically",
]
