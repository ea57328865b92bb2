"""The simplest device there can be, a host without a link, and the time in which they live.

The host says what a test tells it to say, and notes all that comes. It is made of frames,
handshakes and plaintexts only, so that a device is held to the page and not to our own host.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

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
    SCHEMA_HASHES,
    Abort,
    AbortReply,
    Alert,
    Capabilities,
    Command,
    Cover,
    DeviceClass,
    DeviceState,
    Door,
    Eject,
    Event,
    EvtAck,
    EvtNak,
    FaultCode,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
    Info,
    NakWhy,
    PairDone,
    PowerCause,
    Refusal,
    Reply,
    Reread,
    RereadReply,
    Resume,
    ResumeMode,
    ResumeReply,
    Start,
    Started,
    StartReply,
    Tamper,
    TamperSource,
    TimeAsk,
    Verdict,
)
from firmware_protocol.tablelink import (
    NO_CHAIN,
    CommandCall,
    CommandReply,
    Deframer,
    EventRecord,
    Frame,
    FrameDamage,
    Handshake,
    Opener,
    Plaintext,
    Sealer,
    decode_plaintext,
    encode_plaintext,
    fingerprint,
    label_psk,
    prologue,
)
from hil.faults import faulty_device

BOOT = 0x1122334455667788
HOST_KEY = X25519PrivateKey.from_private_bytes(bytes(range(32)))
STRANGER = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
T = TypeVar("T")


class Came(Struct, frozen=True):
    """Something that came, and when."""

    now: int
    session: int
    counter: int
    what: Any
    """A decoded plaintext, an Alert, or the Frame itself for all other kinds."""
    size: int


class Keys(Struct):
    """A session as the host has it."""

    id: int
    sealer: Sealer
    opener: Opener


class RawHost:
    def __init__(self, device_key: bytes, own: X25519PrivateKey = HOST_KEY) -> None:
        self.own = own
        self.device_key = device_key
        self.boot = BOOT
        self.came: list[Came] = []
        self.sent = bytearray()
        """All that was said, as it went onto the wire."""
        self.sessions: dict[int, Keys] = {}
        self.current: Keys | None = None
        self.command_id = 0
        self._picked = 100
        self._deframer = Deframer()
        self._said: Frame | None = None

    @property
    def public(self) -> bytes:
        return self.own.public_key().public_bytes_raw()

    # --- what comes ---

    def hear(self, data: bytes, now: int) -> None:
        for heard in self._deframer.feed(data):
            assert not isinstance(heard, FrameDamage), heard
            self.came.append(
                Came(now, heard.session, heard.counter, self._what(heard), len(heard.decoded()))
            )

    def _what(self, frame: Frame) -> Any:
        if frame.kind is FrameKind.ALERT:
            return Alert.decode(frame.payload)
        if frame.kind is not FrameKind.DATA:
            return frame
        opened = self.sessions[frame.session].opener.open(frame)
        return decode_plaintext(opened, sender="device")

    def all(self, kind: type[T], since: int = 0) -> list[T]:
        """What came of this kind since the moment; events, replies and controls by themselves."""
        return [what for _, what in self.timed(kind, since)]

    def timed(self, kind: type[T], since: int = 0) -> list[tuple[int, T]]:
        return [
            (came.now, what)
            for came in self.came
            for what in _layers(came.what)
            if isinstance(what, kind) and came.now >= since
        ]

    def last(self, kind: type[T]) -> T:
        return self.all(kind)[-1]

    def frames(self, kind: FrameKind) -> list[Frame]:
        return [one for one in self.all(Frame) if one.kind is kind]

    # --- what is said ---

    def hello(self, **changes: Any) -> Frame:
        self._picked += 1
        fields = {
            "version_min": 1,
            "version_max": 1,
            "device_class": DeviceClass.ANY,
            "largest": FrameLimit.LARGE,
            "schema": SCHEMA_HASHES[1],
            "fingerprint": fingerprint(self.public),
        }
        payload = Hello(**{**fields, **changes}).encode()
        self._said = Frame(FrameKind.HELLO, self._picked, 0, payload)
        return self._said

    def answer(self) -> Frame:
        return self.frames(FrameKind.HELLO_RSP)[-1]

    def prologue(self) -> bytes:
        assert self._said is not None
        return prologue(self._said, self.answer())

    def kk(self, bound: bytes | None = None) -> Handshake:
        """A handshake after the last HELLO_RSP, or after another prologue."""
        return Handshake.kk("host", bound or self.prologue(), self.own, self.device_key)

    def hs1(self, shake: Handshake, version: int = 1) -> Frame:
        return Frame(FrameKind.HS1, self.answer().session, 0, shake.write(), version)

    def begin(self, shake: Handshake) -> Keys:
        """The keys of the HS2 that came last."""
        answer = self.frames(FrameKind.HS2)[-1]
        shake.read(answer.payload)
        return self._keep(shake, answer.session)

    def _keep(self, shake: Handshake, session: int) -> Keys:
        keys = shake.split()
        kept = Keys(session, Sealer(keys.send, session), Opener(keys.receive, session))
        self.sessions[session] = self.current = kept
        return kept

    def xx(self, code: bytes) -> Handshake:
        return Handshake.xxpsk3("host", self.prologue(), self.own, label_psk(code))

    def pair1(self, shake: Handshake) -> Frame:
        return Frame(FrameKind.PAIR1, self.answer().session, 0, shake.write(), 1)

    def pair3(self, shake: Handshake) -> Frame:
        answer = self.frames(FrameKind.PAIR2)[-1]
        shake.read(answer.payload)
        frame = Frame(FrameKind.PAIR3, answer.session, 0, shake.write(), 1)
        self._keep(shake, answer.session)
        return frame

    def pair_done(self) -> list[PairDone]:
        return self.all(PairDone)

    def seal(self, plaintext: bytes | Plaintext, keys: Keys | None = None) -> Frame:
        session = keys or self.current
        assert session is not None
        raw = plaintext if isinstance(plaintext, bytes) else encode_plaintext(plaintext)
        return session.sealer.seal(raw)

    def call(self, command: Command, keys: Keys | None = None) -> Frame:
        """The command under the next id."""
        self.command_id += 1
        return self.seal(CommandCall(self.command_id, self.boot, command), keys)

    def again(self, command: Command, command_id: int, boot: int = BOOT) -> Frame:
        return self.seal(CommandCall(command_id, boot, command))

    # --- what came, in short ---

    def records(self) -> list[EventRecord]:
        return self.all(EventRecord)

    def seqs(self, since: int = 0) -> list[int]:
        return [record.seq for record in self.all(EventRecord, since)]

    def hello_rsp(self) -> HelloRsp:
        return HelloRsp.decode(self.answer().payload)


def _layers(what: Any) -> Iterator[Any]:
    yield what
    if isinstance(what, EventRecord):
        yield what.event
    elif isinstance(what, CommandReply):
        yield what.reply


def resume(
    epoch: int, next_seq: int = 1, chain: bytes = NO_CHAIN, mode: ResumeMode = ResumeMode.CHECK
) -> Resume:
    return Resume(epoch, next_seq, chain, mode)


def ack(epoch: int, seq: int, window: int = 8) -> EvtAck:
    return EvtAck(epoch, seq, window)


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
        match command:
            case Start():
                if self.desk.full():
                    raise CommandRefusal(Refusal.NOT_NOW)
                shuffle = self.desk.next_number("shuffle")
                self.locked = False
                self.desk.record(Started(shuffle, command.decks), now)
                return StartReply(shuffle)
            case Abort():
                return AbortReply()
            case Reread():
                return RereadReply(self.desk.reread(command.epoch, command.seq))
            case Eject():
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
        """RESUME from a record on; without one, from the first that is not acknowledged."""
        ring = self.device.ring
        first = max(ring.oldest, ring.acked.seq + 1) if next_seq is None else next_seq
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
    bench.say(bench.host.seal(EvtNak(epoch or bench.device.ring.epoch, first, NakWhy.GAP)))


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
