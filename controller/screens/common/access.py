"""From a request to a page: host, origin, session, role, fields, then the page in a thread.

A page is a function from a visit to a response. UsageProblem, RecordProblem and OSError that it
raises become an error page.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import parse_qsl

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
from controller.errors import UsageProblem, printable
from controller.screens.common.sessions import PageSession, Role, SessionStore, is_secret_of
from controller.screens.common.templates import Pages, StaticFiles

POLICY: Final = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
HEADERS: Final = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_STRICT: Final = "max-age=31536000"
_NOT_KEPT: Final = "no-store"


class HeaderGuard:
    """Middleware: checks the host name of each request and adds the headers to each response.

    Every response forbids foreign content, caching and framing. A server answers to its own host
    names only, so that no foreign name can be pointed at it."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, secure: bool = False) -> None:
        """`hosts`: the accepted host names with their ports; empty: any."""
        self._app = app
        self._hosts = frozenset(one.lower() for one in hosts)
        self._secure = secure

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                found = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    found[name] = value
                found.setdefault("Cache-Control", _NOT_KEPT)
                if self._secure:
                    found["Strict-Transport-Security"] = _STRICT
            await send(message)

        host = Headers(scope=scope).get("host", "").lower()
        if self._hosts and host not in self._hosts:
            wrong = PlainTextResponse("This host has another name.\n", status_code=421)
            await wrong(scope, receive, with_headers)
            return
        await self._app(scope, receive, with_headers)


class AccessDenied(Exception):
    """A request that is not answered. `text`: the name of its message."""

    status = 403
    text = "turned.from_elsewhere"


class CrossSiteRequest(AccessDenied):
    """A form that was not sent from a page of ours."""


def check_origin(request: Request) -> None:
    """Check the headers in which browsers name the page that sends a form.

    Raises CrossSiteRequest."""
    said = request.headers.get("origin")
    here = f"{request.url.scheme}://{request.headers.get('host', '')}"
    if said is not None and said != here:
        raise CrossSiteRequest
    if request.headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise CrossSiteRequest


class HasSessionId(Protocol):
    id: str


@dataclass(frozen=True)
class Cookie:
    """A session cookie that no script can read and no other site can send."""

    name: str
    secure: bool = False
    path: str = "/"

    def put(self, response: Response, session: HasSessionId, seconds: float) -> None:
        response.set_cookie(
            self.name,
            session.id,
            max_age=int(seconds),
            httponly=True,
            samesite="strict",
            secure=self.secure,
            path=self.path,
        )

    def drop(self, response: Response) -> None:
        response.delete_cookie(
            self.name, path=self.path, httponly=True, samesite="strict", secure=self.secure
        )


MAX_BYTES: Final = 16 * 1024
MAX_FIELDS: Final = 40
MAX_VALUE: Final = 500
_SHOWN: Final = 60
_FORM: Final = "application/x-www-form-urlencoded"


class FormTooLarge(UsageProblem):
    """A query or form exceeds a limit."""


def fields_of(query: str) -> dict[str, str]:
    """Parse a query; empty fields are left out. Raises UsageProblem."""
    if len(query) > MAX_BYTES:
        raise FormTooLarge("address", "is too long", f"up to {MAX_BYTES} characters")
    return _read(query)


async def form_of(request: Request) -> dict[str, str]:
    """Parse the form of a request. Raises UsageProblem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise UsageProblem("form", "is none", _FORM)
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BYTES:
            raise FormTooLarge("form", "is too long", f"up to {MAX_BYTES} bytes")
    try:
        return _read(data.decode("ascii"))
    except UnicodeDecodeError:
        raise UsageProblem("form", "is not written as a form is", _FORM) from None


def only(fields: Mapping[str, str], names: Collection[str]) -> None:
    """Raises UsageProblem if there is a field that is not among `names`."""
    for name in fields:
        if name not in names:
            raise UsageProblem(
                "address", f"there is no {shown(name)}", ", ".join(names) or "nothing"
            )


def shown(text: str) -> str:
    """Returns a value as an error text quotes it."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f'"{printable(short)}"'


def _read(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(text, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise UsageProblem("address", "has letters that are not UTF-8", "UTF-8") from None
    except ValueError:
        raise FormTooLarge("address", "has too many fields", f"up to {MAX_FIELDS}") from None
    return dict(_checked(pairs))


def _checked(pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    seen = set()
    for name, value in pairs:
        if name in seen:
            raise UsageProblem(shown(name), "is there twice", "once")
        seen.add(name)
        if len(name) > _SHOWN or len(value) > MAX_VALUE:
            raise FormTooLarge(shown(name), "is too long", f"up to {MAX_VALUE} characters")
        if not value.isprintable():
            raise UsageProblem(shown(name), "has letters that cannot be shown", "plain text")
        if value.strip():
            yield name, value.strip()


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
    """Returns the page for an exception: what is wrong, and what to do."""
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
