"""The control socket of a simulated device."""

from __future__ import annotations

from hil.control.socket import ControlClient, ControlLost, ControlServer, RequestRefused
from hil.control.verbs import BY_CLASS, InvalidRequest, Verbs, parse_request

__all__ = [
    "BY_CLASS",
    "ControlClient",
    "ControlLost",
    "ControlServer",
    "InvalidRequest",
    "RequestRefused",
    "Verbs",
    "parse_request",
]
