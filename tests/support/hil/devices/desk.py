"""Mechanisms without a wire: what they ask of the core, and scenes with one of each class."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple, Self, TypeVar

import pytest

from firmware_protocol.device import (
    Answer,
    CannotDo,
    CommandRefusal,
    ControlRequest,
    Describe,
    Draw,
    Load,
    Mechanism,
    Moment,
    Put,
    RingPosition,
)
from firmware_protocol.messages import (
    REREAD_DEPTH,
    Arm,
    ArmReply,
    Button,
    ButtonMask,
    Capabilities,
    CardRead,
    Command,
    CountError,
    DeckKind,
    Done,
    Edge,
    Event,
    Fault,
    Lock,
    LockState,
    Power,
    PowerCause,
    Progress,
    Refusal,
    Reply,
    Start,
    WhichButton,
)
from firmware_protocol.tablelink import NO_CHAIN, EventRecord, chained
from hil.devices import SimulatedShoe, SimulatedShuffler, SimulatedStation, card_names
from hil.devices.shoe import RECOGNISE_MS

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
        with pytest.raises(CommandRefusal) as refusal:
            self.call(command)
        return refusal.value.why

    def run(self, ms: float | None = None) -> None:
        """Let so much time go by; without, as much as it takes until nothing is due."""
        end = None if ms is None else self.now + int(ms * MS)
        while (at := self.mechanism.due()) is not None and (end is None or at <= end):
            self.now = max(self.now, at)
            self.mechanism.wake(self.now)
        self.now = self.now if end is None else end

    def play(self, *steps: Any) -> Self:
        """Commands and requests in order. A number is milliseconds that go by; `idle`: until
        nothing is due; `safe`: the session ends; `fill`, `empty`: the ring; `cut`: the power goes
        after the next commit."""
        for step in steps:
            match step:
                case int() | float():
                    self.run(step)
                case "idle":
                    self.run()
                case "restart":
                    self.restart()
                case "safe":
                    self.mechanism.safe(self.now)
                case "fill" | "empty":
                    self.desk.room = 0 if step == "fill" else 1 << 30
                case "cut":
                    self.desk.cut_at = "after_commit"
                case Command():
                    self.call(step)
                case _:
                    self.do(step)
        return self

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

    def shown(self, *names: str) -> tuple[Any, ...]:
        """These fields of `describe`."""
        return tuple(map(self.look().__getitem__, names))


def act(scene: Scene, action: Any) -> None:
    """One step of a random history. What is refused changes nothing."""
    try:
        with suppress(CannotDo, CommandRefusal):
            scene.play(action)
    except PowerGone:
        scene.restart()


OPEN = Lock(LockState.OPEN)
SHUT = Lock(LockState.LOCKED)
ONE_MS = 40 + RECOGNISE_MS
"""From the hand's pull to the record."""


def table(
    *breaks: str,
    make: Callable[[], Mechanism] = SimulatedShoe,
    load: Load | None = None,
    seed: int = 1,
) -> Scene:
    """A loaded and open shoe."""
    scene = Scene(make, *breaks, seed=seed)
    scene.do(load or Load(decks=1))
    if Capabilities.LOCK in scene.mechanism.capabilities:
        scene.call(OPEN)
    return scene


def draw(scene: Scene, **how: Any) -> list[Event]:
    """Draw, and the events that came of it."""
    before = len(scene.events)
    scene.do(Draw(**how))
    scene.run()
    return scene.events[before:]


def read_card(scene: Scene, **how: Any) -> CardRead:
    """Draw one card, which is read."""
    (read,) = draw(scene, **how)
    assert isinstance(read, CardRead)
    return read


def names(events: list[Event]) -> list[str]:
    return [card_names.name(event.card) for event in events if isinstance(event, CardRead)]


def cannot(scene: Scene, hand: ControlRequest, says: str) -> None:
    """The hand is turned away, and nothing has changed."""
    before, events = scene.look(), len(scene.events)
    with pytest.raises(CannotDo, match=says):
        scene.do(hand)
    assert scene.look() == before
    assert len(scene.events) == events


SECOND = 1_000_000
STEPS = list(range(5, 100, 5))
ENDS = (Done, CountError, Fault)


def seeded() -> SimulatedShuffler:
    return SimulatedShuffler(shuffle_ms=1000, seed=7)


def machine(*breaks: str, put: Put | None = None, make: Callable[[], Mechanism] = seeded) -> Scene:
    """With a batch inside and the door closed."""
    scene = Scene(make, *breaks)
    scene.do(put or Put(decks=1))
    return scene


def shuffle(scene: Scene, decks: int = 1) -> list[Event]:
    """Start and wait for the end; all events but PROGRESS."""
    before = len(scene.events)
    scene.call(Start(decks, 0, DeckKind.FULL_52))
    scene.run()
    return [event for event in scene.events[before:] if not isinstance(event, Progress)]


def ends(scene: Scene) -> list[Event]:
    return [event for event in scene.events if isinstance(event, ENDS)]


HIT, STAND, DOUBLE = ButtonMask.HIT, ButtonMask.STAND, ButtonMask.DOUBLE
EVERY = ButtonMask(0x1FF)


def seat(
    *breaks: str,
    mask: ButtonMask = EVERY,
    make: Callable[[], Mechanism] = SimulatedStation,
    ttl: int = 60_000,
) -> Scene:
    """Seat 1, armed under token 77."""
    scene = Scene(make, *breaks)
    if mask:
        assert scene.call(Arm(1, mask, 77, ttl)) == ArmReply()
    return scene


def pair(button: WhichButton, press: int, held: int, *, token: int = 77, at: int = 1) -> list[Any]:
    """The two edges of a press."""
    return [
        Button(at, button, Edge.DOWN, 0, press, token),
        Button(at, button, Edge.UP, held, press, token),
    ]
