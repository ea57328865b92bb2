"""The control API over HTTP."""

from __future__ import annotations

from controller.api.http.app import application
from controller.api.http.body import PATIENCE, read_as, read_object
from controller.api.http.routes import Api
from controller.api.http.sse import HEARTBEAT, LOOK, Line, heard

__all__ = [
    "HEARTBEAT",
    "LOOK",
    "PATIENCE",
    "Api",
    "Line",
    "application",
    "heard",
    "read_as",
    "read_object",
]
