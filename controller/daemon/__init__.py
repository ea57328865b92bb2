"""The composition root: a table that is served, with everybody who speaks to it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.lazy_door import lazy_door

if TYPE_CHECKING:
    from controller.daemon.http_server import Server
    from controller.daemon.sockets import HOST, MAX_SOCKET_PATH, is_listening, pages_place
else:
    __getattr__ = lazy_door(
        __name__,
        {
            "http_server": "Server",
            "sockets": "HOST MAX_SOCKET_PATH is_listening pages_place",
        },
    )

__all__ = [
    "HOST",
    "MAX_SOCKET_PATH",
    "Server",
    "is_listening",
    "pages_place",
]
