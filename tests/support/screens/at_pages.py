"""The pages of a table in simulated time, and browsers at them without a port between."""

from __future__ import annotations

import asyncio
import json
import re
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx
from starlette.types import ASGIApp, Message, Scope

from controller.screens.app import ScreensApp
from controller.screens.common.server import ListenAddress
from controller.screens.common.texts import load
from controller.screens.console.web import PageRenderer
from tests.support.api.at_api import ANN, FIRST, SECOND, AsyncTest, AtApi, at_api, with_context
from tests.support.drivers.simulated import until
from tests.support.table.simulated.house import PINS

PORT: Final = 8099
HOST: Final = f"127.0.0.1:{PORT}"
HERE: Final = f"http://{HOST}"
ONE: Final = {"badge": FIRST.badge, "pin": FIRST.pin}
TWO: Final = {**ONE, "badge2": SECOND.badge, "pin2": SECOND.pin}
"""Who signs for what takes one person, and two."""
BANK: Final = 100_000
SECRET: Final = re.compile(r'name="secret" content="([\w-]{43})"')


class Reader:
    """What a stream sends, as it comes."""

    def __init__(self) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.data = b""
        self.over = False
        self.reads = asyncio.Event()
        """Cleared: whatever is sent waits."""
        self.reads.set()
        self.gone = asyncio.Event()

    @property
    def events(self) -> list[dict[str, Any]]:
        blocks = self.data.split(b"\n\n")
        lines = [one.split(b"\n") for one in blocks if one.startswith(b"event: table\n")]
        return [json.loads(one[2].removeprefix(b"data: ")) for one in lines]

    async def receive(self) -> Message:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        await self.reads.wait()
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
            return
        self.data += message.get("body", b"")
        self.over = not message.get("more_body", False)


class Tab:
    """A browser."""

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1") -> None:
        """`host`: where it is."""
        self.app = app
        self.host = host
        self.cookies: dict[str, str] = {}
        self.secret = ""
        self.seq = 0

    async def ask(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Anything at all; its cookies go with it."""
        transport = httpx.ASGITransport(app=self.app, client=(self.host, 1))
        headers = {"cookie": self._cookie, **options.pop("headers", {})}
        async with httpx.AsyncClient(transport=transport, base_url=HERE) as client:
            found = await client.request(method, path, headers=headers, **options)
        for text in found.headers.get_list("set-cookie"):
            self.cookies |= {name: one.value for name, one in SimpleCookie(text).items()}
        return found

    @property
    def _cookie(self) -> str:
        return "; ".join(f"{name}={value}" for name, value in self.cookies.items())

    async def open(self) -> httpx.Response:
        """The page. What its forms bring back is known from then on."""
        page = await self.ask("GET", "/")
        found = SECRET.search(page.text)
        assert found is not None, page.text
        self.secret = found[1]
        seq = re.search(r'data-seq="(\d+)"', page.text)
        assert seq is not None
        self.seq = int(seq[1])
        return page

    async def post(self, path: str, headers: Any = None, **fields: str) -> httpx.Response:
        form = {"secret": self.secret, **fields}
        return await self.ask("POST", path, data=form, headers={"origin": HERE, **(headers or {})})

    async def sign_in(self, badge: str, pin: str, **more: str) -> httpx.Response:
        return await self.post("/sign-in", badge=badge, pin=pin, **more)

    async def act(self, kind: str, people: dict[str, str] | None = None, **fields: Any) -> Any:
        """Pressed on what this tab has loaded last."""
        return await self.post(
            "/act", act=json.dumps({"type": kind, **fields}), seq=str(self.seq), **(people or {})
        )

    @asynccontextmanager
    async def stream(self, path: str = "/stream") -> AsyncIterator[Reader]:
        reader = Reader()
        path, _, query = path.partition("?")
        scope: Scope = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(b"host", HOST.encode()), (b"cookie", self._cookie.encode())],
            "client": (self.host, 1),
            "server": ("127.0.0.1", PORT),
        }
        task = asyncio.create_task(self._asked(scope, reader))
        try:
            yield reader
        finally:
            reader.gone.set()
            reader.reads.set()
            await task

    async def _asked(self, scope: Scope, reader: Reader) -> None:
        await self.app(scope, reader.receive, reader.send)


class AtPages(NamedTuple):
    """All that a test has before it."""

    at: AtApi
    screens: ScreensApp

    def tab(self, host: str = "127.0.0.1") -> Tab:
        return Tab(self.screens.app, host)

    async def open(self, host: str = "127.0.0.1") -> Tab:
        """A browser that has loaded the page."""
        made = self.tab(host)
        await made.open()
        return made

    async def dealing(self) -> Tab:
        """A browser at which a dealer has signed in."""
        made = await self.open()
        answer = await made.sign_in(*ANN)
        assert answer.json()["done"], answer.text
        await made.open()
        return made


@asynccontextmanager
async def at_pages(
    folder: Path, game: str = "classic", face: PageRenderer | None = None, **options: Any
) -> AsyncIterator[AtPages]:
    loop = asyncio.get_running_loop()
    async with at_api(folder, game, **options) as at:
        with tempfile.TemporaryDirectory() as scratch:
            place = ListenAddress("127.0.0.1", PORT)
            screens = ScreensApp(
                at.api, place, PORT, load(), Path(scratch), face=face, clock=loop.time
            )
            # Not the index, which a thread makes: where time is simulated, none is waited for.
            running = asyncio.create_task(screens.console.run())
            try:
                yield AtPages(at, screens)
            finally:
                at.served.stopping.set()
                running.cancel()
                await asyncio.wait((running,))
                screens.close()


def pages_test(game: str = "classic", **options: Any) -> Callable[[AsyncTest], Callable[..., None]]:
    """A test with a table and its pages: `async def test(pages: AtPages, ...)`."""
    return with_context(lambda folder: at_pages(folder, game, **options))


async def came(reader: Reader, count: int = 1) -> None:
    await until(lambda: len(reader.events) >= count, 60)


async def opened(pages: AtPages) -> Tab:
    """A table that is open, and who deals at it."""
    tab = await pages.dealing()
    answer = await tab.act("TableOpened", TWO, bank=BANK)
    assert answer.json()["done"], answer.text
    await tab.open()
    return tab


BASE: Final = "/review"


async def comes_in(pages: AtPages) -> Tab:
    tab = pages.tab()
    found = _SECRET.search((await tab.ask("GET", f"{BASE}/enter")).text)
    assert found is not None
    tab.secret = found[1]
    entered = await tab.post(f"{BASE}/enter", badge="S-1", pin=PINS["S-1"])
    assert entered.headers["location"] == f"{BASE}/rounds", entered.text
    return tab


_SECRET: Final = re.compile(r'name="secret" value="([\w-]+)"')
