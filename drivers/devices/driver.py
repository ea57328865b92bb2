"""Base of the drivers of all device classes: records to typed events, and commands.

A driver sends its commands through a `CommandChannel`, which is a Supervisor. Each class adds its
table of events and its commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from drivers.devices.commands import CommandUnansweredError
from drivers.devices.events import COMMON, DeviceEvent, Makes, Origin
from drivers.devices.state import LinkState
from firmware_protocol.messages import (
    Command,
    DeviceClass,
    Event,
    Info,
    InfoReply,
    Reply,
    Selftest,
    SelftestReply,
)

RESULT_TIMEOUT = 5.0
"""Seconds until a physical command's result event has to arrive, after its reply or its timeout."""

_D = TypeVar("_D", bound=DeviceEvent)
_R = TypeVar("_R", bound=Reply)


class ResultMissing(Exception):
    """A physical command was sent and its result event did not arrive.

    It is unknown what the device did: people have to look. The command is not retried."""

    def __init__(self, command: Command, *, answered: bool) -> None:
        result = command.RESULT.NAME if command.RESULT else "result"
        how = "was answered" if answered else "was not answered"
        super().__init__(f"{command.NAME} {how}, and no {result} has come")
        self.command = command
        self.answered = answered


class CommandChannel(Protocol):
    """Sends commands to one device."""

    @property
    def device_class(self) -> DeviceClass: ...

    @property
    def state(self) -> LinkState: ...

    async def call(self, command: Command) -> Reply:
        """The reply. Raises CommandRefusedError, CommandUnansweredError or NotReady."""


class EventWatch(Generic[_D]):
    """Events of one type since the watch was started."""

    def __init__(self, kind: type[_D]) -> None:
        self.kind = kind
        self._events: list[_D] = []
        self._added = asyncio.Event()

    def add(self, event: DeviceEvent) -> None:
        if isinstance(event, self.kind):
            self._events.append(event)
            self._added.set()

    async def first(self, matches: Callable[[_D], bool]) -> _D:
        """Wait for the first event that matches, including earlier ones of this watch."""
        at = 0
        while True:
            for event in self._events[at:]:
                if matches(event):
                    return event
            at = len(self._events)
            self._added.clear()
            await self._added.wait()


class Driver:
    """Driver of one device."""

    DEVICE_CLASS: ClassVar[DeviceClass]
    EVENTS: ClassVar[Makes] = COMMON

    def __init__(self, channel: CommandChannel) -> None:
        if channel.device_class is not self.DEVICE_CLASS:
            raise ValueError(
                f"a {channel.device_class.name.lower()} is not driven by {type(self).__name__}"
            )
        self.channel = channel
        self._watches: list[EventWatch[Any]] = []

    # --- called by the supervisor ---------------------------------------------------------

    def read(self, origin: Origin, event: Event) -> DeviceEvent:
        """The record as a typed event, before it is stored. No side effects."""
        return self.EVENTS[type(event)](origin, event)

    def notify(self, event: DeviceEvent) -> None:
        """The event is stored and acknowledged."""
        for watch in self._watches:
            watch.add(event)

    def state_changed(self, state: LinkState) -> None:
        """The device has this state from now on."""

    async def work(self) -> None:
        """Background work while the supervisor runs."""

    # --- commands of all classes ----------------------------------------------------------

    async def info(self) -> InfoReply:
        """Firmware and boot of the device."""
        return await self._call(Info(), InfoReply)

    async def selftest(self) -> SelftestReply:
        """Test what can be tested without moving a card. Takes up to 10 s."""
        return await self._call(Selftest(), SelftestReply)

    async def _call(self, command: Command, kind: type[_R]) -> _R:
        reply = await self.channel.call(command)
        if not isinstance(reply, kind):
            raise TypeError(f"{command.NAME} was answered with {type(reply).__name__}")
        return reply

    async def _carry_out(
        self, command: Command, kind: type[_D], matches: Callable[[_D, Reply | None], bool]
    ) -> _D:
        """Send a physical command once, and wait for the event that it was carried out.

        Raises CommandRefusedError or NotReady if it was not, ResultMissing if that is unknown. A
        lost reply is no error: the event shows the result."""
        reply: Reply | None = None
        with self.watching(kind) as watch:
            try:
                reply = await self.channel.call(command)
            except CommandUnansweredError as lost:
                if not lost.sent:
                    raise
            try:
                async with asyncio.timeout(RESULT_TIMEOUT):
                    return await watch.first(lambda event: matches(event, reply))
            except TimeoutError:
                raise ResultMissing(command, answered=reply is not None) from None

    @contextmanager
    def watching(self, kind: type[_D]) -> Iterator[EventWatch[_D]]:
        """Collect the events of one type within the block."""
        watch = EventWatch(kind)
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)
