"""A device with scripted responses, built only from framing and noise.

By itself it behaves: it answers HELLO and HS1, INFO and RESUME, and keeps a list of records. A
test then mutes it, changes what it answers, or lets it say anything under the session's keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.host import (
    NO_CURSOR,
    FrameRejected,
    HandshakeFailed,
    HostLink,
    LinkEvent,
    ProtocolViolated,
    RecordCursor,
    RecordReceived,
    RingHeld,
)
from firmware_protocol.messages import (
    SCHEMA_HASHES,
    Capabilities,
    Command,
    Cover,
    DeviceBeat,
    DeviceClass,
    DeviceState,
    Event,
    FrameKind,
    FrameLimit,
    HelloRsp,
    Info,
    InfoReply,
    Lock,
    LockReply,
    LockState,
    PowerCause,
    Reply,
    Resume,
    ResumeMode,
    ResumeReply,
    TimeAnswer,
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
    chained,
    decode_plaintext,
    encode_plaintext,
    fingerprint,
    prologue,
)

OWN = X25519PrivateKey.from_private_bytes(bytes(range(32)))
DEVICE = X25519PrivateKey.from_private_bytes(bytes(range(1, 33)))
DEVICE_KEY = DEVICE.public_key().public_bytes_raw()
BOOT = 0x1122334455667788
SERIAL = "SN-1"
EPOCH = 0xE90C
MS = 1000
START = 5_000_000
_E = TypeVar("_E")


def records(count: int, *, epoch: int = EPOCH, event: Event | None = None) -> list[EventRecord]:
    """The first records of a ring."""
    out: list[EventRecord] = []
    for seq in range(1, count + 1):
        before = out[-1].chain if out else NO_CHAIN
        what = event if event is not None else Cover(open=seq % 2 == 1)
        out.append(chained(before, epoch=epoch, seq=seq, boot=1, t_us=seq, event=what))
    return out


class Scripted:
    """The other end of a link's wire."""

    def __init__(
        self,
        count: int = 0,
        *,
        answer: dict[str, Any] | None = None,
        mute: Iterable[type | FrameKind] = (),
        oldest: int = 1,
        verdict: Verdict | None = None,
    ) -> None:
        self.key = DEVICE
        self.host = OWN.public_key().public_bytes_raw()
        self.answer = answer or {}
        """Fields of HELLO_RSP to replace."""
        self.records = records(count)
        self.epoch = EPOCH
        self.device_class = DeviceClass.SHOE
        self.oldest = oldest
        self.acked = 0
        """The highest acknowledged seq; RESUME sets it."""
        self.mute = set(mute)
        """Frames and commands that it does not answer."""
        self.replies: dict[type[Command], Callable[[Any], Reply]] = {
            Info: self._info,
            Resume: self._resume,
            Lock: lambda lock: LockReply(lock.state),
        }
        self.verdict = verdict
        """The response to RESUME, correct or not."""
        self.said: list[Plaintext] = []
        """Plaintexts of the host, in order."""
        self.frames: list[Frame] = []
        """All frames of the host."""
        self.out = bytearray()
        self.sealers: list[Sealer] = []
        """Of all sessions; the last one is the newest."""
        self.openers: list[Opener] = []
        self._deframer = Deframer()
        self._greeting: tuple[Frame, Frame] | None = None

    # --- what a test makes it say ---

    @property
    def session(self) -> int:
        return self.sealers[-1].session

    def say(self, what: Plaintext | bytes) -> None:
        """Under the keys of the newest session."""
        data = what if isinstance(what, bytes) else encode_plaintext(what)
        self.out += self.sealers[-1].seal(data).encode()

    def beat(self) -> None:
        epoch, head = self.epoch, len(self.records)
        self.say(DeviceBeat(epoch, head, 1, 0, 0, DeviceState.PAIRED, 0, 0))

    def send(self, *seqs: int) -> None:
        for seq in seqs:
            self.say(self.records[seq - 1])

    def received(self, kind: type) -> list[Any]:
        """What of this kind the host said: controls, or commands without their call."""
        out: list[Any] = []
        for what in self.said:
            inner = what.command if isinstance(what, CommandCall) else what
            if isinstance(inner, kind):
                out.append(inner)
        return out

    def ids(self, kind: FrameKind) -> list[int]:
        """The session ids of the host's frames of this kind."""
        return [frame.session for frame in self.frames if frame.kind is kind]

    # --- default replies ---

    def receive(self, data: bytes) -> None:
        for what in self._deframer.feed(data):
            assert not isinstance(what, FrameDamage), what
            self.frames.append(what)
            if what.kind is FrameKind.DATA:
                self._data(what)
            elif what.kind not in self.mute:
                (self._hello if what.kind is FrameKind.HELLO else self._hs1)(what)

    def take(self) -> bytes:
        out = bytes(self.out)
        self.out.clear()
        return out

    def hello_rsp(self) -> HelloRsp:
        fields: dict[str, Any] = {
            "version_min": 1,
            "version_max": 1,
            "device_class": DeviceClass.SHOE,
            "largest": FrameLimit.LARGE,
            "capabilities": Capabilities.GATE,
            "schema": SCHEMA_HASHES[1],
            "fingerprint": fingerprint(self.key.public_key().public_bytes_raw()),
            "random": len(self.frames).to_bytes(8, "little"),
            "maker": "Maker",
            "model": "Model",
            "serial": SERIAL,
            "state": DeviceState.PAIRED,
        }
        return HelloRsp(**{**fields, **self.answer})

    def _hello(self, frame: Frame) -> None:
        sent = Frame(FrameKind.HELLO_RSP, frame.session, 0, self.hello_rsp().encode())
        self._greeting = frame, sent
        self.out += sent.encode()

    def _hs1(self, frame: Frame) -> None:
        assert self._greeting is not None
        shake = Handshake.kk("device", prologue(*self._greeting), self.key, self.host)
        shake.read(frame.payload)
        answer = Frame(FrameKind.HS2, frame.session, 0, shake.write())
        keys = shake.split()
        self.sealers.append(Sealer(keys.send, frame.session))
        self.openers.append(Opener(keys.receive, frame.session))
        self.out += answer.encode()

    def _data(self, frame: Frame) -> None:
        opener = next(one for one in self.openers if one.session == frame.session)
        what = decode_plaintext(opener.open(frame), sender="host", device_class=self.device_class)
        self.said.append(what)
        if opener is self.openers[-1]:
            self._answer(what)

    def _answer(self, what: Plaintext) -> None:
        if isinstance(what, TimeAsk) and TimeAsk not in self.mute:
            self.say(TimeAnswer(what.t1, what.t1 + 1_000_000, what.t1 + 1_000_010))
        if isinstance(what, CommandCall):
            kind = type(what.command)
            if kind not in self.mute and kind in self.replies:
                reply = self.replies[kind](what.command)
                self.say(CommandReply(what.command_id, what.host_boot, reply))

    def _info(self, _: Info) -> Reply:
        return InfoReply(bytes(32), 1, PowerCause.POWER_ON, 128, DeviceState.PAIRED)

    def _resume(self, resume: Resume) -> Reply:
        head = len(self.records)
        chain = self.records[-1].chain if head else NO_CHAIN
        verdict = self._right(resume, head) if self.verdict is None else self.verdict
        if verdict is Verdict.OK:
            self.acked = resume.next - 1
        known = self.oldest <= self.acked <= head
        before = self.records[self.acked - 1].chain if known else NO_CHAIN
        return ResumeReply(self.epoch, self.oldest, head, chain, verdict, self.acked, before)

    def _right(self, resume: Resume, head: int) -> Verdict:
        if resume.epoch != self.epoch:
            return Verdict.NEW_EPOCH
        if resume.next > head + 1:
            return Verdict.FORK
        if resume.mode is ResumeMode.CHECK and resume.next <= self.acked:
            return Verdict.BEHIND
        if resume.next < self.oldest:
            return Verdict.GAP
        before = self.records[resume.next - 2].chain if resume.next > 1 else NO_CHAIN
        fits = resume.mode is ResumeMode.ADOPT or resume.chain == before
        return Verdict.OK if fits else Verdict.FORK


def lock(state: LockState = LockState.OPEN) -> Lock:
    return Lock(state)


def seqs(events: Iterable[Any]) -> list[int]:
    """The seqs of what arrived."""
    return [event.record.seq for event in events if hasattr(event, "record")]


def defects(events: Iterable[LinkEvent]) -> list[type]:
    """The kinds of error of the defects, and the kinds of whatever else was told."""
    return [type(one.error if isinstance(one, ProtocolViolated) else one) for one in events]


class Wired:
    """Each step passes bytes in both directions until both sides are silent."""

    def __init__(
        self,
        device: Scripted | None = None,
        *,
        cursor: RecordCursor = NO_CURSOR,
        adopt: bool = True,
        **more: Any,
    ) -> None:
        self.device = device or Scripted()
        fields: dict[str, Any] = {
            "device_class": DeviceClass.SHOE,
            "serial": SERIAL,
            "host_boot": BOOT,
            **more,
        }
        self.link = HostLink(OWN, fields.pop("key", DEVICE_KEY), cursor=cursor, **fields)
        self.now = START
        self.events: list[LinkEvent] = []
        self.cut = False
        """Nothing gets through."""
        self._adopt = adopt

    @classmethod
    def opened(cls, device: Scripted | None = None, **more: Any) -> Wired:
        """A link whose port is open: what the device answers was taken."""
        wired = cls(device, **more)
        wired.open()
        return wired

    @classmethod
    def running(cls, count: int = 0, **more: Any) -> Wired:
        """A link whose session was resumed before the first of `count` records."""
        wired = cls.opened(Scripted(count), cursor=RecordCursor(EPOCH, 0, NO_CHAIN), **more)
        assert wired.link.resumed, wired.events
        return wired

    def open(self) -> None:
        self.take(self.link.open(self.now))
        self.settle()

    def take(self, events: list[LinkEvent]) -> None:
        self.events += events

    def settle(self) -> None:
        """Pass the buffered bytes in both directions."""
        while True:
            data, back = self.link.take(), self.device.take()
            if not self.cut:
                self.device.receive(data)
                if back:
                    self.take(self.link.receive(back, self.now))
            if not data and not back:
                return

    def pass_ms(self, ms: float, *, beats: bool = True) -> None:
        """Let time pass; the device beats when the link does something."""
        end = self.now + int(ms * MS)
        while True:
            due = self.link.due()
            at = end if due is None else min(max(due, self.now), end)
            if due is None or due > end:
                self.now = end
                self.settle()
                return
            self.now = at
            self.take(self.link.wake(at))
            due = self.link.due()
            assert due is None or due > at, "wake() has left something that is due"
            if beats and self.device.sealers and not self.cut:
                self.device.beat()
            self.settle()

    def say(self, *what: Any) -> list[LinkEvent]:
        """Send this from the device. Returns the events of the link."""
        before = len(self.events)
        for one in what:
            self.device.say(one)
        self.settle()
        return self.events[before:]

    def hear(self, *frames: Frame | bytes) -> None:
        """The link gets these from the wire."""
        for frame in frames:
            self.device.out += frame if isinstance(frame, bytes) else frame.encode()
        self.settle()

    def beat(self) -> None:
        """The device sends its heartbeat."""
        self.device.beat()
        self.settle()

    def send(self, *seqs: int) -> list[LinkEvent]:
        """The device sends these records."""
        return self.say(*(self.device.records[seq - 1] for seq in seqs))

    def call(self, command: Command) -> int:
        ident = self.link.call(command, self.now)
        self.settle()
        return ident

    def stored(self, seq: int) -> None:
        self.link.stored(seq, self.now)
        self.settle()

    def adopt(self, *, skip: bool = False) -> None:
        """Two people adopt the held ring."""
        self.link.adopt(self.now, skip=skip)
        self.settle()

    def of(self, kind: type[_E]) -> list[_E]:
        """The events of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    def errors(self, kind: type[HandshakeFailed | FrameRejected | ProtocolViolated]) -> list[type]:
        """The kinds of error in the events of this kind."""
        return [type(event.error) for event in self.of(kind)]

    @property
    def verdicts(self) -> list[Verdict]:
        """For which the ring was held."""
        return [event.verdict for event in self.of(RingHeld)]

    @property
    def seqs(self) -> list[int]:
        """The seqs of what arrived."""
        return [record.seq for record in self.arrived]

    @property
    def arrived(self) -> list[EventRecord]:
        return [event.record for event in self.of(RecordReceived)]

    def forget(self) -> None:
        """Forget all former events and frames."""
        self.events.clear()
        self.device.said.clear()
        self.device.frames.clear()
