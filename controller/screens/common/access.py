"""From a request to a page: session, role, fields, then the page function in a thread.

A page is a function from a visit to a response. UsageProblem, RecordProblem and OSError that it
raises become an error page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from controller.audit.errors import (
    CannotProve,
    CannotWrite,
    IndexBusy,
    IndexFileProblem,
    InUse,
    NoRecord,
    RecordProblem,
)
from controller.audit.read.lookup import NoMatch
from controller.errors import UsageProblem
from controller.screens.common.forms import FormTooLarge, fields_of, form_of, only
from controller.screens.common.headers import AccessDenied, Cookie, CrossSiteRequest, check_origin
from controller.screens.common.sessions import PageSession, Role, SessionStore, is_secret_of
from controller.screens.common.static_files import StaticFiles
from controller.screens.common.templates import Pages

Method: TypeAlias = Literal["GET", "POST"]
H = TypeVar("H")
SECRET: Final = "secret"
"""The form field with the session's secret."""
MESSAGE: Final = "common/message.html"


class PageNotFound(UsageProblem):
    """The page does not exist, or no longer."""


@dataclass(frozen=True)
class Visit(Generic[H]):
    """A validated request for a page."""

    house: H
    session: PageSession
    path: Mapping[str, Any]
    query: Mapping[str, str]
    form: Mapping[str, str] = field(default_factory=dict)
    notices: list[str] = field(default_factory=list)
    """Lines that the page shows at its top."""

    @property
    def who(self) -> str:
        return self.session.person.name


PageView: TypeAlias = Callable[[Visit[H]], Response]
StreamView: TypeAlias = Callable[[Visit[H], Request], Awaitable[ASGIApp]]


@dataclass(frozen=True)
class PageRoute(Generic[H]):
    path: str
    view: PageView[H]
    roles: Collection[Role]
    fields: Collection[str] = ()
    """The fields that its query or form may have."""
    method: Method = "GET"


@dataclass(frozen=True)
class StreamRoute(Generic[H]):
    """A stream of events for a page."""

    path: str
    stream: StreamView[H]
    roles: Collection[Role]
    fields: Collection[str] = ()


class PageRouter(Generic[H]):
    """Makes routes of pages. `cookie`: the session's. `way_in`: the login page, if there is one."""

    def __init__(
        self,
        house: H,
        sessions: SessionStore,
        pages: Pages,
        cookie: Cookie,
        way_in: str | None = None,
    ) -> None:
        self._house = house
        self._sessions = sessions
        self._pages = pages
        self._cookie = cookie
        self._way_in = way_in

    def route(self, page: PageRoute[H]) -> Route:
        async def endpoint(request: Request) -> Response:
            session = self.session(request)
            notices: Sequence[str] = ()
            try:
                visit = await self._visit(request, session, page)
                notices = visit.notices
                return await run_in_threadpool(page.view, visit)
            except PAGE_ERRORS as problem:
                return self._told(problem, session, notices)

        return Route(page.path, endpoint, methods=[page.method])

    def flow(self, flow: StreamRoute[H]) -> Route:
        async def endpoint(request: Request) -> ASGIApp:
            session = self.session(request)
            try:
                return await flow.stream(await self._visit(request, session, flow), request)
            except PAGE_ERRORS as problem:
                return self._told(problem, session)

        return Route(flow.path, endpoint, methods=["GET"])

    def _told(
        self, problem: Exception, session: PageSession | None, notices: Sequence[str] = ()
    ) -> Response:
        if isinstance(problem, NotSignedIn) and self._way_in is not None:
            return see_other(self._way_in)
        return error_page(self._pages, problem, session, notices)

    def session(self, request: Request) -> PageSession | None:
        return self._sessions.find(request.cookies.get(self._cookie.name))

    async def _visit(
        self, request: Request, session: PageSession | None, page: PageRoute[H] | StreamRoute[H]
    ) -> Visit[H]:
        if session is None:
            raise NotSignedIn
        if session.person.role not in page.roles:
            raise RoleDenied
        query = fields_of(request.url.query)
        if request.method != "POST":
            only(query, page.fields)
            return Visit(self._house, session, request.path_params, query)
        only(query, ())
        check_origin(request)
        form = await form_of(request)
        if not is_secret_of(session, form.pop(SECRET, "")):
            raise CrossSiteRequest
        only(form, page.fields)
        return Visit(self._house, session, request.path_params, {}, form)


class NotSignedIn(AccessDenied):
    status = 401
    text = "turned.nobody"


class RoleDenied(AccessDenied):
    text = "turned.not_theirs"


class TooManyAttempts(AccessDenied):
    status = 429
    text = "turned.too_often"


PAGE_ERRORS: Final = (UsageProblem, RecordProblem, AccessDenied, OSError)
"""Exceptions that become an error page."""
_STATUS: Final[tuple[tuple[type[Exception], int], ...]] = (
    (FormTooLarge, 413),
    (PageNotFound, 404),
    (UsageProblem, 400),
    (NoMatch, 404),
    (CannotProve, 404),
    (NoRecord, 404),
    (CannotWrite, 503),
    (InUse, 503),
    (IndexBusy, 503),
    (IndexFileProblem, 503),
    (RecordProblem, 409),
    (OSError, 503),
)


def error_page(
    pages: Pages, problem: Exception, session: PageSession | None, notices: Sequence[str] = ()
) -> Response:
    """Return the page for an exception: what is wrong, and what to do."""
    if isinstance(problem, AccessDenied):
        return message_page(pages, problem.status, pages.texts(problem.text), "", session)
    status = next(status for kind, status in _STATUS if isinstance(problem, kind))
    match problem:
        case UsageProblem():
            what, todo = f"{problem.where}: {problem.what}", f"allowed: {problem.allowed}"
        case RecordProblem():
            what, todo = f"{problem.where}: {problem.what}", problem.todo
        case _:
            what, todo = pages.texts("problem.disk", why=str(problem)), ""
    return message_page(pages, status, what, todo, session, notices)


def message_page(
    pages: Pages,
    status: int,
    what: str,
    todo: str,
    session: PageSession | None = None,
    notices: Sequence[str] = (),
) -> Response:
    return pages.page(
        MESSAGE, session, status=status, code=status, what=what, todo=todo, notices=notices
    )


def see_other(path: str) -> Response:
    """Redirect after a form: the browser requests this page."""
    return RedirectResponse(path, status_code=303)


def static_route(static: StaticFiles, pages: Pages) -> Route:
    """Static files need no session: they contain nothing of a record."""

    async def endpoint(request: Request) -> Response:
        found = static.answer(request.path_params["hashed"], request.path_params["name"])
        if found is None:
            return message_page(pages, 404, pages.texts("problem.no_page"), "")
        return found

    return Route("/static/{hashed}/{name}", endpoint, methods=["GET"])
