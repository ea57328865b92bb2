"""What hears a port for a wire: one opening of it, and nothing after that was left."""

from __future__ import annotations

from drivers.ports.port import PortLost
from drivers.session.connection import Wire


class WireEars:
    """Hears one opening of a port; deaf once it is left."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self.deaf = False
        self.why: str | None = None
        """Why the port has ended."""

    def heard(self, data: bytes) -> None:
        if not self.deaf:
            self._wire.heard(data)

    def lost(self, why: PortLost) -> None:
        self.why = why.reason
        if not self.deaf:
            self._wire.lost(why.reason)
