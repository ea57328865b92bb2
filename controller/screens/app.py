"""All pages of a running table as one application: the console, and the review at its path.

screens = ScreensApp(api, place, port, load(), scratch)
server(screens.app)                         and screens.run() in the table's event loop
screens.close()
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Scope

from controller.api.contract.errors import Problem, fault_handler
from controller.api.http import Rank
from controller.api.service import TableApi
from controller.procedure.prompts import Texts, card_words
from controller.rules.cards import NAMES
from controller.screens.common.access import (
    Cookie,
    HeaderGuard,
    message_page,
    see_other,
    static_route,
)
from controller.screens.common.server import ListenAddress, names_of
from controller.screens.common.templates import Pages, StaticFiles
from controller.screens.console.web import (
    COOKIE,
    Browsers,
    ConsoleApp,
    ConsoleRenderer,
    PageRenderer,
    problem_response,
)
from controller.screens.review.source import LiveSource, LoopBridge
from controller.screens.review.web import BadgeLogin, application, pages_of

REVIEW: Final = "/review"
_PACKAGES: Final = {
    "common": "controller.screens.common",
    "console": "controller.screens.console",
}


class ScreensApp:
    """The pages of one table."""

    def __init__(
        self,
        api: TableApi,
        place: ListenAddress,
        port: int,
        texts: Texts,
        scratch: Path,
        *,
        face: PageRenderer | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`port`: the bound one. `scratch`: a directory for cases until they are downloaded.
        `clock`: the same monotonic clock as the API's."""
        self.address = place.address(port)
        """The URL in a browser, without a path."""
        static = StaticFiles(*_PACKAGES.values())
        words = {"names": NAMES, "card_words": card_words}
        self._pages = Pages(texts, static, words, **_PACKAGES)
        self._pages.prepare()
        self._cookie = cookie = Cookie(f"{COOKIE}-{port}", place.secure)
        self.browsers = Browsers(api, clock)
        made = face or ConsoleRenderer(self._pages, api.served.table.parts.game)
        self.console = ConsoleApp(api, made, self.browsers, texts, cookie)
        table = api.served.table
        self.source = LiveSource(table)
        entering = BadgeLogin(
            api, self.console, self.browsers, LoopBridge(table.parts.record), REVIEW
        )
        self._review = application(
            self.source, pages_of(texts, REVIEW), entering, scratch, cookie=cookie
        )
        app = Starlette(
            routes=[
                *self.console.routes,
                static_route(static, self._pages),
                Route(REVIEW, _to_review, methods=["GET"]),
                Mount(REVIEW, self._review.app),
            ],
            exception_handlers={
                Problem: problem_response(texts),
                HTTPException: self._no_page,
                Exception: fault_handler,
            },
        )
        app.router.redirect_slashes = False
        self.app: ASGIApp = HeaderGuard(app, names_of(place, port), secure=place.secure)

    def find_session(self, scope: Scope) -> Rank:
        """Returns the rank of a connection whose last request is this one."""
        return self.browsers.rank(Request(scope).cookies.get(self._cookie.name))

    async def run(self) -> None:
        """Run the background tasks until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self.console.run(), name="pages: console")
                group.create_task(self.source.follow(), name="pages: index")
        finally:
            self.source.close()

    def end(self) -> None:
        """Stop the background threads soon, without waiting for them."""
        self.source.close()
        self._review.end()

    def close(self) -> None:
        """Stop them and wait, for as long as one segment takes to verify."""
        self.end()
        self._review.close()

    async def _no_page(self, request: Request, problem: Exception) -> Response:
        code = problem.status_code if isinstance(problem, HTTPException) else 500
        text = {404: "problem.no_page", 405: "problem.no_method"}.get(code, "problem.other")
        return message_page(self._pages, code, self._pages.texts(text), "")


async def _to_review(request: Request) -> Response:
    return see_other(f"{REVIEW}/")
