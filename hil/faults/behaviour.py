"""The faulty firmware: each break of the core overrides the rule that it violates.

Breaks of one class of device (hil.faults.catalogue) are part of its mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from firmware_protocol.device import Behaviour, CommandKey, RandomBytes
from firmware_protocol.messages import (
    COMMANDS,
    CRC_SIZE,
    HEADER_SIZE,
    HEARTBEAT_MS,
    MAX_ENCODED,
    TAG_SIZE,
    CardRead,
    Command,
    DeviceClass,
    Event,
    FrameKind,
    FrameLimit,
    Hello,
    InfoReply,
    OutOfRange,
    PlaintextType,
    Refused,
    Reply,
    Resume,
    ResumeMode,
    Unfit,
    Verdict,
)
from firmware_protocol.tablelink import (
    NO_CHAIN,
    Cause,
    CommandCall,
    Deframer,
    Frame,
    FrameDamage,
    FrameOrDamage,
    Opener,
    Plaintext,
    Sealer,
    cobs_decode,
    cobs_encode,
    crc32c,
)

IsBroken = Callable[[str], bool]
_PAUSE_US: Final = 5_000
_LATE_US: Final = 700_000
_NO_BACKOFF_US: Final = 50_000
_UNLIMITED: Final = 0xFF


def _rule(name: str, *, broken: bool = True) -> Callable[[FaultyBehaviour], bool]:
    """A rule without arguments whose value is `broken` while this break is on."""

    def method(self: FaultyBehaviour) -> bool:
        return self.broken(name) is broken

    return method


class FaultyBehaviour(Behaviour):
    """The firmware with the breaks that are switched on."""

    def __init__(self, breaks: set[str]) -> None:
        """`breaks`: the owner may change the set at any time."""
        self._broken = breaks.__contains__
        self.started()

    def started(self) -> None:
        self._receiver = _Receiver(self._broken)
        self._random: bytes | None = None

    def broken(self, name: str) -> bool:
        return self._broken(name)

    # --- frames and HELLO ---

    def deframe(self, deframer: Deframer, data: bytes, now: int) -> list[FrameOrDamage]:
        return self._receiver.deframe(deframer, data, now)

    def read_hello(self, payload: bytes) -> Hello:
        if self._broken("hello-unchecked"):
            payload = bytes((1, 1, 0, FrameLimit.LARGE)) + payload[4:]
        if self._broken("padding-unchecked"):
            payload = payload[:4] + bytes(4) + payload[8:]
        return super().read_hello(payload)

    def hello_random(self, draw: RandomBytes) -> bytes:
        if not (self._broken("hello-random-fixed") or self._broken("replay-taken")):
            return super().hello_random(draw)
        if self._random is None:
            self._random = super().hello_random(draw)
        return self._random

    def common_version(self, hello: Hello) -> int | None:
        version = super().common_version(hello)
        return 1 if version is None and self._broken("version-ignored") else version

    def schema(self, version: int) -> bytes:
        schema = super().schema(version)
        return schema[::-1] if self._broken("schema-wrong") else schema

    # --- handshake and session ---

    def unopened_hs1(self, draw: RandomBytes) -> bytes | None:
        return draw(48) if self._broken("stranger-answered") else None

    def continues_hello(self, hello: int, session: int) -> bool:
        return hello == session or self._broken("handshake-id-unchecked")

    hello_serves_again = _rule("replay-taken")
    hello_ends_session = _rule("hello-ends-session")
    hs1_ends_session = _rule("hs1-ends-session")
    keeps_former_session = _rule("former-session-kept")

    def pending_ends(self, created: int) -> int | None:
        return None if self._broken("pending-for-ever") else super().pending_ends(created)

    def opener(self, key: bytes, session: int, version: int) -> Opener:
        return _Opener(self._broken, key, session, version)

    def sealer(self, key: bytes, session: int, version: int) -> Sealer:
        return _Sealer(self._broken, key, session, version)

    def session_ends(self, received: int) -> int | None:
        return None if self._broken("lives-for-ever") else super().session_ends(received)

    def beat_after_sending(self, beat: int, now: int) -> int:
        return now + 1000 * HEARTBEAT_MS if self._broken("beat-when-idle") else beat

    malformed_is_damage = _rule("malformed-is-damage")

    def refusal_counts(self, reply: Reply) -> bool:
        return isinstance(reply, Refused) and self._broken("refusals-counted")

    def counts(self, damaged: int, refused: int) -> tuple[int, int]:
        return (0, 0) if self._broken("counts-nothing") else (damaged, refused)

    def clock(self, elapsed: int) -> int:
        return elapsed * 102 // 100 if self._broken("clock-fast") else elapsed

    # --- pairing ---

    def pairing_is_on(self, service: bool) -> bool:
        return service or self._broken("pairs-without-switch")

    def locked_out(self, wrong_codes: int) -> bool:
        return super().locked_out(wrong_codes) and not self._broken("no-lockout")

    records_wrong_code = _rule("wrong-code-silent", broken=False)
    pairing_ends_session = _rule("pairing-keeps-session", broken=False)
    ends_session_first = _rule("paired-too-early", broken=False)

    # --- records ---

    def chains_to(self, chain: bytes) -> bytes:
        return NO_CHAIN if self._broken("chain-wrong") else chain

    def follows(self, record: bytes, previous: bytes) -> bool:
        if self._broken("chain-wrong") and super().follows(record, NO_CHAIN):
            return True
        return super().follows(record, previous)

    sends_before_commit = _rule("sent-before-commit")

    def has_room(self, room: bool) -> bool:
        return room or self._broken("ring-overwrites")

    def is_full(self, full: bool) -> bool:
        return full and not self._broken("ring-overwrites")

    def alert_of(self, event: Event) -> int | None:
        if isinstance(event, CardRead) and self._broken("card-in-clear"):
            return event.card
        return None

    # --- sending ---

    def stops(self, verdict: Verdict) -> bool:
        return verdict is Verdict.OK or not self._broken("first-resume-counts")

    def verdict(self, verdict: Verdict, resume: Resume) -> Verdict:
        if self._broken("fork-unnoticed"):
            return Verdict.OK
        if resume.mode is ResumeMode.ADOPT and self._broken("adopt-refused"):
            return Verdict.FORK
        return verdict

    sends_unasked = _rule("events-before-resume")

    def first_sent(self, wanted: int, sent_before: int) -> int:
        if self._broken("forgets-unacked"):
            return max(wanted, sent_before + 1)
        return wanted

    def resend_wait(self, times: int) -> int | None:
        if self._broken("never-resends"):
            return None
        return _NO_BACKOFF_US if self._broken("no-backoff") else super().resend_wait(times)

    def window(self, granted: int) -> int:
        return _UNLIMITED if self._broken("window-ignored") else granted

    def last_of(self, sent: int, limit: int) -> int:
        # Window 0 still stops them: due() checks it.
        return sent if self._broken("repeats-beyond-window") else super().last_of(sent, limit)

    def takes_window(self, *, older: bool) -> bool:
        return not (older and self._broken("old-acks-ignored"))

    def nak_is_ours(self, ours: bool) -> bool:
        return ours or self._broken("nak-epoch-unchecked")

    def wait_after_nak(self, oldest: int) -> tuple[int, ...]:
        return () if self._broken("nak-keeps-wait") else super().wait_after_nak(oldest)

    heeds_nak = _rule("nak-ignored", broken=False)
    sent_is_received = _rule("skips-after-loss")

    def sent_after_ack(self, acked: int) -> tuple[int, ...]:
        return (acked,) if self._broken("acked-again") else ()

    # --- commands ---

    def readable(self, data: bytes) -> bytes:
        if not self._broken("padding-unchecked"):
            return data
        fields = 16 if data[0] in (PlaintextType.COMMAND, PlaintextType.REPLY) else 4
        end = fields + data[3]
        return data[:1] + b"\0" + data[2:end] + bytes(len(data) - end)

    def decode(self, data: bytes, device_class: DeviceClass) -> Plaintext:
        try:
            return super().decode(data, device_class)
        except OutOfRange:
            if data[0] != PlaintextType.COMMAND or not self._broken("ranges-unchecked"):
                raise
            return _unchecked_call(data)

    answers_unknown = _rule("unknown-silent", broken=False)
    ignores_repeat_in_progress = _rule("busy-with-itself", broken=False)
    caches_replies = _rule("results-forgotten", broken=False)

    def memory_key(self, key: CommandKey) -> CommandKey:
        return (0, key[1]) if self._broken("boot-ignored") else key

    refuses_stale = _rule("stale-taken", broken=False)

    def may_be_stale(self, *, idempotent: bool) -> bool:
        return super().may_be_stale(idempotent=idempotent) or self._broken("stale-for-all")

    needs_resume = _rule("resume-unneeded", broken=False)

    def reply_after(self, reply: Reply, *, first: bool) -> int | None:
        if first and isinstance(reply, InfoReply) and self._broken("info-first"):
            return None
        return _LATE_US if self._broken("late-replies") else 0


class _Receiver:
    """Breaks of receiving, in front of a correct deframer."""

    def __init__(self, broken: IsBroken) -> None:
        self._broken = broken
        self._deaf = False
        self._heard_at = 0
        self._part = b""

    def deframe(self, deframer: Deframer, data: bytes, now: int) -> list[FrameOrDamage]:
        if self._deaf:
            return []
        if self._broken("frames-timed") and now - self._heard_at > _PAUSE_US:
            deframer.reset()
        self._heard_at = now
        if self._broken("crc-unchecked"):
            data = self._with_right_crcs(data)
        heard = deframer.feed(data)
        if self._broken("resync-lost"):
            self._deaf = any(
                isinstance(h, FrameDamage) and h.cause is Cause.OVERSIZE for h in heard
            )
        return heard

    def _with_right_crcs(self, data: bytes) -> bytes:
        *whole, self._part = (self._part + data).split(b"\0")
        out = b"".join(_with_right_crc(encoded) + b"\0" for encoded in whole)
        if len(self._part) > MAX_ENCODED:
            out, self._part = out + self._part, b""
        return out


def _with_right_crc(encoded: bytes) -> bytes:
    decoded = cobs_decode(encoded)
    if decoded is None or len(decoded) < HEADER_SIZE + CRC_SIZE:
        return encoded
    body = decoded[:-CRC_SIZE]
    if body[0] & 0xF == FrameKind.DATA:
        return encoded
    return cobs_encode(body + crc32c(body).to_bytes(CRC_SIZE, "little"))


class _Opener(Opener):
    def __init__(self, broken: IsBroken, key: bytes, session: int, version: int) -> None:
        super().__init__(key, session, version)
        self._broken = broken
        self._key = key

    def open(self, frame: Frame) -> bytes:
        if self._broken("counter-unchecked"):
            self.last = -1
        if self._broken("tag-unchecked") and frame.counter > self.last:
            self.last = frame.counter
            # Block 0 of the stream is the tag's key; the plaintext starts with block 1.
            nonce = (1).to_bytes(4, "little") + bytes(4) + frame.counter.to_bytes(8, "little")
            stream = Cipher(algorithms.ChaCha20(self._key, nonce), None).decryptor()
            return stream.update(frame.payload[:-TAG_SIZE])
        return super().open(frame)

    def wipe(self) -> None:
        self._key = b""
        super().wipe()


class _Sealer(Sealer):
    def __init__(self, broken: IsBroken, key: bytes, session: int, version: int) -> None:
        super().__init__(key, session, version)
        self._broken = broken

    def seal(self, plaintext: bytes) -> Frame:
        frame = super().seal(plaintext)
        self.counter += self._broken("counter-jumps")
        return frame


def _unchecked_call(data: bytes) -> CommandCall:
    """The command without range checks: a value out of range becomes the first valid one."""
    kind: type[Command] = COMMANDS[data[2]]
    spec = kind.SPEC
    values = list(spec._struct.unpack(data[16 : 16 + spec.size]))
    for at, rule in spec._rules:
        for value in (values[at], *range(256)):
            try:
                values[at] = rule.from_wire(value)
            except Unfit:
                continue
            break
    ident, boot = int.from_bytes(data[4:8], "little"), int.from_bytes(data[8:16], "little")
    return CommandCall(ident, boot, kind(*values))
