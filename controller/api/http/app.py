"""The control API as an ASGI application.

    app = application(Serving(table, desk, moment))

It is served over a unix socket and loopback HTTP, in the loop in which the table runs.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable
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
from controller.api.http.routes import PREFIX, ROUTES, ApiRoute, RouteRequest, RouteResult, TableApi
from controller.api.http.sse import TableStream
from controller.api.service import ServedTable, encode

_BEARER: Final = "bearer "

Answers = Callable[[Request], Awaitable[Response | TableStream]]


def application(served: ServedTable, clock: Callable[[], float] = time.monotonic) -> Starlette:
    """For one table. `clock`: seconds that never go back, by which screens are idle."""
    api = TableApi(served, clock)
    app = Starlette(
        routes=_routes(api),
        middleware=[Middleware(AccessGuard)],
        exception_handlers={
            Problem: problem_handler,
            HTTPException: http_error_handler,
            Exception: fault_handler,
        },
    )
    app.router.redirect_slashes = False
    app.state.api = api
    return app


def _routes(api: TableApi) -> list[Route]:
    """One for each path, so that a method that it does not take is told the others."""
    by_path = attrgetter("path")
    return [
        _route(api, path, calls) for path, calls in groupby(sorted(ROUTES, key=by_path), by_path)
    ]


def _route(api: TableApi, path: str, calls: Iterable[ApiRoute]) -> Route:
    by_method: dict[str, ApiRoute] = {call.method: call for call in calls}

    async def answers(request: Request) -> Response | TableStream:
        return await _answer(api, by_method[request.method], request)

    route = Route(PREFIX + path, answers, methods=list(by_method))
    route.methods = set(by_method)  # not HEAD too, which Starlette adds
    return route


async def _answer(api: TableApi, call: ApiRoute, request: Request) -> Response | TableStream:
    screen = api.screens.find(_token(request)) if call.token else None
    if api.served.stopping.is_set() and call.method != "GET":
        raise Problem(503, "closing", "the table is closing")
    body = await read_body(request) if call.takes is not None else {}
    asked = RouteRequest(api, screen, body, request.path_params)
    if call.method == "GET":
        given = await call.does(asked)
    else:
        given = await api.tasks.run(_does(call, asked))
    if isinstance(given, TableStream):
        return given
    content = given if isinstance(given, bytes) else encode(given)
    return Response(content, call.status, media_type=JSON)


async def _does(call: ApiRoute, asked: RouteRequest) -> RouteResult:
    return await call.does(asked)


def _token(request: Request) -> str:
    """Empty without one."""
    sent = request.headers.get("authorization", "")
    return sent[len(_BEARER) :].strip() if sent.lower().startswith(_BEARER) else ""
