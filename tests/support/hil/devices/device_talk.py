"""What tests say to a device again and again."""

from __future__ import annotations

from firmware_protocol.device import RingMemory, ServiceSwitch
from firmware_protocol.messages import Command, EvtNak, FrameKind, NakWhy, Tamper, TamperSource
from firmware_protocol.tablelink import CommandReply, EventRecord
from tests.support.hil.devices.plain_device import MS, Bench
from tests.support.hil.devices.raw_host import BOOT, STRANGER, RawHost

WRONG = bytes(16)
"""A label code that is no device's."""


# --- commands -------------------------------------------------------------------------------


def raw(ident: int, body: bytes = b"", *, size: int = 56, **changes: int) -> bytes:
    """A command's plaintext by hand."""
    head = {"flags": 0, "length": len(body), "command_id": 77, "boot": BOOT} | changes
    return (
        bytes((2, head["flags"], ident, head["length"]))
        + head["command_id"].to_bytes(4, "little")
        + head["boot"].to_bytes(8, "little")
        + body
    ).ljust(size, b"\0")


def replies(bench: Bench, *plaintexts: bytes) -> list[object]:
    before = len(bench.host.all(CommandReply))
    for plaintext in plaintexts:
        bench.say(bench.host.seal(plaintext))
    return [one.reply for one in bench.host.all(CommandReply)[before:]]


def ask(bench: Bench, command: Command, command_id: int = 0, boot: int = BOOT) -> object:
    """The reply to a command, under a new id or as a repeat."""
    before = len(bench.host.all(CommandReply))
    again = bench.host.again(command, command_id, boot) if command_id else bench.host.call(command)
    bench.say(again)
    new = bench.host.all(CommandReply)[before:]
    return new[0].reply if new else None


# --- records --------------------------------------------------------------------------------


def flowing(bench: Bench) -> int:
    """Records flow, and all that were there are acknowledged. The moment it is now."""
    bench.flowing()
    bench.run(1)
    return bench.now


def nak(bench: Bench, first: int, epoch: int | None = None) -> None:
    ring = bench.device.ring
    bench.say(bench.host.seal(EvtNak(epoch or ring.epoch, first, NakWhy.GAP)))


def sent(bench: Bench, since: int) -> list[tuple[float, int]]:
    """When which record came, in milliseconds since then."""
    return [
        ((came - since) / MS, record.seq) for came, record in bench.host.timed(EventRecord, since)
    ]


def fill(bench: Bench) -> None:
    bench.device.request(RingMemory("fill"), bench.now)
    bench.collect()


# --- pairing --------------------------------------------------------------------------------


def new_host(bench: Bench) -> RawHost:
    bench.host = RawHost(bench.identity.public, STRANGER)
    return bench.host


def pair(bench: Bench, code: bytes | None = None) -> bool:
    """Pairing with this code; whether PAIR_DONE came."""
    host = bench.host
    before = len(host.pair_done()), len(host.frames(FrameKind.PAIR2))
    bench.say(host.hello())
    shake = host.xx(bench.identity.label if code is None else code)
    bench.say(host.pair1(shake))
    if len(host.frames(FrameKind.PAIR2)) == before[1]:
        return False
    bench.say(host.pair3(shake))
    return len(host.pair_done()) > before[0]


def switch(bench: Bench, on: bool) -> None:
    assert bench.device.request(ServiceSwitch(on), bench.now) == {"service": on}


def tampers(bench: Bench, source: TamperSource) -> list[bool]:
    return [
        one.active for one in bench.events() if isinstance(one, Tamper) and one.source is source
    ]
