"""The shuffler in its own words. What moves cards is sent once; the device's event tells whether
it was done."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from drivers.devices.commands import NOT_DONE
from drivers.devices.driver import Driver
from drivers.devices.events import COMMON, DeviceEvent, Makes, Started, same_fields
from firmware_protocol.messages import registry
from firmware_protocol.messages.codec import Reply
from firmware_protocol.messages.enums import DeviceClass, JamCode
from firmware_protocol.messages.shuffler import AbortReply, StartReply


class ShuffleStarted(DeviceEvent, frozen=True):
    """A shuffle has begun."""

    shuffle: int
    decks: int


class ShuffleProgressed(DeviceEvent, frozen=True):
    """How far the shuffle is."""

    percent: int


class ShuffleDone(DeviceEvent, frozen=True):
    """The shuffle is finished and the cards wait."""

    shuffle: int
    count: int
    missing: int
    extra: int
    rng_ok: bool


class CountWrong(DeviceEvent, frozen=True):
    """The number of cards is wrong, which ends the shuffle."""

    expected: int
    got: int


class DoorMoved(DeviceEvent, frozen=True):
    """The door was opened or closed."""

    open: bool


class ShufflerJammed(DeviceEvent, frozen=True):
    """Cards are stuck in the shuffler, or no longer."""

    code: JamCode


EVENTS: Final[Makes] = MappingProxyType(
    {
        **COMMON,
        registry.Started: same_fields(ShuffleStarted),
        registry.Progress: same_fields(ShuffleProgressed),
        registry.Done: same_fields(ShuffleDone),
        registry.CountError: same_fields(CountWrong),
        registry.Door: same_fields(DoorMoved),
        registry.ShufflerJam: same_fields(ShufflerJammed),
    }
)


class InDoubt(Exception):
    """Whether the last START was carried out is not known yet, so no other one is sent."""


class Shuffler(Driver):
    """One batch shuffler."""

    DEVICE_CLASS: ClassVar = DeviceClass.SHUFFLER
    EVENTS: ClassVar = EVENTS

    in_doubt = False
    """A START was sent, and nobody knows whether it was carried out. Ends with the shuffle's
    event, with the device's start (what it had begun, it told before), or when someone has
    looked."""

    def notify(self, event: DeviceEvent) -> None:
        super().notify(event)
        if isinstance(event, (ShuffleStarted, Started)):
            self.in_doubt = False

    async def start(self, decks: int, profile: int = 0) -> ShuffleStarted:
        """Shuffle. Returns when the shuffle has begun.

        ResultMissing: nobody knows, and `in_doubt` is set. What else is raised: it has not.
        """
        if self.in_doubt:
            raise InDoubt("the last START is in doubt: someone has to look at the shuffler")
        command = registry.Start(decks, profile)
        command.encode()

        def fits(event: ShuffleStarted, reply: Reply | None) -> bool:
            if isinstance(reply, StartReply):
                return event.shuffle == reply.shuffle
            return event.decks == decks

        # In doubt from here on, also for whoever does not stay to hear the answer.
        self.in_doubt = True
        try:
            return await self._carry_out(command, ShuffleStarted, fits)
        except NOT_DONE:
            # CommandUnanswered gets here only when it was not sent.
            self.in_doubt = False
            raise

    def looked(self) -> None:
        """Someone has looked at the shuffler: the last START is in doubt no more."""
        self.in_doubt = False

    async def eject(self) -> DoorMoved:
        """Open the door and hand the cards out. Returns when the door has opened."""
        return await self._carry_out(registry.Eject(), DoorMoved, lambda event, reply: event.open)

    async def abort(self) -> None:
        """End a running shuffle; Faulted (ABORTED) tells when it has ended. Without one it changes
        nothing."""
        await self._ask(registry.Abort(), AbortReply)
