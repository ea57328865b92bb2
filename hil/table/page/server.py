"""The bench page, served in the loop of the robots: on this machine alone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from controller.daemon import Server
from controller.errors import UsageProblem
from hil.table.page.app import Page, application
from hil.table.page.bench import Desk
from hil.table.setup import STAFF_AND_VISITORS

HOST: Final = "127.0.0.1"


@asynccontextmanager
async def bench_page(desk: Desk, port: int) -> AsyncIterator[str]:
    """Serve the page; yields its URL. Port 0: any free port. Raises UsageProblem if the port is in
    use."""
    with listening(port) as at:
        taken = int(at.getsockname()[1])
        page = Page(desk, STAFF_AND_VISITORS)
        server = Server(application(page, taken), [at])
        task = asyncio.create_task(server.run_until_stopped(), name="bench page")
        try:
            await server.answering.wait()
            yield f"http://{HOST}:{taken}/"
        finally:
            page.listeners.stopping.set()
            server.stop()
            await task


def listening(port: int) -> socket.socket:
    """Bind the port. Raises UsageProblem."""
    try:
        return socket.create_server((HOST, port))
    except OSError as problem:
        what = f"port {port} of {HOST}: {(problem.strerror or str(problem)).lower()}"
        raise UsageProblem("--page-port", what, "another one; 0: any free one") from None
