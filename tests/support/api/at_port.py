"""The API behind a real unix socket, in simulated time: what is written to it can be read at once,
so that nothing of it waits for the world."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import uvicorn

from hil.table.robots import Api
from tests.support.api.at_api import AsyncTest, AtApi, at_api, with_context


class Server(uvicorn.Server):
    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class Port:
    """A socket that is listened at, or is not for a while."""

    def __init__(self, at: AtApi, path: Path) -> None:
        self.at = at
        self.path = path
        self.url = ""
        """The same API on the loopback."""
        self._server: Server | None = None
        self._task: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        config = uvicorn.Config(
            self.at.app, ws="none", lifespan="off", log_config=None, timeout_graceful_shutdown=2
        )
        self._server = Server(config)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.path.unlink(missing_ok=True)
        listening.bind(str(self.path))
        loopback = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        loopback.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{loopback.getsockname()[1]}"
        for one in (listening, loopback):
            one.setblocking(False)
        self._task = asyncio.create_task(self._server.serve([listening, loopback]))
        while not self._server.started:
            await asyncio.sleep(0.001)

    async def end(self) -> float:
        """Seconds that it takes."""
        if self._server is None or self._task is None:
            return 0.0
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._server.should_exit = True
        await self._task
        self._server = self._task = None
        return loop.time() - began

    def cut(self) -> None:
        """Every connection breaks."""
        assert self._server is not None
        for connection in list(self._server.server_state.connections):
            transport = connection.transport
            assert transport is not None
            transport.abort()

    @property
    def connections(self) -> int:
        assert self._server is not None
        return len(self._server.server_state.connections)


@asynccontextmanager
async def at_port(folder: Path) -> AsyncIterator[tuple[Port, Api]]:
    """A table whose devices nobody has adopted, and a client at its socket."""
    with tempfile.TemporaryDirectory() as short:
        async with at_api(folder, adopted=False) as at:
            port = Port(at, Path(short) / "control.sock")
            await port.begin()
            try:
                async with Api(port.path) as client:
                    yield port, client
                    at.served.stopping.set()
            finally:
                await port.end()


def port_test() -> Callable[[AsyncTest], Callable[..., None]]:
    """A test at a socket: `async def test(port: Port, client: Api, ...)`."""
    return with_context(at_port, 2)
