"""The tester's side of a running session, which can follow or violate the protocol.

It is independent of the host's link: the item controls counters, acknowledgements and heartbeats.
What a device may never do (a repeated counter, an invalid tag, a malformed plaintext, a chain that
does not match) is a finding in every item.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from firmware_protocol.messages import (
    HEARTBEAT_MS,
    NAK_GAP_MS,
    WINDOW,
    Command,
    DeviceBeat,
    DeviceClass,
    EvtAck,
    EvtNak,
    HostBeat,
    Info,
    InfoReply,
    NakWhy,
    PlaintextType,
    ProtocolError,
    Refusal,
    Refused,
    Reply,
    Resume,
    ResumeMode,
    ResumeReply,
    Verdict,
)
from firmware_protocol.tablelink import (
    NO_CHAIN,
    CommandCall,
    CommandReply,
    EventRecord,
    Frame,
    Opener,
    Plaintext,
    Sealer,
    SessionKeys,
    decode_plaintext,
    encode_plaintext,
)
from hil.conform.tester.findings import ItemFinding, frame_text, message_text, plaintext_text
from hil.conform.tester.wire import TesterWire

_BEAT_US: Final = HEARTBEAT_MS * 1000
_T = TypeVar("_T", bound=Reply)
_Found = TypeVar("_Found")


class RingCursor(Struct, frozen=True):
    """The last record that the tester has accepted."""

    epoch: int
    seq: int
    chain: bytes


NO_CURSOR: Final = RingCursor(0, 0, NO_CHAIN)


class ReceivedPlaintext(Struct, frozen=True):
    """A plaintext and its arrival."""

    at: int
    what: Plaintext


class ReceivedRecord(Struct, frozen=True):
    """One arrival of a record."""

    at: int
    data: bytes
    record: EventRecord

    def __str__(self) -> str:
        return f"record {self.record.seq}"


def call_bytes(
    kind: int,
    ident: int,
    boot: int,
    body: bytes = b"",
    *,
    flags: int = 0,
    size: int = 56,
) -> bytes:
    """Encode a COMMAND without validation, for malformed ones."""
    head = bytes((PlaintextType.COMMAND, flags, kind, len(body)))
    numbers = ident.to_bytes(4, "little") + boot.to_bytes(8, "little")
    return (head + numbers + body).ljust(size, b"\0")


class SessionBench(Protocol):
    """What a session uses of its bench."""

    wire: TesterWire
    late_ms: int

    @property
    def device_class(self) -> DeviceClass: ...

    def finding(self, expected: str, came: str | None = None) -> ItemFinding: ...

    def require(self, fulfilled: object, expected: str, came: str | None = None) -> None: ...

    def require_type(
        self, value: object, kind: type[_Found], expected: str | None = None
    ) -> _Found: ...

    def note(self, text: str, *, quiet: bool = False) -> None: ...

    def send(self, data: bytes, text: str | None = None) -> None: ...

    async def until(self, check: Callable[[], _Found | None], ms: float) -> _Found | None: ...

    async def wait_for(
        self, check: Callable[[], _Found | None], ms: float, expected: str, came: str | None = None
    ) -> _Found: ...


class TesterSession:
    def __init__(
        self, bench: SessionBench, ident: int, keys: SessionKeys, boot: int | None = None
    ) -> None:
        self._bench = bench
        self.ident = ident
        self.sealer = Sealer(keys.send, ident)
        self.opener = Opener(keys.receive, ident)
        self.boot = secrets.randbits(64) | 1 if boot is None else boot
        self.next_id = 1
        self.began: int | None = None
        self._beats = 0
        self.beating = False
        self.resumed = False
        self.cursor = NO_CURSOR
        self.window = WINDOW
        self.holding = False
        """Records are stored and not acknowledged."""
        self.forgiving = False
        """The line is noisy: a frame may arrive twice."""
        self.received: list[ReceivedPlaintext] = []
        self.records: list[ReceivedRecord] = []
        self.accepted: list[EventRecord] = []
        self.mark = 0
        """Position in `received` of the last plaintext that was sent, except heartbeats."""
        self.info: InfoReply
        """The first INFO_REPLY of the session."""
        self._bytes: dict[int, bytes] = {}
        self._nak_at: int | None = None

    # --- sending ------------------------------------------------------------------------------

    def send(self, what: Plaintext, *, in_report: bool = True) -> Frame:
        """Encrypt and send a plaintext. `in_report`: the report lists it as sent."""
        return self.send_bytes(encode_plaintext(what), plaintext_text(what), in_report=in_report)

    def send_bytes(self, plaintext: bytes, text: str, *, in_report: bool = True) -> Frame:
        frame = self.sealer.seal(plaintext)
        where = f"{text} (session {self.ident:#06x}, counter {frame.counter})"
        self._bench.send(frame.encode(), where if in_report else None)
        if in_report:
            self.mark = len(self.received)
        return frame

    async def begin(self, expected: str = "INFO_REPLY within 500 ms") -> None:
        """Start the session: send INFO and then heartbeats."""
        self.began = self._bench.wire.now()
        self.beating = True
        self.info = await self._info(expected)

    def call(self, command: Command, *, ident: int | None = None, boot: int | None = None) -> int:
        number = self._number(ident)
        self.send(CommandCall(number, self.boot if boot is None else boot, command))
        return number

    def _number(self, ident: int | None) -> int:
        if ident is not None:
            return ident
        self.next_id += 1
        return self.next_id - 1

    # --- heartbeat ----------------------------------------------------------------------------

    def beat_due(self) -> int | None:
        if not self.beating or self.began is None:
            return None
        return self.began + (self._beats + 1) * _BEAT_US

    def beat(self, now: int) -> None:
        """Send a heartbeat; missed ones are skipped."""
        if self.began is not None:
            self._beats = (now - self.began) // _BEAT_US
        cursor = self.cursor if self.resumed else NO_CURSOR
        window = self.window if self.resumed else 0
        self.send(HostBeat(cursor.epoch, cursor.seq, window), in_report=False)

    # --- receiving ----------------------------------------------------------------------------

    def receive(self, frame: Frame, at: int) -> None:
        try:
            plaintext = self.opener.open(frame)
        except ProtocolError as error:
            if self.forgiving:
                return
            raise self._bench.finding(
                "DATA that opens, each counter once",
                f"{frame_text(frame)}: {error.name} ({error})",
            ) from None
        try:
            what = decode_plaintext(
                plaintext, sender="device", device_class=self._bench.device_class
            )
        except ProtocolError as error:
            raise self._bench.finding(
                "a well-formed plaintext", f"{plaintext[:8].hex()}...: {error.name} ({error})"
            ) from None
        self._bench.note(plaintext_text(what), quiet=isinstance(what, DeviceBeat))
        self.received.append(ReceivedPlaintext(at, what))
        if isinstance(what, EventRecord):
            self.records.append(ReceivedRecord(at, plaintext, what))
            if self.resumed and not self.holding:
                self._keep(what, plaintext)
        elif isinstance(what, CommandReply) and isinstance(what.reply, ResumeReply):
            self.resumed = what.reply.verdict is Verdict.OK

    def _keep(self, record: EventRecord, data: bytes) -> None:
        """Handle a record as PROTOCOL.md requires of a host."""
        cursor = self.cursor
        self._bench.require(
            record.epoch == cursor.epoch,
            f"records of epoch {cursor.epoch:#x}, as RESUME said",
            f"epoch {record.epoch:#x}",
        )
        if record.seq > cursor.seq + 1:
            self._nak(cursor)
            return
        if record.seq == cursor.seq + 1:
            self._bench.require(
                record.follows(cursor.chain),
                f"record {record.seq} chained to the one before: chain = first 8 bytes of "
                "BLAKE2b(chain before || bytes 0 to 47)",
                f"chain {record.chain.hex()} after {cursor.chain.hex()}",
            )
            self.accept(record)
            self.accepted.append(record)
            self._bytes[record.seq] = data
        self._bench.require(
            self._bytes.get(record.seq, data) == data,
            f"record {record.seq} as it came before",
            "another record under this seq",
        )
        self.ack()

    def _nak(self, cursor: RingCursor) -> None:
        now = self._bench.wire.now()
        if self._nak_at is None or now - self._nak_at >= NAK_GAP_MS * 1000:
            self._nak_at = now
            self.send(EvtNak(cursor.epoch, cursor.seq + 1, NakWhy.GAP), in_report=False)

    def ack(self, *, window: int | None = None, in_report: bool = False) -> None:
        """Acknowledge up to the cursor. `window` applies from now on."""
        if window is not None:
            self.window = window
        self.send(EvtAck(self.cursor.epoch, self.cursor.seq, self.window), in_report=in_report)

    def accept(self, record: EventRecord) -> None:
        """Move the cursor; the next heartbeat acknowledges it."""
        self.cursor = RingCursor(record.epoch, record.seq, record.chain)

    # --- commands -----------------------------------------------------------------------------

    def replies(self, since: int | None = None) -> list[CommandReply]:
        """All replies after the last plaintext that was sent, or `since`."""
        came = self.received[self.mark if since is None else since :]
        return [got.what for got in came if isinstance(got.what, CommandReply)]

    def reply_to(
        self, ident: int, since: int | None = None, boot: int | None = None
    ) -> Reply | None:
        """The first of these replies that is one to this command."""
        wanted = (ident, self.boot if boot is None else boot)
        found = (
            one.reply for one in self.replies(since) if (one.command_id, one.host_boot) == wanted
        )
        return next(found, None)

    async def ask(
        self, command: Command, *, ident: int | None = None, boot: int | None = None
    ) -> Reply:
        """Send a command and return its reply, which must come before its deadline."""
        number = self.call(command, ident=ident, boot=boot)
        return await self.answer(command, number, boot=boot)

    async def answer(
        self, command: Command, number: int, since: int | None = None, boot: int | None = None
    ) -> Reply:
        bench = self._bench
        either = f"{command.REPLY.NAME} or REFUSED"
        reply = await bench.wait_for(
            lambda: self.reply_to(number, since, boot),
            command.DEADLINE_MS + bench.late_ms,
            f"{either} within {command.DEADLINE_MS} ms",
        )
        named = not isinstance(reply, Refused) or reply.command == command.ID
        shown = message_text(reply)
        bench.require(isinstance(reply, command.REPLY | Refused), either, shown)
        bench.require(named, f"REFUSED that names command {command.ID:#04x}", shown)
        return reply

    async def demand(self, command: Command, reply: type[_T]) -> _T:
        """Send a command and require its own reply, not REFUSED."""
        return self._bench.require_type(await self.ask(command), reply)

    async def refused(self, command: Command, *why: Refusal) -> Refused:
        """Send a command and require REFUSED for one of these reasons."""
        return self.check_refused(await self.ask(command), *why)

    def check_refused(self, got: Reply, *why: Refusal) -> Refused:
        if not isinstance(got, Refused) or got.why not in why:
            names = " or ".join(one.name for one in why)
            raise self._bench.finding(f"REFUSED {names}", message_text(got))
        return got

    async def ask_bytes(self, plaintext: bytes, text: str, ident: int) -> Reply | None:
        """Send a command that may be malformed. Returns its reply, or None on timeout."""
        self.send_bytes(plaintext, text)
        return await self._bench.until(lambda: self.reply_to(ident), 500 + self._bench.late_ms)

    async def check_alive(self, why: str = "the session goes on") -> InfoReply:
        """Require that INFO is answered."""
        return await self._info(f"INFO_REPLY: {why}")

    async def _info(self, expected: str) -> InfoReply:
        number = self.call(Info())
        wait = Info.DEADLINE_MS + self._bench.late_ms
        reply = await self._bench.until(lambda: self.reply_to(number), wait)
        if not isinstance(reply, InfoReply):
            raise self._bench.finding(expected)
        return reply

    # --- RESUME -------------------------------------------------------------------------------

    async def learn(self) -> ResumeReply:
        """The state of the ring, by the RESUME of a host without records."""
        return await self.demand(Resume(0, 0, NO_CHAIN, ResumeMode.CHECK), ResumeReply)

    async def resume(self, cursor: RingCursor, mode: ResumeMode = ResumeMode.CHECK) -> ResumeReply:
        """Resume after this record; requires the verdict OK."""
        chain = NO_CHAIN if mode is ResumeMode.ADOPT else cursor.chain
        self.cursor = cursor
        self.resumed = False  # set by take() with the reply, since events may follow at once
        command = Resume(cursor.epoch, cursor.seq + 1, chain, mode)
        reply = await self.demand(command, ResumeReply)
        self._bench.require(
            reply.verdict is Verdict.OK, "RESUME_REPLY with verdict OK", message_text(reply)
        )
        return reply

    async def catch_up(self) -> ResumeReply:
        """Resume at the end of the ring, without its earlier records."""
        ring = await self.learn()
        return await self.resume(RingCursor(ring.epoch, ring.head, ring.chain))

    # --- waiting -----------------------------------------------------------------------------

    async def next_beat(self) -> DeviceBeat:
        """Wait for the next DEVICE_BEAT."""
        mark = len(self.received)
        beats = await self._bench.wait_for(
            lambda: self.controls(DeviceBeat, mark),
            HEARTBEAT_MS * 2 + self._bench.late_ms,
            "DEVICE_BEAT each 250 ms",
        )
        return beats[0][1]

    def controls(self, kind: type[_Found], since: int | None = None) -> list[tuple[int, _Found]]:
        """Arrivals of this message after the last plaintext that was sent, or `since`."""
        came = self.received[self.mark if since is None else since :]
        return [(got.at, got.what) for got in came if isinstance(got.what, kind)]

    async def until_head(self, head: int, ms: int = 5000) -> None:
        """Wait until all records up to `head` are accepted."""
        self._bench.require(
            await self._bench.until(lambda: self.cursor.seq >= head, ms),
            f"every record up to {head}",
            f"up to {self.cursor.seq}",
        )

    async def until_recorded(self, head: int, ms: int) -> None:
        """Wait until a DEVICE_BEAT reports this head, whether the records were sent or not."""
        mark = len(self.received)
        await self._bench.wait_for(
            lambda: any(beat.head >= head for _, beat in self.controls(DeviceBeat, mark)),
            ms,
            f"DEVICE_BEAT with head {head}, the number of events",
        )

    async def until_accepted(
        self, fits: Callable[[EventRecord], bool], ms: int, expected: str, since: int = 0
    ) -> EventRecord:
        """Wait for a record from accepted[since] on that fits; it is a finding if none comes."""
        return await self._bench.wait_for(
            lambda: next(filter(fits, self.accepted[since:]), None), ms, expected
        )

    async def until_event(
        self, kind: type[_Found], ms: int, expected: str, since: int = 0
    ) -> _Found:
        """Wait for an event of this type from accepted[since] on."""

        def found() -> _Found | None:
            events = (one.event for one in self.accepted[since:])
            return next((event for event in events if isinstance(event, kind)), None)

        return await self._bench.wait_for(found, ms, expected)
