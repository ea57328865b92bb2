"""The device side of TableLink, common to every class: bytes and times in, bytes out.

    identity.create(folder, DeviceClass.SHOE, "SH-0001")
    device = Device(DeviceFolder(folder), Shoe(), now=0)
    device.receive(data, now); device.wake(now); port.write(device.take())

It follows PROTOCOL.md independently of the host's code. A Mechanism implements one class of
device, a Behaviour the rules of the protocol. The device's memory is its folder: after a power cut
the object is dropped, and a new one is created from the same folder.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from firmware_protocol.device import identity
from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.commands import CommandHandler
from firmware_protocol.device.control import ControlRequest, Moment
from firmware_protocol.device.identity import Draw, pair_directly, paired_host
from firmware_protocol.device.interfaces import (
    Answer,
    CannotDo,
    CommandRefusal,
    Mechanism,
    RequestHandler,
)
from firmware_protocol.device.pairing import DevicePairing
from firmware_protocol.device.records import TORN_BYTES, RecordSender
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.sessions import (
    DeviceParts,
    DeviceSession,
    DeviceSessions,
    FrameChannel,
)
from firmware_protocol.device.storage import DeviceFolder, StateStore
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.common import Fault, Power
from firmware_protocol.messages.control import DeviceBeat
from firmware_protocol.messages.enums import DeviceState, FaultCode, FrameKind, PowerCause, Refusal
from firmware_protocol.messages.errors import SessionSpent
from firmware_protocol.messages.limits import REREAD_DEPTH
from firmware_protocol.tablelink.framing import Frame
from firmware_protocol.tablelink.plaintext import CommandReply, encode

_EPOCHS: Final = 0xFFFFFFFF
_DEFECTS: Final = "defects"


class PowerCut(Exception):
    """The power went at the moment that cut_at() named. What take() still gives had left before;
    the device does nothing more."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(f"power cut {moment.replace('_', ' ')}")
        self.moment = moment


class _Cut(Struct, frozen=True):
    at: Moment
    torn: int
    """How many bytes of a record are written when the cut is in its commit."""


class _Later(Struct, frozen=True):
    """A reply that is held back. An honest device has none."""

    due: int
    session: DeviceSession
    plaintext: bytes


def _decode_defects(data: bytes) -> dict[FaultCode, int]:
    words = data.decode().split()
    return {FaultCode[name]: int(arg) for name, arg in zip(words[::2], words[1::2], strict=True)}


class Device:
    """A Peer for whoever holds the port, and the Desk of its mechanism."""

    def __init__(
        self,
        place: DeviceFolder,
        mechanism: Mechanism,
        *,
        now: int,
        cause: PowerCause = PowerCause.POWER_ON,
        behaviour: Behaviour | None = None,
        service: Callable[[Device], RequestHandler] | None = None,
        random: Draw = secrets.token_bytes,
    ) -> None:
        """`service` handles requests that do not depend on the device's class; default: none."""
        self.place = place
        self.mechanism = mechanism
        self._draw = random
        self._cut: _Cut | None = None
        self._dead = False
        self._left = b""
        """Bytes that left before a restart."""
        self.behaviour = Behaviour() if behaviour is None else behaviour
        self.wire = FrameChannel(self.behaviour)
        self._service = None if service is None else service(self)
        self.start(now, cause)

    # --- the start ---

    def start(self, now: int, cause: PowerCause) -> None:
        """Power comes on, or the firmware starts anew: only what is in `place` is still there."""
        self._left = self.take() + b"\0"  # what a former start left on the line ends there
        self.identity = identity.load(self.place.folder)
        self._host = paired_host(self.place.folder)
        self._started = now
        self._on = False
        self.behaviour.started()
        self._kept = StateStore(self.place.kept, sync=self.place.sync)
        self._mechanism_kept = StateStore(self.place.mechanism, sync=self.place.sync)
        self.ring = self._open_ring()
        self.boot = self._kept.number("boot")
        self.cause = PowerCause.POWER_LOSS if self.ring.torn else cause
        self.defects = _decode_defects(self._kept.kept(_DEFECTS))
        self.faulty = False
        """Whether a fault was told since the start, and no self-test has found all well since."""
        self.wire = FrameChannel(self.behaviour)
        self._later: list[_Later] = []
        self._make_parts()
        self.commands = CommandHandler(self)
        self._first_records(now)

    def _open_ring(self) -> Ring:
        if self.place.ring.exists():
            return Ring.open(self.place.ring, sync=self.place.sync, fits=self.behaviour.follows)
        return self.new_ring()

    def new_ring(self) -> Ring:
        epoch = 1 + int.from_bytes(self._draw(8), "little") % _EPOCHS
        return Ring.create(self.place.ring, epoch, self.identity.capacity, sync=self.place.sync)

    def _make_parts(self) -> None:
        board = DeviceParts(self.identity, self._kept, self.wire, self.behaviour, self._draw)
        self.records = RecordSender(board, self.ring, self)
        self.sessions = DeviceSessions(
            board,
            self.mechanism.capabilities,
            host=lambda: self._host,
            state=self.state,
            damaged=lambda: FaultCode.MEMORY in self.defects,
            ended=self.safe,
        )
        self.pairing = DevicePairing(
            board, self.sessions, store=self._store_host, record=self.record
        )
        self._frames: dict[FrameKind, Callable[[Frame, int], None]] = {
            FrameKind.HELLO: self._hello,
            FrameKind.HS1: self.sessions.hs1,
            FrameKind.PAIR1: self.pairing.pair1,
            FrameKind.PAIR3: self.pairing.pair3,
            FrameKind.DATA: self._data,
        }

    def _first_records(self, now: int) -> None:
        self.record(Power(self.cause), now)
        self._tell_damage(now)
        self.mechanism.start(self, now)
        if self._service is not None:
            self._service.started(now)
        self._on = True
        self.safe(now)  # it may have run before: firmware was replaced, or the ring's memory

    def _tell_damage(self, now: int) -> None:
        """A damaged record is told once; from then on a self-test tells it."""
        found = b"%d %d\n" % (self.ring.epoch, self.ring.damaged)
        if self.ring.damaged and self._kept.kept("damage") != found:
            self.report(FaultCode.RING, self.ring.damaged, now)
            self._kept.keep("damage", found)

    # --- Peer ---

    def receive(self, data: bytes, now: int) -> None:
        """Bytes from the host."""
        self.wake(now)
        if self._dead:
            return
        for frame in self.wire.hear(data, now):
            take = self._frames.get(frame.kind)
            if take is None:  # a kind that only devices send
                self.wire.refused += 1
            else:
                take(frame, now)

    def wake(self, now: int) -> None:
        """Do what is due. The heartbeat goes before anything else that is due at once."""
        if self._dead:
            return
        self.sessions.wake(now)
        self.pairing.wake(now)
        self._beat(now)
        due = self.mechanism.due()
        if due is not None and now >= due:
            self.mechanism.wake(now)
        self.commands.wake(now)
        self.records.again(now)
        self._send_later(now)

    def due(self) -> int | None:
        """When wake() is wanted next; None: not before something comes."""
        if self._dead:
            return None
        session = self.sessions.running
        moments = (
            *self.sessions.due(),
            self.pairing.due,
            None if session is None else session.next_beat,
            self.records.due(),
            self.mechanism.due(),
            self.commands.due(),
            *(later.due for later in self._later),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self) -> bytes:
        """Bytes for the host, all that wait."""
        out, self._left = self._left + self.wire.take(), b""
        return out

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        """Someone's hand at the device, or CannotDo."""
        self.wake(now)
        if self._dead:
            raise CannotDo("the power is off", "make the device anew")
        answer = None if self._service is None else self._service.handle(hand, now)
        return self.mechanism.hand(hand, now) if answer is None else answer

    # --- Desk ---

    def record(self, event: Event, now: int) -> bool:
        """Commit this event to the ring; False if there is no room for it."""
        return self.records.record(event, now)

    def number(self, name: str) -> int:
        return self._mechanism_kept.number(name)

    def last_number(self, name: str) -> int:
        return self._mechanism_kept.last_number(name)

    def keep(self, name: str, data: bytes) -> None:
        self._mechanism_kept.keep(name, data)

    def kept(self, name: str) -> bytes:
        return self._mechanism_kept.kept(name)

    def random(self, size: int) -> bytes:
        return self._draw(size)

    def reread(self, epoch: int, seq: int) -> bytes:
        """The 56 bytes of one of the last REREAD_DEPTH records, or Refuse."""
        ring = self.ring
        if epoch != ring.epoch or not ring.holds(seq) or seq <= ring.head - REREAD_DEPTH:
            raise CommandRefusal(Refusal.NOT_KEPT)
        return ring.record(seq)

    def broken(self, name: str) -> bool:
        return self.behaviour.broken(name)

    def full(self) -> bool:
        return self.records.room.full

    # --- faults ---

    def ails(self, now: int) -> dict[FaultCode, int]:
        """What a self-test finds."""
        ring = {FaultCode.RING: self.ring.damaged} if self.ring.damaged else {}
        # A defect that hands made is known to the core, and the mechanism may find it too.
        return dict(self.mechanism.selftest(now)) | self.defects | ring

    def report(self, code: FaultCode, arg: int, now: int) -> bool:
        """Tell a fault; whether there was room for the record."""
        self.faulty = True
        return self.record(Fault(code, arg), now)

    def keep_defects(self) -> None:
        """Store the defects, so that they outlast a power cut."""
        words = (f"{code.name} {arg}\n" for code, arg in self.defects.items())
        self._kept.keep(_DEFECTS, "".join(words).encode())

    # --- what it is like ---

    @property
    def host(self) -> bytes | None:
        """The paired host's public key."""
        return self._host

    def clock(self, now: int) -> int:
        return self.behaviour.clock(now - self._started)

    def state(self) -> DeviceState:
        state = self.mechanism.state()
        if self._host is not None:
            state |= DeviceState.PAIRED
        if self.pairing.service:
            state |= DeviceState.SERVICE
        if self.records.room.full:
            state |= DeviceState.FULL | DeviceState.LOCKED
        if self.faulty:
            state |= DeviceState.FAULTY
        return state

    # --- power ---

    def cut_at(self, moment: Moment, *, torn: int = TORN_BYTES) -> None:
        """Cut the power at the next such moment: PowerCut is raised there."""
        self._cut = _Cut(moment, torn)

    def torn(self) -> int | None:
        """How much of a record is written before power goes; None if it does not go there."""
        return self._cut.torn if self._cut is not None and self._cut.at == "in_commit" else None

    def reach(self, moment: Moment) -> None:
        """Power goes here if it was to go at such a moment."""
        if self._cut is not None and self._cut.at == moment:
            self._dead = True
            raise PowerCut(moment)

    # --- frames ---

    def _hello(self, frame: Frame, now: int) -> None:
        self._host = paired_host(self.place.folder)
        if self.sessions.hello(frame, now):
            self.pairing.forget()

    def _data(self, frame: Frame, now: int) -> None:
        opened = self.sessions.open(frame, now)
        if opened is None:
            return
        session, plaintext = opened
        self.records.begin_unasked(session)
        self.commands.take(session, plaintext, now)
        self.records.flow(now)

    def send(self, session: DeviceSession, plaintext: bytes, now: int) -> None:
        try:
            self.wire.send(session.seal(plaintext))
        except SessionSpent:
            self.sessions.end(now)
        session.next_beat = self.behaviour.beat_after_sending(session.next_beat, now)

    def reply(self, session: DeviceSession, reply: CommandReply, now: int) -> None:
        self.reach("before_reply")
        first = reply.reply.ID not in session.replied
        session.replied.add(reply.reply.ID)
        after = self.behaviour.reply_after(reply.reply, first=first)
        if after == 0:
            self.send(session, encode(reply), now)
        elif after is not None:
            self._later.append(_Later(now + after, session, encode(reply)))

    def _send_later(self, now: int) -> None:
        for later in [one for one in self._later if now >= one.due]:
            self._later.remove(later)
            if later.session is self.sessions.running:
                self.send(later.session, later.plaintext, now)

    def _beat(self, now: int) -> None:
        session = self.sessions.running
        if session is None or now < session.next_beat:
            return
        damaged, refused = self.behaviour.counts(self.wire.damaged, self.wire.refused)
        beat = DeviceBeat(
            epoch=self.ring.epoch,
            head=self.ring.head,
            boot=self.boot,
            t_us=self.clock(now),
            used=min(self.records.room.percent, 100),
            state=self.state(),
            damaged=damaged,
            refused=refused,
        )
        session.next_beat = self.behaviour.next_beat(session.began, now)
        self.send(session, encode(beat), now)

    # --- what its parts ask for ---

    def running(self) -> DeviceSession | None:
        return self.sessions.running

    def safe(self, now: int) -> None:
        """The safe state: no host any more, or the ring is full."""
        if self._on:
            self.mechanism.safe(now)

    def _store_host(self, key: bytes) -> None:
        pair_directly(self.place.folder, key)
        self._host = key
