"""The bench page's HTTP application: a page, a stream of its changes, and requests as POST.

Only browsers on this machine can use it, as with the tables' own screens.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from controller.api.http import EventStream, Listeners, Server, latest
from controller.errors import UsageProblem
from controller.screens.common.access import HeaderGuard
from firmware_protocol.messages import DeviceClass
from hil.table.page import controls
from hil.table.page.bench import BenchRefusal, Desk
from hil.table.page.page import BUTTONS, BenchPicture
from hil.table.setup import STAFF_AND_VISITORS, RobotBadge

HERE: Final = Path(__file__).parent
POLL_INTERVAL: Final = 0.1
"""Seconds between two reads of the devices while the page is open."""
MAX_STREAMS: Final = 32
MAX_BYTES: Final = 16 * 1024
"""Limit for the body of a request."""
SECRET_HEADER: Final = "X-Bench"
_STATIC: Final = {
    "icon.svg": "image/svg+xml",
    "page.css": "text/css",
    "page.js": "text/javascript",
}
_SITES: Final = ("same-origin", "none")


class Posted(Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a request; which fields are needed depends on its path."""

    device: str = ""
    button: str = ""
    hand: msgspec.Raw = msgspec.Raw(b"")
    seat: int = 0
    choice: str = ""
    how: str = ""


class Page:
    """Renders the bench page and handles its requests."""

    def __init__(self, desk: Desk, people: tuple[RobotBadge, ...]) -> None:
        self.listeners = desk.listeners = Listeners(MAX_STREAMS)
        self.secret = secrets.token_urlsafe(24)
        """Sent with each request by the page's script, so that other sites cannot send any."""
        self._desk = desk
        self._people = people
        self._env = Environment(
            loader=FileSystemLoader(HERE / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._drawn: tuple[BenchPicture | None, str | None, str] = (None, None, "")
        """The content, the console's address and their rendering, cached for all streams."""

    # --- rendering ------------------------------------------------------------------------

    def whole(self) -> str:
        desk = self._desk
        kinds = {fitted.profile for fitted, _ in desk.at.devices}
        return self._env.get_template("page.html").render(
            table=self.table(),
            people=self._people,
            secret=self.secret,
            console=self._console,
            devices=[(fitted.serial, fitted.profile) for fitted, _ in desk.at.devices],
            hands=controls.HANDS,
            faults=controls.FAULTS,
            next_pulls=controls.NEXT_PULLS,
            forms={kind: controls.forms(DeviceClass[kind.upper()]) for kind in sorted(kinds)},
        )

    def table(self) -> str:
        """Returns the part of the page that changes, rendered; cached while it is the same."""
        shown, console = self._desk.shown(), self._console
        if not self._drawn[2] or (shown, console) != self._drawn[:2]:
            template = self._env.get_template("table.html")
            self._drawn = (
                shown,
                console,
                template.render(t=shown, console=console, buttons=BUTTONS),
            )
        return self._drawn[2]

    @property
    def _console(self) -> str | None:
        playing = self._desk.playing
        return None if playing is None else playing.url

    # --- requests -------------------------------------------------------------------------

    async def page(self, request: Request) -> Response:
        return HTMLResponse(self.whole())

    async def stream(self, request: Request) -> ASGIApp:
        if self.listeners.full:
            return _refused(
                BenchRefusal("too many look at this page", f"{MAX_STREAMS} at once", 429)
            )
        return EventStream(
            "bench page", self.listeners, latest(self.table, _event), interval=POLL_INTERVAL
        )

    async def static(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in _STATIC:
            raise HTTPException(404)
        return FileResponse(HERE / "static" / name, media_type=_STATIC[name])

    async def post(self, request: Request) -> Response:
        """Run one request. An error response means that nothing has changed."""
        what = request.path_params["what"]
        if what not in _REQUESTS:
            raise HTTPException(404)
        try:
            answer = await _run(self._desk, what, await self._read(request))
        except BenchRefusal as no:
            return _refused(no)
        fields = {name: value for name, value in (answer or {}).items() if name in _RETURNED_FIELDS}
        return _json({"done": True, "answer": fields})

    async def _read(self, request: Request) -> Posted:
        origin, site = request.headers.get("origin"), request.headers.get("sec-fetch-site", "none")
        here = f"http://{request.headers.get('host', '')}"
        if (origin is not None and origin != here) or site not in _SITES:
            raise BenchRefusal("pages from elsewhere have no business here", "this page's own", 403)
        given = request.headers.get(SECRET_HEADER, "")
        if not hmac.compare_digest(given.encode(), self.secret.encode()):
            raise BenchRefusal("this page is older than the demo", "reload it", 403)
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            raise BenchRefusal("that is no JSON", "application/json", 415)
        body = b""
        async for part in request.stream():
            body += part
            if len(body) > MAX_BYTES:
                raise BenchRefusal("too long", f"{MAX_BYTES} bytes", 413)
        try:
            return msgspec.json.decode(body, type=Posted)
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise BenchRefusal(str(problem), ", ".join(Posted.__struct_fields__), 400) from None


_RETURNED_FIELDS: Final = ("queued", "ms", "count", "shoe", "pos", "changed", "recorded")
"""Fields of a device's answer that are returned to the page."""

_REQUESTS: Final = frozenset({"hand", "seat", "say", "next-card", "discards", "deal", "game"})


async def _run(desk: Desk, what: str, posted: Posted) -> dict[str, Any] | None:
    """Run one of the requests. Returns a device's answer. Raises BenchRefusal."""
    match what:
        case "hand" if posted.button:
            return desk.press_shortcut(posted.device, posted.button)
        case "hand":
            return desk.hand(posted.device, bytes(posted.hand))
        case "seat":
            does = {"take": desk.take, "leave": desk.leave, "out": desk.sit_out}
            if posted.how not in does:
                raise BenchRefusal(
                    f"nobody does that with a seat: {posted.how}", ", ".join(does), 400
                )
            does[posted.how](posted.seat)
        case "say":
            desk.choose(posted.seat, posted.choice)
        case "next-card":
            desk.next_card(posted.how)
        case "discards":
            await desk.discards()
        case "deal":
            await desk.robot_deals()
        case _:
            desk.next_game()
    return None


def _event(table: str) -> bytes:
    return b"event: bench\ndata: " + msgspec.json.encode({"html": table}) + b"\n\n"


def _json(value: object, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _refused(no: BenchRefusal) -> Response:
    return _json({"done": False, "what": no.what, "allowed": no.allowed}, no.status)


def application(page: Page, port: int) -> ASGIApp:
    """The page's application; requests for other host names are rejected."""
    routes = [
        Route("/", page.page, methods=["GET"]),
        Route("/stream", page.stream, methods=["GET"]),
        Route("/static/{name}", page.static, methods=["GET"]),
        Route("/{what}", page.post, methods=["POST"]),
    ]
    return HeaderGuard(Starlette(routes=routes), (f"127.0.0.1:{port}", f"localhost:{port}"))


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
