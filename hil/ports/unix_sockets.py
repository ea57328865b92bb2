"""Unix sockets at paths: of any length, never found half made, and removed only by their maker.

The kernel takes 107 bytes of path; folders of tests have more. What is too long is named through a
descriptor of its folder instead.
"""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from firmware_protocol.device.storage import naming

_LONGEST: Final = 107
_BACKLOG: Final = 16
_THERE: Final = (errno.EAGAIN, errno.EACCES, errno.EPROTOTYPE)
"""It is busy, it is another user's, or it is no socket of ours: it is there all the same."""


class PathTaken(Exception):
    """Somebody else's file or living socket stands there."""


class Listener:
    """A socket that listens at a path, for its owner only."""

    def __init__(self, path: Path, kind: socket.SocketKind) -> None:
        check_path(path)
        if is_listening(path, kind):
            raise PathTaken(f"somebody listens at {path} already")
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
        # Where the disk does not let go of its name, that stands in nobody's way.
        with suppress(OSError):
            if self.path.is_socket() and self.path.stat().st_ino == self._inode:
                self.path.unlink()
        self.sock.close()


def check_path(path: Path) -> None:
    """PathTaken if something stands there that no socket of ours can have left behind."""
    if path.is_symlink() or (path.exists() and not path.is_socket()):
        raise PathTaken(f"{path} is there and is no socket")


def connect(sock: socket.socket, path: Path) -> None:
    _named(sock.connect, path)


def is_listening(path: Path, kind: socket.SocketKind) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.setblocking(False)
        try:
            with naming(path):
                connect(probe, path)
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError as problem:
            if problem.errno not in _THERE:
                raise
    return True


def _named(do: Callable[[str], None], path: Path) -> None:
    if len(os.fsencode(path)) <= _LONGEST:
        do(str(path))
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        do(f"/proc/self/fd/{folder}/{path.name}")
    finally:
        os.close(folder)
