"""The control API as an ASGI application.

    app = application(ServedTable(table, desk, moment))

It is served over a unix socket and loopback HTTP, in the table's event loop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from itertools import groupby
from operator import attrgetter
from typing import Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from controller.api.contract.errors import (
    JSON,
    Problem,
    fault_handler,
    http_error_handler,
    problem_handler,
)
from controller.api.http.access import AccessGuard
from controller.api.http.body import read_body
from controller.api.http.routes import PREFIX, ROUTES, ApiRoute, RouteRequest
from controller.api.http.sse import EventStream, TableStreams
from controller.api.service import ServedTable, TableApi, encode

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


def _token(request: Request) -> str:
    """Return the bearer token; empty without one."""
    sent = request.headers.get("authorization", "")
    return sent[len(_BEARER) :].strip() if sent.lower().startswith(_BEARER) else ""
