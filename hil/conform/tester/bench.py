"""The bench of an item: the wire, the keys, the sessions, and the operator of the device."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Collection, Coroutine
from itertools import islice
from typing import Any, Final, TypeAlias, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device import Answer, CannotDo, ControlRequest
from firmware_protocol.messages import (
    DEAD_MS,
    HANDSHAKE_WAIT_MS,
    HELLO_WAIT_MS,
    SCHEMA_HASHES,
    Capabilities,
    DeviceClass,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
    ProtocolError,
)
from firmware_protocol.tablelink import (
    Deframer,
    Frame,
    FrameDamage,
    Handshake,
    cobs_encode,
    crc32c,
    fingerprint_of,
    pick_session,
    prologue,
)
from hil.conform.tester.findings import (
    ItemBlocked,
    ItemFinding,
    ItemSkipped,
    RequestDenied,
    damage_text,
    frame_text,
    last_texts,
    message_text,
    value_text,
)
from hil.conform.tester.operators import Operator
from hil.conform.tester.session import RingCursor, TesterSession
from hil.conform.tester.wire import NoisyCable, TesterWire, WireLost

_T = TypeVar("_T")
_MAX_NOTES: Final = 200
MAX_FRAMES_PER_ITEM: Final = 50_000
"""Limit of the frames, damaged ones included, that the bench stores for one item."""
_RESTART_MS: Final = 20_000
"""Timeout of a restart of the device."""


class ReceivedFrame(Struct, frozen=True):
    """An undamaged frame and the time of its arrival."""

    frame: Frame
    at: int


class HelloExchange(Struct, frozen=True):
    """HELLO and its response."""

    hello: Frame
    answer: Frame
    hello_rsp: HelloRsp

    @property
    def session(self) -> int:
        return self.hello.session

    @property
    def prologue(self) -> bytes:
        return prologue(self.hello, self.answer)


class ConformBench:
    def __init__(
        self,
        wire: TesterWire,
        profile: Profile,
        operator: Operator,
        *,
        own: X25519PrivateKey,
        device_key: bytes,
        seed: int,
    ) -> None:
        self.wire = wire
        self.profile: Profile = profile
        self.operator = operator
        self.own = own
        self.device_key = device_key
        self.unpaired = ""
        """Why no session is possible; empty if one is."""
        self.rng = random.Random(seed)
        self.late_ms = 20 if wire.simulated else 150
        """Tolerance for delays of the line and of this machine."""
        self.quiet_ms = 600
        """How long to wait for a response that must not come."""
        self.log: list[ReceivedFrame] = []
        self.mark = 0
        """Position in the log of the last frame that was sent, except heartbeats and such."""
        self.damage: list[FrameDamage] = []
        self.noise: NoisyCable | None = None
        self.hello_rsp: HelloRsp | None = None
        self.firmware = b""
        """The digest in the last INFO_REPLY."""
        self.stock = 0
        """A lower limit of the number of cards in the shoe."""
        self.seat = 0
        """A seat of the station; 0 not known yet."""
        self.requested = False
        """Whether a request was made in this item."""
        self._deframer = Deframer()
        self._sessions: dict[int, TesterSession] = {}
        self._former: set[int] = set()
        """Sessions that the tester has ended; the device may still send in them."""
        self._last_session = 0
        self._sent = "nothing"
        self._came: list[str] = []

    @property
    def device_class(self) -> DeviceClass:
        return DeviceClass[self.profile.upper()]

    # --- findings -----------------------------------------------------------------------------

    def finding(
        self, expected: str, came: str | None = None, sent: str | None = None
    ) -> ItemFinding:
        """A violation of a rule; by default with what was sent and received last."""
        heard = last_texts(self._came) if came is None else came
        return ItemFinding(self._sent if sent is None else sent, expected, heard)

    def require(
        self, fulfilled: object, expected: str, came: str | None = None, sent: str | None = None
    ) -> None:
        """Raises ItemFinding unless the rule is fulfilled; the arguments are those of finding()."""
        if not fulfilled:
            raise self.finding(expected, came, sent)

    def require_type(self, value: object, kind: type[_T], expected: str | None = None) -> _T:
        """The message, which must be of this type."""
        if not isinstance(value, kind):
            name = str(getattr(kind, "NAME", kind.__name__)) if expected is None else expected
            raise self.finding(name, None if value is None else message_text(value))
        return value

    def require_equal(self, found: object, wanted: object, expected: str | None = None) -> None:
        """Require this value; `expected` describes it."""
        text = value_text(wanted) if expected is None else expected
        self.require(found == wanted, text, value_text(found))

    def require_none(self, found: Collection[object], expected: str) -> None:
        """Require that nothing of this was found."""
        self.require(not found, expected, "; ".join(map(value_text, islice(found, 12))))

    def note(self, text: str, *, quiet: bool = False) -> None:
        """Note a message for the report, unless `quiet` (heartbeats)."""
        if not quiet:
            self._came.append(text)
            del self._came[:-_MAX_NOTES]

    # --- sending and receiving --------------------------------------------------------------

    def send(self, data: bytes, text: str | None = None) -> None:
        """Send bytes to the device. `text` describes them in the report."""
        if text is not None:
            self._sent = text
            self._came.clear()
            self.mark = len(self.log)
        self.wire.send(data if self.noise is None else self.noise.to_device(data))

    def send_frame(self, frame: Frame, text: str = "") -> None:
        self.send(frame.encode(), text or frame_text(frame))

    async def pump(self, until: int) -> None:
        """Receive once, with the timeout `until`, and send the heartbeats that are due."""
        dues = [due for one in self._living() if (due := one.beat_due()) is not None]
        piece = await self.wire.receive(min([until, *dues]))
        if piece is not None:
            data = piece.data if self.noise is None else self.noise.to_tester(piece.data)
            self._take(data, piece.at)
        now = self.wire.now()
        for session in self._living():
            due = session.beat_due()
            if due is not None and due <= now:
                session.beat(now)

    def _living(self) -> list[TesterSession]:
        return [one for one in self._sessions.values() if one.beating]

    def _take(self, data: bytes, at: int) -> None:
        for heard in self._deframer.feed(data):
            self.require(
                len(self.log) + len(self.damage) <= MAX_FRAMES_PER_ITEM,
                f"at most {MAX_FRAMES_PER_ITEM} frames in one item",
                "more",
            )
            if isinstance(heard, FrameDamage):
                self.damage.append(heard)
                self.note(damage_text(heard))
                continue
            self.log.append(ReceivedFrame(heard, at))
            session = self._sessions.get(heard.session)
            if heard.kind is FrameKind.DATA and session is not None:
                session.receive(heard, at)
            elif heard.kind is not FrameKind.DATA or heard.session not in self._former:
                self.note(frame_text(heard))

    async def pause(self, ms: float) -> None:
        """Wait while the heartbeats of the sessions continue."""
        await self.pause_until(self.wire.now() + int(ms * 1000))

    async def pause_until(self, at: int) -> None:
        while self.wire.now() < at:
            await self.pump(at)

    async def pause_lossy(self, ms: float) -> None:
        """Wait during a power cut, in which the port may disappear."""
        end = self.wire.now() + int(ms * 1000)
        try:
            await self.pause_until(end)
        except WireLost:
            await self.wire.sleep(end)

    async def until(self, check: Callable[[], _T | None], ms: float) -> _T | None:
        """The first truthy result of `check`; its last result after `ms`."""
        deadline = self.wire.now() + int(ms * 1000)
        while True:
            found = check()
            if found or self.wire.now() >= deadline:
                return found
            await self.pump(deadline)

    async def wait_for(
        self, check: Callable[[], _T | None], ms: float, expected: str, came: str | None = None
    ) -> _T:
        """The first truthy result of `check`; it is a finding if there is none within `ms`."""
        found = await self.until(check, ms)
        if not found:
            raise self.finding(expected, came)
        return found

    def frames(
        self, *kinds: FrameKind, since: int | None = None, session: int | None = None
    ) -> list[ReceivedFrame]:
        """The frames of these kinds that came after the last one that was sent, or `since`."""
        return [
            one
            for one in self.log[self.mark if since is None else since :]
            if one.frame.kind in kinds and session in (None, one.frame.session)
        ]

    async def frame(self, kind: FrameKind, session: int, ms: float) -> Frame | None:
        found = await self.until(lambda: self.frames(kind, session=session), ms)
        return found[0].frame if found else None

    async def unanswered(
        self,
        *kinds: FrameKind,
        expected: str,
        since: int | None = None,
        ms: float | None = None,
    ) -> None:
        """Require that no frame of these kinds comes, for `ms` or quiet_ms."""
        wait = self.quiet_ms if ms is None else ms
        found = await self.until(lambda: self.frames(*kinds, since=since), wait)
        if found:
            raise self.finding(expected, frame_text(found[0].frame))

    # --- HELLO and handshake ------------------------------------------------------------------

    def pick(self) -> int:
        """A session id that is not in use and was not the last one."""
        taken = {*self._sessions, self._last_session}
        self._last_session = pick_session(taken)
        self._former.discard(self._last_session)
        return self._last_session

    def hello_frame(self, own: X25519PrivateKey | None = None, **changes: Any) -> Frame:
        fields: dict[str, Any] = {
            "version_min": 1,
            "version_max": 1,
            "device_class": self.device_class,
            "largest": FrameLimit.LARGE,
            "schema": SCHEMA_HASHES[1],
            "fingerprint": fingerprint_of(own or self.own),
            **changes,
        }
        return Frame(FrameKind.HELLO, self.pick(), 0, Hello(**fields).encode())

    async def greet(self, frame: Frame | None = None, **changes: Any) -> HelloExchange:
        """Send HELLO and require HELLO_RSP."""
        hello = self.hello_frame(**changes) if frame is None else frame
        self.send_frame(hello)
        return await self.greeted(hello)

    async def greeted(self, hello: Frame) -> HelloExchange:
        wait = HELLO_WAIT_MS + (0 if self.wire.simulated else self.late_ms)
        answer = await self.frame(FrameKind.HELLO_RSP, hello.session, wait)
        if answer is None:
            raise self.finding(
                f"HELLO_RSP under session {hello.session:#06x} within {HELLO_WAIT_MS} ms"
            )
        try:
            hello_rsp = HelloRsp.decode(answer.payload)
        except ProtocolError as error:
            raise self.finding("a well-formed HELLO_RSP", f"{error.name}: {error}") from None
        self.hello_rsp = hello_rsp
        return HelloExchange(hello, answer, hello_rsp)

    def hs1(
        self,
        greeting: HelloExchange,
        own: X25519PrivateKey | None = None,
        seen: bytes | None = None,
        text: str = "",
    ) -> tuple[Handshake, Frame]:
        """Send HS1. `own`: the key of another host; `seen`: a different prologue."""
        if self.unpaired:
            raise ItemBlocked(self.unpaired)
        before = greeting.prologue if seen is None else seen
        shake = Handshake.kk("host", before, own or self.own, self.device_key)
        frame = Frame(FrameKind.HS1, greeting.session, 0, shake.write())
        self.send_frame(frame, text)
        return shake, frame

    async def hs2(self, shake: Handshake, ident: int) -> TesterSession:
        """Require an HS2 that can be decrypted; its session is not started yet."""
        answer = await self.frame(FrameKind.HS2, ident, HANDSHAKE_WAIT_MS)
        if answer is None:
            raise self.finding(f"HS2 within {HANDSHAKE_WAIT_MS} ms")
        try:
            shake.read(answer.payload)
        except ProtocolError as error:
            raise self.finding("an HS2 that opens", f"{error.name}: {error}") from None
        session = TesterSession(self, ident, shake.split())
        self._sessions[ident] = session
        return session

    async def shake(self, **changes: Any) -> TesterSession:
        """Run HELLO to HS2: the keys exist, and nothing was sent with them."""
        shake, hs1 = self.hs1(await self.greet(**changes))
        return await self.hs2(shake, hs1.session)

    async def begin(self, session: TesterSession) -> TesterSession:
        """Start a session by INFO; it replaces the former one."""
        self.end_sessions(session)
        await session.begin()
        self.firmware = session.info.firmware
        return session

    async def session(
        self, cursor: RingCursor | None = None, *, resume: bool = True
    ) -> TesterSession:
        """A running session, resumed after `cursor` or at the end of the ring."""
        session = await self.begin(await self.shake())
        if resume and cursor is None:
            await session.catch_up()
        elif cursor is not None:
            await session.resume(cursor)
        return session

    def end_sessions(self, but: TesterSession | None = None) -> None:
        """Stop all sessions but this one; frames that still arrive in them are not decrypted."""
        for session in list(self._sessions.values()):
            if session is not but:
                session.beating = False
                self._former.add(session.ident)
                del self._sessions[session.ident]

    async def fall_silent(self) -> None:
        """Send nothing until the device has ended every session."""
        self.end_sessions()
        await self.pause(DEAD_MS + 200 + self.late_ms)

    async def reset(self) -> None:
        """Discard all state of the previous item."""
        self.mend_line()
        self.end_sessions()
        self.log.clear()
        self.mark = 0
        self.damage.clear()
        self._came.clear()
        self._sent = "nothing"
        self.requested = False
        self.wire.send(b"\0")
        await self.pause(1)

    def mend_line(self) -> NoisyCable | None:
        """Remove the noise and return it. An incomplete frame in its buffer is ended."""
        bad, self.noise = self.noise, None
        if bad is not None:
            self.send(b"\0")
            self._take(b"\0" + bad.take_partial(), self.wire.now())
        return bad

    # --- requests ---------------------------------------------------------------------------

    async def request(self, request: ControlRequest) -> Answer:
        """Make a request of the operator while the heartbeats continue. Raises RequestDenied."""
        self.requested = True
        try:
            return await self.beside(self.operator.do(request))
        except CannotDo as problem:
            verb = request.__struct_config__.tag
            raise RequestDenied(f"the request '{verb}' was denied: {problem.args[0]}") from None

    async def try_request(self, request: ControlRequest) -> bool:
        """Make a request. Returns whether it was carried out."""
        try:
            await self.request(request)
        except (RequestDenied, ItemSkipped):
            return False
        return True

    async def beside(self, doing: Coroutine[Any, Any, _T]) -> _T:
        return await self.wire.run_beside(doing, self.pump)

    async def wait_for_restart(self) -> None:
        """After a power cut: wait until the device responds to HELLO."""
        self.end_sessions()
        deadline = self.wire.now() + _RESTART_MS * 1000
        try:
            await self.wire.reopen(deadline)
        except WireLost as lost:
            raise self.finding("the device at its port again", str(lost)) from None
        while self.wire.now() < deadline:
            hello = self.hello_frame()
            self.send(b"\0" + hello.encode(), "HELLO after the power came back")
            if await self.frame(FrameKind.HELLO_RSP, hello.session, HELLO_WAIT_MS):
                return
        raise self.finding(f"HELLO_RSP within {_RESTART_MS // 1000} s after the power came back")

    def has(self, capability: Capabilities) -> bool:
        """Whether the last HELLO_RSP named this capability."""
        return self.hello_rsp is not None and capability in self.hello_rsp.capabilities

    def need_exact(self, what: str) -> None:
        """Skip the item unless the operator is exact, which no person is."""
        if not self.operator.exact:
            raise ItemSkipped(f"{what}: --control")


def raw_frame(decoded: bytes) -> bytes:
    """Encode any bytes as a frame with a valid CRC and its 0x00."""
    return cobs_encode(decoded + crc32c(decoded).to_bytes(4, "little")) + b"\0"


def flip_bits(data: bytes, at: int, bits: int = 1) -> bytes:
    """The bytes with some bits of one byte inverted."""
    return data[:at] + bytes((data[at] ^ bits,)) + data[at + 1 :]


Trial: TypeAlias = Callable[[ConformBench], Awaitable[str | None]]
