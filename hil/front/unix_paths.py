"""Unix sockets at paths: of any length, never found half made, and removed only by their maker.

The kernel takes 107 bytes of path; folders of tests have more. What is too long is named through a
descriptor of its folder instead.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

_LONGEST: Final = 107
_BACKLOG: Final = 16


class PathTaken(Exception):
    """Somebody else's file or living socket stands there."""


class Listener:
    """A socket that listens at a path, for its owner only."""

    def __init__(self, path: Path, kind: socket.SocketKind) -> None:
        if path.exists() and not path.is_socket():
            raise PathTaken(f"{path} is there and is no socket")
        if alive(path, kind):
            raise PathTaken(f"somebody listens at {path} already")
        self.path = path
        self.sock = socket.socket(socket.AF_UNIX, kind)
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            self.sock.setblocking(False)
            fresh.unlink(missing_ok=True)
            _named(self.sock.bind, fresh)
            fresh.chmod(0o600)
            self.sock.listen(_BACKLOG)
            self._inode = fresh.stat().st_ino
            fresh.replace(path)
        except OSError:
            self.sock.close()
            raise

    def close(self) -> None:
        if self.path.is_socket() and self.path.stat().st_ino == self._inode:
            self.path.unlink()
        self.sock.close()


def connect(sock: socket.socket, path: Path) -> None:
    _named(sock.connect, path)


def alive(path: Path, kind: socket.SocketKind) -> bool:
    """Whether somebody listens there."""
    with socket.socket(socket.AF_UNIX, kind) as probe:
        probe.setblocking(False)
        try:
            connect(probe, path)
        except BlockingIOError:  # it is there, and busy
            return True
        except (ConnectionRefusedError, FileNotFoundError):
            return False
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
