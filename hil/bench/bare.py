"""What is measured beside: the bare disk, a bare pty, browsers that only watch, a process's use.

The functions that run in processes of their own are here, since this module is imported quickly.
"""

from __future__ import annotations

import os
import select
import selectors
import socket
import time
import tty
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

ECHO_BYTES: Final = 100
"""Approximate bytes of a card's record on the wire; as many are echoed."""
_TIMEOUT: Final = 60.0
_READ: Final = 1 << 18
_SMALL: Final = 4096
"""Receive buffer in bytes of the browser that does not read."""
_PAGE: Final = 4096
_PAGES: Final = 2048
"""As many as a segment of a record has."""


class RawDisk:
    """A file whose pages are overwritten and synced one by one: the fastest durable write."""

    def __init__(self, file: Path) -> None:
        self.fd = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        for _ in range(_PAGES):
            os.write(self.fd, bytes(_PAGE))
        os.fsync(self.fd)
        self._page = os.urandom(_PAGE)
        self._next = 0

    def once(self) -> None:
        os.pwrite(self.fd, self._page, self._next * _PAGE)
        os.fdatasync(self.fd)
        self._next = (self._next + 1) % _PAGES

    def close(self) -> None:
        os.close(self.fd)


def readable(port: int, timeout: float) -> bool:
    return bool(select.select([port], [], [], timeout)[0])


def there_and_back(port: int, size: int) -> float:
    """Returns the seconds until all bytes that were written have come back."""
    start = time.perf_counter()
    os.write(port, bytes(range(1, size + 1)))
    left = size
    while left:
        if not readable(port, _TIMEOUT):
            raise TimeoutError("no echo")
        left -= len(os.read(port, left))
    return time.perf_counter() - start


# --- other processes --------------------------------------------------------------------------


@contextmanager
def child_process(work: Callable[..., object], *arguments: object) -> Iterator[Connection]:
    """Run a function in a new process, with one end of a pipe; it is killed at the end. Yields the
    other end, which raises EOFError if the process has ended."""
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, *arguments))
    process.start()
    theirs.close()
    try:
        yield ours
    finally:
        process.kill()
        process.join()
        ours.close()


@contextmanager
def echo() -> Iterator[Callable[[], float]]:
    """Yields a function that returns the seconds of an echo by a process behind a bare pty."""
    master, slave = os.openpty()
    try:
        tty.setraw(slave)
        with child_process(_echo_back, os.ttyname(slave)):
            once = partial(there_and_back, master, ECHO_BYTES)
            once()  # the child has started
            yield once
    finally:
        os.close(slave)
        os.close(master)


def _echo_back(_: Connection, terminal: str) -> None:
    port = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
    while data := os.read(port, ECHO_BYTES):
        os.write(port, data)


@contextmanager
def watchers(url: str, count: int) -> Iterator[None]:
    """Run browsers that watch the console's page, in another process; all but one read their
    stream."""
    with child_process(_watch, url, count) as process:
        process.recv()
        yield


def _watch(watching: Connection, url: str, count: int) -> None:
    where = urlsplit(url).netloc
    with ExitStack() as stack, selectors.DefaultSelector() as selector:
        for number in range(count):
            connection = stack.enter_context(closing(HTTPConnection(where, timeout=_TIMEOUT)))
            reads = number < count - 1
            _open_stream(connection, reads=reads)
            if reads:
                selector.register(connection.sock, selectors.EVENT_READ)
        watching.send("watching")
        while True:
            for key, _ in selector.select():
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv(_READ):
                    selector.unregister(key.fileobj)


def _open_stream(connection: HTTPConnection, *, reads: bool) -> None:
    """Open a session of the page, and its stream."""
    connection.request("GET", "/")
    page = connection.getresponse()
    page.read()
    cookie = page.getheader("set-cookie", "").partition(";")[0]
    connection.close()
    connection.connect()
    if not reads:
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    connection.request("GET", "/stream", headers={"Cookie": cookie})
    if reads and not connection.sock.recv(_READ).startswith(b"HTTP/1.1 200 "):
        raise AssertionError("no stream")
    connection.sock.setblocking(False)


# --- the use of a process ---------------------------------------------------------------------


def memory(pid: int) -> dict[str, float]:
    """Returns a process's memory in MiB: VmRSS, and Pss if the kernel has it, with its share of
    pages that other processes use too."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    with suppress(OSError):  # some kernels have no such file, others do not let us read it
        lines += Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    fields = (line.split() for line in lines if line.startswith(("VmRSS:", "Pss:")))
    return {name.rstrip(":"): int(kib) / 1024 for name, kib, _ in fields}


def processor(pid: int) -> float:
    """Returns the CPU seconds of a process, in user and kernel mode."""
    return time.clock_gettime(~pid << 3 | 2)  # CPUCLOCK_SCHED: see clock_getcpuclockid(3)
