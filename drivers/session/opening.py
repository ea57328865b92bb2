"""One opening of a device's port, and how long the device may take for a session in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from drivers.ports import PortLost
from firmware_protocol.messages import HANDSHAKE_WAIT_MS

ANSWER_TIMEOUT: Final = 10.0
"""Seconds for HELLO, and then for RESUME; after them the port is opened again."""
HANDSHAKE_TIMEOUT: Final = 2 * HANDSHAKE_WAIT_MS / 1000 + 1
"""Seconds for a session to start once HELLO was answered: one longer than HS2 and the first DATA
may take."""


class PortOpening:
    """The port listener of one opening; calls of an earlier opening are ignored."""

    def __init__(
        self,
        on_data: Callable[[PortOpening, bytes], None],
        on_lost: Callable[[PortOpening, str], None],
    ) -> None:
        self.why: str | None = None
        """Why the port has ended."""
        self.timeout = ANSWER_TIMEOUT
        """Seconds for a session to start."""
        self.received = partial(on_data, self)
        self._on_lost = on_lost

    def lost(self, why: PortLost) -> None:
        self.why = why.reason
        self._on_lost(self, why.reason)

    def restarted(self) -> None:
        """The session has ended, and the next one starts at this port: HELLO is to be answered."""
        self.timeout = ANSWER_TIMEOUT

    def greeted(self) -> bool:
        """HELLO was answered: the handshake has a longer timeout. Returns whether this is new, so
        that handshakes that fail do not keep the port open."""
        new = self.timeout == ANSWER_TIMEOUT
        self.timeout = HANDSHAKE_TIMEOUT
        return new
