"""The faulty firmware: each break of the core overrides the rule that it violates.

Breaks of one class of device (hil.faults.catalogue) are part of its mechanism.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms

from firmware_protocol.device import NOTHING_ACKED, Behaviour, CommandKey, RandomBytes
from firmware_protocol.messages import (
    COMMANDS,
    CRC_SIZE,
    HEADER_SIZE,
    HEARTBEAT_MS,
    MAX_ENCODED,
    TAG_SIZE,
    Capabilities,
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
_P = ParamSpec("_P")
_T = TypeVar("_T")


def _while_broken(
    name: str, rule: Callable[Concatenate[Any, _P], _T], value: _T
) -> Callable[Concatenate[Any, _P], _T]:
    """The rule, with this value while this break is on."""

    def method(self: FaultyBehaviour, /, *args: _P.args, **kwargs: _P.kwargs) -> _T:
        return value if self.broken(name) else rule(self, *args, **kwargs)

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

    def capabilities(self, own: Capabilities, device_class: DeviceClass) -> Capabilities:
        if not self._broken("capabilities-foreign"):
            return own
        other = device_class is DeviceClass.SHOE
        return own | (Capabilities.BUZZER if other else Capabilities.GATE)

    def schema(self, version: int) -> bytes:
        schema = super().schema(version)
        return schema[::-1] if self._broken("schema-wrong") else schema

    # --- handshake and session ---

    def unopened_hs1(self, draw: RandomBytes) -> bytes | None:
        return draw(48) if self._broken("stranger-answered") else None

    continues_hello = _while_broken("handshake-id-unchecked", Behaviour.continues_hello, True)
    hello_serves_again = _while_broken("replay-taken", Behaviour.hello_serves_again, True)
    hello_ends_session = _while_broken("hello-ends-session", Behaviour.hello_ends_session, True)
    hs1_ends_session = _while_broken("hs1-ends-session", Behaviour.hs1_ends_session, True)
    keeps_former_session = _while_broken(
        "former-session-kept", Behaviour.keeps_former_session, True
    )
    pending_ends = _while_broken("pending-for-ever", Behaviour.pending_ends, None)

    def opener(self, key: bytes, session: int, version: int) -> Opener:
        return _Opener(self._broken, key, session, version)

    def sealer(self, key: bytes, session: int, version: int) -> Sealer:
        return _Sealer(self._broken, key, session, version)

    session_ends = _while_broken("lives-for-ever", Behaviour.session_ends, None)

    def beat_after_sending(self, beat: int, now: int) -> int:
        return now + 1000 * HEARTBEAT_MS if self._broken("beat-when-idle") else beat

    malformed_is_damage = _while_broken("malformed-is-damage", Behaviour.malformed_is_damage, True)

    def refusal_counts(self, reply: Reply) -> bool:
        return isinstance(reply, Refused) and self._broken("refusals-counted")

    counts = _while_broken("counts-nothing", Behaviour.counts, (0, 0))

    def clock(self, elapsed: int) -> int:
        return elapsed * 102 // 100 if self._broken("clock-fast") else elapsed

    # --- pairing ---

    pairing_is_on = _while_broken("pairs-without-switch", Behaviour.pairing_is_on, True)
    locked_out = _while_broken("no-lockout", Behaviour.locked_out, False)
    records_wrong_code = _while_broken("wrong-code-silent", Behaviour.records_wrong_code, False)
    pairing_ends_session = _while_broken(
        "pairing-keeps-session", Behaviour.pairing_ends_session, False
    )
    ends_session_first = _while_broken("paired-too-early", Behaviour.ends_session_first, False)

    # --- records ---

    chains_to = _while_broken("chain-wrong", Behaviour.chains_to, NO_CHAIN)

    def follows(self, record: bytes, previous: bytes) -> bool:
        if self._broken("chain-wrong") and super().follows(record, NO_CHAIN):
            return True
        return super().follows(record, previous)

    sends_before_commit = _while_broken("sent-before-commit", Behaviour.sends_before_commit, True)
    has_room = _while_broken("ring-overwrites", Behaviour.has_room, True)
    is_full = _while_broken("ring-overwrites", Behaviour.is_full, False)

    def alert_of(self, event: Event) -> int | None:
        if isinstance(event, CardRead) and self._broken("card-in-clear"):
            return 0x80 | event.card  # no code of a fault, which may be true
        return None

    # --- sending ---

    def stops(self, verdict: Verdict) -> bool:
        return verdict is Verdict.OK or not self._broken("first-resume-counts")

    def verdict(self, verdict: Verdict, resume: Resume) -> Verdict:
        if self._broken("fork-unnoticed"):
            return Verdict.OK
        if verdict is Verdict.BEHIND and self._broken("behind-unnoticed"):
            return Verdict.OK
        if resume.mode is ResumeMode.ADOPT and self._broken("adopt-refused"):
            return Verdict.FORK
        return verdict

    def resumes_at(self, resume: Resume, acked: int) -> int:
        if resume.mode is ResumeMode.ADOPT and self._broken("adopt-keeps-acked"):
            return max(acked, super().resumes_at(resume, acked))
        return super().resumes_at(resume, acked)

    acked_reply = _while_broken("acked-unreported", Behaviour.acked_reply, NOTHING_ACKED)
    acked_at_start = _while_broken("acked-forgotten", Behaviour.acked_at_start, NOTHING_ACKED)

    def takes_beat(self, since_last: int) -> bool:
        early = since_last < 1000 * HEARTBEAT_MS
        return not (early and self._broken("early-beats-ignored"))

    sends_unasked = _while_broken("events-before-resume", Behaviour.sends_unasked, True)

    def first_sent(self, wanted: int, sent_before: int) -> int:
        if self._broken("forgets-unacked"):
            return max(wanted, sent_before + 1)
        return wanted

    def resend_wait(self, times: int) -> int | None:
        if self._broken("never-resends"):
            return None
        return _NO_BACKOFF_US if self._broken("no-backoff") else super().resend_wait(times)

    window = _while_broken("window-ignored", Behaviour.window, _UNLIMITED)

    def last_of(self, sent: int, limit: int) -> int:
        # Window 0 still stops them: due() checks it.
        return sent if self._broken("repeats-beyond-window") else super().last_of(sent, limit)

    def takes_window(self, *, older: bool) -> bool:
        return not (older and self._broken("old-acks-ignored"))

    nak_is_ours = _while_broken("nak-epoch-unchecked", Behaviour.nak_is_ours, True)
    wait_after_nak = _while_broken("nak-keeps-wait", Behaviour.wait_after_nak, ())
    heeds_nak = _while_broken("nak-ignored", Behaviour.heeds_nak, False)
    sent_is_received = _while_broken("skips-after-loss", Behaviour.sent_is_received, True)

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

    answers_unknown = _while_broken("unknown-silent", Behaviour.answers_unknown, False)
    ignores_repeat_in_progress = _while_broken(
        "busy-with-itself", Behaviour.ignores_repeat_in_progress, False
    )
    caches_replies = _while_broken("results-forgotten", Behaviour.caches_replies, False)

    def memory_key(self, key: CommandKey) -> CommandKey:
        return (0, key[1]) if self._broken("boot-ignored") else key

    refuses_stale = _while_broken("stale-taken", Behaviour.refuses_stale, False)
    may_be_stale = _while_broken("stale-for-all", Behaviour.may_be_stale, True)
    needs_resume = _while_broken("resume-unneeded", Behaviour.needs_resume, False)

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
