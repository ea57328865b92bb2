"""A batch shuffler: a tray behind a door, and a motor that needs a configurable time.

A shuffle runs without a host, and pauses while cards are stuck or the door is open. It ends with
exactly one of DONE, COUNT_ERROR and FAULT ABORTED. After a restart an unfinished shuffle is
aborted, since the order of the cards is unknown.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Final

import msgspec
from msgspec import Struct

from firmware_protocol.device import (
    Answer,
    CannotDo,
    CommandRefusal,
    Describe,
    InjectDefect,
    MoveDoor,
    Put,
    SetJam,
    ShufflePace,
)
from firmware_protocol.messages import (
    Abort,
    AbortReply,
    Capabilities,
    CountError,
    DeckKind,
    DeviceClass,
    DeviceState,
    Done,
    Door,
    Eject,
    EjectReply,
    Event,
    Fault,
    FaultCode,
    JamCode,
    Progress,
    Refusal,
    ShufflerJam,
    Start,
    Started,
    StartReply,
)
from hil.devices import card_names
from hil.devices.mechanism import (
    CommandTable,
    PendingEvents,
    RequestTable,
    SimulatedMechanism,
    flag_set,
)

SHUFFLE_MS: Final = 5_000
STEP_PERCENT: Final = 5


class ShufflerContents(Struct):
    """The state that a shuffler stores."""

    tray: bytes = b""
    """Cards of the batch, from the top."""
    behind: bytes = b""
    """Cards left inside: they come out with the next batch, or when a jam is cleared."""
    will_stay: int = 0
    """Cards of the batch that will be left inside."""
    sorted: bool = False
    handed_out: bytes = b""
    """The batch that came out last."""
    running: int = 0
    """Number of the running shuffle; 0 if none runs."""
    decks: int = 0
    kind: int = DeckKind.FULL_52
    """Kind of the decks, as START said."""
    door_open: bool = False
    jam: int = JamCode.CLEARED
    pending: PendingEvents = msgspec.field(default_factory=PendingEvents, name="owed")


class SimulatedShuffler(SimulatedMechanism):
    device_class = DeviceClass.SHUFFLER
    STATE = "shuffler"
    CONTENTS = ShufflerContents
    JAM = ShufflerJam
    _contents: ShufflerContents

    def __init__(
        self,
        *,
        deck_check: bool = True,
        eject: bool = True,
        card_sensor: bool = True,
        gateway: bool = False,
        shuffle_ms: int = SHUFFLE_MS,
        seed: int | None = None,
    ) -> None:
        self.capabilities = flag_set(
            Capabilities,
            {
                Capabilities.DECK_CHECK: deck_check,
                Capabilities.EJECT: eject,
                Capabilities.CARD_SENSOR: card_sensor,
                Capabilities.GATEWAY: gateway,
            },
        )
        self._shuffle_us = shuffle_ms * 1000
        self._seed = seed
        self._reset(0)

    def _reset(self, now: int) -> None:
        self._contents = ShufflerContents()
        self._since = 0
        """Start of the motor's current turn."""
        self._turned = 0
        """Duration of its earlier turns in this shuffle."""
        self._reported = 0
        """The percentage that was reported last."""
        self._rng_fails = False

    # --- for the core ---------------------------------------------------------------------

    def _started(self, now: int) -> None:
        if self._contents.running:
            self._abort(now)
        else:
            self._flush(now)

    def safe(self, now: int) -> None:
        if self._core.broken("stops-without-host") and self._contents.running:
            self._abort(now)

    def state(self) -> DeviceState:
        contents = self._contents
        return flag_set(
            DeviceState,
            {
                DeviceState.LOCKED: not self._is_ready(),
                DeviceState.OPEN: contents.door_open,
                DeviceState.JAMMED: contents.jam != JamCode.CLEARED,
                DeviceState.RUNNING: bool(contents.running),
                DeviceState.CARDS: self._sees_cards(),
            },
        )

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        return ((FaultCode.RANDOM, 0),) if self._rng_fails else ()

    def wake(self, now: int) -> None:
        self._poll(now)
        if not self._is_turning():
            return
        turned = self._turned_by(now)
        if turned >= self._shuffle_us:
            self._finish(now)
            return
        done = turned * 100 // self._shuffle_us
        step = done - done % STEP_PERCENT
        if step > self._reported:  # a late call reports the latest step and skips earlier ones
            self._reported = step
            if not self._pending.events:  # PROGRESS would overtake them
                self._core.record(Progress(step), now)

    def due(self) -> int | None:
        times = self._poll_due()
        if self._is_turning():
            to_turn = -(-self._shuffle_us * (self._reported + STEP_PERCENT) // 100)
            times.append(self._since + to_turn - self._turned)
        return min(times, default=None)

    # --- commands -------------------------------------------------------------------------

    def _sees_cards(self) -> bool:
        """Whether its sensor notices cards inside."""
        sensor = Capabilities.CARD_SENSOR in self.capabilities
        return sensor and bool(self._contents.tray or self._contents.behind)

    def _is_ready(self) -> bool:
        """Whether START would be accepted."""
        contents = self._contents
        stopped = contents.running or contents.door_open or contents.jam != JamCode.CLEARED
        return not stopped and not self._core.full()

    def _start(self, command: Start, now: int) -> StartReply:
        again = self._contents.running and self._core.broken("starts-twice")
        if not self._is_ready() and not again:
            raise CommandRefusal(Refusal.NOT_NOW)
        if command.profile:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        sensor = Capabilities.CARD_SENSOR in self.capabilities
        if sensor and not self._sees_cards() and not self._core.broken("starts-empty"):
            raise CommandRefusal(Refusal.EMPTY)
        shuffle = self._core.next_number("shuffle")
        self._contents.running, self._contents.decks = shuffle, command.decks
        self._contents.kind = command.kind
        self._since, self._turned, self._reported = now, 0, 0
        self._report(now, Started(shuffle, command.decks))
        return StartReply(shuffle)

    def _eject(self, command: Eject, now: int) -> EjectReply:
        if Capabilities.EJECT not in self.capabilities:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        contents = self._contents
        if contents.running or not self._pending.has_capacity(1):
            raise CommandRefusal(Refusal.NOT_NOW)
        contents.door_open = True
        contents.handed_out, contents.tray = contents.tray, b""
        self._report(now, Door(open=True))
        return EjectReply()

    def _abort_command(self, command: Abort, now: int) -> AbortReply:
        if self._contents.running:
            self._abort(now)
        return AbortReply()

    # --- the motor ------------------------------------------------------------------------

    def _is_turning(self) -> bool:
        contents = self._contents
        return bool(contents.running) and not contents.door_open and contents.jam == JamCode.CLEARED

    def _turned_by(self, now: int) -> int:
        return self._turned + (now - self._since if self._is_turning() else 0)

    def _abort(self, now: int) -> None:
        shuffle, self._contents.running = self._contents.running, 0
        if self._core.broken("abort-silent"):
            self._store()
        else:
            self._report(now, Fault(FaultCode.ABORTED, shuffle))

    def _finish(self, now: int) -> None:
        contents = self._contents
        shuffle, contents.running = contents.running, 0
        batch = self._mix(contents.tray + contents.behind, shuffle)
        stays = min(contents.will_stay, len(batch))
        contents.tray, contents.behind = bytes(batch[stays:]), bytes(batch[:stays])
        contents.will_stay = 0
        kind = DeckKind(contents.kind)
        if self._core.broken("deck-kind-ignored"):
            kind = DeckKind.FULL_52
        expected = contents.decks * card_names.deck_size(kind)
        events: tuple[Event, ...]
        if len(contents.tray) != expected:
            events = (CountError(expected, len(contents.tray)),)
        else:
            missing, extra = self._compare(contents.tray, contents.decks, kind)
            done = Done(shuffle, len(contents.tray), missing, extra, not self._rng_fails)
            events = (done, done) if self._core.broken("done-twice") else (done,)
        self._report(now, *events)

    def _mix(self, batch: bytes, shuffle: int) -> list[int]:
        """The order after the shuffle."""
        self._rng_fails = self._contents.sorted
        if self._contents.sorted:
            return sorted(batch)
        seed = self._core.draw(16).hex() if self._seed is None else f"{self._seed}/{shuffle}"
        return card_names.shuffled(batch, seed)

    def _compare(self, batch: bytes, decks: int, kind: DeckKind) -> tuple[int, int]:
        """How many cards are missing and how many are extra; 0 and 0 without a deck check."""
        if Capabilities.DECK_CHECK not in self.capabilities:
            return 0, 0
        want, have = Counter(card_names.new_decks(decks, kind)), Counter(batch)
        return (want - have).total(), (have - want).total()

    # --- requests -------------------------------------------------------------------------

    def _put(self, request: Put, now: int) -> Answer:
        contents = self._contents
        if contents.running:
            raise CannotDo("a shuffle runs", "wait for its end, or ABORT")
        if contents.jam != JamCode.CLEARED:
            raise CannotDo("cards are stuck", "jam with code null frees them")
        decks = card_names.new_decks(request.decks, DeckKind[request.kind.upper()])
        batch = card_names.changed(decks, request.remove, request.add)
        self._pending.require_capacity(2)
        opening = [] if contents.door_open else [Door(open=True)]
        contents.tray, contents.will_stay = bytes(batch), request.left_inside
        contents.sorted, contents.door_open = request.sorted, False
        if not batch:
            contents.behind = b""
        self._report(now, *opening, Door(open=False))
        return {"count": len(batch)}

    def _door(self, request: MoveDoor, now: int) -> Answer:
        if request.open == self._contents.door_open:
            return {"changed": False}
        if request.open and self._is_turning():
            raise CannotDo("the door is barred while the motor turns", "wait, or ABORT")
        self._pending.require_capacity(1)
        self._count_time(now)
        self._contents.door_open = request.open
        self._report(now, Door(open=request.open))
        return {"changed": True}

    def _stick(self, code: JamCode, now: int) -> None:
        if code is JamCode.CLEARED and self._contents.jam == JamCode.LEFT_INSIDE:
            self._contents.behind = b""
        self._count_time(now)

    def _count_time(self, now: int) -> None:
        """Add up the motor's time before it is stopped or started."""
        self._turned = self._turned_by(now)
        self._since = now

    def _pace(self, request: ShufflePace, now: int) -> Answer:
        self._shuffle_us = request.shuffle_ms * 1000
        return {}

    def _describe(self, request: Describe, now: int) -> Answer:
        contents = self._contents
        percent = min(100, self._turned_by(now) * 100 // max(1, self._shuffle_us))
        return {
            "running": contents.running,
            "percent": percent if contents.running else 0,
            "decks": contents.decks,
            "kind": DeckKind(contents.kind).name.lower(),
            "count": len(contents.tray),
            "cards": card_names.names_of(contents.tray),
            "left_inside": card_names.names_of(contents.behind),
            "handed_out": card_names.names_of(contents.handed_out),
            "door": "open" if contents.door_open else "closed",
            "jam": JamCode(contents.jam).name.lower(),
            "owed": len(self._pending.events),
        }

    COMMANDS: ClassVar[CommandTable] = {Start: _start, Eject: _eject, Abort: _abort_command}
    REQUESTS: ClassVar[RequestTable] = {
        Put: _put,
        MoveDoor: _door,
        SetJam: SimulatedMechanism._jam,
        ShufflePace: _pace,
        InjectDefect: SimulatedMechanism._ignore,
        Describe: _describe,
    }
