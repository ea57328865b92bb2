"""Driver and events of the shuffler.

A command that moves cards is sent once; the device's event shows whether it was carried out.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from drivers.devices.commands import NOT_DONE
from drivers.devices.driver import Driver
from drivers.devices.events import COMMON, DeviceEvent, Makes, Started, same_fields
from firmware_protocol.messages import (
    Abort,
    AbortReply,
    CountError,
    DeckKind,
    DeviceClass,
    Done,
    Door,
    Eject,
    JamCode,
    Progress,
    Reply,
    ShufflerJam,
    Start,
    StartReply,
)
from firmware_protocol.messages import Started as StartedMessage


class ShuffleStarted(DeviceEvent, frozen=True):
    """A shuffle has started."""

    shuffle: int
    decks: int


class ShuffleProgressed(DeviceEvent, frozen=True):
    """Progress of the shuffle."""

    percent: int


class ShuffleDone(DeviceEvent, frozen=True):
    """The shuffle is finished; the cards can be taken out."""

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
        StartedMessage: same_fields(ShuffleStarted),
        Progress: same_fields(ShuffleProgressed),
        Done: same_fields(ShuffleDone),
        CountError: same_fields(CountWrong),
        Door: same_fields(DoorMoved),
        ShufflerJam: same_fields(ShufflerJammed),
    }
)


class InDoubt(Exception):
    """START is not sent while it is unknown whether the last one was carried out."""


class ShufflerDriver(Driver):
    """One batch shuffler."""

    DEVICE_CLASS: ClassVar = DeviceClass.SHUFFLER
    EVENTS: ClassVar = EVENTS

    in_doubt = False
    """START was sent, and it is unknown whether it was carried out. Cleared by the shuffle's event,
    by a restart of the device (earlier events arrive before it), and by looked()."""

    def notify(self, event: DeviceEvent) -> None:
        super().notify(event)
        if isinstance(event, (ShuffleStarted, Started)):
            self.in_doubt = False

    async def start(
        self, decks: int, profile: int = 0, kind: DeckKind = DeckKind.FULL_52
    ) -> ShuffleStarted:
        """Shuffle. Returns when the shuffle has started.

        Raises ResultMissing if that is unknown, with `in_doubt` set. After any other error it has
        not started: CommandRefusedError (EMPTY) if no cards are inside.
        """
        if self.in_doubt:
            raise InDoubt("the last START is in doubt: someone has to look at the shuffler")
        command = Start(decks, profile, kind)
        command.encode()

        def matches(event: ShuffleStarted, reply: Reply | None) -> bool:
            if isinstance(reply, StartReply):
                return event.shuffle == reply.shuffle
            return event.decks == decks

        # In doubt from here on, also if the caller is cancelled.
        self.in_doubt = True
        try:
            return await self._carry_out(command, ShuffleStarted, matches)
        except NOT_DONE:
            # CommandUnansweredError is raised here only if it was not sent.
            self.in_doubt = False
            raise

    def looked(self) -> None:
        """People have looked at the shuffler: the last START is not in doubt any more."""
        self.in_doubt = False

    async def eject(self) -> DoorMoved:
        """Open the door and deliver the cards. Returns when the door has opened."""
        return await self._carry_out(Eject(), DoorMoved, lambda event, reply: event.open)

    async def abort(self) -> None:
        """End a running shuffle; the event Faulted (ABORTED) follows. No effect without one."""
        await self._call(Abort(), AbortReply)
