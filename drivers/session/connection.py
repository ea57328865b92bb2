"""Connection to a device: its link and the port that it uses today."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

from drivers.devices import PendingCommands
from drivers.ports import Port
from firmware_protocol.host import CommandTimedOut, HostLink, LinkEvent, ReplyReceived
from firmware_protocol.messages import Command, Reply


class Connection:
    """Bytes and time in, link events out; the caller writes what the link has to send.

    A link outlives its port: it is replaced only by reset_link()."""

    def __init__(self) -> None:
        self.link: HostLink | None = None
        self.port: Port | None = None
        self.closed = asyncio.Event()
        """Set when the port is to be closed."""
        self.last_active_us = 0
        """When something was last done for the device, by the host's monotonic clock."""
        self._calls = PendingCommands()
        self._past = (0, 0)
        """Repeats and gaps of the links before this one."""

    @property
    def repeats(self) -> int:
        """Records that arrived again although they were stored."""
        return self._past[0] + (0 if self.link is None else self.link.repeats)

    @property
    def gaps(self) -> int:
        """Records that arrived before one that was missing."""
        return self._past[1] + (0 if self.link is None else self.link.gaps)

    # --- bytes and time in, events out ----------------------------------------------------

    def open(self, link: HostLink, port: Port, now: int) -> list[LinkEvent]:
        """The port is open: from now on the link uses it."""
        self.closed.clear()
        self.link, self.port = link, port
        return link.open(now)

    def receive(self, data: bytes, now: int) -> list[LinkEvent]:
        """Bytes from the port. Without a port or a link they are ignored."""
        if self.link is None or self.port is None:
            return []
        return self.link.receive(data, now)

    def wake(self, now: int) -> list[LinkEvent]:
        """Do what is due."""
        return [] if self.link is None else self.link.wake(now)

    def due(self) -> int | None:
        """When wake() is wanted next; None: not before something else happens."""
        return None if self.link is None else self.link.due()

    def disconnect(self, now: int) -> list[LinkEvent]:
        """The port is not used any more. Idempotent."""
        if self.port is None:
            return []
        self.port = None
        self.closed.set()
        return [] if self.link is None else self.link.lost(now)

    def reset_link(self, now: int) -> list[LinkEvent]:
        """The end of this link: the next port gets a new one."""
        self._past = (self.repeats, self.gaps)
        link, self.link = self.link, None
        return [] if link is None else link.close(now)

    # --- commands -------------------------------------------------------------------------

    @contextmanager
    def call(self, link: HostLink, command: Command, now: int) -> Iterator[asyncio.Future[Reply]]:
        """Submit a command to the link; the future has its reply, CommandRefusedError or
        CommandUnansweredError. Raises LinkBusy, and ValueError or ProtocolError for no command."""
        with self._calls.waiting(link.call(command, now), command) as reply:
            yield reply

    def answered(self, event: LinkEvent) -> None:
        """Pass a reply, or its absence, to the caller of the command."""
        if isinstance(event, ReplyReceived):
            self._calls.replied(event.command_id, event.reply)
        elif isinstance(event, CommandTimedOut):
            self._calls.unanswered(event.command_id, sent=event.sent)

    def abandon(self) -> None:
        """No caller waits any longer: nothing is known of the commands that are left."""
        self._calls.abandon()
