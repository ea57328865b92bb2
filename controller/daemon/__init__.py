"""The composition root: a served table with its API, pages, metrics and watchdog."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.lazy_door import lazy_door

if TYPE_CHECKING:
    from controller.daemon.sockets import HOST, MAX_SOCKET_PATH, is_listening, pages_place
else:
    __getattr__ = lazy_door(
        __name__,
        {"sockets": "HOST MAX_SOCKET_PATH is_listening pages_place"},
    )

__all__ = [
    "HOST",
    "MAX_SOCKET_PATH",
    "is_listening",
    "pages_place",
]
