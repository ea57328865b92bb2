"""The control API as an ASGI application.

    app = application(ServedTable(table, desk, moment))

It is served over a unix socket and loopback HTTP, in the table's event loop.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from itertools import groupby
from operator import attrgetter
from typing import Final

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.api.contract.errors import (
    HEADERS,
    JSON,
    Problem,
    fault_handler,
    http_error_handler,
    problem_answer,
    problem_handler,
)
from controller.api.http.body import read_body
from controller.api.http.connections import Rank, SessionRank, no_session
from controller.api.http.routes import PREFIX, ROUTES, ApiRoute, RouteRequest
from controller.api.http.sse import EventStream, TableStreams
from controller.api.service import ScreenSession, ServedTable, TableApi, encode

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_HOST: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")


class AccessGuard:
    """Middleware: rejects foreign requests, and adds the headers of every response.

    A foreign page in a browser on this machine could send requests to a loopback port: under a name
    that resolves to the loopback, so the Host is checked, or directly, so the Origin is. No
    response allows a foreign origin."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS:
                    headers.setdefault(name, value)
            await send(message)

        problem = access_problem(Request(scope), over_tcp=_over_tcp(scope))
        app = self._app if problem is None else problem_answer(problem)
        await app(scope, receive, with_headers)


def _over_tcp(scope: Scope) -> bool:
    """The server address of a unix socket has no port."""
    server = scope.get("server")
    return server is None or server[1] is not None


def access_problem(request: Request, *, over_tcp: bool) -> Problem | None:
    """Returns why the request is rejected, if it is."""
    hosts = request.headers.getlist("host")
    host = hosts[0].lower() if len(hosts) == 1 else ""
    if over_tcp and _HOST.fullmatch(host) is None:
        what = "this port is for programs on this machine"
        return Problem(403, "no_host", what, f"a Host of {', '.join(LOOPBACK)}")
    origins = request.headers.getlist("origin")
    if any(origin.lower() != f"http://{host}" for origin in origins):
        what = "pages from elsewhere have no business here"
        return Problem(403, "other_origin", what, "requests from the same origin, or from none")
    if request.scope["query_string"]:
        return Problem(400, "no_query", "nothing is asked for by a query", "a path alone")
    return None


_BEARER: Final = "bearer "


def application(served: ServedTable, clock: Callable[[], float] = time.monotonic) -> Starlette:
    """The application for one table. `clock`: monotonic seconds, for idle timeouts."""
    api = TableApi(served, clock)
    streams = TableStreams(api)
    app = Starlette(
        routes=_routes(api, streams),
        middleware=[Middleware(AccessGuard)],
        exception_handlers={
            Problem: problem_handler,
            HTTPException: http_error_handler,
            Exception: fault_handler,
        },
    )
    app.router.redirect_slashes = False
    app.state.api = api
    app.state.streams = streams
    return app


def _routes(api: TableApi, streams: TableStreams) -> list[Route]:
    """One route for each path, so that the answer to a wrong method names the allowed ones."""
    by_path = attrgetter("path")
    return [
        _route(api, streams, path, found)
        for path, found in groupby(sorted(ROUTES, key=by_path), by_path)
    ]


def _route(api: TableApi, streams: TableStreams, path: str, found: Iterable[ApiRoute]) -> Route:
    by_method: dict[str, ApiRoute] = {one.method: one for one in found}

    async def endpoint(request: Request) -> Response | EventStream:
        route = by_method[request.method]
        screen = api.screens.find(_token(request)) if route.token else None
        if api.served.stopping.is_set() and route.method != "GET":
            raise Problem(503, "closing", "the table is closing")
        body = await read_body(request) if route.takes is not None else {}
        decoded = RouteRequest(api, streams, screen, body, request.path_params, _document)
        if route.method == "GET":
            result = await route.does(decoded)
        else:
            result = await api.tasks.run(route.does(decoded))
        if isinstance(result, EventStream):
            return result
        content = result if isinstance(result, bytes) else encode(result)
        return Response(content, route.status, media_type=JSON)

    made = Route(PREFIX + path, endpoint, methods=list(by_method))
    made.methods = set(by_method)  # without HEAD, which Starlette adds
    return made


def _document() -> bytes:
    from controller.api.http.openapi import document_bytes  # also run as a program

    return document_bytes(ROUTES)


def find_session(api: TableApi) -> Callable[[Scope], Rank]:
    """Returns the function that finds the session of a request by its token."""

    def find(scope: Scope) -> Rank:
        token = _token(Request(scope))
        screen = api.screens.peek(token) if token else None
        return no_session if screen is None else partial(screen_rank, api, screen)

    return find


def screen_rank(api: TableApi, screen: ScreenSession) -> SessionRank:
    """Returns the rank of the connections of a screen now."""
    signed_in = screen.anyone_signed_in(api.served.desk)
    return SessionRank.SIGNED_IN if signed_in else SessionRank.BROWSER


def _token(request: Request) -> str:
    """Returns the bearer token; empty without one."""
    sent = request.headers.get("authorization", "")
    return sent[len(_BEARER) :].strip() if sent.lower().startswith(_BEARER) else ""
