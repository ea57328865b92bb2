"""The dealer's console as an application: its page, its stream, its forms.

    console = ConsoleApp(api, renderer, browsers, texts, cookie)
    Starlette(routes=console.routes)            and console.run() in the table's event loop

Every browser may watch; the dealer acts where they have signed in. This is decided in the daemon by
the same functions as for programs, and never in the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine
from typing import Any, Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from controller.api.contract.errors import JSON, Problem
from controller.api.http import BODY_TIMEOUT, EventStream
from controller.api.service import TableApi
from controller.errors import UsageProblem
from controller.procedure.prompts import Texts
from controller.screens.common.access import (
    SECRET,
    Cookie,
    CrossSiteRequest,
    FormTooLarge,
    check_origin,
    form_of,
    only,
)
from controller.screens.common.sessions import MAX_AGE
from controller.screens.console.view import ROLES
from controller.screens.console.web.post import (
    PostedForm,
    PostHandlers,
    PostResult,
    ShownHistory,
)
from controller.screens.console.web.sessions import Browser, Browsers
from controller.screens.console.web.streams import BrowserStreams, PageRenderer, RenderCache

COOKIE: Final = "holecard-console"
SWEEP_INTERVAL: Final = 5.0
"""Seconds between two searches for idle sessions."""
_PEOPLE: Final = ("badge", "pin")
_SECOND: Final = ("badge2", "pin2")


class RefusalBody(msgspec.Struct, frozen=True):
    """Why nothing was done."""

    what: str
    allowed: str
    code: str
    wait: int


class ConsoleApp:
    """The console of one table."""

    def __init__(
        self,
        api: TableApi,
        renderer: PageRenderer,
        browsers: Browsers,
        texts: Texts,
        cookie: Cookie,
    ) -> None:
        self._api = api
        self._renderer = renderer
        self._browsers = browsers
        self._texts = texts
        self._cookie = cookie
        self._cache = RenderCache(api, renderer.picture)
        history = ShownHistory(api.served.table)
        api.views.subscribe(history.note)
        self.streams = BrowserStreams(api, browsers, self._cache)
        handlers = PostHandlers(api, browsers, history, texts)
        self.routes: list[BaseRoute] = [
            Route("/", self._page, methods=["GET"]),
            Route("/stream", self._stream, methods=["GET"]),
            self._post("/act", handlers.act, ("act", "seq", *_PEOPLE, *_SECOND)),
            self._post("/sign-in", handlers.sign_in, (*_PEOPLE, "relieve", "role")),
            self._post("/sign-out", handlers.sign_out, ()),
            self._post("/looks", handlers.set_appearance, ("theme", "suits")),
        ]

    async def run(self) -> None:
        """Serve the streams and end idle sessions, until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.streams.run(), name="pages: news")
            group.create_task(self._end_idle_sessions(), name="pages: sessions")

    async def _end_idle_sessions(self) -> None:
        while True:
            await asyncio.sleep(SWEEP_INTERVAL)
            await self._browsers.end_idle()

    # --- pages ----------------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        browser = self.browser(request)
        screen, viewer = browser.screen, self._cache.viewer(browser.screen)
        await self._api.surveillance.record_look(screen, "table")
        found = [(role, screen.signed_in(self._api.served.desk, role)) for role in ROLES]
        signed = tuple((role, one.name) for role, one in found if one is not None)
        html = self._renderer.page(self._api.views.now().view, viewer, browser, signed)
        return self.remembered(HTMLResponse(html), browser)

    async def _stream(self, request: Request) -> EventStream:
        browser = self._known(request)
        await self._api.surveillance.record_look(browser.screen, "stream")
        return self.streams.open(browser)

    # --- forms ----------------------------------------------------------------------------

    def _post(
        self,
        path: str,
        does: Callable[[PostedForm], Coroutine[Any, Any, PostResult]],
        fields: Collection[str],
    ) -> Route:
        async def endpoint(request: Request) -> Response:
            if self._api.served.stopping.is_set():
                raise Problem(503, "closing", self._texts("doors.closing"))
            sent = await self.sent(request, fields)
            answered = await self._api.tasks.run(does(sent))
            return self.remembered(
                Response(msgspec.json.encode(answered), media_type=JSON), sent.browser
            )

        return Route(path, endpoint, methods=["POST"])

    async def sent(self, request: Request, fields: Collection[str]) -> PostedForm:
        """Read a form of one of our pages. Raises Problem."""
        browser = self._known(request)
        try:
            check_origin(request)
            async with asyncio.timeout(BODY_TIMEOUT):
                form = await form_of(request)
            if not browser.has_secret(form.pop(SECRET, "")):
                raise CrossSiteRequest
            only(form, fields)
        except CrossSiteRequest:
            what = self._texts("doors.from_elsewhere")
            raise Problem(403, "from_elsewhere", what) from None
        except TimeoutError:
            raise Problem(408, "too_slow", self._texts("doors.too_slow")) from None
        except ClientDisconnect:
            raise Problem(400, "cut_off", self._texts("doors.too_slow")) from None
        except UsageProblem as problem:
            status = 413 if isinstance(problem, FormTooLarge) else 400
            what = f"{problem.where}: {problem.what}"
            raise Problem(status, "bad_form", what, problem.allowed or "") from None
        return PostedForm(browser, form)

    # --- sessions -------------------------------------------------------------------------

    def browser(self, request: Request) -> Browser:
        """Returns the browser's session, or a new one. Raises Problem if there are too many."""
        host = "" if request.client is None else request.client.host
        return self._browser(request) or self._browsers.begin(host)

    def _browser(self, request: Request) -> Browser | None:
        return self._browsers.find(request.cookies.get(self._cookie.name))

    def _known(self, request: Request) -> Browser:
        found = self._browser(request)
        if found is None:
            raise Problem(401, "no_session", self._texts("doors.no_session"))
        return found

    def remembered(self, answer: Response, browser: Browser) -> Response:
        self._cookie.put(answer, browser, MAX_AGE)
        return answer


def problem_response(texts: Texts) -> Callable[[Request, Exception], Awaitable[Response]]:
    """Returns the handler that answers a Problem as the page reads it, with the house's texts."""

    async def handler(request: Request, problem: Exception) -> Response:
        assert isinstance(problem, Problem)
        return Response(
            msgspec.json.encode(refusal_of(problem, texts)), problem.status, problem.headers, JSON
        )

    return handler


def refusal_of(problem: Problem, texts: Texts) -> RefusalBody:
    body = problem.body
    what, allowed = body.what, body.allowed
    if texts.has(f"refused.{body.code}"):
        # This text says what to do as well; `allowed` is written for programs.
        what, allowed = texts(f"refused.{body.code}"), ""
    return RefusalBody(what, allowed, body.code, body.wait)
