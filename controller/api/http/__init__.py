"""The control API over HTTP."""

from __future__ import annotations

from controller.api.http.app import application
from controller.api.http.body import BODY_TIMEOUT, read_as, read_object
from controller.api.http.routes import TableApi
from controller.api.http.sse import HEARTBEAT, POLL_INTERVAL, EventStream, wait_for

__all__ = [
    "BODY_TIMEOUT",
    "HEARTBEAT",
    "POLL_INTERVAL",
    "EventStream",
    "TableApi",
    "application",
    "read_as",
    "read_object",
    "wait_for",
]
