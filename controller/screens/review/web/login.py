"""Signing in to a review: by a link that is valid once, or as surveillance by badge and PIN."""

from __future__ import annotations

from typing import Final
from weakref import WeakKeyDictionary

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from controller.api.contract.errors import Problem
from controller.api.contract.messages import SignedIn, SignIn
from controller.api.http import read_as
from controller.api.service import TableApi, sign_in, sign_out
from controller.screens.common.access import (
    PAGE_ERRORS,
    AccessDenied,
    PageRoute,
    TooManyAttempts,
    Visit,
    error_page,
    fields_of,
    message_page,
    only,
)
from controller.screens.common.sessions import (
    MAX_AGE,
    AttemptLimit,
    LinkSessions,
    LoginLinks,
    PageSession,
    PageUser,
)
from controller.screens.common.templates import Pages
from controller.screens.console.web import (
    ATTEMPT_INTERVAL,
    Browser,
    Browsers,
    ConsoleApp,
    PostedForm,
)
from controller.screens.review.source import LoopBridge, ReviewContext
from controller.screens.review.web.app import READERS, ReviewApp

ROLE: Final = "surveillance"
_ENTER: Final = "/enter"


class BadgeSessions:
    """The sessions of a running table's review: those of browsers at the console, valid while
    surveillance is signed in at the browser's screen."""

    def __init__(self, api: TableApi, browsers: Browsers, loop: LoopBridge) -> None:
        self._api = api
        self._browsers = browsers
        self._loop = loop
        self._sessions: WeakKeyDictionary[Browser, PageSession] = WeakKeyDictionary()

    def find(self, name: str | None) -> PageSession | None:
        browser = self._browsers.find(name)
        return None if browser is None else self._of(browser)

    def alive(self, session: PageSession) -> bool:
        browser = self._browsers.find(session.id)  # a live stream counts as use
        return browser is not None and self._of(browser) is session

    def end(self, session: PageSession) -> None:
        browser = self._browsers.find(session.id)
        if browser is not None:
            self._loop.run(sign_out(self._api, browser.screen, (ROLE,)))

    def _of(self, browser: Browser) -> PageSession | None:
        person = browser.screen.signed_in(self._api.served.desk, ROLE)
        if person is None:
            self._sessions.pop(browser, None)
            return None
        found = self._sessions.get(browser)
        if found is None or found.person.name != person.name:
            who = PageUser(person.name)
            found = PageSession(browser.id, who, browser.secret, 0.0, 0.0, browser.appearance)
            self._sessions[browser] = found
        found.id = browser.id
        return found


class BadgeLogin:
    """The login method of a running table's review."""

    def __init__(
        self, api: TableApi, console: ConsoleApp, browsers: Browsers, loop: LoopBridge, base: str
    ) -> None:
        self.sessions = BadgeSessions(api, browsers, loop)
        self.page: str | None = base + _ENTER
        self._api = api
        self._console = console
        self._browsers = browsers

    def routes(self, review: ReviewApp) -> list[BaseRoute]:
        async def form(request: Request) -> Response:
            return self._form(review, request)

        async def enter(request: Request) -> Response:
            return await self._enter(review, request)

        def leave(visit: Visit[ReviewContext]) -> Response:
            self.sessions.end(visit.session)
            return review.house.to(_ENTER)

        return [
            Route(_ENTER, form, methods=["GET"]),
            Route(_ENTER, enter, methods=["POST"]),
            review.doors.route(PageRoute("/leave", leave, READERS, (), "POST")),
        ]

    def _form(
        self, review: ReviewApp, request: Request, problem: Problem | None = None
    ) -> Response:
        """The login form; `problem`: why the last attempt failed."""
        try:
            browser = self._console.browser(request)
        except Problem as full:
            what, todo = full.body.what, _todo(review.pages, full)
            return message_page(review.pages, full.status, what, todo)
        return self._console.remembered(form_page(review.pages, browser, problem), browser)

    async def _enter(self, review: ReviewApp, request: Request) -> Response:
        try:
            sent = await self._console.sent(request, ("badge", "pin"))
            done = await self._api.tasks.run(self._sign_in(sent))
        except Problem as problem:
            return self._form(review, request, problem)
        try:
            await run_in_threadpool(review.house.source.look, done.name, "review", "comes in")
        except PAGE_ERRORS as problem:
            return error_page(review.pages, problem, None)
        return self._console.remembered(review.house.to("/rounds"), sent.browser)

    async def _sign_in(self, sent: PostedForm) -> SignedIn:
        if not self._browsers.may_try(sent.browser):
            raise Problem(429, "too_often", "too many tries: wait", wait=round(ATTEMPT_INTERVAL))
        said = {"badge": sent.form.get("badge", ""), "pin": sent.form.get("pin", "")}
        wanted = read_as({**said, "role": ROLE}, SignIn)
        done = await sign_in(self._api, sent.browser.screen, wanted)
        self._browsers.renew(sent.browser)
        return done


def form_page(pages: Pages, browser: Browser, problem: Problem | None = None) -> Response:
    status, why, todo = 200, "", ""
    if problem is not None:
        status, why, todo = problem.status, problem.body.what, _todo(pages, problem)
    return pages.page("review/enter.html", status=status, browser=browser, why=why, todo=todo)


def _todo(pages: Pages, problem: Problem) -> str:
    wait = problem.body.wait
    return pages.texts("doors.again_in", seconds=wait) if wait else problem.body.allowed


LINK_ATTEMPTS: Final = 5
"""Attempts at once; then one every ATTEMPT_INTERVAL seconds."""
LINK_ATTEMPT_INTERVAL: Final = 10.0


class _OldLink(AccessDenied):
    status = 401
    text = "turned.old_link"


class LinkLogin:
    """The login method of `holecard review`, which prints a link."""

    page: str | None = None

    def __init__(self, sessions: LinkSessions, links: LoginLinks) -> None:
        self.sessions = sessions
        self._links = links
        self._tries = AttemptLimit(LINK_ATTEMPTS, LINK_ATTEMPT_INTERVAL)

    def routes(self, review: ReviewApp) -> list[BaseRoute]:
        async def enter(request: Request) -> Response:
            return await self._enter(review, request)

        def leave(visit: Visit[ReviewContext]) -> Response:
            self.sessions.end(visit.session)
            answer = message_page(review.pages, 200, review.pages.texts("turned.left"), "")
            review.cookie.drop(answer)
            return answer

        return [
            Route("/enter", enter, methods=["GET"]),
            review.doors.route(PageRoute("/leave", leave, READERS, (), "POST")),
        ]

    async def _enter(self, review: ReviewApp, request: Request) -> Response:
        """Exchange the token of a link for a session."""
        try:
            fields = fields_of(request.url.query)
            only(fields, ("word",))
            if not self._tries.one():
                raise TooManyAttempts
            person = self._links.take(fields.get("word", ""))
            if person is None:
                raise _OldLink
            await run_in_threadpool(review.house.source.look, person.name, "review", "comes in")
        except PAGE_ERRORS as problem:
            return error_page(review.pages, problem, None)
        session = self.sessions.begin(person)
        answer = review.house.to("/rounds")
        review.cookie.put(answer, session, MAX_AGE)
        return answer
