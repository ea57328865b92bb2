"""Headers of requests and responses: host and origin checks, the browser's policy, the cookie.

Every response forbids foreign content, caching and framing. A server answers to its own host names
only, so that no foreign name can be pointed at it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, Protocol

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Middleware: checks the host name of each request and adds the headers to each response."""

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
