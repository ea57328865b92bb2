"""Plaintexts of the host: commands with the order of refusals, acknowledgements, clock requests."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Any, Final

from msgspec import Struct

from firmware_protocol.device.behaviour import Behaviour, CommandKey
from firmware_protocol.device.interfaces import CommandRefusal, DeviceCore
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.ring import follows as follows_on
from firmware_protocol.device.sessions import DeviceSession
from firmware_protocol.messages import (
    COMMANDS,
    RESULTS_KEPT,
    Command,
    Control,
    DeviceClass,
    EvtAck,
    EvtNak,
    FaultCode,
    HostBeat,
    Info,
    InfoReply,
    OutOfRange,
    PlaintextType,
    ProtocolError,
    Refusal,
    Refused,
    Reply,
    Reread,
    Resume,
    ResumeMode,
    ResumeReply,
    Selftest,
    SelftestReply,
    Spec,
    TimeAnswer,
    TimeAsk,
    Verdict,
)
from firmware_protocol.tablelink import NO_CHAIN, CommandCall, CommandReply, encode_plaintext


class ReplyMemory:
    """Cache of the replies to the last RESULTS_KEPT commands that are not idempotent. It is in RAM:
    lost at a start, but not with a new session."""

    def __init__(self, behaviour: Behaviour) -> None:
        self._behaviour = behaviour
        self._replies: dict[CommandKey, Reply] = {}

    def knows(self, key: CommandKey) -> bool:
        return self._behaviour.caches_replies() and self._behaviour.memory_key(key) in self._replies

    def reply(self, key: CommandKey) -> Reply:
        return self._replies[self._behaviour.memory_key(key)]

    def stale(self, key: CommandKey) -> bool:
        """Whether this command, which is not cached, is older than one that is."""
        boot, ident = self._behaviour.memory_key(key)
        newest = max((known for host, known in self._replies if host == boot), default=0)
        return ident < newest and self._behaviour.refuses_stale()

    def store(self, key: CommandKey, reply: Reply) -> None:
        self._replies[self._behaviour.memory_key(key)] = reply
        while len(self._replies) > RESULTS_KEPT:
            del self._replies[next(iter(self._replies))]


SELFTEST_US: Final = 800_000
"""Duration of a self-test in microseconds."""
_HEAD: Final = struct.Struct("<BBBBIQ")
_BEFORE_RESUME: Final = (Info, Resume, Reread)


class _Selftest(Struct, frozen=True):
    """The self-test in progress."""

    key: CommandKey
    done: int


class CommandHandler:
    """Executes commands, and answers control messages."""

    def __init__(self, device: DeviceCore) -> None:
        self._device = device
        self._memory = ReplyMemory(device.behaviour)
        self._selftest: _Selftest | None = None

    def handle(self, session: DeviceSession, data: bytes, now: int) -> None:
        """Handle a plaintext that was opened in this session."""
        data = self._device.behaviour.readable(data)
        if data[0] == PlaintextType.COMMAND:
            self._command(session, data, now)
            return
        try:
            control = self._device.behaviour.decode(data, self._device.identity.device_class)
        except ProtocolError:
            self._device.channel.count_malformed()
            return
        if isinstance(control, Control):
            _CONTROLS[type(control)](self._device, session, control, now)

    # --- commands ---

    def _command(self, session: DeviceSession, data: bytes, now: int) -> None:
        _, _, ident, _, command_id, host_boot = _HEAD.unpack_from(data)
        if not command_id or not host_boot:
            self._device.channel.count_malformed()
            return
        behaviour = self._device.behaviour
        session.host_boot = host_boot
        key = (host_boot, command_id)
        reply = self._answer(session, ident, data, key, now)
        if reply is not None:
            self._device.channel.refused += behaviour.refusal_counts(reply)
            self._device.reply(session, CommandReply(command_id, host_boot, reply), now)
        if session.wanted and not session.resumed:  # records are sent only after the reply
            self._device.records.start(session, now)

    def _answer(
        self, session: DeviceSession, ident: int, data: bytes, key: CommandKey, now: int
    ) -> Reply | None:
        """Returns the reply; None if none is due now."""
        kind = COMMANDS.get(ident)
        behaviour = self._device.behaviour
        if kind is None or kind.CLASS not in (DeviceClass.ANY, self._device.identity.device_class):
            return Refused(ident, Refusal.UNKNOWN, 0) if behaviour.answers_unknown() else None
        try:
            call = behaviour.decode(data, self._device.identity.device_class)
        except ProtocolError as problem:
            return Refused(ident, Refusal.MALFORMED, _offset(kind, problem))
        assert isinstance(call, CommandCall)  # decode() raises for any other type
        if not kind.IDEMPOTENT:
            if self._in_progress(key):
                return None
            if self._memory.knows(key):
                return self._memory.reply(key)
        if behaviour.may_be_stale(idempotent=kind.IDEMPOTENT) and self._memory.stale(key):
            return Refused(ident, Refusal.STALE, 0)
        if not session.resumed and behaviour.needs_resume() and kind not in _BEFORE_RESUME:
            return Refused(ident, Refusal.NOT_RESUMED, 0)
        return self._execute(session, call.command, key, now)

    def _execute(
        self, session: DeviceSession, command: Command, key: CommandKey, now: int
    ) -> Reply | None:
        reply: Reply | None
        try:
            if isinstance(command, Resume):
                reply = self._resume(session, command, now)
            elif isinstance(command, Info):
                reply = self._info()
            elif isinstance(command, Selftest):
                self._start_selftest(key, now)
                reply = None
            else:
                reply = self._device.mechanism.command(command, now)
        except CommandRefusal as refusal:
            reply = Refused(command.ID, refusal.why, self._arg(refusal))
        if reply is not None and not command.IDEMPOTENT:
            self._memory.store(key, reply)
        return reply

    def _arg(self, refusal: CommandRefusal) -> int:
        return int(self._device.state()) if refusal.why is Refusal.NOT_NOW else refusal.arg

    def _info(self) -> Reply:
        device = self._device
        return InfoReply(
            firmware=device.identity.digest,
            boot=device.boot,
            cause=device.cause,
            capacity=device.ring.capacity,
            state=device.state(),
        )

    def _resume(self, session: DeviceSession, command: Resume, now: int) -> Reply:
        device = self._device
        ring = device.ring
        verdict = device.behaviour.verdict(verdict_of(ring, command), command)
        if device.behaviour.stops(verdict):
            device.records.stop(session)
        if verdict is Verdict.OK:
            device.records.resume(command)
            session.wanted = max(command.next, 1)
        else:
            device.mechanism.safe(now)
        acked = device.records.acked
        return ResumeReply(
            ring.epoch, ring.oldest, ring.head, ring.chain, verdict, acked.seq, acked.chain
        )

    # --- the self-test ---

    def _start_selftest(self, key: CommandKey, now: int) -> None:
        if self._selftest is not None:
            raise CommandRefusal(Refusal.BUSY)
        self._selftest = _Selftest(key, now + SELFTEST_US)

    def _in_progress(self, key: CommandKey) -> bool:
        """Whether this is a repeat of the self-test in progress, whose reply is sent at its end."""
        test = self._selftest
        return (
            test is not None
            and test.key == key
            and self._device.behaviour.ignores_repeat_in_progress()
        )

    def due(self) -> int | None:
        return None if self._selftest is None else self._selftest.done

    def wake(self, now: int) -> None:
        test = self._selftest
        if test is None or now < test.done:
            return
        self._selftest = None
        found = self._device.find_faults(now)
        self._device.faulty = False
        for code, arg in found.items():
            self._device.report(code, arg, now)
        code, arg = next(iter(found.items()), (FaultCode.NONE, 0))
        reply = SelftestReply(code, arg)
        self._memory.store(test.key, reply)
        session = self._device.running
        boot, ident = test.key
        # The same host may have a new session by now; another host did not send the request.
        if session is not None and session.host_boot == boot:
            self._device.reply(session, CommandReply(ident, boot, reply), now)


# --- RESUME ---------------------------------------------------------------------------------


def verdict_of(ring: Ring, resume: Resume) -> Verdict:
    """The verdict on a RESUME."""
    if resume.epoch != ring.epoch:
        return Verdict.NEW_EPOCH
    if resume.next > ring.head + 1:
        return Verdict.FORK
    if resume.mode is ResumeMode.CHECK and resume.next <= ring.acked.seq:
        return Verdict.BEHIND
    if resume.next < ring.oldest:
        return Verdict.GAP
    if resume.mode is ResumeMode.ADOPT:
        return Verdict.OK
    if resume.next == ring.head + 1:
        fits = resume.chain == (ring.chain if ring.head else NO_CHAIN)
    else:
        fits = follows_on(ring.record(resume.next), resume.chain)
    return Verdict.OK if fits else Verdict.FORK


# --- the offset of a refused field -------------------------------------------------------


def _offset(kind: type[Command], problem: ProtocolError) -> int:
    """The offset of the field that is out of range in the body; 0 for any other error."""
    named = re.match(rf"{kind.NAME}\.(\w+):", str(problem))
    if named is None or not isinstance(problem, OutOfRange):
        return 0
    return field_offsets(kind.SPEC)[named[1]]


def field_offsets(spec: Spec) -> dict[str, int]:
    """The offset of each field in the body of a message."""
    out: dict[str, int] = {}
    at = 0
    names = iter(spec.fields)
    for count, code in re.findall(r"(\d*)([a-zA-Z?])", spec._struct.format):
        many = 1 if code in "sx" else int(count or 1)
        size = struct.calcsize(f"<{count if code in 'sx' else ''}{code}")
        for _ in range(many):
            if code != "x":
                out[next(names)] = at
            at += size
    return out


# --- control --------------------------------------------------------------------------------


def _acknowledge(
    device: DeviceCore, session: DeviceSession, ack: EvtAck | HostBeat, now: int
) -> None:
    device.records.acknowledge(session, ack.epoch, ack.seq, ack.window, now)


def _host_beat(device: DeviceCore, session: DeviceSession, beat: HostBeat, now: int) -> None:
    since_last, session.host_beat_at = now - session.host_beat_at, now
    if device.behaviour.takes_beat(since_last):
        _acknowledge(device, session, beat, now)


def _send_again(device: DeviceCore, session: DeviceSession, nak: EvtNak, now: int) -> None:
    device.records.send_again(session, nak.epoch, nak.next, now)


def _time(device: DeviceCore, session: DeviceSession, ask: TimeAsk, now: int) -> None:
    clock = device.clock(now)
    device.send(session, encode_plaintext(TimeAnswer(ask.t1, clock, clock)), now)


_CONTROLS: Final[dict[type[Control], Callable[[DeviceCore, DeviceSession, Any, int], None]]] = {
    HostBeat: _host_beat,
    EvtAck: _acknowledge,
    EvtNak: _send_again,
    TimeAsk: _time,
}
