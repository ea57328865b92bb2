"""The control socket: hands at a simulated device, one line of JSON each (hil/CONTROL.md).

    with Control(Path("run/shoe/control")) as control:
        answer = control.do(Draw(count=2))

The server refuses what it does not understand and changes nothing then. A hand is answered when it
is done, and hands are done one after the other, whoever they come from.
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

from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.interfaces import Answer, CannotDo
from hil.control.verbs import InvalidRequest, Verbs, parse_request
from hil.ports import Listener, connect

MAX_LINE_BYTES: Final = 65_536
"""No line is longer."""
MAX_CLIENTS: Final = 16
"""More than these at a time are turned away."""
_GONE: Final = "the simulated device has gone, and says why where it ran"
_ANSWER_TIMEOUT: Final = 10.0
"""Seconds that a client waits for an answer."""


class RequestRefused(Exception):
    """The device's side says no: what is wrong, where, and what is allowed instead."""

    def __init__(self, what: str, where: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}" + (f"; allowed: {allowed}" if allowed else ""))
        self.what = what
        self.where = where
        self.allowed = allowed


class ControlLost(Exception):
    """Nobody answers at the socket, or no longer."""


def _line(answer: dict[str, Any]) -> bytes:
    return msgspec.json.encode(answer) + b"\n"


def _refusal(error: str, where: str, allowed: str) -> bytes:
    return _line({"ok": False, "error": error, "where": where, "allowed": allowed})


class ControlServer:
    """Made inside of a running loop, which serves it."""

    def __init__(self, path: Path, verbs: Verbs, do: Callable[[ControlRequest], Answer]) -> None:
        self._verbs = verbs
        self._do = do
        self._clients: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._listener = Listener(path, socket.SOCK_STREAM)
        self._server: asyncio.Server | None = None

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(
            self._client, sock=self._listener.sock, limit=MAX_LINE_BYTES
        )

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self._listener.close()
        # Cut off, not cancelled: asyncio's streams complain about a client that was cancelled.
        for writer in self._clients.values():
            writer.transport.abort()
        await asyncio.gather(*self._clients)

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._clients[task] = writer
        try:
            with suppress(ConnectionError):  # it has gone without waiting for the answer
                await self._serve(reader, writer)
        finally:
            del self._clients[task]
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if len(self._clients) > MAX_CLIENTS:
            writer.write(_refusal("too many clients", "socket", f"{MAX_CLIENTS} at a time"))
            await writer.drain()
            return
        while True:
            try:
                line = await reader.readuntil()
            except asyncio.LimitOverrunError:
                writer.write(_refusal("too long", "line", f"{MAX_LINE_BYTES} bytes"))
                await writer.drain()
                return
            except asyncio.IncompleteReadError:  # the end; half a line is no hand
                return
            writer.write(self._answer(line))
            await writer.drain()

    def _answer(self, line: bytes) -> bytes:
        try:
            hand = parse_request(line, self._verbs)
        except InvalidRequest as bad:
            return _refusal(bad.what, bad.where, bad.allowed)
        try:
            return _line({"ok": True, "answer": self._do(hand)})
        except CannotDo as no:
            what, allowed = (*map(str, no.args), "", "")[:2]
            return _refusal(what, str(hand.__struct_config__.tag), allowed)


def _why_not(path: Path, problem: OSError) -> str:
    """Why nothing was found at the path."""
    if os.path.isdir(path):  # unlike Path's own it never raises
        return "is a folder"
    if isinstance(problem, ConnectionRefusedError):
        return "nobody listens there any more" if path.is_socket() else "is no socket"
    return problem.strerror or str(problem)


class ControlClient:
    """A client that waits for its answers."""

    def __init__(self, path: Path, patience: float = _ANSWER_TIMEOUT) -> None:
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._sock.settimeout(patience)
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

    def close(self) -> None:
        self._sock.close()

    def do(self, hand: ControlRequest) -> Answer:
        """Have it done, and what the device's side says to it. HandRefused if it says no."""
        return self.ask(msgspec.json.encode(hand))

    def ask(self, line: bytes) -> Answer:
        """The same with a line of JSON as it is."""
        try:
            # Who is turned away finds the door shut, and the reason is there to be read.
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
            raise ControlLost("what it answers is none of hil/CONTROL.md")
        if not answer["ok"]:
            error, where, allowed = (
                str(answer.get(name, "")) for name in ("error", "where", "allowed")
            )
            raise RequestRefused(error or "refused", where, allowed)
        told = answer.get("answer")
        return told if isinstance(told, dict) else {}

    def _read(self) -> bytes:
        while b"\n" not in self._rest:
            more = self._sock.recv(MAX_LINE_BYTES)
            if not more:
                raise ControlLost(_GONE)
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        return line
