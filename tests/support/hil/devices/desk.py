"""A desk that is small enough to see through: what a mechanism asks of the core, without a wire."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from firmware_protocol.device.control import ControlRequest, Describe, Moment
from firmware_protocol.device.interfaces import (
    Answer,
    CannotDo,
    CommandRefusal,
    Mechanism,
    RingPosition,
)
from firmware_protocol.messages import (
    REREAD_DEPTH,
    Command,
    Event,
    Fault,
    Power,
    PowerCause,
    Refusal,
    Reply,
)
from firmware_protocol.tablelink.plaintext import NO_CHAIN, EventRecord, chained

EPOCH = 0x5EED
MS = 1000
E = TypeVar("E", bound=Event)


class PowerGone(Exception):
    """The power went in the middle of something."""


class _End(NamedTuple):
    epoch: int
    head: int


class SmallDesk:
    def __init__(self, *breaks: str, seed: int = 1) -> None:
        self.breaks = set(breaks)
        self.room = 1 << 30
        """How many records there is room for beyond those made."""
        self.cut_at: Moment | None = None
        self.cut_after = 0
        """How many commits come through before the cut."""
        self.records: list[EventRecord] = []
        self.boot = 0
        self.mechanism: Mechanism | None = None
        self._random = random.Random(seed)
        self._numbers: dict[str, int] = {}
        self._kept: dict[str, bytes] = {}

    # --- what a mechanism asks ---

    @property
    def ring(self) -> RingPosition:
        return _End(EPOCH, len(self.records))

    def record(self, event: Event, now: int) -> bool:
        if not self.room and not isinstance(event, Fault):
            return False
        self._cut("before_commit")
        self.room = max(0, self.room - 1)
        self._append(event, now)
        self._cut("after_commit")
        if not self.room and self.mechanism is not None:
            self.mechanism.safe(now)
        return True

    def next_number(self, name: str) -> int:
        self._numbers[name] = self._numbers.get(name, 0) + 1
        return self._numbers[name]

    def draw(self, size: int) -> bytes:
        return self._random.randbytes(size)

    def reread(self, epoch: int, seq: int) -> bytes:
        head = len(self.records)
        if epoch != EPOCH or not max(0, head - REREAD_DEPTH) < seq <= head:
            raise CommandRefusal(Refusal.NOT_KEPT)
        return self.records[seq - 1].encode()

    def broken(self, name: str) -> bool:
        return name in self.breaks

    def full(self) -> bool:
        return not self.room

    def save(self, name: str, data: bytes) -> None:
        self._kept[name] = data

    def load(self, name: str) -> bytes:
        return self._kept.get(name, b"")

    # --- what a test asks ---

    def start(self, mechanism: Mechanism, now: int) -> None:
        """Power comes on."""
        self.mechanism = None
        self.boot += 1
        self._append(Power(PowerCause.POWER_ON), now)
        mechanism.start(self, now)
        self.mechanism = mechanism

    def _append(self, event: Event, now: int) -> None:
        chain = self.records[-1].chain if self.records else NO_CHAIN
        seq = len(self.records) + 1
        self.records.append(
            chained(chain, epoch=EPOCH, seq=seq, boot=self.boot, t_us=now, event=event)
        )

    def _cut(self, moment: Moment) -> None:
        if moment != self.cut_at:
            return
        if self.cut_after:
            self.cut_after -= 1
            return
        self.cut_at = None
        raise PowerGone(moment)


class Scene:
    """A mechanism, its desk, and the time."""

    def __init__(self, make: Callable[[], Mechanism], *breaks: str, seed: int = 1) -> None:
        self.make = make
        self.desk = SmallDesk(*breaks, seed=seed)
        self.now = 1_000_000
        self.mechanism = make()
        self.desk.start(self.mechanism, self.now)

    def do(self, hand: ControlRequest) -> Answer:
        return self.mechanism.request(hand, self.now)

    def call(self, command: Command) -> Reply:
        return self.mechanism.command(command, self.now)

    def refused(self, command: Command) -> Refusal:
        try:
            reply = self.call(command)
        except CommandRefusal as refusal:
            return refusal.why
        raise AssertionError(f"not refused: {reply}")

    def run(self, ms: float | None = None) -> None:
        """Let so much time go by; without, as much as it takes until nothing is due."""
        end = None if ms is None else self.now + int(ms * MS)
        while (at := self.mechanism.due()) is not None and (end is None or at <= end):
            self.now = max(self.now, at)
            self.mechanism.wake(self.now)
        self.now = self.now if end is None else end

    def restart(self, off_ms: int = 1000) -> None:
        """Power goes and comes: a new firmware finds what was kept."""
        self.now += off_ms * MS
        self.mechanism = self.make()
        self.desk.start(self.mechanism, self.now)

    @property
    def events(self) -> list[Event]:
        """All that was recorded, but POWER."""
        return [one.event for one in self.desk.records if not isinstance(one.event, Power)]

    def those(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def at(self, kind: type[Event]) -> list[int]:
        """When the events of this kind were recorded."""
        return [one.t_us for one in self.desk.records if isinstance(one.event, kind)]

    def look(self) -> dict[str, Any]:
        return self.do(Describe())


def act(scene: Scene, action: Any) -> None:
    """One step of a random history: time passes, a command, a request, a restart, or a change of
    the ring. What is refused changes nothing."""
    try:
        match action:
            case int():
                scene.run(ms=action)
            case "restart":
                scene.restart()
            case "safe":
                scene.mechanism.safe(scene.now)
            case "fill" | "empty":
                scene.desk.room = 0 if action == "fill" else 1 << 30
            case "cut":
                scene.desk.cut_at = "after_commit"
            case Command():
                scene.call(action)
            case _:
                scene.do(action)
    except PowerGone:
        scene.restart()
    except (CannotDo, CommandRefusal):
        pass
