"""A line to a device that is not there: what is called, and what it answers, is the test's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from itertools import count
from typing import Any

from drivers.devices import DRIVERS, DeviceEvent, LinkState, Origin
from firmware_protocol.messages import Command, DeviceClass, Event, Reply

Answer = Callable[[Command], Awaitable[Reply]]


class FakeLine:
    def __init__(self, device_class: DeviceClass) -> None:
        self.device_class = device_class
        self.state = LinkState.READY
        self.called: list[Command] = []
        self.answers: list[Reply | Exception] = []
        """The next answers, first one first; without one the command's plain reply is made."""
        self.driver: Any = DRIVERS[device_class](self)
        self._seq = count(1)

    async def call(self, command: Command) -> Reply:
        command.encode()  # as the link does, before anything is sent
        self.called.append(command)
        if not self.answers:
            return command.REPLY()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def comes(self, event: Event, boot: int = 1) -> DeviceEvent:
        """The device tells this."""
        seq = next(self._seq)
        origin = Origin("X-1", 5, seq, boot, 1000 * seq, 2000 * seq)
        told: DeviceEvent = self.driver.read(origin, event)
        self.driver.notify(told)
        return told

    def stands(self, state: LinkState) -> None:
        self.state = state
        self.driver.state_changed(state)


def line_to(device_class: DeviceClass) -> tuple[FakeLine, Any]:
    """A line, and the driver of its device."""
    line = FakeLine(device_class)
    return line, line.driver
