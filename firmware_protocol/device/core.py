"""The device side of TableLink, common to every class: bytes and times in, bytes out.

    create_identity(folder, DeviceClass.SHOE, "SH-0001")
    device = Device(DeviceFolder(folder), mechanism, now=0)
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

from firmware_protocol.device.behaviour import Behaviour
from firmware_protocol.device.commands import CommandHandler
from firmware_protocol.device.control import ControlRequest, Moment
from firmware_protocol.device.folder import (
    DeviceFolder,
    RandomBytes,
    StateStore,
    load_identity,
    pair_directly,
    paired_host,
)
from firmware_protocol.device.interfaces import (
    Answer,
    CannotDo,
    CommandRefusal,
    Mechanism,
    RequestHandler,
)
from firmware_protocol.device.records import TORN_BYTES, RecordSender
from firmware_protocol.device.ring import Ring
from firmware_protocol.device.sessions import (
    DevicePairing,
    DeviceSession,
    DeviceSessions,
    FrameChannel,
)
from firmware_protocol.messages import (
    REREAD_DEPTH,
    DeviceBeat,
    DeviceState,
    Event,
    Fault,
    FaultCode,
    FrameKind,
    Power,
    PowerCause,
    Refusal,
    SessionSpent,
)
from firmware_protocol.tablelink import CommandReply, Frame, encode_plaintext

_EPOCHS: Final = 0xFFFFFFFF
_DEFECTS: Final = "defects"


class PowerCut(Exception):
    """The power was cut at the moment that cut_at() named. take() still returns the bytes that were
    sent before; the device does nothing more."""

    def __init__(self, moment: Moment) -> None:
        super().__init__(f"power cut {moment.replace('_', ' ')}")
        self.moment = moment


class _Cut(Struct, frozen=True):
    at: Moment
    torn: int
    """Bytes of a record that are written if the cut is in its commit."""


class _DelayedReply(Struct, frozen=True):
    """A reply that a faulty behaviour delays."""

    due: int
    session: DeviceSession
    plaintext: bytes


def _decode_defects(data: bytes) -> dict[FaultCode, int]:
    words = data.decode().split()
    return {FaultCode[name]: int(arg) for name, arg in zip(words[::2], words[1::2], strict=True)}


class Device:
    """A Peer for the owner of the port, and the CoreServices of its mechanism."""

    def __init__(
        self,
        place: DeviceFolder,
        mechanism: Mechanism,
        *,
        now: int,
        cause: PowerCause = PowerCause.POWER_ON,
        behaviour: Behaviour | None = None,
        service: Callable[[Device], RequestHandler] | None = None,
        random: RandomBytes = secrets.token_bytes,
    ) -> None:
        """`service` handles requests that do not depend on the device's class; default: none."""
        self.place = place
        self.mechanism = mechanism
        self.draw = random
        self._cut: _Cut | None = None
        self._dead = False
        self._left = b""
        """Bytes that were sent before a restart."""
        self.behaviour = Behaviour() if behaviour is None else behaviour
        self.channel = FrameChannel(self.behaviour)
        self._service = None if service is None else service(self)
        self.start(now, cause)

    # --- the start ---

    def start(self, now: int, cause: PowerCause) -> None:
        """Start the firmware. Only the state in the folder outlasts it."""
        self._left = self.take() + b"\0"  # ends an incomplete frame of the former start
        self.identity = load_identity(self.place.folder)
        self.host = paired_host(self.place.folder)
        self._started = now
        self._mechanism_on = False
        self.behaviour.started()
        self.storage = StateStore(self.place.kept, sync=self.place.sync)
        self._mechanism_storage = StateStore(self.place.mechanism, sync=self.place.sync)
        self.ring = self._open_ring()
        self.boot = self.storage.next_number("boot")
        self.cause = PowerCause.POWER_LOSS if self.ring.torn else cause
        self.defects = _decode_defects(self.storage.load(_DEFECTS))
        self.faulty = False
        """Whether a fault was reported since the start and no self-test has passed since."""
        self.channel = FrameChannel(self.behaviour)
        self._delayed: list[_DelayedReply] = []
        self._make_parts()
        self._first_records(now)

    def _open_ring(self) -> Ring:
        if self.place.ring.exists():
            return Ring.open(self.place.ring, sync=self.place.sync, fits=self.behaviour.follows)
        return self.new_ring()

    def new_ring(self) -> Ring:
        epoch = 1 + int.from_bytes(self.draw(8), "little") % _EPOCHS
        return Ring.create(self.place.ring, epoch, self.identity.capacity, sync=self.place.sync)

    def _make_parts(self) -> None:
        self.records = RecordSender(self, self.ring)
        self.sessions = DeviceSessions(self, self.mechanism.capabilities)
        self.pairing = DevicePairing(self, self.sessions)
        self.commands = CommandHandler(self)
        self._frames: dict[FrameKind, Callable[[Frame, int], None]] = {
            FrameKind.HELLO: self._hello,
            FrameKind.HS1: self.sessions.answer_hs1,
            FrameKind.PAIR1: self.pairing.answer_pair1,
            FrameKind.PAIR3: self.pairing.finish,
            FrameKind.DATA: self._data,
        }

    def _first_records(self, now: int) -> None:
        self.record(Power(self.cause), now)
        self._report_damage(now)
        self.mechanism.start(self, now)
        if self._service is not None:
            self._service.started(now)
        self._mechanism_on = True
        self.safe(now)  # this may be a restart of a running device

    def _report_damage(self, now: int) -> None:
        """Report a damaged record exactly once; later only self-tests report it."""
        found = b"%d %d\n" % (self.ring.epoch, self.ring.damaged)
        if self.ring.damaged and self.storage.load("damage") != found:
            self.report(FaultCode.RING, self.ring.damaged, now)
            self.storage.save("damage", found)

    # --- Peer ---

    def receive(self, data: bytes, now: int) -> None:
        """Handle bytes from the host."""
        self.wake(now)
        if self._dead:
            return
        for frame in self.channel.decode(data, now):
            take = self._frames.get(frame.kind)
            if take is None:  # a kind that only devices send
                self.channel.refused += 1
            else:
                take(frame, now)

    def wake(self, now: int) -> None:
        """Do what is due. The heartbeat is sent first."""
        if self._dead:
            return
        self.sessions.wake(now)
        self.pairing.wake(now)
        self._beat(now)
        due = self.mechanism.due()
        if due is not None and now >= due:
            self.mechanism.wake(now)
        self.commands.wake(now)
        self.records.retry(now)
        self._send_delayed(now)

    def due(self) -> int | None:
        """When wake() must be called next; None: only after a call of receive() or
        request()."""
        if self._dead:
            return None
        session = self.running
        moments = (
            *self.sessions.due(),
            self.pairing.due,
            None if session is None else session.next_beat,
            self.records.due(),
            self.mechanism.due(),
            self.commands.due(),
            *(reply.due for reply in self._delayed),
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def take(self) -> bytes:
        """Returns the buffered bytes for the host, and empties the buffer."""
        out, self._left = self._left + self.channel.take(), b""
        return out

    def request(self, request: ControlRequest, now: int) -> Answer:
        """Carry out a control request. Raises CannotDo if it is impossible now."""
        self.wake(now)
        if self._dead:
            raise CannotDo("the power is off", "create the device again")
        answer = None if self._service is None else self._service.handle(request, now)
        return self.mechanism.request(request, now) if answer is None else answer

    # --- CoreServices ---

    def record(self, event: Event, now: int) -> bool:
        """Commit this event to the ring. Returns False if it is full."""
        return self.records.record(event, now)

    def next_number(self, name: str) -> int:
        return self._mechanism_storage.next_number(name)

    def save(self, name: str, data: bytes) -> None:
        self._mechanism_storage.save(name, data)

    def load(self, name: str) -> bytes:
        return self._mechanism_storage.load(name)

    def reread(self, epoch: int, seq: int) -> bytes:
        """One of the last REREAD_DEPTH records. Raises CommandRefusal for any other."""
        ring = self.ring
        if epoch != ring.epoch or not ring.holds(seq) or seq <= ring.head - REREAD_DEPTH:
            raise CommandRefusal(Refusal.NOT_KEPT)
        return ring.record(seq)

    def broken(self, name: str) -> bool:
        return self.behaviour.broken(name)

    def full(self) -> bool:
        return self.records.room.full

    # --- faults ---

    def find_faults(self, now: int) -> dict[FaultCode, int]:
        """The faults that a self-test finds."""
        ring = {FaultCode.RING: self.ring.damaged} if self.ring.damaged else {}
        # The core knows the injected defects; the mechanism may find them too.
        return dict(self.mechanism.selftest(now)) | self.defects | ring

    def report(self, code: FaultCode, arg: int, now: int) -> bool:
        """Record a fault. Returns False if the ring is full."""
        self.faulty = True
        return self.record(Fault(code, arg), now)

    def save_defects(self) -> None:
        """Store the defects, so that they outlast a power cut."""
        words = (f"{code.name} {arg}\n" for code, arg in self.defects.items())
        self.storage.save(_DEFECTS, "".join(words).encode())

    # --- state ---

    @property
    def running(self) -> DeviceSession | None:
        return self.sessions.running

    def clock(self, now: int) -> int:
        return self.behaviour.clock(now - self._started)

    def state(self) -> DeviceState:
        state = self.mechanism.state()
        if self.host is not None:
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

    def torn_bytes(self) -> int | None:
        """Bytes of a record that are written before a power cut; None if none is planned there."""
        return self._cut.torn if self._cut is not None and self._cut.at == "in_commit" else None

    def reach(self, moment: Moment) -> None:
        """Raises PowerCut if a cut is planned at this moment."""
        if self._cut is not None and self._cut.at == moment:
            self._dead = True
            raise PowerCut(moment)

    # --- frames ---

    def _hello(self, frame: Frame, now: int) -> None:
        self.host = paired_host(self.place.folder)
        if self.sessions.answer_hello(frame, now):
            self.pairing.drop()

    def _data(self, frame: Frame, now: int) -> None:
        opened = self.sessions.open(frame, now)
        if opened is None:
            return
        session, plaintext = opened
        self.records.start_unasked(session)
        self.commands.handle(session, plaintext, now)
        self.records.flow(now)

    def send(self, session: DeviceSession, plaintext: bytes, now: int) -> None:
        try:
            self.channel.send(session.sealer.seal(plaintext))
        except SessionSpent:
            self.sessions.end(now)
        session.next_beat = self.behaviour.beat_after_sending(session.next_beat, now)

    def reply(self, session: DeviceSession, reply: CommandReply, now: int) -> None:
        self.reach("before_reply")
        first = reply.reply.ID not in session.replied
        session.replied.add(reply.reply.ID)
        after = self.behaviour.reply_after(reply.reply, first=first)
        if after == 0:
            self.send(session, encode_plaintext(reply), now)
        elif after is not None:
            self._delayed.append(_DelayedReply(now + after, session, encode_plaintext(reply)))

    def _send_delayed(self, now: int) -> None:
        for reply in [one for one in self._delayed if now >= one.due]:
            self._delayed.remove(reply)
            if reply.session is self.running:
                self.send(reply.session, reply.plaintext, now)

    def _beat(self, now: int) -> None:
        session = self.running
        if session is None or now < session.next_beat:
            return
        damaged, refused = self.behaviour.counts(self.channel.damaged, self.channel.refused)
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
        session.next_beat = self.behaviour.next_beat(session.started_at, now)
        self.send(session, encode_plaintext(beat), now)

    # --- services for the parts ---

    def safe(self, now: int) -> None:
        """Take the safe state: there is no host, or the ring is full."""
        if self._mechanism_on:
            self.mechanism.safe(now)

    def store_host(self, key: bytes) -> None:
        pair_directly(self.place.folder, key)
        self.host = key
