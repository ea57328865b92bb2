"""File access of the record, replaceable by a failing disk in tests."""

from __future__ import annotations

from controller.audit.files.atomic import make_directory, put, take_turn, written_to
from controller.audit.files.disk import (
    DIRECTORY_MODE,
    MODE,
    Back,
    Disk,
    NoFile,
    RealDisk,
    opened_to_read,
    read_file,
    whole_write,
)
from controller.audit.files.lock import LOCK, Locked, begun, take_lock, tell_begun, undo, unlock

__all__ = [
    "DIRECTORY_MODE",
    "LOCK",
    "MODE",
    "Back",
    "Disk",
    "Locked",
    "NoFile",
    "RealDisk",
    "begun",
    "make_directory",
    "opened_to_read",
    "put",
    "read_file",
    "take_lock",
    "take_turn",
    "tell_begun",
    "undo",
    "unlock",
    "whole_write",
    "written_to",
]
