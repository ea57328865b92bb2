"""A host, a faulty line and a simulated shoe, in simulated time, and what must always hold.

The device and the host's disk survive everything. The link, the port, the power and the line do
not. After each move the world checks that what the host keeps is a beginning of what the device
committed: every record once, in order, unchanged, and none acknowledged that is not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.codec import Command
from firmware_protocol.enums import DeviceClass, PowerCause
from firmware_protocol.errors import NotAuthentic
from firmware_protocol.limits import MAX_ENCODED, REKEY_FRAMES, SESSION_LIFE_S, WINDOW
from firmware_protocol.link import MOST_OUT, NO_CURSOR, Cursor, Link
from firmware_protocol.link_calls import MOST_CALLS
from firmware_protocol.link_cursor import RECENT
from firmware_protocol.link_events import (
    Arrived,
    Defective,
    Held,
    LinkEvent,
    Replied,
    Resumed,
    SessionBegan,
    Suspicious,
    Unanswered,
)
from firmware_protocol.plaintext import NO_CHAIN, EventRecord
from hil.device import identity
from hil.device.core import Device, PowerCut
from hil.device.hands import Hand, Load, Moment
from hil.device.parts import CannotDo
from hil.device.shoe import Shoe
from tests.firmware_protocol.line import CLEAN, Faults, Line

SERIAL: Final = "SH-0001"
OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))
CLEAN_WITHIN_US: Final = 25_000_000
"""On a clean line everything has arrived after so long, whatever was before."""
LinkKind = Callable[..., Link]


class Broken(AssertionError):
    """Something that must always hold does not."""


class Part(Struct):
    """Records of one ring without a gap, from where two people adopted it."""

    epoch: int
    first: int
    records: list[EventRecord]

    @property
    def last(self) -> int:
        return self.first + len(self.records) - 1

    @property
    def cursor(self) -> Cursor:
        chain = self.records[-1].chain if self.records else NO_CHAIN
        return Cursor(self.epoch, self.last, chain)


class Terms(Struct, frozen=True):
    """What stays the same in a world."""

    rekey_frames: int = REKEY_FRAMES
    session_life_us: int = SESSION_LIFE_S * 1_000_000
    gate: bool = True
    tampered: bool = False
    """Someone will be at the ring: the link may hold."""
    breaks: frozenset[str] = frozenset()
    """What the device does wrong, by the names of hil.device.breaks."""


TERMS: Final = Terms()


class World:
    def __init__(
        self,
        folder: Path,
        random: Random,
        terms: Terms = TERMS,
        *,
        kind: LinkKind = Link,
    ) -> None:
        self.random = random
        self.folder = folder
        self.kind = kind
        self.terms = terms
        self.now = 1_000_000
        self.counts: Counter[str] = Counter()
        own = identity.create(folder, DeviceClass.SHOE, SERIAL, rng=random.randbytes)
        identity.pair_directly(folder, OWN.public_key().public_bytes_raw())
        self.device_key = own.public
        self.to_device = Line(random, self.counts)
        self.to_host = Line(random, self.counts)
        self.device: Device | None = None
        self._on_at: int | None = None
        self._frozen_until = 0
        self._stalled_until = 0
        self.committed: set[bytes] = set()
        """Every record that the device ever committed."""
        self._seen = (0, 0, b"")  # epoch, head and last record of the ring, when it was looked at
        self.kept: Part | None = None
        """What is on the host's disk."""
        self.coming: Part | None = None
        """Adopted, and nothing of it kept yet."""
        self.inbox: list[EventRecord] = []
        """Arrived, and not on the disk yet."""
        self.told = 0
        """How many of the records on the disk the link does not know of."""
        self.calls: dict[int, Command] = {}
        self.link: Link | None = None
        self.port_open = False
        self.keeps_at_once = True
        self.dies_hearing = False
        """The host is killed when the next record arrives."""
        self.power_on()
        self.hand(Load(decks=1, seed=1))
        self.start_host()
        self.open_port()

    # --- what can happen --------------------------------------------------------------------

    def power_on(self, cause: PowerCause = PowerCause.POWER_ON) -> None:
        self._on_at = None
        self.device = Device(
            self.folder,
            Shoe(gate=self.terms.gate, gap_ms=5),
            now=self.now,
            cause=cause,
            breaks=set(self.terms.breaks),
            sync=False,
            random=self.random.randbytes,
        )
        self._look()

    def power_off(self, off_us: int = 0) -> None:
        if self.device is not None:
            self._lose_power(off_us)

    def cut_power_at(self, moment: Moment) -> None:
        if self.device is not None:
            self.device.cut_at(moment)
            self.counts[f"cut {moment}"] += 1

    def hand(self, hand: Hand) -> None:
        """Someone's hand at the device; nothing when that makes no sense now."""
        self._move_device(b"")  # what is due before it is looked at before it
        if self.device is not None:
            try:
                self.device.hand(hand, self.now)
            except CannotDo:
                self.counts["cannot do"] += 1
            except PowerCut:
                self._lose_power()
            self._collect()

    def start_host(self) -> None:
        recent = {} if self.kept is None else {r.seq: r.chain for r in self.kept.records[-RECENT:]}
        self.link = self.kind(
            OWN,
            self.device_key,
            device_class=DeviceClass.SHOE,
            serial=SERIAL,
            cursor=NO_CURSOR if self.kept is None else self.kept.cursor,
            recent=recent,
            host_boot=1 + self.random.getrandbits(63),
            rekey_frames=self.terms.rekey_frames,
            session_life_us=self.terms.session_life_us,
            random=self.random.randbytes,
        )

    def freeze(self, span_us: int) -> None:
        """The firmware hangs for a while."""
        self.counts["frozen"] += 1
        self._frozen_until = self.now + span_us

    def stall(self, span_us: int) -> None:
        """The host's process does not run for a while; what comes waits."""
        self.counts["stalled"] += 1
        self._stalled_until = self.now + span_us

    def kill_host(self) -> None:
        """kill -9: only the disk is left. It starts anew when the port is opened."""
        self.counts["host killed"] += 1
        self.link = None
        self.port_open = False
        self.inbox.clear()
        self.calls.clear()
        self.coming = None
        self.told = 0
        self.dies_hearing = False

    def lose_port(self, *, unplugged: bool = True) -> None:
        self.port_open = False
        if unplugged:
            self.to_device.clear()
            self.to_host.clear()
        if self.link is not None:
            self.counts["port lost"] += 1
            self._hear(self.link.lost(self.now))

    def open_port(self) -> None:
        if self.link is None:
            self.start_host()
        if not self.port_open and self.link is not None:
            self.port_open = True
            self._hear(self.link.open(self.now))
            self._send()

    def set_faults(self, to_device: Faults, to_host: Faults) -> None:
        self.to_device.faults, self.to_host.faults = to_device, to_host

    def call(self, command: Command) -> None:
        if self.link is not None and len(self.calls) < MOST_CALLS:
            if any(
                type(one) is type(command) and not one.IDEMPOTENT for one in self.calls.values()
            ):
                return
            self.calls[self.link.call(command, self.now)] = command
            self._send()

    def pause(self) -> None:
        if self.link is not None:
            self.link.pause(self.now)
            self._send()

    def go_on(self) -> None:
        if self.link is not None:
            self.link.go_on(self.now)
            self._send()

    def write_disk(self, count: int = WINDOW) -> None:
        """Records go to the disk, and the link is not told yet."""
        for record in self.inbox[:count]:
            if self.coming is not None:
                self.kept, self.coming = self.coming, None
            if self.kept is None:
                raise Broken("a record arrived before anything was adopted")
            self.kept.records.append(record)
            self.told += 1
        del self.inbox[:count]

    def tell_kept(self) -> None:
        if self.link is not None and self.told and self.kept is not None:
            self.told = 0
            self.link.kept(self.kept.last, self.now)
            self._send()

    # --- time -------------------------------------------------------------------------------

    def run(self, span_us: int) -> None:
        """Let time pass."""
        end = self.now + span_us
        while (at := self._due()) is not None and at <= end:
            self.now = max(self.now, at)
            self.move()
        self.now = end

    def settle(self) -> int:
        """The line becomes clean and everybody is there again: all that was committed arrives
        within CLEAN_WITHIN_US. How long it took."""
        self.set_faults(CLEAN, CLEAN)
        self.keeps_at_once = True
        self.dies_hearing = False
        self._frozen_until = self._stalled_until = 0
        if self.device is None:
            self.power_on()
        self.open_port()
        self.go_on()
        self.write_disk()
        self.tell_kept()
        start = self.now
        while not self._settled():
            at = self._due()
            if at is None or at > start + CLEAN_WITHIN_US:
                raise Broken(f"not all has arrived {CLEAN_WITHIN_US // 1_000_000} s later")
            self.now = max(self.now, at)
            self.move()
        self._compare()
        return self.now - start

    def move(self) -> None:
        """All that is due now happens, once."""
        if self.device is None and self._on_at is not None and self.now >= self._on_at:
            self.power_on()
        if self.now >= self._frozen_until:
            self._move_device(self.to_device.take(self.now))
        if self.now >= self._stalled_until:
            self._move_host(self.to_host.take(self.now))
        self.check()

    def _move_device(self, data: bytes) -> None:
        try:
            for piece in self._pieces(data):
                if self.device is not None:
                    self.device.receive(piece, self.now)
            if not data and self.device is not None:
                self.device.wake(self.now)
        except PowerCut:
            self._lose_power()
        self._collect()

    def _move_host(self, data: bytes) -> None:
        for piece in self._pieces(data) if self.port_open else ():
            if self.link is not None:
                self._hear(self.link.receive(piece, self.now))
        if self.link is not None:
            events = self.link.wake(self.now)
            due = self.link.due()
            if due is not None and due <= self.now:
                raise Broken(f"due {self.now - due} us ago, and wake() leaves it")
            self._hear(events)
            self._send()

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        """How a port cuts what comes: anywhere."""
        while len(data) > 1 and self.random.random() < 0.1:
            at = self.random.randrange(1, len(data))
            yield data[:at]
            data = data[at:]
        if data:
            yield data

    def _due(self) -> int | None:
        device = [self.to_device.due()]
        if self.device is not None:
            device.append(self.device.due())
        host = [self.to_host.due()]
        if self.link is not None:
            host.append(self.link.due())
        times = [
            *(max(at, self._frozen_until) for at in device if at is not None),
            *(max(at, self._stalled_until) for at in host if at is not None),
        ]
        if self._on_at is not None:
            times.append(self._on_at)
        return min(times, default=None)

    def _settled(self) -> bool:
        if self.device is None or self.link is None or not self.link.resumed or self.kept is None:
            return False
        ring = self.device.ring
        same = (self.kept.epoch, self.kept.last) == (ring.epoch, ring.head)
        known = self.link.cursor == self.kept.cursor and self.device.records.room.used == 0
        return same and known and self.coming is None and not self.calls

    def _compare(self) -> None:
        """What is kept beside what the ring still holds."""
        assert self.device is not None
        assert self.kept is not None
        ring = self.device.ring
        for record in self.kept.records:
            if ring.holds(record.seq) and ring.record(record.seq) != record.encode():
                raise Broken(f"record {record.seq} is another in the ring")

    # --- inside -----------------------------------------------------------------------------

    def _lose_power(self, off_us: int | None = None) -> None:
        self._collect()
        self.counts["power lost"] += 1
        self.device = None
        self._on_at = self.now + (self.random.randrange(300_000) if off_us is None else off_us)

    def _collect(self) -> None:
        """What the device has said and committed."""
        if self.device is not None:
            self._look()
            out = self.device.take()
            if self.link is not None and self.port_open:
                self.to_host.put(out, self.now)

    def _look(self) -> None:
        assert self.device is not None
        ring = self.device.ring
        epoch, head, last = self._seen
        if head and (epoch != ring.epoch or not ring.holds(head) or ring.record(head) != last):
            if not self.terms.tampered:
                raise Broken(f"the device has lost or changed record {head}")
            head = ring.oldest - 1
        for seq in range(head + 1, ring.head + 1):
            self.committed.add(ring.record(seq))
        self._seen = ring.epoch, ring.head, ring.record(ring.head) if ring.head else b""

    def _send(self) -> None:
        if self.link is not None:
            data = self.link.take()
            if len(data) > MOST_OUT:
                raise Broken(f"{len(data)} bytes wait for the port")
            if self.port_open:
                self.to_device.put(data, self.now)

    def _hear(self, events: list[LinkEvent]) -> None:
        for event in events:
            hear = _HEARERS.get(type(event))
            if hear is not None:
                if self.dies_hearing and isinstance(event, Arrived):
                    self._send()
                    self.kill_host()
                    return
                hear(self, event)
        if self.keeps_at_once:
            self.write_disk()
            self.tell_kept()

    def _arrived(self, event: Arrived) -> None:
        record = event.record
        part = self.coming or self.kept
        if part is None:
            raise Broken("a record arrived before anything was adopted")
        before = self.inbox[-1] if self.inbox else (part.records[-1] if part.records else None)
        wanted = part.first if before is None else before.seq + 1
        if (record.epoch, record.seq) != (part.epoch, wanted):
            raise Broken(f"record {record.seq} arrived instead of {wanted}")
        if record.encode() not in self.committed:
            raise Broken(f"record {record.seq} is none that was committed")
        if before is not None and not record.follows(before.chain):
            raise Broken(f"record {record.seq} does not follow the one before")
        self.inbox.append(record)

    def _held(self, _: Held) -> None:
        if self.kept is not None and not self.terms.tampered:
            raise Broken("held, and nobody was at the ring")
        assert self.link is not None
        self.counts["held"] += 1
        self.write_disk()
        self.tell_kept()
        self.link.adopt(self.now)
        self.coming = Part(0, 0, [])  # where it begins is told with Resumed

    def _resumed(self, event: Resumed) -> None:
        assert self.link is not None
        if self.coming is not None:
            self.coming = Part(event.epoch, self.link.cursor.seq + 1, [])
            if self.coming.first != event.oldest:
                raise Broken(f"adopted from {self.coming.first} and not from {event.oldest}")
        elif self.kept is None:
            raise Broken("resumed, and nobody has adopted the ring")

    def _began(self, event: SessionBegan) -> None:
        self.counts["new keys" if event.rekeyed else "sessions"] += 1

    def _answered(self, event: Replied | Unanswered) -> None:
        self.counts["answered" if isinstance(event, Replied) else "unanswered"] += 1
        command = self.calls.pop(event.command_id, None)
        if command is not None and command != event.command:
            raise Broken("another command was answered under this id")

    def _defective(self, event: Defective) -> None:
        raise Broken(f"an honest device was called defective: {event.error}")

    def _suspicious(self, event: Suspicious) -> None:
        self.counts[event.error.name] += 1
        if isinstance(event.error, NotAuthentic):
            raise Broken("noise got past the CRC")

    def check(self) -> None:
        """What must hold after every move."""
        if self.device is not None and self.kept is not None and not self.terms.tampered:
            acked = self.device.records.room.acked
            if acked > self.kept.last:
                raise Broken(f"{acked} was acknowledged, and {self.kept.last} is kept")
        if self.link is not None:
            _bounded(self.link)


def _bounded(link: Link) -> None:
    """White box: nothing in a link grows beyond its bound."""
    sizes: tuple[tuple[str, int, int], ...] = (
        ("records", link._records.waiting, WINDOW),
        ("chains", len(link._records._recent), RECENT),
        ("commands", len(link._calls), MOST_CALLS),
        ("bytes out", len(link._out), MOST_OUT),
        ("bytes in", link._deframer.held, MAX_ENCODED),
        ("former sessions", len(link._former), 8),
        ("events", len(link._told), 0),
    )
    for what, size, most in sizes:
        if size > most:
            raise Broken(f"{size} {what} are held, and {most} is the bound")


_HEARERS: Final[dict[type, Callable[[World, Any], None]]] = {
    Arrived: World._arrived,
    Held: World._held,
    Resumed: World._resumed,
    Replied: World._answered,
    Unanswered: World._answered,
    Defective: World._defective,
    SessionBegan: World._began,
    Suspicious: World._suspicious,
}
