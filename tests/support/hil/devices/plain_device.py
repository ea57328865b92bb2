"""The simplest device there can be, and the time in which it lives."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firmware_protocol.device import (
    Answer,
    CannotDo,
    CommandRefusal,
    ControlRequest,
    CoreServices,
    Device,
    PowerCut,
    RingMemory,
    ServiceSwitch,
    create_identity,
    pair_directly,
)
from firmware_protocol.messages import (
    Abort,
    AbortReply,
    Capabilities,
    Command,
    Cover,
    DeviceClass,
    DeviceState,
    Door,
    Eject,
    Event,
    EvtNak,
    FaultCode,
    FrameKind,
    Info,
    NakWhy,
    PowerCause,
    Refusal,
    Reply,
    Reread,
    RereadReply,
    ResumeReply,
    Start,
    Started,
    StartReply,
    Tamper,
    TamperSource,
    TimeAsk,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandReply, EventRecord, Frame, decode_plaintext
from hil.faults import faulty_device
from tests.support.hil.devices.raw_host import BOOT, STRANGER, RawHost, ack, resume

MS = 1000
SECOND = 1000 * MS
EVENTS: dict[DeviceClass, Event] = {DeviceClass.SHOE: Cover(True), DeviceClass.SHUFFLER: Door(True)}


class Plain:
    """A mechanism that shows what the core asks of it."""

    capabilities = Capabilities(0)

    def __init__(self, device_class: DeviceClass = DeviceClass.SHUFFLER) -> None:
        self.device_class = device_class
        self.made_safe: list[int] = []
        self.done: list[Command] = []
        self.faults: tuple[tuple[FaultCode, int], ...] = ()
        self.locked = True
        self.alarm: int | None = None
        self.woken: list[int] = []
        self.desk: CoreServices

    def start(self, desk: CoreServices, now: int) -> None:
        self.desk = desk
        self.locked = True

    def command(self, command: Command, now: int) -> Reply:
        self.done.append(command)
        if isinstance(command, Start):
            if self.desk.full():
                raise CommandRefusal(Refusal.NOT_NOW)
            shuffle = self.desk.next_number("shuffle")
            self.locked = False
            self.desk.record(Started(shuffle, command.decks), now)
            return StartReply(shuffle)
        if isinstance(command, Abort):
            return AbortReply()
        if isinstance(command, Reread):
            return RereadReply(self.desk.reread(command.epoch, command.seq))
        if isinstance(command, Eject):
            raise CommandRefusal(Refusal.FAILED, 2)
        raise CommandRefusal(Refusal.UNSUPPORTED)

    def safe(self, now: int) -> None:
        self.locked = True
        self.made_safe.append(now)

    def state(self) -> DeviceState:
        return DeviceState.LOCKED if self.locked else DeviceState(0)

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        return self.faults

    def request(self, request: ControlRequest, now: int) -> Answer:
        raise CannotDo("nothing can be done here", "nothing")

    def wake(self, now: int) -> None:
        self.woken.append(now)
        self.alarm = None

    def due(self) -> int | None:
        return self.alarm


class Bench:
    """A device, a paired host, and a cable without noise. Time moves only by run()."""

    def __init__(
        self,
        folder: Path,
        *breaks: str,
        device_class: DeviceClass = DeviceClass.SHUFFLER,
        paired: bool = True,
        capacity: int = 128,
        now: int = 5 * SECOND,
    ) -> None:
        self.now = now
        self.place = folder / "device"
        self.breaks = set(breaks)
        self.random = random.Random(1)
        self.identity = create_identity(
            self.place, device_class, "SIM-1", rng=self.random.randbytes, capacity=capacity
        )
        self.host = RawHost(self.identity.public)
        if paired:
            pair_directly(self.place, self.host.public)
        self.lost = False
        """Whether what the device says is lost."""
        self.device = self.power_on()

    # --- power ---

    def power_on(self, cause: PowerCause = PowerCause.POWER_ON) -> Device:
        self.plain = Plain(self.identity.device_class)
        self.device = faulty_device(
            self.place,
            self.plain,
            now=self.now,
            cause=cause,
            breaks=self.breaks,
            sync=False,
            random=self.random.randbytes,
        )
        return self.device

    # --- time ---

    def collect(self) -> None:
        data = self.device.take()
        if not self.lost:
            self.host.hear(data, self.now)

    def say(self, *frames: Frame | bytes) -> None:
        for frame in frames:
            data = frame if isinstance(frame, bytes) else frame.encode()
            self.host.sent += data
            self.device.receive(data, self.now)
        self.collect()

    def run(self, ms: float, *, beats: bool = True) -> None:
        """Let so much time go by. The host sends what keeps the session alive."""
        end = self.now + int(ms * MS)
        alive = self.now + 500 * MS
        while True:
            due = self.device.due()
            moment = min(end, alive if beats else end, end if due is None else due)
            self.now = max(self.now, moment)
            self.device.wake(self.now)
            self.collect()
            if beats and self.now >= alive:
                alive = self.now + 500 * MS
                self.alive()
            due = self.device.due()
            if self.now >= end and (due is None or due > end):
                return

    def alive(self) -> None:
        if self.host.current is not None:
            self.say(self.host.seal(TimeAsk(self.now)))

    # --- sessions ---

    def shake(self) -> bool:
        """HELLO and handshake; whether HS2 came."""
        before = len(self.host.frames(FrameKind.HS2))
        self.say(self.host.hello())
        shake = self.host.kk()
        self.say(self.host.hs1(shake))
        if len(self.host.frames(FrameKind.HS2)) == before:
            return False
        self.host.begin(shake)
        return True

    def connect(self) -> None:
        """A session, as far as INFO."""
        assert self.shake()
        self.say(self.host.call(Info()))

    def resume(
        self, next_seq: int | None = None, chain: bytes | None = None, **more: Any
    ) -> Verdict:
        """RESUME from a record on; without one, from what the ring holds first."""
        ring = self.device.ring
        first = ring.oldest if next_seq is None else next_seq
        if chain is None:
            chain = ring.record(first - 1)[48:] if ring.holds(first - 1) else NO_CHAIN
        self.say(self.host.call(resume(more.pop("epoch", ring.epoch), first, chain, **more)))
        return self.host.last(ResumeReply).verdict

    def flowing(self, *, acked: bool = True) -> None:
        """A session whose records flow; all that were there are acknowledged."""
        self.connect()
        assert self.resume() is Verdict.OK
        if acked:
            self.ack()

    def ack(self, seq: int | None = None, window: int = 8) -> None:
        """Acknowledge, as often as it takes for all that is there."""
        ring = self.device.ring
        if seq is not None:
            self.say(self.host.seal(ack(ring.epoch, seq, window)))
            return
        session = self.device.sessions.running
        assert session is not None
        while session.sending is not None and session.sending.acked < ring.head:
            self.say(self.host.seal(ack(ring.epoch, session.sending.sent, window)))

    def happen(self, count: int = 1) -> None:
        """Something happens at the device."""
        for _ in range(count):
            self.device.record(EVENTS[self.identity.device_class], self.now)
        self.collect()

    def cut(self, frames: Iterable[Frame] = (), events: int = 0) -> PowerCut:
        """What is said or happens runs into the power cut that was armed."""
        try:
            for frame in frames:
                self.device.receive(frame.encode(), self.now)
            for _ in range(events):
                self.device.record(EVENTS[self.identity.device_class], self.now)
        except PowerCut as cut:
            self.collect()
            return cut
        raise AssertionError("the power was not cut")

    def ring_records(self) -> list[EventRecord]:
        ring = self.device.ring
        return [_record(ring.record(seq)) for seq in range(ring.oldest, ring.head + 1)]

    def events(self) -> list[Event]:
        return [record.event for record in self.ring_records()]


def _record(data: bytes) -> EventRecord:
    record = decode_plaintext(data, sender="device")
    assert isinstance(record, EventRecord)
    return record


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
