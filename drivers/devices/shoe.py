"""Driver and events of the shoe. A card that was read is sealed here until open() is called."""

from __future__ import annotations

from types import MappingProxyType
from typing import ClassVar, Final

from drivers.devices.driver import Driver
from drivers.devices.events import (
    COMMON,
    DeviceEvent,
    Makes,
    Origin,
    Sealed,
    SealedCard,
    same_fields,
)
from firmware_protocol.messages import (
    CardFlags,
    CardRead,
    Cover,
    CutCard,
    DeckKind,
    DeviceClass,
    JamCode,
    Loaded,
    Lock,
    LockReply,
    LockState,
    ProtocolError,
    ReadFail,
    ReadWhy,
    Reread,
    RereadReply,
    ShoeJam,
)
from firmware_protocol.messages import CardRetracted as RetractedMessage
from firmware_protocol.tablelink import EventRecord, decode_plaintext


class ShoeCardRead(DeviceEvent, frozen=True):
    """A card has left the shoe and was read."""

    shoe: int
    """The loading it came from."""
    pos: int
    """Its position in that loading, from 1."""
    card: SealedCard
    body: Sealed[CardRead]
    """The whole message: confidence, second candidate, flags, back and salt. Each of them may
    reveal the card."""


class CardRetracted(DeviceEvent, frozen=True):
    """A reported card went back into the shoe; the next one has this position again."""

    pos: int


class ReadFailed(DeviceEvent, frozen=True):
    """A card has left the shoe and was not read."""

    pos: int
    why: ReadWhy
    flags: CardFlags = CardFlags(0)
    """Whether it came out together with another one, and which of the two came first."""


class CutCardCame(DeviceEvent, frozen=True):
    """The cut card has come out."""

    pos: int


class ShoeLoaded(DeviceEvent, frozen=True):
    """Cards were put in and the cover was closed; positions start again. 0: not known."""

    shoe: int
    decks: int
    count: int
    shuffle: int
    kind: DeckKind = DeckKind.UNKNOWN


class CoverMoved(DeviceEvent, frozen=True):
    """The cover was opened or closed."""

    open: bool


class ShoeJammed(DeviceEvent, frozen=True):
    """Cards are stuck in the shoe, or no longer."""

    code: JamCode


class RereadProblem(Exception):
    """The reply to REREAD is not the requested record. The text shows nothing of the reply."""


def _sealed(origin: Origin, event: CardRead) -> ShoeCardRead:
    return ShoeCardRead(origin, event.shoe, event.pos, SealedCard(event.card), Sealed(event))


EVENTS: Final[Makes] = MappingProxyType(
    {
        **COMMON,
        CardRead: _sealed,
        RetractedMessage: same_fields(CardRetracted),
        ReadFail: same_fields(ReadFailed),
        CutCard: same_fields(CutCardCame),
        Loaded: same_fields(ShoeLoaded),
        Cover: same_fields(CoverMoved),
        ShoeJam: same_fields(ShoeJammed),
    }
)


class ShoeDriver(Driver):
    """One card-reading shoe."""

    DEVICE_CLASS: ClassVar = DeviceClass.SHOE
    EVENTS: ClassVar = EVENTS

    async def lock(self) -> LockState:
        """Lock the gate: no card can be drawn. Returns the state of the gate."""
        return await self._set(LockState.LOCKED)

    async def open_gate(self) -> LockState:
        """Open the gate: cards can be drawn. Returns the state of the gate."""
        return await self._set(LockState.OPEN)

    async def _set(self, state: LockState) -> LockState:
        return (await self._call(Lock(state), LockReply)).state

    async def reread(self, epoch: int, seq: int) -> Sealed[EventRecord]:
        """Read a record of the shoe's ring again, to compare its chain with the stored one. Raises
        CommandRefusedError (NOT_KEPT) if it is no longer in the ring."""
        reply = await self._call(Reread(epoch, seq), RereadReply)
        return reread_record(reply, epoch, seq)


def reread_record(reply: RereadReply, epoch: int, seq: int) -> Sealed[EventRecord]:
    """The record of a reply to REREAD. Raises RereadProblem."""
    try:
        record = decode_plaintext(reply.record, sender="device", device_class=DeviceClass.SHOE)
    except ProtocolError as problem:
        raise RereadProblem(f"record {seq} came back as {problem.name}") from None
    if not isinstance(record, EventRecord) or (record.epoch, record.seq) != (epoch, seq):
        raise RereadProblem(f"another record than {seq} of {epoch} came back")
    return Sealed(record)
