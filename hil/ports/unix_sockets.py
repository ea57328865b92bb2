"""Unix sockets at paths of any length, created atomically and removed only by their owner.

The kernel limits a path to 107 bytes. A longer one is opened through a descriptor of its folder.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from firmware_protocol.device import naming

_MAX_PATH: Final = 107
_BACKLOG: Final = 16
_IN_USE: Final = (errno.EAGAIN, errno.EACCES, errno.EPROTOTYPE)
"""Errors of a socket that is in use: busy, of another user, or of another type."""


class PathTaken(Exception):
    """The path is a file, or a socket that is in use."""


class Listener:
    """A listening socket at a path, with mode 0600."""

    def __init__(self, path: Path, kind: socket.SocketKind) -> None:
        check_path(path)
        if is_listening(path, kind):
            raise PathTaken(f"{path} is in use: a process listens there")
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, kind)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            with naming(path):
                self._bind(fresh)
        except OSError:
            self.sock.close()
            with suppress(OSError):
                fresh.unlink()
            raise

    def _bind(self, fresh: Path) -> None:
        self.sock.setblocking(False)
        fresh.unlink(missing_ok=True)
        _named(self.sock.bind, fresh)
        fresh.chmod(0o600)
        self.sock.listen(_BACKLOG)
        self._inode = fresh.stat().st_ino
        fresh.replace(self.path)

    def close(self) -> None:
        # A name that cannot be removed does no harm: the next device replaces it.
        with suppress(OSError):
            if self.path.is_socket() and self.path.stat().st_ino == self._inode:
                self.path.unlink()
        self.sock.close()


def check_path(path: Path) -> None:
    """Raises PathTaken if the path exists and is not a socket, which a killed device may leave."""
    if path.is_symlink() or (path.exists() and not path.is_socket()):
        raise PathTaken(f"{path} exists and is no socket")


def connect(sock: socket.socket, path: Path) -> None:
    _named(sock.connect, path)


def is_listening(path: Path, kind: socket.SocketKind) -> bool:
    """Whether a process listens at the path."""
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.setblocking(False)
        try:
            with naming(path):
                connect(probe, path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError as problem:
            if problem.errno not in _IN_USE:
                raise
    return True


def _named(do: Callable[[str], None], path: Path) -> None:
    if len(os.fsencode(path)) <= _MAX_PATH:
        do(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        do(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
