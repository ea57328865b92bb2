"""The queue of commands of a host: one in progress, beside a SELFTEST.

Commands are sent in the order of the requests, so that the device never gets an id below one that
it has cached. Only INFO and REREAD, which change nothing, may overtake while the device refuses
everything else. The timeout of a command starts when it becomes the first of the queue, sent or
not: a command that cannot be sent in time fails, and is not executed late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from firmware_protocol.messages import (
    COMMAND_REPEAT_MS,
    Command,
    Info,
    Refused,
    Reply,
    Reread,
    Selftest,
)
from firmware_protocol.tablelink import CommandCall, encode_plaintext

MAX_COMMANDS: Final = 32
"""Limit of commands without a reply, queued ones included."""
READS: Final = (Info, Reread)
_REPEAT: Final = COMMAND_REPEAT_MS * 1000


class LinkBusy(Exception):
    """The queue of commands is full, or a second SELFTEST is requested."""


class PendingCommand:
    """A command with its id, its timeout and its retries."""

    def __init__(self, command_id: int, host_boot: int, command: Command) -> None:
        self.id = command_id
        self.command = command
        self.plaintext = encode_plaintext(CommandCall(command_id, host_boot, command))
        self.until: int | None = None
        """When it times out; None while it is queued."""
        self.sent_in: int | None = None
        """Id of the session in which it was sent last."""
        self.refused = False
        self._repeat: int | None = 0

    def start(self, now: int) -> None:
        """Start the timeout."""
        self.until = now + self.command.DEADLINE_MS * 1000

    def sent(self, session: int, now: int) -> None:
        self.sent_in = session
        self._repeat = now + _REPEAT if self.command.IDEMPOTENT else None

    def refuse(self) -> None:
        """Stop the retries, and wait for the timeout."""
        self._repeat = None
        self.refused = True

    def send_at(self, session: int) -> int | None:
        """When to send it in this session; 0 for now, None for never again."""
        if self._repeat is None or self.sent_in == session:
            return self._repeat
        return 0

    def accepts(self, reply: Reply) -> bool:
        """Whether this is a reply to this command."""
        if isinstance(reply, Refused):
            return reply.command == self.command.ID
        return type(reply) is self.command.REPLY


class CommandQueue:
    """The queued commands of one link, and those in progress."""

    def __init__(self, host_boot: int) -> None:
        self.host_boot = host_boot
        self._last_id = 0
        self.waiting: list[PendingCommand] = []
        """The commands that are not started yet."""
        self.active: tuple[PendingCommand, ...] = ()
        """The commands in progress: a SELFTEST, then another one."""

    def __len__(self) -> int:
        return len(self.waiting) + len(self.active)

    def make(self, command: Command) -> PendingCommand:
        """Encode a command with the next id. Raises ProtocolError if a field cannot be encoded."""
        call = PendingCommand(self._last_id + 1, self.host_boot, command)
        self._last_id += 1
        return call

    def add(self, command: Command) -> PendingCommand:
        """Queue a command. Raises LinkBusy if the queue is full."""
        if len(self) >= MAX_COMMANDS:
            raise LinkBusy(f"{len(self)} commands are waiting for a reply")
        if isinstance(command, Selftest) and any(
            isinstance(call.command, Selftest) for call in (*self.active, *self.waiting)
        ):
            raise LinkBusy("a SELFTEST is in progress")
        call = self.make(command)
        self.waiting.append(call)
        return call

    def advance(self, may_go: Callable[[PendingCommand], bool], now: int) -> None:
        """Start the commands that are next in the queue."""
        while self.waiting:
            at = 0
            if not may_go(self.waiting[0]):
                reads = (i for i, call in enumerate(self.waiting) if _reads(call) and may_go(call))
                at = next(reads, 0)
            call = self.waiting[at]
            if isinstance(call.command, Selftest):
                self.active = (call, *self.active)  # add() rejects a second one
            elif self._ordinary is None:
                self.active = (*self.active, call)
            else:
                return
            del self.waiting[at]
            call.start(now)

    @property
    def _ordinary(self) -> PendingCommand | None:
        """The command in progress that is no SELFTEST."""
        last = self.active[-1] if self.active else None
        return None if last is None or isinstance(last.command, Selftest) else last

    def in_flight(self, session: int) -> bool:
        """Whether a command other than SELFTEST waits for its reply in this session."""
        return self._ordinary is not None and self._ordinary.sent_in == session

    def find(self, command_id: int) -> PendingCommand | None:
        return next((call for call in self.active if call.id == command_id), None)

    def done(self, call: PendingCommand) -> None:
        """Remove a command that was answered or has failed."""
        self.active = tuple(one for one in self.active if one is not call)

    def overdue(self, now: int) -> list[PendingCommand]:
        """Remove and return the commands that have timed out."""
        return self._drop(lambda call: call.until is not None and now >= call.until)

    def drop_unrepeatable(self) -> list[PendingCommand]:
        """Remove and return the sent commands that must not be sent in another session."""
        return self._drop(lambda call: call.sent_in is not None and not call.command.IDEMPOTENT)

    def clear(self) -> list[PendingCommand]:
        """Remove and return all commands."""
        rest = [*self._drop(lambda _: True), *self.waiting]
        self.waiting.clear()
        return rest

    def due(self) -> Iterator[int]:
        return (call.until for call in self.active if call.until is not None)

    def _drop(self, which: Callable[[PendingCommand], bool]) -> list[PendingCommand]:
        dropped = [call for call in self.active if which(call)]
        for call in dropped:
            self.done(call)
        return dropped


def _reads(call: PendingCommand) -> bool:
    return isinstance(call.command, READS)
