"""Results of commands: each ends with a reply, a refusal, or an unknown result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from drivers.devices.state import LinkState
from firmware_protocol.host import CommandTimedOut, LinkBusy, LinkEvent, ReplyReceived
from firmware_protocol.messages import (
    Abort,
    Arm,
    Command,
    Event,
    Info,
    Lamps,
    Lock,
    LockState,
    ProtocolError,
    Refusal,
    Refused,
    Reply,
    Reread,
    Selftest,
)


class NotReady(Exception):
    """The device accepts no such command in its state."""

    def __init__(self, state: LinkState, why: str) -> None:
        super().__init__(f"the device is {state.value}: {why}")
        self.state = state
        self.why = why


class CommandRefusedError(Exception):
    """The device refused the command; nothing was done."""

    def __init__(self, command: Command, why: Refusal, arg: int) -> None:
        super().__init__(f"{command.NAME} was refused: {why.name.lower()} ({arg})")
        self.command = command
        self.why = why
        self.arg = arg


class CommandUnansweredError(Exception):
    """No reply arrived before the timeout.

    If `sent` is true and the command is not idempotent, it is unknown whether it was carried out.
    It is never retried; `result` is the event that shows it, if the command has one."""

    def __init__(self, command: Command, *, sent: bool) -> None:
        self.command = command
        self.sent = sent
        self.result: type[Event] | None = command.RESULT
        look = f"; look for {self.result.NAME}" if self.result and sent else ""
        super().__init__(f"{command.NAME} was {'not answered' if sent else 'not sent'}{look}")


def unsent(problem: Exception) -> bool:
    """Whether the command that ended with this error was never sent."""
    if isinstance(problem, CommandUnansweredError):
        return not problem.sent
    return isinstance(problem, NOT_SENT)


PERMANENT_REFUSALS: Final = (Refusal.UNKNOWN, Refusal.MALFORMED, Refusal.UNSUPPORTED)
"""A command that is refused so would be refused again."""

NOT_SENT: Final = (NotReady, LinkBusy, ProtocolError, ValueError)
"""Raised before anything is sent."""

NOT_DONE: Final = (*NOT_SENT, CommandRefusedError, CommandUnansweredError)
"""How a command can end without a reply of its own."""


# --- which commands a state allows ------------------------------------------------------------


def _always(command: Command) -> bool:
    return True


def _locks(command: Lock) -> bool:
    return command.state is LockState.LOCKED


def _disarms(command: Arm) -> bool:
    return not command.mask or not command.ttl


_SAFE: Final[Mapping[type[Command], Callable[[Any], bool]]] = {
    Info: _always,
    Selftest: _always,
    Lock: _locks,
    Reread: _always,
    Abort: _always,
    Arm: _disarms,
    Lamps: _always,
}
"""Commands that are safe while no record can be stored: they make no events."""

_BEFORE_RESUME: Final = (Info, Reread)


def accepts(state: LinkState, command: Command) -> bool:
    """Whether a device in this state is sent this command."""
    if state is LinkState.READY:
        return True
    if state is LinkState.UNKEPT:
        return _SAFE.get(type(command), lambda _: False)(command)
    return state is LinkState.RESUMING and isinstance(command, _BEFORE_RESUME)


# --- pending commands -------------------------------------------------------------------------


class PendingCommands:
    """Commands that wait for their reply, by command id."""

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[Command, asyncio.Future[Reply]]] = {}

    @contextmanager
    def waiting(self, command_id: int, command: Command) -> Iterator[asyncio.Future[Reply]]:
        """A future for the reply of a submitted command. It raises CommandRefusedError or
        CommandUnansweredError."""
        future: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._waiting[command_id] = (command, future)
        try:
            yield future
        finally:
            del self._waiting[command_id]

    def answered(self, event: LinkEvent) -> None:
        """Pass a reply, or its absence, to the caller of the command, unless it has given up."""
        if not isinstance(event, ReplyReceived | CommandTimedOut):
            return
        command, future = self._waiting.get(event.command_id, (None, None))
        if command is None or future is None or future.done():
            return
        if isinstance(event, CommandTimedOut):
            future.set_exception(CommandUnansweredError(command, sent=event.sent))
        elif isinstance(event.reply, Refused):
            refused = event.reply
            future.set_exception(CommandRefusedError(command, refused.why, refused.arg))
        else:
            future.set_result(event.reply)

    def abandon(self) -> None:
        """Every command that still waits is unanswered."""
        for command, future in self._waiting.values():
            if not future.done():
                future.set_exception(CommandUnansweredError(command, sent=True))
