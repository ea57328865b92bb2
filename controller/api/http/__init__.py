"""The control API over HTTP."""

from __future__ import annotations

from controller.api.http.app import application, find_session, screen_rank
from controller.api.http.body import BODY_TIMEOUT, read_as, read_object
from controller.api.http.connections import (
    CloseReason,
    ConnectionLimits,
    ConnectionTable,
    Rank,
    SessionRank,
    no_session,
    subscriber_address,
)
from controller.api.http.listener import BACKLOG
from controller.api.http.server import SHUTDOWN_TIMEOUT, FindSession, Server
from controller.api.http.sse import POLL_INTERVAL, EventStream, Listeners, latest, wait_for

__all__ = [
    "BACKLOG",
    "BODY_TIMEOUT",
    "POLL_INTERVAL",
    "SHUTDOWN_TIMEOUT",
    "CloseReason",
    "ConnectionLimits",
    "ConnectionTable",
    "EventStream",
    "FindSession",
    "Listeners",
    "Rank",
    "Server",
    "SessionRank",
    "application",
    "find_session",
    "latest",
    "no_session",
    "read_as",
    "read_object",
    "screen_rank",
    "subscriber_address",
    "wait_for",
]
