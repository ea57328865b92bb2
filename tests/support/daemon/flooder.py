"""A flood of connections to one server, by a process that is held to a part of a core.

with flooding(Flood(port, ("127.0.0.2",), ("idle", "slow head"))) as flood:
    ...
flood.counts
"""

from __future__ import annotations

import itertools
import multiprocessing
import selectors
import socket
import ssl
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import Final, Literal, TypeAlias, get_args

from msgspec import Struct

Kind: TypeAlias = Literal["idle", "hello", "slow head", "slow body", "page"]
"""What a connection sends: nothing; the first part of a TLS handshake; a head or a body, of which
a byte a second follows; a request for a page, so that it has a session without a sign-in."""
HOST: Final = "127.0.0.1"
HEAD: Final = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: a="
BODY: Final = b"POST /sign-in HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 999\r\n\r\n"
BYTE_INTERVAL: Final = 1.0
SLICE: Final = 0.01
"""Seconds between two looks at the limits of CPU and connections."""
TIMEOUT: Final = 2.0


class Flood(Struct, frozen=True):
    """A flood, and its limits."""

    port: int
    """At 127.0.0.1."""
    sources: tuple[str, ...]
    """Addresses from which it connects, in turn."""
    kinds: tuple[Kind, ...]
    secure: bool = False
    hold: int = 700
    """Open connections; one that was closed is opened again."""
    rate: float = 200.0
    """New connections a second."""
    cpu: float = 0.25
    """Part of a core."""


class FloodResult:
    """What a flood came to, once it is over."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.seconds = 0.0
        self.cpu = 0.0


@contextmanager
def flooding(flood: Flood) -> Iterator[FloodResult]:
    """Flood until it is left; begins when the flood has opened as many connections as it holds."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_flood, args=(flood, theirs), daemon=True)
    process.start()
    theirs.close()
    result = FloodResult()
    try:
        assert ours.recv() == "floods"
        yield result
        ours.send("stop")
        result.counts, result.seconds, result.cpu = ours.recv()
    finally:
        process.kill()
        process.join()
        ours.close()


def _flood(flood: Flood, orders: Connection) -> None:
    flooder = _Flooder(flood)
    began, used = time.monotonic(), time.process_time()
    told = False
    while not orders.poll():
        flooder.step(time.monotonic() - began)
        if not told and flooder.made >= flood.hold:
            orders.send("floods")
            told = True
        spent, passed = time.process_time() - used, time.monotonic() - began
        time.sleep(max(SLICE, spent / flood.cpu - passed))
    passed = time.monotonic() - began
    orders.send((flooder.counts, passed, (time.process_time() - used) / passed))


class _Flooder:
    def __init__(self, flood: Flood) -> None:
        self._flood = flood
        self._kinds = itertools.cycle(flood.kinds)
        self._sources = itertools.cycle(flood.sources)
        self._open: dict[socket.socket, Kind] = {}
        self._selector = selectors.DefaultSelector()
        self._context = _context()
        self._hello = client_hello(self._context)
        self._said: dict[Kind, bytes] = {
            "slow head": HEAD,
            "slow body": BODY,
            "page": page_request(flood.port),
        }
        self._bytes_due = BYTE_INTERVAL
        self.made = 0
        self.counts: Counter[str] = Counter()

    def step(self, passed: float) -> None:
        """Drop what was closed, open what is due, and send a byte each second."""
        for key, _ in self._selector.select(0):
            assert isinstance(key.fileobj, socket.socket)
            self._look(key.fileobj)
        # What the limit of CPU has delayed is not made up for.
        self.made = max(self.made, int((passed - 1.0) * self._flood.rate))
        while self.made < passed * self._flood.rate and len(self._open) < self._flood.hold:
            self.made += 1
            self._connect(next(self._kinds))
        if passed >= self._bytes_due:
            self._bytes_due = passed + BYTE_INTERVAL
            for sock in [one for one, kind in self._open.items() if kind.startswith("slow")]:
                self._send(sock)

    def _connect(self, kind: Kind) -> None:
        sock = socket.socket()
        try:
            sock.bind((next(self._sources), 0))
            sock.settimeout(TIMEOUT)
            sock.connect((HOST, self._flood.port))
            if kind == "hello":
                sock.sendall(self._hello)
            elif kind != "idle":
                if self._flood.secure:
                    sock = self._context.wrap_socket(sock)
                sock.sendall(self._said[kind])
        except OSError:
            self.counts["not connected"] += 1
            sock.close()
            return
        sock.setblocking(False)
        self._open[sock] = kind
        self._selector.register(sock, selectors.EVENT_READ)
        self.counts[kind] += 1
        self.counts["most open"] = max(self.counts["most open"], len(self._open))

    def _look(self, sock: socket.socket) -> None:
        try:
            if sock.recv(65536):
                return
        except (BlockingIOError, ssl.SSLWantReadError):
            return
        except OSError:
            pass
        self.counts["closed by the server"] += 1
        self._drop(sock)

    def _send(self, sock: socket.socket) -> None:
        with suppress(BlockingIOError, ssl.SSLWantWriteError):
            try:
                sock.send(b"x")
            except (BrokenPipeError, ConnectionResetError, ssl.SSLError):
                self.counts["closed by the server"] += 1
                self._drop(sock)

    def _drop(self, sock: socket.socket) -> None:
        self._selector.unregister(sock)
        del self._open[sock]
        sock.close()


def _context() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def client_hello(context: ssl.SSLContext) -> bytes:
    """The first message of a TLS handshake."""
    sent = ssl.MemoryBIO()
    with suppress(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), sent, server_hostname="localhost").do_handshake()
    return sent.read()


def page_request(port: int) -> bytes:
    return f"GET / HTTP/1.1\r\nHost: {HOST}:{port}\r\n\r\n".encode()


def each_kind(*, secure: bool) -> tuple[Kind, ...]:
    """All kinds that make sense for a server."""
    every: tuple[Kind, ...] = get_args(Kind)
    return tuple(one for one in every if secure or one != "hello")
