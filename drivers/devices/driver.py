"""What the drivers of all classes of devices share: records in, typed events out, commands.

A driver stands on a `Line`, which is a Supervisor: it takes commands and says how the device
stands. Each class adds its table of events and its commands.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from drivers.devices.commands import CommandUnanswered
from drivers.devices.events import COMMON, DeviceEvent, Makes, Origin
from drivers.devices.state import State
from firmware_protocol.messages import registry
from firmware_protocol.messages.codec import Command, Event, Reply
from firmware_protocol.messages.common import InfoReply, SelftestReply
from firmware_protocol.messages.enums import DeviceClass

RESULT_WAIT = 5.0
"""Seconds for a physical command's result event to come, after its reply or its deadline."""

_D = TypeVar("_D", bound=DeviceEvent)
_R = TypeVar("_R", bound=Reply)


class ResultMissing(Exception):
    """A physical command was sent and its result event did not come. Nobody knows what the device
    did: someone has to look. The command is not sent again."""

    def __init__(self, command: Command, *, answered: bool) -> None:
        result = command.RESULT.NAME if command.RESULT else "result"
        how = "was answered" if answered else "was not answered"
        super().__init__(f"{command.NAME} {how}, and no {result} has come")
        self.command = command
        self.answered = answered


class Line(Protocol):
    """The way to one device."""

    @property
    def device_class(self) -> DeviceClass: ...

    @property
    def state(self) -> State: ...

    async def call(self, command: Command) -> Reply:
        """The reply, or CommandRefused, CommandUnanswered, NotReady."""


class Watch(Generic[_D]):
    """The events of one kind that came since it was begun."""

    def __init__(self, kind: type[_D]) -> None:
        self.kind = kind
        self._seen: list[_D] = []
        self._more = asyncio.Event()

    def look(self, event: DeviceEvent) -> None:
        if isinstance(event, self.kind):
            self._seen.append(event)
            self._more.set()

    async def first(self, fits: Callable[[_D], bool]) -> _D:
        """The first that fits, of those that came and those to come."""
        at = 0
        while True:
            for event in self._seen[at:]:
                if fits(event):
                    return event
            at = len(self._seen)
            self._more.clear()
            await self._more.wait()


class Driver:
    """One device, in its own words."""

    DEVICE_CLASS: ClassVar[DeviceClass]
    EVENTS: ClassVar[Makes] = COMMON

    def __init__(self, line: Line) -> None:
        if line.device_class is not self.DEVICE_CLASS:
            raise ValueError(
                f"a {line.device_class.name.lower()} is not driven by {type(self).__name__}"
            )
        self.line = line
        self._watches: list[Watch[Any]] = []

    # --- what the supervisor asks ---------------------------------------------------------

    def read(self, origin: Origin, event: Event) -> DeviceEvent:
        """The record in the driver's types, before it is stored: nothing is notified."""
        return self.EVENTS[type(event)](origin, event)

    def notify(self, event: DeviceEvent) -> None:
        """The event is stored and acknowledged."""
        for watch in self._watches:
            watch.look(event)

    def state_changed(self, state: State) -> None:
        """The device has this state from now on."""

    async def work(self) -> None:
        """What has to be done while the supervisor runs."""

    # --- what all devices can do ----------------------------------------------------------

    async def info(self) -> InfoReply:
        """What runs on the device."""
        return await self._ask(registry.Info(), InfoReply)

    async def selftest(self) -> SelftestReply:
        """Test what can be tested without moving a card. Takes up to 10 s."""
        return await self._ask(registry.Selftest(), SelftestReply)

    async def _ask(self, command: Command, kind: type[_R]) -> _R:
        reply = await self.line.call(command)
        if not isinstance(reply, kind):
            raise TypeError(f"{command.NAME} was answered with {type(reply).__name__}")
        return reply

    async def _carry_out(
        self, command: Command, kind: type[_D], fits: Callable[[_D, Reply | None], bool]
    ) -> _D:
        """Send a physical command once, and wait for the event that it was carried out.

        CommandRefused and NotReady: it was not. ResultMissing: nobody knows. A lost reply changes
        nothing: the event tells."""
        reply: Reply | None = None
        with self._watching(kind) as watch:
            try:
                reply = await self.line.call(command)
            except CommandUnanswered as lost:
                if not lost.sent:
                    raise
            try:
                async with asyncio.timeout(RESULT_WAIT):
                    return await watch.first(lambda event: fits(event, reply))
            except TimeoutError:
                raise ResultMissing(command, answered=reply is not None) from None

    @contextmanager
    def _watching(self, kind: type[_D]) -> Iterator[Watch[_D]]:
        watch = Watch(kind)
        self._watches.append(watch)
        try:
            yield watch
        finally:
            self._watches.remove(watch)
