"""Commands from the host's side: one without a reply at a time, beside a SELFTEST.

They are sent in the order in which they were asked for, so that the device never sees an id below
one that it remembers; only INFO and REREAD, which change nothing, may overtake while the device
refuses all else. The time for a reply runs from the moment at which a command's turn comes, sent
or not: what could not be sent in time is given up, not carried out when nobody expects it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from firmware_protocol.messages.codec import Command, Reply
from firmware_protocol.messages.common import Info, Refused, Selftest
from firmware_protocol.messages.limits import COMMAND_REPEAT_MS
from firmware_protocol.messages.shoe import Reread
from firmware_protocol.tablelink.plaintext import CommandCall, encode

MAX_COMMANDS: Final = 32
"""Commands without a reply that a link takes, those that wait for their turn included."""
READS: Final = (Info, Reread)
_REPEAT: Final = COMMAND_REPEAT_MS * 1000


class LinkBusy(Exception):
    """More commands wait than a link takes, or a SELFTEST beside a SELFTEST."""


class PendingCommand:
    """A command with its id, and how far it has come."""

    def __init__(self, command_id: int, host_boot: int, command: Command) -> None:
        self.id = command_id
        self.command = command
        self.plaintext = encode(CommandCall(command_id, host_boot, command))
        self.until: int | None = None
        """When its reply is overdue; None before its turn."""
        self.sent_in: int | None = None
        """Id of the session in which it was sent last."""
        self.rests = False
        self._repeat: int | None = 0

    def begin(self, now: int) -> None:
        """Its turn has come."""
        self.until = now + self.command.DEADLINE_MS * 1000

    def sent(self, session: int, now: int) -> None:
        self.sent_in = session
        self._repeat = now + _REPEAT if self.command.IDEMPOTENT else None

    def rest(self) -> None:
        """It was refused: send it no more, and let its time run out."""
        self._repeat = None
        self.rests = True

    def send_at(self, session: int) -> int | None:
        """When it is to be sent in this session; 0 for at once, None for not again."""
        if self._repeat is None or self.sent_in == session:
            return self._repeat
        return 0

    def takes(self, reply: Reply) -> bool:
        """Whether this is a reply to this command."""
        if isinstance(reply, Refused):
            return reply.command == self.command.ID
        return type(reply) is self.command.REPLY


class CommandQueue:
    """The commands of one link."""

    def __init__(self, host_boot: int) -> None:
        self.host_boot = host_boot
        self._last_id = 0
        self._queue: list[PendingCommand] = []
        self._ordinary: PendingCommand | None = None
        self._selftest: PendingCommand | None = None

    def __len__(self) -> int:
        return len(self._queue) + sum(1 for _ in self.open())

    def make(self, command: Command) -> PendingCommand:
        """A command with the next id. ProtocolError if a field cannot be encoded."""
        call = PendingCommand(self._last_id + 1, self.host_boot, command)
        self._last_id += 1
        return call

    def ask(self, command: Command) -> PendingCommand:
        """Take a command. LinkBusy when there is no room."""
        if len(self) >= MAX_COMMANDS:
            raise LinkBusy(f"{len(self)} commands wait for a reply already")
        if isinstance(command, Selftest) and any(
            isinstance(call.command, Selftest) for call in (*self.open(), *self._queue)
        ):
            raise LinkBusy("a SELFTEST waits for its reply already")
        call = self.make(command)
        self._queue.append(call)
        return call

    def open(self) -> Iterator[PendingCommand]:
        """Those whose turn it is."""
        if self._selftest is not None:
            yield self._selftest
        if self._ordinary is not None:
            yield self._ordinary

    def turn(self, may_go: Callable[[PendingCommand], bool], now: int) -> None:
        """Let those begin whose turn has come."""
        while self._queue:
            at = 0
            if not may_go(self._queue[0]):
                reads = (i for i, call in enumerate(self._queue) if _reads(call) and may_go(call))
                at = next(reads, 0)
            call = self._queue[at]
            if isinstance(call.command, Selftest):
                self._selftest = call  # ask() lets no second one in
            elif self._ordinary is None:
                self._ordinary = call
            else:
                return
            del self._queue[at]
            call.begin(now)

    def in_flight(self, session: int) -> bool:
        """Whether one beside a SELFTEST waits for its reply in this session."""
        return self._ordinary is not None and self._ordinary.sent_in == session

    def find(self, command_id: int) -> PendingCommand | None:
        return next((call for call in self.open() if call.id == command_id), None)

    def done(self, call: PendingCommand) -> None:
        """It was answered, or given up."""
        if call is self._ordinary:
            self._ordinary = None
        if call is self._selftest:
            self._selftest = None

    def overdue(self, now: int) -> list[PendingCommand]:
        """Those whose time is over. They are done."""
        return self._drop(lambda call: call.until is not None and now >= call.until)

    def cut_off(self) -> list[PendingCommand]:
        """The session died: those that were sent and must not be sent again. They are done."""
        return self._drop(lambda call: call.sent_in is not None and not call.command.IDEMPOTENT)

    def clear(self) -> list[PendingCommand]:
        """All of them. They are done."""
        rest = [*self._drop(lambda _: True), *self._queue]
        self._queue.clear()
        return rest

    def due(self) -> Iterator[int]:
        return (call.until for call in self.open() if call.until is not None)

    def _drop(self, which: Callable[[PendingCommand], bool]) -> list[PendingCommand]:
        dropped = [call for call in self.open() if which(call)]
        for call in dropped:
            self.done(call)
        return dropped


def _reads(call: PendingCommand) -> bool:
    return isinstance(call.command, READS)
