"""What an item works with: the wire, the keys, the sessions, and whoever stands at the device."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final, TypeAlias, TypeVar

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.conformance import Profile
from firmware_protocol.device.control import ControlRequest
from firmware_protocol.device.interfaces import Answer, CannotDo
from firmware_protocol.messages.enums import DeviceClass, FrameKind, FrameLimit
from firmware_protocol.messages.errors import ProtocolError
from firmware_protocol.messages.limits import (
    DEAD_MS,
    HANDSHAKE_WAIT_MS,
    HELLO_WAIT_MS,
    SCHEMA_HASHES,
)
from firmware_protocol.messages.registry import Hello, HelloRsp, InfoReply
from firmware_protocol.tablelink.fingerprints import fingerprint_of
from firmware_protocol.tablelink.framing import Deframer, Frame, FrameDamage, cobs_encode, crc32c
from firmware_protocol.tablelink.hello import pick_session, prologue
from firmware_protocol.tablelink.noise import Handshake
from hil.conform.tester import text as words
from hil.conform.tester.findings import ItemBlocked, ItemFinding, ItemSkipped, RequestDenied
from hil.conform.tester.heard import RingCursor
from hil.conform.tester.line_noise import NoisyCable
from hil.conform.tester.operators import Operator
from hil.conform.tester.session import TesterSession
from hil.conform.tester.wire import TesterWire, WireLost

_T = TypeVar("_T")
_KEPT_WORDS: Final = 200
MAX_FRAMES_PER_ITEM: Final = 50_000
"""Frames, whole or damaged, that an item keeps. Whoever sends more floods the line."""
_RESTART_MS: Final = 20_000
"""How long a device may take to start."""


class ReceivedFrame(Struct, frozen=True):
    """A whole frame, and when it came."""

    frame: Frame
    at: int


class HelloExchange(Struct, frozen=True):
    """HELLO and its answer."""

    hello: Frame
    answer: Frame
    says: HelloRsp

    @property
    def session(self) -> int:
        return self.hello.session

    @property
    def prologue(self) -> bytes:
        return prologue(self.hello, self.answer)


class ConformBench:
    def __init__(  # what a run is made of
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
        """Why there can be no session; empty where there can."""
        self.rng = random.Random(seed)
        self.late_ms = 20 if wire.simulated else 150
        """How much later than the page says something may come: the line and this machine."""
        self.quiet_ms = 600
        """How long to wait for what must not come."""
        self.log: list[ReceivedFrame] = []
        self.damage: list[FrameDamage] = []
        self.noise: NoisyCable | None = None
        self.says: HelloRsp | None = None
        self.firmware = b""
        """What INFO told last."""
        self.stock = 0
        """Cards that lie in the shoe for sure."""
        self.seat = 0
        """A seat that the station has; 0 not known yet."""
        self.handled = False
        """Whether a hand has done something in this item."""
        self._deframer = Deframer()
        self._sessions: dict[int, TesterSession] = {}
        self._former: set[int] = set()
        """Sessions that are over here. The device may still speak in the last of them."""
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
        """A rule was not kept. What was sent and came is, if not said, what was last."""
        heard = words.few(self._came) if came is None else came
        return ItemFinding(self._sent if sent is None else sent, expected, heard)

    def require(
        self, fulfilled: object, expected: str, came: str | None = None, sent: str | None = None
    ) -> None:
        """Raises ItemFinding unless the rule is fulfilled; the arguments are those of finding()."""
        if not fulfilled:
            raise self.finding(expected, came, sent)

    def note(self, text: str, *, quiet: bool = False) -> None:
        """Something came; heartbeats are left out."""
        if not quiet:
            self._came.append(text)
            del self._came[:-_KEPT_WORDS]

    # --- sending and hearing ------------------------------------------------------------------

    def send(self, data: bytes, text: str | None = None) -> None:
        """Bytes for the device. With a text they are what the report names as sent."""
        if text is not None:
            self._sent = text
            self._came.clear()
        self.wire.send(data if self.noise is None else self.noise.out(data))

    def send_frame(self, frame: Frame, text: str = "") -> None:
        self.send(frame.encode(), text or words.of_frame(frame))

    async def pump(self, until: int) -> None:
        """Hear once, at most until then, and send the heartbeats that are due."""
        dues = [due for one in self._living() if (due := one.beat_due()) is not None]
        piece = await self.wire.hear(min([until, *dues]))
        if piece is not None:
            data = piece.data if self.noise is None else self.noise.back(piece.data)
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
                self.note(words.of_damage(heard))
                continue
            self.log.append(ReceivedFrame(heard, at))
            session = self._sessions.get(heard.session)
            if heard.kind is FrameKind.DATA and session is not None:
                session.take(heard, at)
            elif heard.kind is not FrameKind.DATA or heard.session not in self._former:
                self.note(words.of_frame(heard))

    async def pause(self, ms: float) -> None:
        """Let time pass; what lives goes on."""
        await self.pause_until(self.wire.now() + int(ms * 1000))

    async def pause_until(self, at: int) -> None:
        while self.wire.now() < at:
            await self.pump(at)

    async def pause_lossy(self, ms: float) -> None:
        """Let time pass while the power is cut: the port may go with it."""
        end = self.wire.now() + int(ms * 1000)
        try:
            await self.pause_until(end)
        except WireLost:
            await self.wire.sleep(end)

    async def until(self, check: Callable[[], _T | None], ms: float) -> _T | None:
        """What `check` finds, as soon as it does; None after so long."""
        deadline = self.wire.now() + int(ms * 1000)
        while True:
            found = check()
            if found or self.wire.now() >= deadline:
                return found
            await self.pump(deadline)

    def frames(
        self, *kinds: FrameKind, since: int = 0, session: int | None = None
    ) -> list[ReceivedFrame]:
        return [
            one
            for one in self.log[since:]
            if one.frame.kind in kinds and session in (None, one.frame.session)
        ]

    async def frame(self, kind: FrameKind, session: int, ms: float, since: int) -> Frame | None:
        def found() -> Frame | None:
            return next(
                (one.frame for one in self.frames(kind, since=since, session=session)), None
            )

        return await self.until(found, ms)

    async def unanswered(
        self, *kinds: FrameKind, since: int, expected: str, ms: float | None = None
    ) -> None:
        """None of these kinds comes for a while."""
        await self.until(
            lambda: self.frames(*kinds, since=since), self.quiet_ms if ms is None else ms
        )
        found = self.frames(*kinds, since=since)
        if found:
            raise self.finding(expected, words.of_frame(found[0].frame))

    # --- HELLO and handshake ------------------------------------------------------------------

    def pick(self) -> int:
        """A session id that neither runs nor was used just before."""
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
        """HELLO, and the HELLO_RSP that must come."""
        hello = self.hello_frame(**changes) if frame is None else frame
        mark = len(self.log)
        self.send_frame(hello)
        return await self.greeted(hello, mark)

    async def greeted(self, hello: Frame, since: int) -> HelloExchange:
        wait = HELLO_WAIT_MS + (0 if self.wire.simulated else self.late_ms)
        answer = await self.frame(FrameKind.HELLO_RSP, hello.session, wait, since)
        if answer is None:
            raise self.finding(
                f"HELLO_RSP under session {hello.session:#06x} within {HELLO_WAIT_MS} ms"
            )
        try:
            says = HelloRsp.decode(answer.payload)
        except ProtocolError as error:
            raise self.finding("a well-formed HELLO_RSP", f"{error.name}: {error}") from None
        self.says = says
        return HelloExchange(hello, answer, says)

    def hs1(
        self,
        greeting: HelloExchange,
        own: X25519PrivateKey | None = None,
        seen: bytes | None = None,
        text: str = "",
    ) -> tuple[Handshake, Frame]:
        """Send HS1. `own`: a strange host's key; `seen`: another prologue."""
        if self.unpaired:
            raise ItemBlocked(self.unpaired)
        before = greeting.prologue if seen is None else seen
        shake = Handshake.kk("host", before, own or self.own, self.device_key)
        frame = Frame(FrameKind.HS1, greeting.session, 0, shake.write())
        self.send_frame(frame, text)
        return shake, frame

    async def hs2(self, shake: Handshake, ident: int, since: int) -> TesterSession:
        """The HS2 that must come and open; its session has not begun."""
        answer = await self.frame(FrameKind.HS2, ident, HANDSHAKE_WAIT_MS, since)
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
        """HELLO to HS2: keys, and no word under them yet."""
        greeting = await self.greet(**changes)
        mark = len(self.log)
        shake, _ = self.hs1(greeting)
        return await self.hs2(shake, greeting.session, mark)

    async def begin(self, session: TesterSession) -> TesterSession:
        """INFO under new keys: it takes over."""
        self.end_sessions(session)
        number = session.begin()
        reply = await self.until(lambda: session.reply_to(number), 500 + self.late_ms)
        if not isinstance(reply, InfoReply):
            raise self.finding("INFO_REPLY within 500 ms")
        session.info = reply
        self.firmware = reply.firmware
        return session

    async def session(
        self, cursor: RingCursor | None = None, *, resume: bool = True
    ) -> TesterSession:
        """A session that runs, after this record or at the ring's end."""
        session = await self.begin(await self.shake())
        if resume and cursor is None:
            await session.catch_up()
        elif cursor is not None:
            await session.resume(cursor)
        return session

    def end_sessions(self, but: TesterSession | None = None) -> None:
        """Say no more in any other session; what still comes under its id is not opened."""
        for session in list(self._sessions.values()):
            if session is not but:
                session.beating = False
                self._former.add(session.ident)
                del self._sessions[session.ident]

    async def alone(self) -> None:
        """Fall silent until the device has ended every session."""
        self.end_sessions()
        await self.pause(DEAD_MS + 200 + self.late_ms)

    async def fresh(self) -> None:
        """Before an item: nothing of the one before is left."""
        self.mend_line()
        self.end_sessions()
        self.log.clear()
        self.damage.clear()
        self._came.clear()
        self._sent = "nothing"
        self.handled = False
        self.wire.send(b"\0")
        await self.pause(1)

    def mend_line(self) -> NoisyCable | None:
        """What the bad cable has cut off grows together with no frame. It, to be put back."""
        bad, self.noise = self.noise, None
        if bad is not None:
            self.send(b"\0")
            self._take(b"\0" + bad.begun(), self.wire.now())
        return bad

    # --- hands --------------------------------------------------------------------------------

    async def hand(self, hand: ControlRequest) -> Answer:
        """Have it done at the device; heartbeats go on."""
        self.handled = True
        try:
            return await self.beside(self.operator.do(hand))
        except CannotDo as problem:
            raise RequestDenied(str(hand.__struct_config__.tag), str(problem.args[0])) from None

    async def try_hand(self, hand: ControlRequest) -> bool:
        """Have it done if the device lets it, and if it can be done there at all."""
        try:
            await self.hand(hand)
        except (RequestDenied, ItemSkipped):
            return False
        return True

    async def beside(self, doing: Coroutine[Any, Any, _T]) -> _T:
        return await self.wire.beside(doing, self.pump)

    async def back(self) -> None:
        """Wait for the device after its power was cut: it answers HELLO again."""
        self.end_sessions()
        deadline = self.wire.now() + _RESTART_MS * 1000
        try:
            await self.wire.reopen(deadline)
        except WireLost as lost:
            raise self.finding("the device at its port again", str(lost)) from None
        while self.wire.now() < deadline:
            hello = self.hello_frame()
            mark = len(self.log)
            self.send(b"\0" + hello.encode(), "HELLO after the power came back")
            if await self.frame(FrameKind.HELLO_RSP, hello.session, HELLO_WAIT_MS, mark):
                return
        raise self.finding(f"HELLO_RSP within {_RESTART_MS // 1000} s after the power came back")

    def need_exact(self, what: str) -> None:
        """Some things no person does just so."""
        if not self.operator.exact:
            raise ItemSkipped(f"{what}: --control")


def raw(decoded: bytes) -> bytes:
    """These bytes as a frame with a right CRC, whatever they are, its 0x00 included."""
    return cobs_encode(decoded + crc32c(decoded).to_bytes(4, "little")) + b"\0"


def flipped(data: bytes, at: int, bits: int = 1) -> bytes:
    """These bytes with some bits of one byte changed."""
    return data[:at] + bytes((data[at] ^ bits,)) + data[at + 1 :]


Trial: TypeAlias = Callable[[ConformBench], Awaitable[str | None]]
