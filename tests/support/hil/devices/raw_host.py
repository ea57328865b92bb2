"""A host without a link: it says what a test tells it to say, and notes all that comes.

Made of frames, handshakes and plaintexts only, so that a device is held to the page and not to
the host that we ship.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.messages import (
    SCHEMA_HASHES,
    Alert,
    Command,
    DeviceClass,
    EvtAck,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
    PairDone,
    Resume,
    ResumeMode,
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
        self._said = Frame(
            FrameKind.HELLO, self._picked, 0, Hello(**{**fields, **changes}).encode()
        )
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
