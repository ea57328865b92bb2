"""Runs a pairing or an introduction at a real port."""

from __future__ import annotations

import asyncio

from msgspec import Struct

from drivers.ports import Address, Port, PortLost, monotonic_us, open_port
from firmware_protocol.host import (
    DeviceIntroduced,
    Introduction,
    PairingAlert,
    PairingDone,
    PairingEvent,
    PairingFailed,
    PairingNoise,
)
from firmware_protocol.messages import AlertCode


class IntroductionOutcome(Struct, frozen=True):
    """Result of an introduction."""

    end: DeviceIntroduced | PairingDone | PairingFailed
    hints: tuple[AlertCode, ...]
    """Alerts in clear, by the device or by anyone on the cable. Each once."""
    damaged: int
    """Number of damaged frames."""
    lost: str | None
    """Why the port was lost, if it was."""


async def run_introduction(address: Address, talk: Introduction) -> IntroductionOutcome:
    """Open the port, run `talk` to its end, close the port. Raises PortRefused."""
    conversation = _Conversation(talk)
    port = await open_port(address, conversation)
    try:
        return await conversation.over(port)
    finally:
        conversation.stop()
        await port.close()


class _Conversation:
    """Carries bytes between a port and an introduction, and wakes it when it is due."""

    def __init__(self, talk: Introduction) -> None:
        self._talk = talk
        self._loop = asyncio.get_running_loop()
        self._end: asyncio.Future[DeviceIntroduced | PairingDone | PairingFailed]
        self._end = self._loop.create_future()
        self._port: Port | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._hints: dict[AlertCode, None] = {}
        self._damaged = 0
        self._lost: str | None = None

    async def over(self, port: Port) -> IntroductionOutcome:
        self._port = port
        self._follow(self._talk.open(monotonic_us()))
        return IntroductionOutcome(await self._end, tuple(self._hints), self._damaged, self._lost)

    def stop(self) -> None:
        self._port = None
        if self._timer is not None:
            self._timer.cancel()
        self._talk.close()

    # --- the port -----------------------------------------------------------------------------

    def received(self, data: bytes) -> None:
        if self._port is not None:
            self._follow(self._talk.receive(data, monotonic_us()))

    def lost(self, why: PortLost) -> None:
        self._lost = why.reason
        self._follow(self._talk.lost())

    def _wake(self) -> None:
        self._follow(self._talk.wake(monotonic_us()))

    def _follow(self, events: list[PairingEvent]) -> None:
        for event in events:
            if isinstance(event, PairingAlert):
                self._hints[event.alert.code] = None
            elif isinstance(event, PairingNoise):
                self._damaged += 1
        # A DeviceIntroduced within a pairing is not its end.
        if self._talk.over and not self._end.done():
            ends = (DeviceIntroduced, PairingDone, PairingFailed)
            self._end.set_result(next(one for one in reversed(events) if isinstance(one, ends)))
        self._speak()

    def _speak(self) -> None:
        if self._port is not None and (out := self._talk.take()):
            self._port.write(out)
        if self._timer is not None:
            self._timer.cancel()
        due = self._talk.due()
        if due is not None:
            wait = max(0, due - monotonic_us()) / 1_000_000
            self._timer = self._loop.call_later(wait, self._wake)
