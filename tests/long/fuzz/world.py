"""A host, a faulty line and a simulated shoe, in simulated time, and what must always hold.

The device's memory and the host's disk survive everything. The link, the port, the power and the
line do not. After each move the world checks that what the host keeps is a beginning of what the
device committed: every record once, in order, unchanged, and none acknowledged that is not kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.device import ControlRequest, Load
from firmware_protocol.host import (
    CommandTimedOut,
    FrameRejected,
    HostLink,
    LinkEvent,
    LinkSessionEnded,
    LinkSessionStarted,
    ProtocolViolated,
    RecordReceived,
    ReplyReceived,
    RingHeld,
    RingResumed,
    SessionEnding,
)
from firmware_protocol.host.commands import MAX_COMMANDS
from firmware_protocol.host.exchange import MAX_OUT
from firmware_protocol.messages import Command, DeviceClass, NotAuthentic, Verdict
from tests.long.fuzz.two_ends import SERIAL, Broken, Disk, Powered, Terms, bounded
from tests.support.firmware_protocol.line import CLEAN, Faults, Line

OWN: Final = X25519PrivateKey.from_private_bytes(bytes(range(32)))
CLEAN_WITHIN_US: Final = 15_000_000
"""On a clean line all records arrive within this time: the timeout of a lost handshake and the
longest backoff."""
ANSWERED_WITHIN_US: Final = 30_000_000
"""And every command is answered or has timed out, one after another."""
TERMS: Final = Terms()
LinkKind = Callable[..., HostLink]


class World:
    def __init__(
        self, folder: Path, random: Random, terms: Terms = TERMS, *, kind: LinkKind = HostLink
    ) -> None:
        self.random = random
        self.terms = terms
        self.now = 1_000_000
        self.counts: Counter[str] = Counter()
        host = OWN.public_key().public_bytes_raw()
        self.shoe = Powered(folder, random, terms, host, self.counts)
        self.to_device = Line(random, self.counts)
        self.to_host = Line(random, self.counts)
        self.disk = Disk()
        self.calls: dict[int, Command] = {}
        """Commands without a reply."""
        self.link: HostLink | None = None
        self.port_open = False
        self.keeps_at_once = True
        self.dies_hearing = False
        """The host is killed when the next record arrives."""
        self._kind = kind
        self._stalled_until = 0
        self.shoe.on(self.now)
        self.hand(Load(decks=1, seed=1))
        self.open_port()

    # --- what can happen at the device ------------------------------------------------------

    def hand(self, hand: ControlRequest) -> bool:
        """Send a control request to the device. Returns False if it is impossible now."""
        done = self.shoe.hand(hand, self.now)
        self._collect()
        return done

    # --- and at the line and the host -------------------------------------------------------

    def set_faults(self, to_device: Faults, to_host: Faults) -> None:
        self.to_device.faults, self.to_host.faults = to_device, to_host

    def stall(self, span_us: int) -> None:
        """The host's process does not run for a while; received bytes are buffered."""
        self.counts["stalled"] += 1
        self._stalled_until = self.now + span_us

    def kill_host(self) -> None:
        """kill -9: only the disk is left. The host restarts when the port is opened."""
        self.counts["host killed"] += 1
        self.link = None
        self.port_open = False
        self.disk.killed()
        self.calls.clear()
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
        if not self.port_open:
            link = self.link = self.link or self._start_host()
            self.port_open = True
            self._hear(link.open(self.now))
            self._send()

    def _start_host(self) -> HostLink:
        return self._kind(
            OWN,
            self.shoe.key,
            device_class=DeviceClass.SHOE,
            serial=SERIAL,
            cursor=self.disk.cursor,
            recent=self.disk.recent,
            host_boot=1 + self.random.getrandbits(63),
            rekey_frames=self.terms.rekey_frames,
            session_life_us=self.terms.session_life_us,
            random=self.random.randbytes,
        )

    def call(self, command: Command) -> None:
        """Does nothing if the queue is full."""
        alike = (one for one in self.calls.values() if type(one) is type(command))
        if self.link is None or len(self.calls) == MAX_COMMANDS:
            return
        if command.IDEMPOTENT or not any(alike):
            self.calls[self.link.call(command, self.now)] = command
            self._send()

    def pause(self) -> None:
        if self.link is not None:
            self.link.pause(self.now)
            self._send()

    def go_on(self) -> None:
        if self.link is not None:
            self.link.unpause(self.now)
            self._send()

    def tell_kept(self) -> None:
        """Tell the link which records are on the disk."""
        disk = self.disk
        if self.link is not None and disk.untold and disk.kept is not None:
            disk.untold = 0
            self.link.stored(disk.kept.last, self.now)
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
        """Repair the line and connect both sides: every committed record arrives within
        CLEAN_WITHIN_US. Returns the time that it took."""
        self.set_faults(CLEAN, CLEAN)
        self.keeps_at_once = True
        self.dies_hearing = False
        self.shoe.frozen_until = self._stalled_until = 0
        self.shoe.on(self.now)
        self.open_port()
        self.go_on()
        self.disk.write()
        self.tell_kept()
        start = self.now
        self._until(self._settled, start + CLEAN_WITHIN_US, "not all has arrived")
        self._compare()
        took = self.now - start
        self._until(lambda: not self.calls, start + ANSWERED_WITHIN_US, "not all was answered")
        return took

    def _until(self, done: Callable[[], bool], end: int, why: str) -> None:
        while not done():
            at = self._due()
            if at is None or at > end:
                raise Broken(f"{why} on a clean line")
            self.now = max(self.now, at)
            self.move()

    def move(self) -> None:
        """Do all that is due now, exactly once."""
        if self.shoe.on_at is not None and self.now >= self.shoe.on_at:
            self.shoe.on(self.now)
        if self.now >= self.shoe.frozen_until:
            for piece in self._pieces(self.to_device.take(self.now)) or (b"",):
                self.shoe.hear(piece, self.now)
        self._collect()
        if self.now >= self._stalled_until:
            self._move_host(self.to_host.take(self.now))
        self.check()

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

    def _pieces(self, data: bytes) -> list[bytes]:
        """Split the bytes at any position, as a port does."""
        out = []
        while len(data) > 1 and self.random.random() < 0.1:
            at = self.random.randrange(1, len(data))
            out.append(data[:at])
            data = data[at:]
        return [*out, data] if data else out

    def _due(self) -> int | None:
        return min(self._dues(), default=None)

    def _dues(self) -> Iterator[int]:
        link = None if self.link is None else self.link.due()
        for at, earliest in (
            (self.to_device.due(), self.shoe.frozen_until),
            (self.to_host.due(), self._stalled_until),
            (self.shoe.due(), 0),
            (self.shoe.on_at, 0),
            (link, self._stalled_until),
        ):
            if at is not None:
                yield max(at, earliest)

    # --- what must hold ---------------------------------------------------------------------

    def check(self) -> None:
        """After every move."""
        device, kept = self.shoe.device, self.disk.kept
        if device is not None and kept is not None and not self.terms.tampered:
            acked = device.records.room.acked
            if acked > kept.last:
                raise Broken(f"{acked} was acknowledged, and {kept.last} is kept")
        if self.link is not None:
            bounded(self.link)

    def _settled(self) -> bool:
        device, kept, link = self.shoe.device, self.disk.kept, self.link
        if device is None or link is None or kept is None or not link.resumed:
            return False
        same = (kept.epoch, kept.last) == (device.ring.epoch, device.ring.head)
        known = link.cursor == kept.cursor and device.records.room.used == 0
        return same and known and self.disk.coming is None

    def _compare(self) -> None:
        """Whether the stored records are those of the ring."""
        assert self.shoe.device is not None
        assert self.disk.kept is not None
        ring = self.shoe.device.ring
        for record in self.disk.kept.records:
            if ring.holds(record.seq) and ring.record(record.seq) != record.encode():
                raise Broken(f"record {record.seq} is another in the ring")

    # --- inside -----------------------------------------------------------------------------

    def _collect(self) -> None:
        out = self.shoe.take()
        if self.port_open:
            self.to_host.put(out, self.now)

    def _send(self) -> None:
        if self.link is not None:
            data = self.link.take()
            if len(data) > MAX_OUT:
                raise Broken(f"{len(data)} bytes wait for the port")
            if self.port_open:
                self.to_device.put(data, self.now)

    def _hear(self, events: list[LinkEvent]) -> None:
        for event in events:
            if self.dies_hearing and isinstance(event, RecordReceived):
                self._send()
                self.kill_host()
                return
            hear = _HEARERS.get(type(event))
            if hear is not None:
                hear(self, event)
        if self.keeps_at_once:
            self.disk.write()
            self.tell_kept()

    def _arrived(self, event: RecordReceived) -> None:
        self.disk.arrived(event.record, self.shoe.committed)

    def _held(self, held: RingHeld) -> None:
        if self.disk.kept is not None and not self.terms.tampered:
            raise Broken("held, and nobody was at the ring")
        assert self.link is not None
        self.counts["held"] += 1
        self.disk.write()
        self.tell_kept()
        self.link.adopt(self.now)
        stored = held.acked_seq if held.verdict is Verdict.BEHIND else 0
        self.disk.adopts(max(held.oldest, stored + 1))

    def _resumed(self, event: RingResumed) -> None:
        assert self.link is not None
        self.disk.resumed(self.link.cursor, event.oldest)

    def _began(self, event: LinkSessionStarted) -> None:
        self.counts["new keys" if event.rekeyed else "sessions"] += 1

    def _ended(self, event: LinkSessionEnded) -> None:
        self.counts[f"ended {event.why.value}"] += 1
        if event.why is SessionEnding.OTHER_RING and not self.terms.tampered:
            raise Broken("another ring was seen, and nobody was at the ring")

    def _answered(self, event: ReplyReceived | CommandTimedOut) -> None:
        self.counts["answered" if isinstance(event, ReplyReceived) else "unanswered"] += 1
        command = self.calls.pop(event.command_id, None)
        if command is not None and command != event.command:
            raise Broken("another command was answered under this id")

    def _defective(self, event: ProtocolViolated) -> None:
        raise Broken(f"an honest device was called defective: {event.error}")

    def _suspicious(self, event: FrameRejected) -> None:
        self.counts[event.error.name] += 1
        if isinstance(event.error, NotAuthentic):
            raise Broken("noise got past the CRC")


_HEARERS: Final[dict[type, Callable[[World, Any], None]]] = {
    RecordReceived: World._arrived,
    RingHeld: World._held,
    RingResumed: World._resumed,
    ReplyReceived: World._answered,
    CommandTimedOut: World._answered,
    ProtocolViolated: World._defective,
    LinkSessionStarted: World._began,
    LinkSessionEnded: World._ended,
    FrameRejected: World._suspicious,
}
