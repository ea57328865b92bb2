"""Access to the API: programs on this machine, and pages that it served itself.

A foreign page in a browser on this machine could send requests to a loopback port: under a name
that resolves to the loopback, so the Host is checked, or directly, so the Origin is. No response
allows a foreign origin.
"""

from __future__ import annotations

import re
from typing import Final

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from controller.api.contract.errors import HEADERS, Problem, problem_answer

LOOPBACK: Final = ("127.0.0.1", "localhost", "[::1]")
_HOST: Final = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(?::[0-9]{1,5})?")


class AccessGuard:
    """Middleware: rejects foreign requests, and adds the headers of every response."""

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
    """Return why the request is rejected, if it is."""
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
