"""The composition root: a table that is served, with everybody who speaks to it."""

from __future__ import annotations

from controller.daemon.http_server import Server
from controller.daemon.sockets import HOST, LONGEST, alive, pages_place

__all__ = [
    "HOST",
    "LONGEST",
    "Server",
    "alive",
    "pages_place",
]
