"""The dealer's console as an application: one page, what is sent from it, and how it changes.

    console = Console(api, face, browsers, texts, cookie)
    Starlette(routes=console.routes)            and console.run() beside it, in the table's loop

Anybody who has the page watches; whoever deals acts where they have signed in. That is decided in
the daemon, by the same functions as for a program, and never in the page.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Final

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from controller.api.contract.errors import JSON, Problem
from controller.api.http import BODY_TIMEOUT, TableApi
from controller.api.service import signed_in
from controller.errors import UsageProblem
from controller.procedure.prompts import Texts
from controller.screens.common.access import SECRET, Cookie, CrossSiteRequest, check_origin
from controller.screens.common.forms import FormTooLarge, form_of, only
from controller.screens.common.sessions import MAX_AGE
from controller.screens.console.view import ROLES
from controller.screens.console.web.page import PageRenderer
from controller.screens.console.web.post import PostedForm, PostHandlers, PostResult
from controller.screens.console.web.render_cache import RenderCache, ShownHistory
from controller.screens.console.web.sessions import Browser, Browsers
from controller.screens.console.web.sse import BrowserStream, BrowserStreams

COOKIE: Final = "holecard-console"
SWEEP: Final = 5.0
"""Seconds between two looks for sessions whose time is over."""
_PEOPLE: Final = ("badge", "pin")
_SECOND: Final = ("badge2", "pin2")


class RefusalBody(msgspec.Struct, frozen=True):
    """Nothing has happened, and why."""

    what: str
    allowed: str
    code: str
    wait: int


class ConsoleApp:
    """One table's. See the module."""

    def __init__(
        self,
        api: TableApi,
        face: PageRenderer,
        browsers: Browsers,
        texts: Texts,
        cookie: Cookie,
    ) -> None:
        self._api = api
        self._face = face
        self._browsers = browsers
        self._texts = texts
        self._cookie = cookie
        self._pictures = RenderCache(api, face.picture)
        self._lately = ShownHistory(api.served.table)
        self.streams = BrowserStreams(api, browsers, self._pictures)
        posting = PostHandlers(api, browsers, self._lately, texts)
        self.routes: list[BaseRoute] = [
            Route("/", self._page, methods=["GET"]),
            Route("/stream", self._stream, methods=["GET"]),
            self._post("/act", posting.act, ("act", "seq", *_PEOPLE, *_SECOND)),
            self._post("/sign-in", posting.sign_in, (*_PEOPLE, "relieve", "role")),
            self._post("/sign-out", posting.sign_out, ()),
            self._post("/looks", posting.looks, ("theme", "suits")),
        ]

    async def run(self) -> None:
        """Beside the table, until it is cancelled."""
        with self._api.views.subscribe(self._lately.note):
            async with asyncio.TaskGroup() as group:
                group.create_task(self.streams.tell(), name="pages: news")
                group.create_task(self._sweep(), name="pages: sessions")

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(SWEEP)
            await self._browsers.end_idle()

    # --- what is shown --------------------------------------------------------------------

    async def _page(self, request: Request) -> Response:
        browser = self.browser(request)
        screen, here = browser.screen, self._pictures.here(browser.screen)
        await self._api.surveillance.record_look(screen, "table")
        found = [(role, signed_in(self._api.served, screen, role)) for role in ROLES]
        signed = tuple((role, one.name) for role, one in found if one is not None)
        html = self._face.page(self._api.views.now().view, here, browser, signed)
        return self.remembered(HTMLResponse(html), browser)

    async def _stream(self, request: Request) -> Response | BrowserStream:
        browser = self._known(request)
        await self._api.surveillance.record_look(browser.screen, "stream")
        return self.streams.begin(browser)

    # --- what is sent ---------------------------------------------------------------------

    def _post(
        self,
        path: str,
        does: Callable[[PostedForm], Awaitable[PostResult]],
        fields: Collection[str],
    ) -> Route:
        async def done(sent: PostedForm) -> PostResult:
            return await does(sent)

        async def endpoint(request: Request) -> Response:
            if self._api.served.stopping.is_set():
                raise Problem(503, "closing", self._texts("doors.closing"))
            sent = await self.sent(request, fields)
            answered = await self._api.tasks.run(done(sent))
            answer = Response(msgspec.json.encode(answered), media_type=JSON)
            return self.remembered(answer, sent.browser)

        return Route(path, endpoint, methods=["POST"])

    async def sent(self, request: Request, fields: Collection[str]) -> PostedForm:
        """A form of one of our own pages. Problem."""
        browser = self._known(request)
        elsewhere = Problem(403, "from_elsewhere", self._texts("doors.from_elsewhere"))
        try:
            check_origin(request)
            async with asyncio.timeout(BODY_TIMEOUT):
                form = await form_of(request)
            if not browser.has_secret(form.pop(SECRET, "")):
                raise elsewhere
            only(form, fields)
        except CrossSiteRequest:
            raise elsewhere from None
        except TimeoutError:
            raise Problem(408, "too_slow", self._texts("doors.too_slow")) from None
        except ClientDisconnect:
            raise Problem(400, "cut_off", self._texts("doors.too_slow")) from None
        except UsageProblem as problem:
            status = 413 if isinstance(problem, FormTooLarge) else 400
            what = f"{problem.where}: {problem.what}"
            raise Problem(status, "bad_form", what, problem.allowed or "") from None
        return PostedForm(browser, form)

    # --- who it is ------------------------------------------------------------------------

    def browser(self, request: Request) -> Browser:
        """Theirs, or a new one. Problem."""
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
    """Answers of what is wrong, as the page reads it: in the house's words where it has some."""

    async def told(request: Request, problem: Exception) -> Response:
        assert isinstance(problem, Problem)
        content = msgspec.json.encode(refusal_of(problem, texts))
        return Response(content, problem.status, problem.headers, JSON)

    return told


def refusal_of(problem: Problem, texts: Texts) -> RefusalBody:
    body = problem.body
    what, allowed = body.what, body.allowed
    if texts.has(f"refused.{body.code}"):
        # It says what is to be done as well: what else there is was written for programs.
        what, allowed = texts(f"refused.{body.code}"), ""
    return RefusalBody(what, allowed, body.code, body.wait)
