"""What every answer says to a browser: nothing from elsewhere, nothing kept, nothing framed.

A page that another site has made a browser ask for, under a name that leads here, is turned away:
this host answers to its own names only.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
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
    """An app behind these headers, and behind its own names."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], *, secure: bool = False) -> None:
        """`hosts`: the names that it answers to, with their ports; none: whatever it is called."""
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
