"""Browsers that look at a table's pages and do nothing else, in a process of their own.

    with watchers("http://127.0.0.1:8031", 200): ...

Each has a session of its own and its stream; the last one never reads. What they read, they throw
away.
"""

from __future__ import annotations

import selectors
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final
from urllib.parse import urlsplit

_PATIENCE: Final = 60.0
_ROOM: Final = 1 << 18
_SMALL: Final = 4096
"""Bytes that wait for who does not read, beside what the system adds."""
_LOOK: Final = b"looking\n"
_COOKIE: Final = b"set-cookie: "


@contextmanager
def watchers(at: str, count: int) -> Iterator[None]:
    """Until it is left; all of them have seen the table once."""
    command = [sys.executable, "-m", "hil.bench.table_clients_bench_watchers", at, str(count)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            if process.stdout.readline() != _LOOK:
                raise AssertionError(f"{count} browsers cannot look at {at}")
            yield
        finally:
            process.stdin.close()
            process.wait(_PATIENCE)


def _session(host: str, port: int) -> str:
    """The cookie of a new one."""
    with socket.create_connection((host, port), timeout=_PATIENCE) as sock:
        sock.sendall(f"GET / HTTP/1.0\r\nHost: {host}:{port}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            more = sock.recv(_ROOM)
            if not more:
                raise AssertionError("no page")
            head += more
    lines = [line for line in head.split(b"\r\n") if line.lower().startswith(_COOKIE)]
    return lines[0][len(_COOKIE) :].partition(b";")[0].decode()


def _stream(host: str, port: int, *, reads: bool) -> socket.socket:
    """A stream that has begun."""
    cookie = _session(host, port)
    sock = socket.socket()
    if not reads:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SMALL)
    sock.settimeout(_PATIENCE)
    sock.connect((host, port))
    lines = ("GET /stream HTTP/1.1", f"Host: {host}:{port}", f"Cookie: {cookie}", "", "")
    sock.sendall("\r\n".join(lines).encode())
    if reads and not sock.recv(_ROOM).startswith(b"HTTP/1.1 200 "):
        raise AssertionError("no stream")
    sock.setblocking(False)
    return sock


def _watch(at: str, count: int) -> None:
    found = urlsplit(at)
    host, port = found.hostname or "", found.port or 0
    with ExitStack() as stack, selectors.DefaultSelector() as wait:
        for number in range(count):
            reads = number < count - 1
            sock = stack.enter_context(_stream(host, port, reads=reads))
            if reads:
                wait.register(sock, selectors.EVENT_READ)
        sys.stdout.buffer.write(_LOOK)
        sys.stdout.flush()
        wait.register(sys.stdin.buffer, selectors.EVENT_READ)
        while True:
            for key, _ in wait.select():
                if key.fileobj is sys.stdin.buffer:
                    return
                assert isinstance(key.fileobj, socket.socket)
                if not key.fileobj.recv(_ROOM):
                    wait.unregister(key.fileobj)


if __name__ == "__main__":
    _watch(sys.argv[1], int(sys.argv[2]))
