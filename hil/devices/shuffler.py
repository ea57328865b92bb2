"""A batch shuffler: cards in through the door, a motor that takes its time, cards out.

A shuffle needs no host. While cards are stuck or the door is open its time stands still. It ends
with exactly one of DONE, COUNT_ERROR and FAULT ABORTED; the last one also after a start that found
one begun, for the order of the cards is then known to nobody.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import Struct

from firmware_protocol.device.control import (
    ControlRequest,
    Describe,
    DoorHand,
    InjectDefect,
    JamHand,
    Put,
    ShufflePace,
)
from firmware_protocol.device.interfaces import Answer, CannotDo, CommandRefusal, CoreServices
from firmware_protocol.messages.codec import Command, Event, Reply
from firmware_protocol.messages.common import Fault
from firmware_protocol.messages.enums import (
    Capabilities,
    DeviceClass,
    DeviceState,
    FaultCode,
    JamCode,
    Refusal,
)
from firmware_protocol.messages.limits import CARDS
from firmware_protocol.messages.shuffler import (
    Abort,
    AbortReply,
    CountError,
    Done,
    Door,
    Eject,
    EjectReply,
    Progress,
    ShufflerJam,
    Start,
    Started,
    StartReply,
)
from hil.devices import card_names
from hil.devices.pending_events import POLL_US, PendingEvents
from hil.devices.request_table import dispatch

SHUFFLE_MS: Final = 5_000
STEP_PERCENT: Final = 5
_KEPT: Final = "shuffler"


class ShufflerContents(Struct):
    """What a shuffler keeps over restarts."""

    tray: bytes = b""
    """Cards of the batch, from the top."""
    behind: bytes = b""
    """Cards that were left inside: they come out with the next batch, or when freed by hand."""
    will_stay: int = 0
    """Cards of the batch that will be left inside."""
    sorted: bool = False
    handed_out: bytes = b""
    """The batch that came out last."""
    running: int = 0
    """Number of the shuffle that runs; 0 when none does."""
    decks: int = 0
    door_open: bool = False
    jam: int = JamCode.CLEARED
    owed: PendingEvents = msgspec.field(default_factory=PendingEvents)


class SimulatedShuffler:
    device_class = DeviceClass.SHUFFLER

    def __init__(
        self,
        *,
        deck_check: bool = True,
        eject: bool = True,
        shuffle_ms: int = SHUFFLE_MS,
        seed: int | None = None,
    ) -> None:
        flags = ((deck_check, Capabilities.DECK_CHECK), (eject, Capabilities.EJECT))
        self.capabilities = Capabilities(sum(flag for has, flag in flags if has))
        self._deck_check = deck_check
        self._can_eject = eject
        self._shuffle_us = shuffle_ms * 1000
        self._seed = seed
        self._forget()

    def _forget(self) -> None:
        """All that is in RAM, as a start finds it."""
        self._inside = ShufflerContents()
        self._since = 0
        """Since when the motor has been turning; meaningless while it stands."""
        self._turned = 0
        """How long it had turned before that."""
        self._told = 0
        """Percent that was reported last."""
        self._poll_at = 0
        self._rng_fails = False

    # --- what the core asks ---------------------------------------------------------------

    def start(self, desk: CoreServices, now: int) -> None:
        self._desk = desk
        self._forget()
        kept = desk.load(_KEPT)
        self._inside = (
            msgspec.msgpack.decode(kept, type=ShufflerContents) if kept else ShufflerContents()
        )
        self._inside.owed.recall(desk)
        if self._inside.running:
            self._abort(now)
        else:
            self._settle(now)

    def command(self, command: Command, now: int) -> Reply:
        do = _COMMANDS.get(type(command))
        if do is None:
            raise CommandRefusal(Refusal.UNKNOWN)
        return do(self, command, now)

    def safe(self, now: int) -> None:
        if self._desk.broken("stops-without-host") and self._inside.running:
            self._abort(now)

    def state(self) -> DeviceState:
        inside = self._inside
        flags = (
            (not self._ready(), DeviceState.LOCKED),
            (inside.door_open, DeviceState.OPEN),
            (inside.jam != JamCode.CLEARED, DeviceState.JAMMED),
            (bool(inside.running), DeviceState.RUNNING),
        )
        return DeviceState(sum(flag for on, flag in flags if on))

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        return ((FaultCode.RANDOM, 0),) if self._rng_fails else ()

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        return dispatch(self, _REQUESTS, hand, now)

    def wake(self, now: int) -> None:
        if self._inside.owed.events and self._poll_at <= now:
            self._settle(now)
        if not self._turning():
            return
        turned = self._turned_by(now)
        if turned >= self._shuffle_us:
            self._finish(now)
            return
        done = turned * 100 // self._shuffle_us
        step = done - done % STEP_PERCENT
        if step > self._told:
            # How far it is by now, not how far it was: a late step takes the place of earlier ones.
            self._told = step
            if not self._inside.owed.events:  # it would come before what waits
                self._desk.record(Progress(step), now)

    def due(self) -> int | None:
        times = []
        if self._inside.owed.events:
            times.append(self._poll_at)
        if self._turning():
            to_turn = -(-self._shuffle_us * (self._told + STEP_PERCENT) // 100)
            times.append(self._since + to_turn - self._turned)
        return min(times) if times else None

    # --- commands -------------------------------------------------------------------------

    def _ready(self) -> bool:
        """Whether START would not be refused."""
        inside = self._inside
        stopped = inside.running or inside.door_open or inside.jam != JamCode.CLEARED
        return not stopped and not self._desk.full()

    def _start(self, command: Start, now: int) -> StartReply:
        again = self._inside.running and self._desk.broken("starts-twice")
        if not self._ready() and not again:
            raise CommandRefusal(Refusal.NOT_NOW)
        if command.profile:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        shuffle = self._desk.next_number("shuffle")
        self._inside.running, self._inside.decks = shuffle, command.decks
        self._since, self._turned, self._told = now, 0, 0
        self._report(now, Started(shuffle, command.decks))
        return StartReply(shuffle)

    def _eject(self, command: Eject, now: int) -> EjectReply:
        if not self._can_eject:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        if self._inside.running or not self._inside.owed.takes(1):
            raise CommandRefusal(Refusal.NOT_NOW)
        self._inside.door_open = True
        self._hand_out()
        self._report(now, Door(open=True))
        return EjectReply()

    def _abort_command(self, command: Abort, now: int) -> AbortReply:
        if self._inside.running:
            self._abort(now)
        return AbortReply()

    # --- the motor ------------------------------------------------------------------------

    def _turning(self) -> bool:
        inside = self._inside
        return bool(inside.running) and not inside.door_open and inside.jam == JamCode.CLEARED

    def _turned_by(self, now: int) -> int:
        return self._turned + (now - self._since if self._turning() else 0)

    def _abort(self, now: int) -> None:
        shuffle, self._inside.running = self._inside.running, 0
        if self._desk.broken("abort-silent"):
            self._keep()
            return
        self._report(now, Fault(FaultCode.ABORTED, shuffle))

    def _finish(self, now: int) -> None:
        inside = self._inside
        shuffle, inside.running = inside.running, 0
        batch = self._mix(inside.tray + inside.behind, shuffle)
        stays = min(inside.will_stay, len(batch))
        inside.tray, inside.behind = bytes(batch[stays:]), bytes(batch[:stays])
        inside.will_stay = 0
        expected = inside.decks * CARDS
        events: tuple[Event, ...]
        if len(inside.tray) != expected:
            events = (CountError(expected, len(inside.tray)),)
        else:
            missing, extra = self._compare(inside.tray, inside.decks)
            done = Done(shuffle, len(inside.tray), missing, extra, not self._rng_fails)
            events = (done, done) if self._desk.broken("done-twice") else (done,)
        self._report(now, *events)

    def _mix(self, batch: bytes, shuffle: int) -> list[int]:
        """The order that the shuffle leaves."""
        self._rng_fails = self._inside.sorted
        if self._inside.sorted:
            return sorted(batch)
        seed = self._desk.draw(16).hex() if self._seed is None else f"{self._seed}/{shuffle}"
        return card_names.shuffled(batch, seed)

    def _compare(self, batch: bytes, decks: int) -> tuple[int, int]:
        """How many cards are missing and how many are too many, if it can tell cards apart."""
        if not self._deck_check:
            return 0, 0
        want, have = Counter(card_names.new_decks(decks)), Counter(batch)
        return (want - have).total(), (have - want).total()

    def _hand_out(self) -> None:
        self._inside.handed_out, self._inside.tray = self._inside.tray, b""

    def _report(self, now: int, *events: Event) -> None:
        self._inside.owed.add(self._desk, *events)
        self._keep()
        self._settle(now)

    def _settle(self, now: int) -> None:
        self._poll_at = now + POLL_US
        self._inside.owed.settle(self._desk, now)
        self._keep()

    def _keep(self) -> None:
        self._desk.save(_KEPT, msgspec.msgpack.encode(self._inside))

    # --- hands ----------------------------------------------------------------------------

    def _put(self, hand: Put, now: int) -> Answer:
        inside = self._inside
        if inside.running:
            raise CannotDo("a shuffle runs", "wait for its end, or ABORT")
        if inside.jam != JamCode.CLEARED:
            raise CannotDo("cards are stuck", "jam with code null frees them")
        batch = card_names.changed(card_names.new_decks(hand.decks), hand.remove, hand.add)
        inside.owed.room_for(2)
        opening = [] if inside.door_open else [Door(open=True)]
        inside.tray, inside.will_stay = bytes(batch), hand.left_inside
        inside.sorted, inside.door_open = hand.sorted, False
        self._report(now, *opening, Door(open=False))
        return {"count": len(batch)}

    def _door(self, hand: DoorHand, now: int) -> Answer:
        inside = self._inside
        if hand.open == inside.door_open:
            return {"changed": False}
        if hand.open and self._turning():
            raise CannotDo("the door is barred while the motor turns", "wait, or ABORT")
        inside.owed.room_for(1)
        self._count_time(now)
        inside.door_open = hand.open
        self._report(now, Door(open=hand.open))
        return {"changed": True}

    def _jam(self, hand: JamHand, now: int) -> Answer:
        inside = self._inside
        code = JamCode.CLEARED if hand.code is None else JamCode[hand.code.upper()]
        if code == inside.jam:
            return {"changed": False}
        inside.owed.room_for(1)
        if code is JamCode.CLEARED and inside.jam == JamCode.LEFT_INSIDE:
            inside.behind = b""
        self._count_time(now)
        inside.jam = code
        self._report(now, ShufflerJam(code))
        return {"changed": True}

    def _count_time(self, now: int) -> None:
        """Before the motor is stopped or set going: only while it turns does time count."""
        self._turned = self._turned_by(now)
        self._since = now

    def _pace(self, hand: ShufflePace, now: int) -> Answer:
        self._shuffle_us = hand.shuffle_ms * 1000
        return {}

    def _defect(self, hand: InjectDefect, now: int) -> Answer:
        return {}

    def _describe(self, hand: Describe, now: int) -> Answer:
        inside = self._inside
        return {
            "running": inside.running,
            "percent": self._percent(now),
            "decks": inside.decks,
            "count": len(inside.tray),
            "cards": card_names.names_of(inside.tray),
            "left_inside": card_names.names_of(inside.behind),
            "handed_out": card_names.names_of(inside.handed_out),
            "door": "open" if inside.door_open else "closed",
            "jam": JamCode(inside.jam).name.lower(),
            "owed": len(inside.owed.events),
        }

    def _percent(self, now: int) -> int:
        if not self._inside.running:
            return 0
        return min(100, self._turned_by(now) * 100 // max(1, self._shuffle_us))


_COMMANDS: Final[dict[type[Any], Callable[[SimulatedShuffler, Any, int], Reply]]] = {
    Start: SimulatedShuffler._start,
    Eject: SimulatedShuffler._eject,
    Abort: SimulatedShuffler._abort_command,
}
_REQUESTS: Final[dict[type[Any], Callable[[SimulatedShuffler, Any, int], Answer]]] = {
    Put: SimulatedShuffler._put,
    DoorHand: SimulatedShuffler._door,
    JamHand: SimulatedShuffler._jam,
    ShufflePace: SimulatedShuffler._pace,
    InjectDefect: SimulatedShuffler._defect,
    Describe: SimulatedShuffler._describe,
}
