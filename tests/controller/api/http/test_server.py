"""Clients that send nothing, slowly, or too often, and clients that do not read."""

import asyncio
import os
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest
import structlog
from starlette.datastructures import Headers
from starlette.types import Receive, Scope, Send

from controller.api.http import (
    CloseReason,
    ConnectionLimits,
    ConnectionTable,
    Rank,
    Server,
    SessionRank,
    listener,
    no_session,
)
from controller.api.http import server as http_server
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import until
from tests.support.screens.certificates import certified

ASKS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SIGNED = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nSession: signed\r\n\r\n"
POSTS = b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 9\r\n\r\nhalf"
WORDS = b"x" * 500_000
SMALL = ConnectionLimits(total=6, per_address=4)


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """So much that what is not read has to wait here; after the whole body."""
    while (await receive()).get("more_body"):
        pass
    length = [(b"content-length", b"%d" % len(WORDS))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": WORDS})


def find(scope: Scope) -> Rank:
    said = Headers(scope=scope).get("session")
    return no_session if said is None else lambda: SessionRank.SIGNED_IN


class Served:
    """A server, and the reasons for which it closed connections."""

    def __init__(
        self, listening: socket.socket, limits: ConnectionLimits, tls: tuple[str, str] | None
    ) -> None:
        self.reasons: list[CloseReason] = []
        self.place = listening.getsockname()
        certificate, key = (None, None) if tls is None else map(Path, tls)
        self.server = Server(
            answers,
            [listening],
            connections=ConnectionTable("test", limits, self.reasons.append),
            find_session=find,
            certificate=certificate,
            key=key,
        )

    @property
    def count(self) -> int:
        return len(self.server.connections)

    async def come(self, stack: ExitStack, said: bytes = b"", source: str = "") -> socket.socket:
        """A connection that says this, once it is counted."""
        line = stack.enter_context(socket.socket())
        if source:
            line.bind((source, 0))
        line.connect(self.place)
        line.sendall(said)
        line.setblocking(False)
        return line


@asynccontextmanager
async def served(
    limits: ConnectionLimits = http_server.LIMITS, tls: tuple[str, str] | None = None
) -> AsyncIterator[Served]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        made = Served(listening, limits, tls)
        running = asyncio.create_task(made.server.run_until_stopped())
        await made.server.answering.wait()
        try:
            yield made
        finally:
            made.server.stop()
            await running
            assert made.count == 0


def over(line: socket.socket) -> bool:
    """Whether the other end has closed the connection."""
    try:
        while data := line.recv(65536):
            assert data
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
    return True


async def gone(at: Served, said: bytes, reasons: list[CloseReason]) -> None:
    """A client that says this and no more is closed."""
    with socket.create_connection(at.place) as line:
        await until(lambda: at.count == 1)
        line.sendall(said)
        await until(lambda: at.count == 0)
        await until(lambda: not at.server.server_state.tasks)
    assert at.reasons == reasons


# --- clients that are slow ------------------------------------------------------------------------


@pytest.mark.parametrize("said", [b"", ASKS[:10]], ids=["nothing", "half a head"])
@asynchronous
async def test_a_head_that_does_not_come(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    async with served() as at:
        await gone(at, said, ["slow"])


@asynchronous
async def test_a_byte_at_a_time_extends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    async with served() as at:
        with ExitStack() as stack:
            line = await at.come(stack)
            for byte in ASKS[:-1]:
                if over(line):
                    break
                line.send(bytes([byte]))
                await asyncio.sleep(0.05)
            else:
                pytest.fail("it is open still")
    assert at.reasons == ["slow"]


@asynchronous
async def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "BODY_TIMEOUT", 0.3)
    async with served() as at:
        await gone(at, POSTS, ["slow"])


@pytest.mark.parametrize(("more", "reasons"), [(b"", []), (ASKS[:10], ["slow"])])
@asynchronous
async def test_the_next_head_that_does_not_come(
    more: bytes, reasons: list[CloseReason], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A connection without a request may wait for longer; that is no fault of its client."""
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT" if more else "IDLE_TIMEOUT", 0.3)
    async with served() as at:
        reader, writer = await asyncio.open_connection(*at.place)
        writer.write(ASKS)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(WORDS))
        writer.write(more)
        await until(lambda: at.count == 0)
        writer.close()
    assert at.reasons == reasons


@asynchronous
async def test_half_a_head_behind_a_whole_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """It arrived before the response was complete."""
    monkeypatch.setattr(http_server, "HEAD_TIMEOUT", 0.3)
    async with served() as at:
        reader, writer = await asyncio.open_connection(*at.place)
        writer.write(ASKS + ASKS[:10])
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(WORDS))
        assert await reader.read() == b""
        writer.close()
    assert at.reasons == ["slow"]


@asynchronous
async def test_a_response_that_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.3)
    async with served() as at:
        await gone(at, ASKS * 40, ["slow"])


@asynchronous
async def test_a_client_that_reads_after_all_keeps_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.5)
    async with served() as at:
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(at.place)
        reader, writer = await asyncio.open_connection(sock=line, limit=4096)
        for _ in range(10):
            writer.write(ASKS)
        for _ in range(10):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(WORDS)) == WORDS
        await asyncio.sleep(1)
        assert at.count == 1
        writer.close()


@pytest.mark.parametrize("said", [b"\x16\x03\x01 TLS\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n"])
@asynchronous
async def test_what_is_no_http_is_counted_and_logged_once(
    said: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with served() as at:
        with ExitStack() as stack, structlog.testing.capture_logs() as lines:
            for number in range(5):
                line = await at.come(stack, said)
                await until(lambda: len(at.reasons) == number + 1)  # noqa: B023 - awaited here
                await until(lambda: over(line))  # noqa: B023
    assert at.reasons == ["invalid"] * 5
    assert [line["event"] for line in lines] == ["connections_limited"]
    assert caplog.records == []


# --- more clients than there is room for ----------------------------------------------------------


@asynchronous
async def test_the_oldest_without_a_session_is_closed_for_a_new_one() -> None:
    async with served(SMALL) as at:
        with ExitStack() as stack:
            signed = await at.come(stack, SIGNED)
            await until(lambda: not over(signed) and at.count == 1)
            await until(lambda: not at.server.server_state.tasks)
            lines = [await at.come(stack) for _ in range(20)]
            await until(lambda: sum(map(over, lines)) == 17)
            assert [over(line) for line in lines] == [True] * 17 + [False] * 3
            assert (at.count, over(signed)) == (4, False)
            assert at.reasons == ["shed"] * 17
            other = await at.come(stack, source="127.0.0.2")
            await until(lambda: at.count == 5)
            assert not over(other)


@asynchronous
async def test_a_new_one_is_refused_only_where_all_are_signed_in() -> None:
    async with served(SMALL) as at:
        with ExitStack() as stack:
            signed = []
            for _ in range(4):
                signed.append(await at.come(stack, SIGNED))
                await until(lambda: not any(map(over, signed)) and at.count == len(signed))
            await until(lambda: not at.server.server_state.tasks)
            new = await at.come(stack)
            await until(lambda: over(new))
            assert at.reasons == ["refused"]
            assert not any(map(over, signed))


@asynchronous
async def test_a_machine_without_file_descriptors_makes_room() -> None:
    """The next client is served once there are some again."""
    async with served() as at:
        with ExitStack() as stack:
            idle = await at.come(stack)
            await until(lambda: at.count == 1)
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            with all_descriptors_taken():
                await asyncio.get_running_loop().sock_connect(client, at.place)
                await until(lambda: at.reasons == ["shed"])
            await until(lambda: over(idle) and at.count == 1)
            assert not over(client)


@contextmanager
def all_descriptors_taken() -> Iterator[None]:
    """Nothing can be opened inside."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- TLS ------------------------------------------------------------------------------------------


def handshake(place: tuple[str, int], steps: Callable[[ssl.SSLSocket], object]) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(place) as line, context.wrap_socket(line) as secure:
        steps(secure)


@pytest.mark.parametrize("said", [b"", b"\x16\x03\x01"], ids=["nothing", "half a record"])
@asynchronous
async def test_a_handshake_that_does_not_end(
    said: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "HANDSHAKE_TIMEOUT", 0.3)
    async with served(tls=certified(tmp_path)) as at:
        await gone(at, said, ["slow"])


@asynchronous
async def test_what_is_no_tls_is_counted(tmp_path: Path) -> None:
    async with served(tls=certified(tmp_path)) as at:
        await gone(at, ASKS, ["invalid"])


@asynchronous
async def test_half_open_handshakes_count_and_are_shed(tmp_path: Path) -> None:
    def read(secure: ssl.SSLSocket) -> None:
        secure.sendall(ASKS)
        assert secure.recv(12) == b"HTTP/1.1 200"

    async with served(SMALL, certified(tmp_path)) as at:
        with ExitStack() as stack:
            lines = [await at.come(stack) for _ in range(20)]
            await until(lambda: sum(map(over, lines)) == 16)
            assert at.count == 4
            await asyncio.to_thread(handshake, at.place, read)
            assert at.reasons == ["shed"] * 17


@asynchronous
async def test_the_end_does_not_wait_for_handshakes(tmp_path: Path) -> None:
    async with served(SMALL, certified(tmp_path)) as at:
        with ExitStack() as stack:
            line = await at.come(stack)
            await until(lambda: at.count == 1)
            began = asyncio.get_running_loop().time()
            at.server.stop()
            await until(lambda: over(line))
            assert asyncio.get_running_loop().time() - began < listener.HANDSHAKE_TIMEOUT


# --- a unix socket --------------------------------------------------------------------------------


@asynchronous
async def test_a_unix_socket_counts_by_user(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening, ExitStack() as stack:
        listening.bind(str(tmp_path / "s"))
        made = Served(listening, SMALL, None)
        running = asyncio.create_task(made.server.run_until_stopped())
        await made.server.answering.wait()
        lines = []
        for _ in range(6):
            lines.append(stack.enter_context(socket.socket(socket.AF_UNIX)))
            lines[-1].connect(str(tmp_path / "s"))
            lines[-1].setblocking(False)
        await until(lambda: sum(map(over, lines)) == 2)
        assert made.count == 4
        made.server.stop()
        await running
