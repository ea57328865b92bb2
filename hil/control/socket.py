"""The control socket: requests to a simulated device, one line of JSON each (hil/CONTROL.md).

    with ControlClient(Path("run/shoe/control")) as control:
        answer = control.do(Draw(count=2))

The server rejects an invalid request without side effects. It handles the requests of all clients
sequentially and answers each when it is done.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Final

import msgspec

from firmware_protocol.device import Answer, CannotDo, ControlRequest
from hil.control.verbs import InvalidRequest, Verbs, parse_request
from hil.ports import Listener, connect

MAX_LINE_BYTES: Final = 65_536
"""Limit of a line, in bytes."""
MAX_CLIENTS: Final = 16
"""Concurrent clients; further ones are rejected."""
_GONE: Final = "the simulated device has stopped; its own output says why"
_ANSWER_TIMEOUT: Final = 10.0
"""Seconds."""


class RequestRefused(Exception):
    """The server refused a request: the error, the field or verb, and what is allowed."""

    def __init__(self, what: str, where: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}" + (f"; allowed: {allowed}" if allowed else ""))
        self.what = what
        self.where = where
        self.allowed = allowed


class ControlLost(Exception):
    """The server cannot be reached, or the connection was lost."""


def _line(answer: dict[str, Any]) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


def _refusal(error: str, where: str, allowed: str) -> bytes:
    return _line({"ok": False, "error": error, "where": where, "allowed": allowed})


class ControlServer:
    """Serves clients in the event loop in which it is created."""

    def __init__(self, path: Path, verbs: Verbs, do: Callable[[ControlRequest], Answer]) -> None:
        self._verbs = verbs
        self._do = do
        self._clients: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}
        self._listener = Listener(path, socket.SOCK_STREAM)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(
            self._connected, sock=self._listener.sock, limit=MAX_LINE_BYTES
        )

    async def close(self) -> None:
        if self._server is not None:
            asyncio.get_running_loop().remove_reader(self._listener.sock)
            # One turn: a closed server leaves a client open that is accepted without a transport.
            await asyncio.sleep(0)
            self._server.close()
        self._listener.close()
        for writer in self._clients:
            writer.transport.abort()
        await asyncio.gather(*self._clients.values())

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # No coroutine: close() has to know a client before the client's task has started.
        assert self._server is not None
        if not self._server.is_serving():
            writer.transport.abort()
            return
        admitted = len(self._clients) < MAX_CLIENTS
        self._clients[writer] = asyncio.create_task(self._client(reader, writer, admitted))

    async def _client(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, admitted: bool
    ) -> None:
        try:
            with suppress(ConnectionError):  # it disconnected without waiting for the answer
                if admitted:
                    await self._serve(reader, writer)
                else:
                    allowed = f"{MAX_CLIENTS} concurrently"
                    writer.write(_refusal("too many clients", "socket", allowed))
                    await writer.drain()
        finally:
            del self._clients[writer]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            try:
                line = await reader.readuntil()
            except asyncio.LimitOverrunError:
                writer.write(_refusal("too long", "line", f"{MAX_LINE_BYTES} bytes"))
                await writer.drain()
                return
            except asyncio.IncompleteReadError:  # disconnected; an incomplete line is dropped
                return
            writer.write(self._answer(line))
            await writer.drain()

    def _answer(self, line: bytes) -> bytes:
        try:
            request = parse_request(line, self._verbs)
        except InvalidRequest as bad:
            return _refusal(bad.what, bad.where, bad.allowed)
        try:
            return _line({"ok": True, "answer": self._do(request)})
        except CannotDo as no:
            what, allowed = (*map(str, no.args), "", "")[:2]
            return _refusal(what, str(request.__struct_config__.tag), allowed)


def _why_not(path: Path, problem: OSError) -> str:
    """Why connecting to the path failed."""
    if os.path.isdir(path):  # unlike Path.is_dir() it never raises
        return "is a folder"
    if isinstance(problem, ConnectionRefusedError):
        return "no device listens there any more" if path.is_socket() else "is no socket"
    return problem.strerror or str(problem)


class ControlClient:
    """A blocking client."""

    def __init__(self, path: Path, timeout: float = _ANSWER_TIMEOUT) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.settimeout(timeout)
        self._rest = b""
        try:
            connect(self._sock, path)
        except OSError as problem:
            self._sock.close()
            raise ControlLost(f"{path}: {_why_not(path, problem)}") from problem

    def __enter__(self) -> ControlClient:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def fileno(self) -> int:
        return self._sock.fileno()

    def close(self) -> None:
        self._sock.close()

    def do(self, request: ControlRequest) -> Answer:
        """Send a request and return its answer. Raises RequestRefused and ControlLost."""
        return self.ask(msgspec.json.encode(request))

    def ask(self, line: bytes) -> Answer:
        """Send a line of JSON unchanged."""
        try:
            # A rejected client cannot write any more, but can still read the reason.
            with suppress(BrokenPipeError):
                self._sock.sendall(line + b"\n")
            answer = msgspec.json.decode(self._read())
        except ConnectionError as problem:
            raise ControlLost(_GONE) from problem
        except TimeoutError as problem:
            raise ControlLost("it does not answer") from problem
        except (OSError, msgspec.DecodeError) as problem:
            raise ControlLost(str(problem) or type(problem).__name__) from problem
        if not isinstance(answer, dict) or not isinstance(answer.get("ok"), bool):
            raise ControlLost("its answer is not one of hil/CONTROL.md")
        if not answer["ok"]:
            error, where, allowed = (
                str(answer.get(name, "")) for name in ("error", "where", "allowed")
            )
            raise RequestRefused(error or "refused", where, allowed)
        fields = answer.get("answer")
        return fields if isinstance(fields, dict) else {}

    def _read(self) -> bytes:
        while b"\n" not in self._rest:
            more = self._sock.recv(MAX_LINE_BYTES)
            if not more:
                raise ControlLost(_GONE)
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line
