"""A link and a scripted device on one wire without delay, in simulated time."""

from __future__ import annotations

from typing import Any, TypeVar

from firmware_protocol.host import (
    NO_CURSOR,
    HostLink,
    LinkEvent,
    RecordCursor,
    RecordReceived,
)
from firmware_protocol.messages import Command, DeviceClass
from firmware_protocol.tablelink import EventRecord
from tests.long.fuzz.scripted import BOOT, DEVICE_KEY, OWN, SERIAL, Scripted

MS = 1000
START = 5_000_000
_E = TypeVar("_E")


class Wired:
    """Each step passes bytes in both directions until both sides are silent."""

    def __init__(
        self,
        device: Scripted | None = None,
        *,
        cursor: RecordCursor = NO_CURSOR,
        adopt: bool = True,
        **more: Any,
    ) -> None:
        self.device = device or Scripted()
        fields: dict[str, Any] = {
            "device_class": DeviceClass.SHOE,
            "serial": SERIAL,
            "host_boot": BOOT,
            **more,
        }
        self.link = HostLink(OWN, fields.pop("key", DEVICE_KEY), cursor=cursor, **fields)
        self.now = START
        self.events: list[LinkEvent] = []
        self.cut = False
        """Nothing gets through."""
        self._adopt = adopt

    @classmethod
    def running(cls, count: int = 0, **more: Any) -> Wired:
        """A link whose session was resumed before the first of `count` records."""
        device = Scripted(count)
        wired = cls(device, cursor=RecordCursor(device.epoch, 0, bytes(8)), **more)
        wired.open()
        assert wired.link.resumed, wired.events
        return wired

    def open(self) -> None:
        self.take(self.link.open(self.now))
        self.settle()

    def take(self, events: list[LinkEvent]) -> None:
        self.events += events

    def settle(self) -> None:
        """Pass the buffered bytes in both directions."""
        while True:
            data, back = self.link.take(), self.device.take()
            if not self.cut:
                self.device.receive(data)
                if back:
                    self.take(self.link.receive(back, self.now))
            if not data and not back:
                return

    def pass_ms(self, ms: float, *, beats: bool = True) -> None:
        """Let time pass; the device beats when the link does something."""
        end = self.now + int(ms * MS)
        while True:
            due = self.link.due()
            at = end if due is None else min(max(due, self.now), end)
            if due is None or due > end:
                self.now = end
                self.settle()
                return
            self.now = at
            self.take(self.link.wake(at))
            due = self.link.due()
            assert due is None or due > at, "wake() has left something that is due"
            if beats and self.device.sealers and not self.cut:
                self.device.beat()
            self.settle()

    def say(self, *what: Any) -> list[LinkEvent]:
        """Send this from the device. Returns the events of the link."""
        before = len(self.events)
        for one in what:
            self.device.say(one)
        self.settle()
        return self.events[before:]

    def send(self, *seqs: int) -> list[LinkEvent]:
        """The device sends these records."""
        return self.say(*(self.device.records[seq - 1] for seq in seqs))

    def call(self, command: Command) -> int:
        ident = self.link.call(command, self.now)
        self.settle()
        return ident

    def stored(self, seq: int) -> None:
        self.link.stored(seq, self.now)
        self.settle()

    def of(self, kind: type[_E]) -> list[_E]:
        """The events of this kind."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def arrived(self) -> list[EventRecord]:
        return [event.record for event in self.of(RecordReceived)]

    def forget(self) -> None:
        """Forget all former events and frames."""
        self.events.clear()
        self.device.said.clear()
        self.device.frames.clear()
