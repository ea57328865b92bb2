"""A simulated serial port: a pseudo terminal behind a symlink that keeps its name.

    port = PtyPort(Path("run/shoe"), on_data)
    port.plug()
    port.write(data)

The kernel reuses the number of a pty as soon as it is free, so hosts use the symlink, which is
replaced atomically. This side keeps the terminal open and in raw mode, so that a host can close
and reopen it. Unplugging hangs it up: reads of the host end, and its other calls fail with EIO, as
with a USB adapter that is pulled.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import os
import re
import socket
import tty
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from firmware_protocol.device import naming
from hil.faults import frame_remainder

_READ: Final = 4096
_PTMX: Final = "/dev/ptmx"
"""The device that creates pseudo terminals."""
_TERMINAL: Final = re.compile(r"/dev/pts/[0-9]+")


class LinkTaken(Exception):
    """The path of the symlink is in use."""


class _Pty:
    """Both ends of one pseudo terminal."""

    def __init__(self) -> None:
        try:
            self.master, self.slave = os.openpty()
        except OSError as problem:  # its own text is that of a full disk
            why = f"no pseudo terminal is left ({problem.strerror})"
            raise OSError(errno.EMFILE, why, _PTMX) from problem
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.name = os.ttyname(self.slave)

    def close(self) -> None:
        os.close(self.slave)
        os.close(self.master)


class PtyPort:
    """Reads in the event loop in which it is created."""

    def __init__(self, link: Path, on_data: Callable[[bytes], None]) -> None:
        self.dropped = 0
        """Bytes that were dropped because the buffer was full."""
        self._link = link
        self._on_data = on_data
        self._loop = asyncio.get_running_loop()
        self._pty: _Pty | None = None
        self._claim_socket: socket.socket | None = None
        self.name = link
        """The path for hosts, or the last one."""
        self._rest = b""
        """The rest of a frame that was written in part."""

    @property
    def plugged(self) -> bool:
        return self._pty is not None

    @property
    def device(self) -> str | None:
        """The terminal that the symlink points to."""
        return self._pty.name if self._pty else None

    def plug(self, number: int = 1) -> None:
        """Create the port. A `number` above 1 is appended to its name."""
        if self._pty is not None:
            return
        name = self._link if number == 1 else self._link.with_name(f"{self._link.name}-{number}")
        with ExitStack() as undone:
            claim = undone.enter_context(_claim(name))
            pty = _Pty()
            undone.callback(pty.close)
            set_link(name, pty.name)
            undone.pop_all()
        self._pty, self.name, self._claim_socket = pty, name, claim
        self._loop.add_reader(pty.master, self._read)

    def unplug(self) -> None:
        """Hang up, and drop what the host has not read."""
        if self._pty is None:
            return
        self._loop.remove_reader(self._pty.master)
        remove_link(self.name, self._pty.name)
        self._pty.close()
        self._pty = None
        if self._claim_socket is not None:
            self._claim_socket.close()
            self._claim_socket = None
        self._rest = b""

    close = unplug

    def write(self, data: bytes) -> None:
        """Write to the host. Bytes are dropped while unplugged, and whole frames while the buffer
        is full; the rest of a frame that was written in part is kept for the next call."""
        if self._pty is None or not self._finish(self._pty):
            self.dropped += len(data)
            return
        written = _write(self._pty, data)
        self._rest = frame_remainder(data, written)
        self.dropped += len(data) - written - len(self._rest)

    def _finish(self, pty: _Pty) -> bool:
        """Write the rest of the last frame. Returns whether it is complete."""
        self._rest = self._rest[_write(pty, self._rest) :]
        return not self._rest

    def _read(self) -> None:
        if self._pty is None:  # unplugged in the same iteration of the event loop
            return
        try:
            data = os.read(self._pty.master, _READ)
        except BlockingIOError:
            return
        self._on_data(data)


def _write(pty: _Pty, data: bytes) -> int:
    """Write what fits. Returns the number of bytes."""
    rest = memoryview(data)
    with suppress(BlockingIOError):
        while rest:
            rest = rest[os.write(pty.master, rest) :]
    return len(data) - len(rest)


def check_link(link: Path) -> None:
    """Raises LinkTaken if the path is not free and not a symlink that a killed device left."""
    if link.is_symlink():
        target = link.readlink()
        if not _TERMINAL.fullmatch(str(target)):
            raise LinkTaken(f"{link} is a symlink to {target}, which is no simulated port")
    elif link.exists():
        raise LinkTaken(f"{link} is no symlink")


def set_link(link: Path, target: str) -> None:
    """Create or replace the symlink atomically."""
    check_link(link)
    fresh = link.with_name(f".{link.name}.{os.getpid()}")
    with naming(link):
        try:
            fresh.unlink(missing_ok=True)
            fresh.symlink_to(target)
            fresh.replace(link)
        except OSError:
            with suppress(OSError):
                fresh.unlink()
            raise


def _claim(link: Path) -> socket.socket:
    """An abstract socket that marks the path as in use until it is closed or its process ends.
    The number of the terminal would not do: it may be reused as soon as its process is killed."""
    name = os.fsencode(link.parent.resolve() / link.name)
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(b"\0holecard port " + hashlib.blake2b(name, digest_size=16).digest())
    except OSError:
        claim.close()
        raise LinkTaken(f"{link} is the port of a device that runs") from None
    return claim


def remove_link(link: Path, target: str) -> None:
    """Remove the symlink if it still points to `target`. A symlink that cannot be removed does no
    harm: the next device replaces it."""
    with suppress(OSError):
        if link.is_symlink() and link.readlink() == Path(target):
            link.unlink()
