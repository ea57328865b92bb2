"""Sockets are taken whole or not at all, from nobody who lives, and given back. Connections
that nothing comes over, or whose other end reads nothing, are let go of."""

import asyncio
import os
import socket
import stat
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest
from starlette.types import Receive, Scope, Send

from controller.config import ControlPlace
from controller.daemon import Server, http_server
from controller.daemon.http_server import MAX_CONNECTIONS, SPARE_CONNECTIONS
from controller.daemon.sockets import listening
from controller.errors import UsageProblem
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import free_port, until


@contextmanager
def bound(place: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(place))
        sock.listen()
        yield sock


def refused(control: ControlPlace) -> str:
    with pytest.raises(UsageProblem) as caught, listening(control, "t.toml"):
        pytest.fail("it is taken")
    return str(caught.value)


def calls(place: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        return sock.connect_ex(str(place)) == 0


def test_all_of_them_listen_and_are_gone_afterwards(tmp_path: Path) -> None:
    port, figures = free_port(), free_port()
    place = tmp_path / "s"
    with listening(ControlPlace(place, port, figures), "t.toml") as found:
        assert len(found.control) == 2
        assert stat.S_IMODE(place.stat().st_mode) == 0o660
        assert calls(place)
        for one in (port, figures):
            socket.create_connection(("127.0.0.1", one), timeout=5).close()
        found.check()
        assert sorted(one.name for one in tmp_path.iterdir()) == ["s"]
    assert list(tmp_path.iterdir()) == []
    for one in (port, figures):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", one), timeout=5)


def test_only_this_machine_is_listened_to(tmp_path: Path) -> None:
    with listening(ControlPlace(tmp_path / "s", free_port(), free_port()), "t.toml") as found:
        for sock in (found.tcp, found.metrics):
            assert sock is not None
            assert sock.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("which", ["port", "metrics_port"])
def test_a_port_that_is_taken_is_named_and_nothing_is_left(which: str, tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        ports = {"port": free_port(), "metrics_port": free_port(), which: port}
        words = refused(ControlPlace(tmp_path / "s", **ports))
    assert words.startswith(f"t.toml: control.{which}: port {port} is in use by another program")
    assert f"ss -ltnp 'sport = :{port}'" in words
    assert list(tmp_path.iterdir()) == []


def test_what_a_dead_process_has_left_is_replaced(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with bound(place):
        pass
    assert place.is_socket()
    with listening(ControlPlace(place), "t.toml"):
        assert calls(place)
    assert not place.exists()


def test_what_somebody_listens_at_stays_theirs(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with bound(place):
        words = refused(ControlPlace(place))
        assert calls(place)
    assert words == (
        f"t.toml: control.socket: another process listens at {place} already; "
        "allowed: one controller for a table: stop the other one first"
    )


def test_one_who_is_too_busy_to_answer_lives(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
        sock.bind(str(place))
        sock.listen(0)
        waiting = []
        for _ in range(8):
            one = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            one.setblocking(False)
            waiting.append(one)
            one.connect_ex(str(place))
        assert "another process listens" in refused(ControlPlace(place))
        for one in waiting:
            one.close()


def test_a_place_that_was_taken_from_us_is_noticed_and_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with listening(ControlPlace(place), "t.toml") as found:
        place.rename(tmp_path / "kept")  # so that its inode is not given to the next one
        with bound(place), pytest.raises(UsageProblem, match="was replaced by another process"):
            found.check()
    assert place.is_socket()


def _file(place: Path) -> None:
    place.write_text("mine")


def _link(place: Path) -> None:
    place.symlink_to(place.parent / "elsewhere")


@pytest.mark.parametrize("make", [_file, _link])
def test_what_is_no_socket_stays(make: object, tmp_path: Path) -> None:
    place = tmp_path / "s"
    make(place)  # type: ignore[operator]
    assert "exists and is not a socket" in refused(ControlPlace(place))
    assert place.is_symlink() or place.read_text() == "mine"


def test_a_directory_that_anyone_may_write_in(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o777)
    assert refused(ControlPlace(folder / "s")) == (
        f"t.toml: control.socket: every user may write in {folder} (mode 777); "
        f"allowed: close it to others: chmod o-w {folder}"
    )
    folder.chmod(0o755)
    with listening(ControlPlace(folder / "s"), "t.toml"):
        assert (folder / "s").is_socket()


def test_a_directory_that_is_not_there_or_is_none(tmp_path: Path) -> None:
    words = refused(ControlPlace(tmp_path / "no" / "s"))
    assert words.endswith(f"allowed: create it first: mkdir -m 750 {tmp_path / 'no'}")
    (tmp_path / "file").touch()
    assert "file is not a directory" in refused(ControlPlace(tmp_path / "file" / "s"))


def test_a_path_that_is_too_long(tmp_path: Path) -> None:
    folder = tmp_path
    while len(os.fsencode(folder)) < 120:
        folder /= "f" * 20
    folder.mkdir(parents=True)
    words = refused(ControlPlace(folder / "s"))
    assert "allowed: a path of up to 107 bytes, the kernel's limit" in words


def test_the_longest_path(tmp_path: Path) -> None:
    room = 107 - len(os.fsencode(tmp_path)) - 1
    place = tmp_path / ("s" * room)
    with listening(ControlPlace(place), "t.toml"):
        assert calls(place)
    assert len(os.fsencode(place)) == 107


def test_an_end_where_the_place_has_gone_already(tmp_path: Path) -> None:
    place = tmp_path / "s"
    with listening(ControlPlace(place), "t.toml"):
        place.unlink()
    assert not place.exists()


# --- connections that nothing comes over ----------------------------------------------------------


ASKS = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
WORDS = b"x" * 500_000


async def answers(scope: Scope, receive: Receive, send: Send) -> None:
    """So much that what is not read has to wait here."""
    length = [(b"content-length", b"%d" % len(WORDS))]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": WORDS})


@asynccontextmanager
async def served(most: int = MAX_CONNECTIONS) -> AsyncIterator[tuple[Server, tuple[str, int]]]:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        listening.setblocking(False)
        server = Server(answers, [listening], most=most)
        running = asyncio.create_task(server.run_until_stopped())
        await server.answering.wait()
        try:
            yield server, listening.getsockname()
        finally:
            server.stop()
            await running


async def gone(server: Server, place: tuple[str, int], said: bytes) -> None:
    """Whoever says this and no more is let go of."""
    with socket.create_connection(place) as line:
        await until(lambda: len(server.server_state.connections) == 1)
        line.sendall(said)
        await until(lambda: not server.server_state.connections)
        await until(lambda: not server.server_state.tasks)


@pytest.mark.parametrize("said", [b"", ASKS[:10]], ids=["nothing", "half a request"])
@asynchronous
async def test_who_asks_nothing(said: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "IDLE_TIMEOUT", 0.3)
    async with served() as (server, place):
        await gone(server, place, said)


@asynchronous
async def test_half_a_request_after_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its first byte does not give it for ever."""
    monkeypatch.setattr(http_server, "IDLE_TIMEOUT", 0.3)
    async with served() as (server, place):
        reader, writer = await asyncio.open_connection(*place)
        writer.write(ASKS)
        await reader.readuntil(b"\r\n\r\n")
        await reader.readexactly(len(WORDS))
        writer.write(ASKS[:10])
        await until(lambda: not server.server_state.connections)
        writer.close()


@asynchronous
async def test_who_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.3)
    async with served() as (server, place):
        await gone(server, place, ASKS * 40)


@asynchronous
async def test_who_reads_after_all_keeps_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_server, "SEND_TIMEOUT", 0.5)
    async with served() as (server, place):
        line = socket.socket()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        line.connect(place)
        reader, writer = await asyncio.open_connection(sock=line, limit=4096)
        for _ in range(10):
            writer.write(ASKS)
        for _ in range(10):
            await reader.readuntil(b"\r\n\r\n")
            assert await reader.readexactly(len(WORDS)) == WORDS
        await asyncio.sleep(1)
        assert len(server.server_state.connections) == 1
        writer.close()


@asynchronous
async def test_there_are_never_so_many_that_files_cannot_be_opened() -> None:
    """Who comes beyond all measure is let go of at once, without a word."""
    async with served(most=3) as (server, place):
        lines = [socket.create_connection(place) for _ in range(3 + SPARE_CONNECTIONS + 10)]
        try:
            count = len(server.server_state.connections)
            await until(lambda: len(server.server_state.connections) == 3 + SPARE_CONNECTIONS)
            assert count <= 3 + SPARE_CONNECTIONS
            for one in lines:
                one.setblocking(False)
            await until(lambda: sum(_over(one) for one in lines) == 10)
        finally:
            for one in lines:
                one.close()
        await until(lambda: not server.server_state.connections)


def _over(line: socket.socket) -> bool:
    try:
        return line.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True
