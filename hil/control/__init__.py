"""The control socket of a simulated device: its verbs, server and client."""

from __future__ import annotations

from hil.control.cli import register_do
from hil.control.socket import ControlClient, ControlLost, ControlServer, RequestRefused
from hil.control.verbs import (
    BY_CLASS,
    InvalidRequest,
    Verbs,
    description,
    parse_request,
    request_fields,
)

__all__ = [
    "BY_CLASS",
    "ControlClient",
    "ControlLost",
    "ControlServer",
    "InvalidRequest",
    "RequestRefused",
    "Verbs",
    "description",
    "parse_request",
    "register_do",
    "request_fields",
]
