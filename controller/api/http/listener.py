"""Accepts the connections of one listening socket, and limits them before they cost anything.

asyncio's own servers hand over a connection after its TLS handshake, and accept as many in one turn
of the event loop as the backlog has. Here a connection counts from its first moment, and a turn
accepts for a short time, so that a flood delays no request by more than that.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final

import structlog

from controller.api.http.connections import ConnectionTable, OpenConnection, subscriber_address

HANDSHAKE_TIMEOUT: Final = 5.0
"""Seconds for a TLS handshake."""
CLOSE_TIMEOUT: Final = 2.0
"""Seconds for a client to answer the end of a TLS connection."""
ACCEPT_SLICE: Final = 0.002
"""Seconds of one turn of the event loop for accepting."""
BACKLOG: Final = 1024
"""Connections that the kernel completes before they are accepted; it may allow fewer."""
RETRY_INTERVAL: Final = 0.1
"""Seconds without accepting after the machine had no file descriptor or memory for a connection."""
_PEER: Final = struct.Struct("3i")
"""Process, user and group in SO_PEERCRED, see unix(7)."""

_log: Final = structlog.get_logger("http")


class Listener:
    """Accepts at one socket, which the caller closes after close(). Event loop only."""

    def __init__(
        self,
        sock: socket.socket,
        connections: ConnectionTable,
        protocol: Callable[[OpenConnection], asyncio.Protocol],
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`protocol` makes the protocol of a connection; it sets `close` and calls `release`."""
        self._sock = sock
        self._connections = connections
        self._protocol = protocol
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._connecting: dict[asyncio.Task[None], OpenConnection] = {}
        self._retry: asyncio.TimerHandle | None = None
        self._exhausted = False

    def start(self) -> None:
        self._sock.setblocking(False)
        self._sock.listen(BACKLOG)
        self._resume()

    def close(self) -> None:
        """Accept no more, and end handshakes."""
        if self._retry is not None:
            self._retry.cancel()
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
        for entry in self._connecting.values():
            entry.close()

    async def wait_closed(self) -> None:
        if self._connecting:
            await asyncio.wait(self._connecting)

    def _resume(self) -> None:
        self._retry = None
        self._loop.add_reader(self._sock, self._accept)

    def _accept(self) -> None:
        """Accept for a short time; the rest comes in the next turn of the event loop."""
        until = self._loop.time() + ACCEPT_SLICE
        try:
            self._admit(self._sock.accept()[0])
            while self._loop.time() < until:
                self._admit(self._sock.accept()[0])
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):
            return
        except OSError as problem:
            self._out_of_resources(problem)

    def _admit(self, sock: socket.socket) -> None:
        self._exhausted = False
        entry = self._connections.admit(_address(sock))
        if entry is None:
            sock.close()
            return
        sock.setblocking(False)
        if sock.family != socket.AF_UNIX:
            # asyncio does it only if the socket names the protocol. Without it a response's end
            # waits up to 40 ms for the acknowledgement of its head.
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        # Not task.cancel(): asyncio would start the handshake of a cancelled one afterwards.
        entry.close = partial(_shut, sock)
        task = self._loop.create_task(self._connect(sock, entry), name="http: connecting")
        self._connecting[task] = entry
        task.add_done_callback(self._connected)

    def _out_of_resources(self, problem: OSError) -> None:
        """Make room, and try again soon: the socket stays readable."""
        self._connections.shed_one()
        self._loop.remove_reader(self._sock)
        self._retry = self._loop.call_later(RETRY_INTERVAL, self._resume)
        if not self._exhausted:  # logged once, until a connection is accepted
            _log.error("accept_failed", why=os.strerror(problem.errno or 0))
        self._exhausted = True

    async def _connect(self, sock: socket.socket, entry: OpenConnection) -> None:
        tls = self._context is not None
        await self._loop.connect_accepted_socket(
            lambda: self._protocol(entry),
            sock,
            ssl=self._context,
            ssl_handshake_timeout=HANDSHAKE_TIMEOUT if tls else None,
            ssl_shutdown_timeout=CLOSE_TIMEOUT if tls else None,
        )

    def _connected(self, task: asyncio.Task[None]) -> None:
        """The handshake is over; asyncio has closed the socket if it failed."""
        entry = self._connecting.pop(task)
        problem = None if task.cancelled() else task.exception()
        if isinstance(problem, ConnectionAbortedError):  # the timeout of asyncio
            self._connections.close_slow(entry)
            return
        if isinstance(problem, ssl.SSLError):
            self._connections.count_invalid(entry)
        if problem is not None or task.cancelled():
            self._connections.release(entry)
        if problem is not None and not isinstance(problem, OSError):
            raise problem


def _shut(sock: socket.socket) -> None:
    """End a connection whose socket belongs to asyncio, which then closes it."""
    with suppress(OSError):  # it has ended already
        sock.shutdown(socket.SHUT_RDWR)


def _address(sock: socket.socket) -> str:
    """Returns the address that a limit applies to: of a unix socket the client's user."""
    if sock.family == socket.AF_UNIX:
        peer = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        return f"user {_PEER.unpack(peer)[1]}"
    try:
        return subscriber_address(str(sock.getpeername()[0]))
    except OSError:  # it has ended already
        return ""
