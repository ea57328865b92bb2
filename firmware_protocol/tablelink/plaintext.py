"""Plaintexts of DATA frames: records, commands, replies and control messages.

    plaintext = encode_plaintext(CommandCall(7, boot, Lock(LockState.OPEN)))
    message = decode_plaintext(plaintext, sender="host", device_class=DeviceClass.SHOE)

Decoding is strict: bytes that encoding would not produce raise a ProtocolError. Encoding a decoded
record returns the same bytes, so it can be chained, compared and sealed again.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from firmware_protocol.messages import (
    COMMANDS,
    CONTROLS,
    EVENTS,
    REPLIES,
    RESERVED,
    BadPadding,
    Command,
    Control,
    DeviceClass,
    Event,
    Message,
    OutOfRange,
    PlaintextType,
    Reply,
    ReservedMessage,
    Side,
    UnknownMessage,
    UnknownType,
    WrongClass,
    WrongDirection,
    WrongSize,
)

PLAINTEXT_SIZES: Final = (56, 120, 226)
CHAIN_SIZE: Final = 8
NO_CHAIN: Final = bytes(CHAIN_SIZE)
"""The chain before the first record of a ring."""

_IS_EVENT: Final = int(PlaintextType.EVENT)
_IS_COMMAND: Final = int(PlaintextType.COMMAND)
_IS_REPLY: Final = int(PlaintextType.REPLY)
_IS_CONTROL: Final = int(PlaintextType.CONTROL)
_EVENT: Final = struct.Struct("<BBIIIQBB")
_CALL: Final = struct.Struct("<BBBBIQ")
_CONTROL: Final = struct.Struct("<BBBB")
_HASHED: Final = 48
"""Bytes of a record that its chain covers: all but the chain."""


class EventRecord(Struct, frozen=True, gc=False):
    """A record of a device's ring. Its repr shows no card, but msgspec, pickle and encode() contain
    the whole body (see codec.Payload): a stored record must be sealed."""

    epoch: int
    seq: int
    boot: int
    t_us: int
    event: Event
    chain: bytes

    def encode(self) -> bytes:
        """Encode the 56 bytes of the ring and of the wire."""
        if len(self.chain) != CHAIN_SIZE:
            raise WrongSize(f"record: its chain has {len(self.chain)} bytes, not {CHAIN_SIZE}")
        return self._hashed() + self.chain

    def follows(self, previous: bytes) -> bool:
        """Whether this record follows one with the chain `previous`."""
        return self.chain == next_chain(previous, self._hashed())

    def _hashed(self) -> bytes:
        if not self.epoch or not self.seq or not self.boot:
            raise OutOfRange("record: epoch, seq and boot are never 0")
        body = self.event.encode()
        try:
            head = _EVENT.pack(
                _IS_EVENT,
                0,
                self.epoch,
                self.seq,
                self.boot,
                self.t_us,
                self.event.ID,
                len(body),
            )
        except struct.error:
            raise OutOfRange("record: a number does not fit into its field") from None
        return (head + body).ljust(_HASHED, b"\0")


class CommandCall(Struct, frozen=True, gc=False):
    """A command with the two numbers that identify it and its repeats."""

    command_id: int
    host_boot: int
    command: Command


class CommandReply(Struct, frozen=True, gc=False):
    """The reply to the command with these numbers."""

    command_id: int
    host_boot: int
    reply: Reply


Plaintext: TypeAlias = EventRecord | CommandCall | CommandReply | Control
_M = TypeVar("_M", bound=Message)


def next_chain(previous: bytes, hashed: bytes) -> bytes:
    """The chain of a record whose bytes 0 to 47 are `hashed`, after one with chain `previous`."""
    return hashlib.blake2b(previous + hashed).digest()[:CHAIN_SIZE]


def chained(  # the fields of a record, in its order
    previous: bytes, *, epoch: int, seq: int, boot: int, t_us: int, event: Event
) -> EventRecord:
    """Build the record that follows one with the chain `previous`."""
    unchained = EventRecord(epoch, seq, boot, t_us, event, NO_CHAIN)
    chain = next_chain(previous, unchained.encode()[:_HASHED])
    return EventRecord(epoch, seq, boot, t_us, event, chain)


# --- encoding -------------------------------------------------------------------------------


def encode_plaintext(message: Plaintext) -> bytes:
    """Encode a plaintext of 56, 120 or 226 bytes, the size of its message."""
    if isinstance(message, EventRecord):
        return message.encode()
    if isinstance(message, CommandCall):
        return _call(_IS_COMMAND, message.command_id, message.host_boot, message.command)
    if isinstance(message, CommandReply):
        return _call(_IS_REPLY, message.command_id, message.host_boot, message.reply)
    body = message.encode()
    head = _CONTROL.pack(_IS_CONTROL, 0, message.ID, len(body))
    return (head + body).ljust(message.SIZE, b"\0")


def _call(kind: int, command_id: int, host_boot: int, message: Message) -> bytes:
    _numbered(command_id, host_boot)
    body = message.encode()
    try:
        head = _CALL.pack(kind, 0, message.ID, len(body), command_id, host_boot)
    except struct.error:
        raise OutOfRange(f"{message.NAME}: command id or host boot does not fit") from None
    return (head + body).ljust(message.SIZE, b"\0")


def _numbered(command_id: int, host_boot: int) -> None:
    if not command_id or not host_boot:
        raise OutOfRange("command id and host boot are never 0")


# --- decoding -------------------------------------------------------------------------------


def decode_plaintext(
    data: bytes, *, sender: Side, device_class: DeviceClass | None = None
) -> Plaintext:
    """Decode a plaintext of `sender`. With `device_class`, messages of other classes are rejected
    too. Raises ProtocolError.
    """
    if len(data) not in PLAINTEXT_SIZES:
        raise WrongSize(f"plaintext: has {len(data)} bytes, not one of {PLAINTEXT_SIZES}")
    kind = data[0]
    if kind == _IS_EVENT:
        return _record(data, sender, device_class)
    if kind in (_IS_COMMAND, _IS_REPLY):
        return _called(data, sender, device_class)
    if kind == _IS_CONTROL:
        control = _find(CONTROLS, data[2], sender, device_class)
        return _message(control, data, _CONTROL.size, data[3], len(data))
    raise UnknownType(f"plaintext: {kind} is not a type")


def _record(data: bytes, sender: Side, device_class: DeviceClass | None) -> EventRecord:
    if len(data) < _EVENT.size:
        raise WrongSize("record: too short")
    _, _, epoch, seq, boot, t_us, ident, length = _EVENT.unpack_from(data)
    found = _find(EVENTS, ident, sender, device_class)
    event = _message(found, data, _EVENT.size, length, _HASHED)
    if not epoch or not seq or not boot:
        raise OutOfRange("record: epoch, seq and boot are never 0")
    return EventRecord(epoch, seq, boot, t_us, event, data[_HASHED:])


def _called(
    data: bytes, sender: Side, device_class: DeviceClass | None
) -> CommandCall | CommandReply:
    kind, _, ident, length, command_id, host_boot = _CALL.unpack_from(data)
    if kind == _IS_COMMAND:
        asked = _find(COMMANDS, ident, sender, device_class)
        command = _message(asked, data, _CALL.size, length, len(data))
        _numbered(command_id, host_boot)
        return CommandCall(command_id, host_boot, command)
    answer = _find(REPLIES, ident, sender, device_class)
    reply = _message(answer, data, _CALL.size, length, len(data))
    _numbered(command_id, host_boot)
    return CommandReply(command_id, host_boot, reply)


def _find(
    known: dict[int, type[_M]], ident: int, sender: Side, device_class: DeviceClass | None
) -> type[_M]:
    found = known.get(ident)
    if found is None:
        for span, purpose in RESERVED.items():
            if ident in span:
                raise ReservedMessage(f"message {ident:#04x} is reserved: {purpose}")
        raise UnknownMessage(f"plaintext: {ident:#04x} is not a message of its type")
    if found.FROM not in (sender, "both"):
        raise WrongDirection(f"{found.NAME}: is sent by the {found.FROM}")
    if device_class is not None and found.CLASS not in (DeviceClass.ANY, device_class):
        raise WrongClass(f"{found.NAME}: belongs to a {found.CLASS.name.lower()}")
    return found


def _message(kind: type[_M], data: bytes, start: int, length: int, end: int) -> _M:
    """Decode the message whose fields start at `start` and whose padding ends at `end`."""
    if len(data) != kind.SIZE:
        raise WrongSize(f"{kind.NAME}: its plaintext has {kind.SIZE} bytes, not {len(data)}")
    if length != kind.SPEC.size:
        raise WrongSize(f"{kind.NAME}: its fields have {kind.SPEC.size} bytes, not {length}")
    if data[1]:
        raise BadPadding(f"{kind.NAME}: the flags are not zero")
    body_end = start + length
    if data.count(0, body_end, end) != end - body_end:
        raise BadPadding(f"{kind.NAME}: the padding is not zero")
    return kind.decode(data[start:body_end])
