"""A serial port that is not there: a pseudo terminal behind a symlink that stays the same.

    port = PtyPort(Path("run/shoe"), heard)
    port.plug()
    port.write(data)

The number of a pty is reused as soon as it is free, so hosts are given the symlink, which is put
in place whole. Our own side keeps the terminal open and raw: a host that comes and goes does not
hang it up and finds it as it was. Pulling the cable does hang it up: reads of the host then end,
and all else that it tries gives EIO, as with a USB adapter that is pulled.
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

from firmware_protocol.device.storage import naming
from hil.faults import frame_remainder

_READ: Final = 4096
_MAKER: Final = "/dev/ptmx"
"""What makes pseudo terminals."""
_TERMINAL: Final = re.compile(r"/dev/pts/[0-9]+")


class LinkTaken(Exception):
    """Something else stands where the port's name should be: what it is."""


class _Pty:
    """The two ends of one pseudo terminal, both ours."""

    def __init__(self) -> None:
        try:
            self.master, self.slave = os.openpty()
        except OSError as problem:  # its words would be of a full disk
            why = f"no pseudo terminal is left ({problem.strerror})"
            raise OSError(errno.EMFILE, why, _MAKER) from problem
        tty.setraw(self.slave)
        os.set_blocking(self.master, False)
        self.name = os.ttyname(self.slave)

    def close(self) -> None:
        os.close(self.slave)
        os.close(self.master)


class PtyPort:
    """Made inside of a running loop, which reads it."""

    def __init__(self, link: Path, heard: Callable[[bytes], None]) -> None:
        self.dropped = 0
        """Bytes that the host did not read, and for which there was no more room."""
        self._link = link
        self._heard = heard
        self._loop = asyncio.get_running_loop()
        self._pty: _Pty | None = None
        self._mark: socket.socket | None = None
        self._name = link
        self._rest = b""
        """Of a frame that is on its way."""

    @property
    def name(self) -> Path:
        """Under which hosts find it, or found it last."""
        return self._name

    @property
    def plugged(self) -> bool:
        return self._pty is not None

    @property
    def device(self) -> str | None:
        """The terminal that the name points to."""
        return self._pty.name if self._pty else None

    def plug(self, number: int = 1) -> None:
        """Come up, in the `number`th port: a higher one has another name."""
        if self._pty is not None:
            return
        name = self._link if number == 1 else self._link.with_name(f"{self._link.name}-{number}")
        with ExitStack() as undone:
            mark = undone.enter_context(_claim(name))
            pty = _Pty()
            undone.callback(pty.close)
            set_link(name, pty.name)
            undone.pop_all()
        self._pty, self._name, self._mark = pty, name, mark
        self._loop.add_reader(pty.master, self._read)

    def unplug(self) -> None:
        """Hang up. What the host has not read is gone."""
        if self._pty is None:
            return
        self._loop.remove_reader(self._pty.master)
        remove_link(self._name, self._pty.name)
        self._pty.close()
        self._pty = None
        if self._mark is not None:
            self._mark.close()
            self._mark = None
        self._rest = b""

    close = unplug

    def write(self, data: bytes) -> None:
        """For the host; lost if the cable is out, or what the terminal has no room for. That goes
        by whole frames: of one that was begun the rest waits."""
        if self._pty is None or not self._finish(self._pty):
            self.dropped += len(data)
            return
        written = _write(self._pty, data)
        self._rest = frame_remainder(data, written)
        self.dropped += len(data) - written - len(self._rest)

    def _finish(self, pty: _Pty) -> bool:
        """Whether the frame that was begun last is out."""
        self._rest = self._rest[_write(pty, self._rest) :]
        return not self._rest

    def _read(self) -> None:
        if self._pty is None:  # pulled in the same turn of the loop
            return
        try:
            data = os.read(self._pty.master, _READ)
        except BlockingIOError:
            return
        self._heard(data)


def _write(pty: _Pty, data: bytes) -> int:
    """As much as there is room for."""
    rest = memoryview(data)
    with suppress(BlockingIOError):
        while rest:
            rest = rest[os.write(pty.master, rest) :]
    return len(data) - len(rest)


def check_link(link: Path) -> None:
    """LinkTaken if something stands there that no device of ours can have left behind."""
    if link.is_symlink():
        target = link.readlink()
        if not _TERMINAL.fullmatch(str(target)):
            raise LinkTaken(f"{link} is a symlink to {target}, which is no simulated port")
    elif link.exists():
        raise LinkTaken(f"{link} is no symlink")


def set_link(link: Path, target: str) -> None:
    """Make `link` point to `target` at once: nobody ever finds it missing or half made."""
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
    """A mark that the name is in use, until it is closed or its process ends, however that ends.
    The number of a terminal would not do: it is another device's as soon as this one is killed."""
    name = os.fsencode(link.parent.resolve() / link.name)
    mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        mark.bind(b"\0holecard port " + hashlib.blake2b(name, digest_size=16).digest())
    except OSError:
        mark.close()
        raise LinkTaken(f"{link} is the port of a device that runs") from None
    return mark


def remove_link(link: Path, target: str) -> None:
    """Remove `link`, if it still is the one that was made. Where the disk does not let go of it,
    it stands in nobody's way: it is nobody's."""
    with suppress(OSError):
        if link.is_symlink() and link.readlink() == Path(target):
            link.unlink()
