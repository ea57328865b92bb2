"""The shoe in its own words. A card that was read is sealed here and stays so until someone opens
it on purpose."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from drivers.devices.driver import Driver
from drivers.devices.events import COMMON, DeviceEvent, Makes, Origin, same_fields
from drivers.devices.sealed import Sealed, SealedCard
from firmware_protocol.messages import registry
from firmware_protocol.messages.enums import DeviceClass, JamCode, LockState, ReadWhy
from firmware_protocol.messages.errors import ProtocolError
from firmware_protocol.messages.shoe import CardRead, LockReply, RereadReply
from firmware_protocol.tablelink import plaintext
from firmware_protocol.tablelink.plaintext import EventRecord


class ShoeCardRead(DeviceEvent, frozen=True):
    """A card has left the shoe and was read."""

    shoe: int
    """The loading it came from."""
    pos: int
    """Its position in that loading, from 1."""
    card: SealedCard
    body: Sealed[CardRead]
    """All that was read of it: how surely, what else it might be, what was odd, its back, and the
    salt. Each of these may tell the card."""


class CardRetracted(DeviceEvent, frozen=True):
    """A card that had been reported went back; the next one has this position again."""

    pos: int


class ReadFailed(DeviceEvent, frozen=True):
    """A card has left the shoe and was not read."""

    pos: int
    why: ReadWhy


class CutCardCame(DeviceEvent, frozen=True):
    """The cut card has come out."""

    pos: int


class ShoeLoaded(DeviceEvent, frozen=True):
    """Cards were put in and the cover closed; positions begin anew. 0: not known."""

    shoe: int
    decks: int
    count: int
    shuffle: int


class CoverMoved(DeviceEvent, frozen=True):
    """The cover was opened or closed."""

    open: bool


class ShoeJammed(DeviceEvent, frozen=True):
    """Cards are stuck in the shoe, or no longer."""

    code: JamCode


class RereadProblem(Exception):
    """What came back for REREAD is not the record that was asked for. Shows nothing of it."""


def _sealed(origin: Origin, event: CardRead) -> ShoeCardRead:
    return ShoeCardRead(origin, event.shoe, event.pos, SealedCard(event.card), Sealed(event))


EVENTS: Final[Makes] = MappingProxyType(
    {
        **COMMON,
        registry.CardRead: _sealed,
        registry.CardRetracted: same_fields(CardRetracted),
        registry.ReadFail: same_fields(ReadFailed),
        registry.CutCard: same_fields(CutCardCame),
        registry.Loaded: same_fields(ShoeLoaded),
        registry.Cover: same_fields(CoverMoved),
        registry.ShoeJam: same_fields(ShoeJammed),
    }
)


class Shoe(Driver):
    """One card-reading shoe."""

    DEVICE_CLASS: ClassVar = DeviceClass.SHOE
    EVENTS: ClassVar = EVENTS

    async def lock(self) -> LockState:
        """Let no card out. The state that the shoe then has."""
        return await self._set(LockState.LOCKED)

    async def open_gate(self) -> LockState:
        """Let cards be drawn."""
        return await self._set(LockState.OPEN)

    async def _set(self, state: LockState) -> LockState:
        return (await self._ask(registry.Lock(state), LockReply)).state

    async def reread(self, epoch: int, seq: int) -> Sealed[EventRecord]:
        """A record once more, as it stands in the shoe's ring; CommandRefused (NOT_KEPT) when it
        is no longer there. Whoever compares it with what was kept opens it: its chain must be the
        one that is kept."""
        reply = await self._ask(registry.Reread(epoch, seq), RereadReply)
        return _record(reply, epoch, seq)


def _record(reply: RereadReply, epoch: int, seq: int) -> Sealed[EventRecord]:
    try:
        record = plaintext.decode(reply.record, sender="device", device_class=DeviceClass.SHOE)
    except ProtocolError as problem:
        raise RereadProblem(f"record {seq} came back as {problem.name}") from None
    if not isinstance(record, EventRecord) or (record.epoch, record.seq) != (epoch, seq):
        raise RereadProblem(f"another record than {seq} of {epoch} came back")
    return Sealed(record)
