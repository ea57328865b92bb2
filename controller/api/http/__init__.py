"""The control API over HTTP."""

from __future__ import annotations

from controller.api.http.app import application
from controller.api.http.body import BODY_TIMEOUT, read_as, read_object
from controller.api.http.sse import POLL_INTERVAL, EventStream, Listeners, latest, wait_for

__all__ = [
    "BODY_TIMEOUT",
    "POLL_INTERVAL",
    "EventStream",
    "Listeners",
    "application",
    "latest",
    "read_as",
    "read_object",
    "wait_for",
]
