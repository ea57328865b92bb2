"""Every message, and tables of them by id. Generated from messages.toml by
firmware_protocol.generate. Not to be edited."""

from typing import Final

from firmware_protocol.messages.codec import Command, Control, Event, Message, Reply
from firmware_protocol.messages.common import (
    Fault,
    Info,
    InfoReply,
    LogPressure,
    Paired,
    Power,
    Refused,
    Resume,
    ResumeReply,
    Selftest,
    SelftestReply,
    Tamper,
)
from firmware_protocol.messages.control import (
    DeviceBeat,
    EvtAck,
    EvtNak,
    HostBeat,
    PairDone,
    TimeAnswer,
    TimeAsk,
)
from firmware_protocol.messages.shoe import (
    CardRead,
    CardRetracted,
    Cover,
    CutCard,
    Loaded,
    Lock,
    LockReply,
    ReadFail,
    Reread,
    RereadReply,
    ShoeJam,
)
from firmware_protocol.messages.shuffler import (
    Abort,
    AbortReply,
    CountError,
    Done,
    Door,
    Eject,
    EjectReply,
    Progress,
    ShufflerJam,
    Start,
    Started,
    StartReply,
)
from firmware_protocol.messages.station import (
    Arm,
    ArmReply,
    Button,
    Buzz,
    BuzzReply,
    LampFault,
    Lamps,
    LampsReply,
    Stuck,
)

EVENTS: Final[dict[int, type[Event]]] = {
    0x01: Power,
    0x02: Tamper,
    0x03: Fault,
    0x04: LogPressure,
    0x05: Paired,
    0x10: CardRead,
    0x11: CardRetracted,
    0x12: ReadFail,
    0x13: CutCard,
    0x14: Loaded,
    0x15: Cover,
    0x16: ShoeJam,
    0x20: Started,
    0x21: Progress,
    0x22: Done,
    0x23: CountError,
    0x24: Door,
    0x25: ShufflerJam,
    0x30: Button,
    0x31: Stuck,
    0x32: LampFault,
}
COMMANDS: Final[dict[int, type[Command]]] = {
    0x40: Info,
    0x41: Resume,
    0x42: Selftest,
    0x50: Lock,
    0x51: Reread,
    0x60: Start,
    0x61: Eject,
    0x62: Abort,
    0x70: Arm,
    0x71: Lamps,
    0x72: Buzz,
}
REPLIES: Final[dict[int, type[Reply]]] = {
    0xC0: InfoReply,
    0xC1: ResumeReply,
    0xC2: SelftestReply,
    0xFF: Refused,
    0xD0: LockReply,
    0xD1: RereadReply,
    0xE0: StartReply,
    0xE1: EjectReply,
    0xE2: AbortReply,
    0xF0: ArmReply,
    0xF1: LampsReply,
    0xF2: BuzzReply,
}
CONTROLS: Final[dict[int, type[Control]]] = {
    0x80: HostBeat,
    0x81: DeviceBeat,
    0x82: EvtAck,
    0x83: EvtNak,
    0x84: TimeAsk,
    0x85: TimeAnswer,
    0x86: PairDone,
}
MESSAGES: Final[dict[int, type[Message]]] = {
    **EVENTS,
    **COMMANDS,
    **REPLIES,
    **CONTROLS,
}
RESERVED: Final = {
    range(0x08, 0x0C): "firmware update, events",
    range(0x18, 0x20): "a shoe that conceals the hole card itself, events",
    range(0x48, 0x50): "firmware update, commands (signed image; table closed; two people)",
    range(0x58, 0x60): "a shoe that conceals the hole card itself, commands",
    range(0xC8, 0xD0): "firmware update, replies",
    range(0xD8, 0xE0): "a shoe that conceals the hole card itself, replies",
}
"""Reserved ids, and their purpose."""
