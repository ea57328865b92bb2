"""A player station: the buttons, lamps and buzzer of one seat or several.

Everything happens at its own moment, in order, however late someone asks: contacts settle, arms
run out and buttons get stuck each at its time. Lamps and buzzer are functions of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Struct

from firmware_protocol.device.control import (
    Chord,
    ControlRequest,
    Describe,
    InjectDefect,
    LampHand,
    LetGo,
    Press,
)
from firmware_protocol.device.interfaces import Answer, CannotDo, CommandRefusal, CoreServices
from firmware_protocol.messages.codec import Command, Event, Reply
from firmware_protocol.messages.enums import (
    BuzzPattern,
    Capabilities,
    DeviceClass,
    DeviceState,
    Edge,
    FaultCode,
    Refusal,
    WhichButton,
)
from firmware_protocol.messages.limits import MAX_SEAT, STUCK_AFTER_MS
from firmware_protocol.messages.station import (
    Arm,
    ArmReply,
    Button,
    Buzz,
    BuzzReply,
    LampFault,
    Lamps,
    LampsReply,
    Stuck,
)
from hil.devices import lamps
from hil.devices.button_contact import DEBOUNCE_US, Contact, bouncing
from hil.devices.lamps import SeatLamps
from hil.devices.pending_events import POLL_US, PendingEvents
from hil.devices.request_table import dispatch

STUCK_US: Final = STUCK_AFTER_MS * 1000
MAX_HELD_MS: Final = 65_535
CHORD_STEP_US: Final = 1_000
"""No two fingers are quite at the same time."""
_KEPT: Final = "station"
BUZZ_MS: Final = {
    BuzzPattern.OFF: 0,
    BuzzPattern.TICK: 30,
    BuzzPattern.TURN: 300,
    BuzzPattern.REFUSED: 400,
    BuzzPattern.ALARM: 2_000,
}


class SeatArming(Struct, frozen=True):
    mask: int = 0
    token: int = 0
    until: int | None = 0
    """None: for ever, which is a defect."""

    def at(self, at: int) -> bool:
        return bool(self.mask) and (self.until is None or at < self.until)


class PressedButton(Struct):
    """A button that is down, as it counts."""

    since: int
    press: int = 0
    """0: it was not armed when it went down, so nothing is told of it."""
    token: int = 0
    stuck: bool = False


class ButtonId(NamedTuple):
    seat: int
    button: WhichButton


class SimulatedStation:
    device_class = DeviceClass.STATION

    def __init__(
        self,
        *,
        seats: tuple[int, ...] = (1,),
        lamps_per_seat: int = 8,
        colour: bool = True,
        buzzer: bool = True,
        lamp_check: bool = True,
    ) -> None:
        if not seats or not all(1 <= seat <= MAX_SEAT for seat in seats):
            raise ValueError(f"seats {seats}: one or more of 1 to {MAX_SEAT}")
        flags = (
            (colour, Capabilities.COLOUR),
            (buzzer, Capabilities.BUZZER),
            (lamp_check, Capabilities.LAMP_CHECK),
        )
        self.capabilities = Capabilities(sum(flag for has, flag in flags if has))
        self._colour, self._buzzer, self._lamp_check = colour, buzzer, lamp_check
        self._lamps = {seat: SeatLamps(lamps_per_seat) for seat in seats}
        self._contacts = {
            ButtonId(seat, button): Contact() for seat in seats for button in WhichButton
        }
        self._forget(0)

    def _forget(self, now: int) -> None:
        """All that is in RAM, as a start finds it. Fingers and broken lamps stay as they are."""
        self._arms = dict.fromkeys(self._lamps, SeatArming())
        for lit in self._lamps.values():
            lit.forget()
        for contact in self._contacts.values():
            contact.forget(now)
        self._down: dict[ButtonId, PressedButton] = {}
        self._presses = 0
        self._buzz = BuzzPattern.OFF
        self._buzz_until = 0
        self._buzzes = 0
        self._owed = PendingEvents()
        self._written = b""
        self._poll_at = 0

    # --- what the core asks ---------------------------------------------------------------

    def start(self, desk: CoreServices, now: int) -> None:
        self._desk = desk
        self._forget(now)
        kept = self._written = desk.load(_KEPT)
        self._owed = msgspec.msgpack.decode(kept, type=PendingEvents) if kept else PendingEvents()
        self._owed.recall(desk)
        self._settle(now)

    def command(self, command: Command, now: int) -> Reply:
        self.wake(now)
        do = _COMMANDS.get(type(command))
        if do is None:
            raise CommandRefusal(Refusal.UNKNOWN)
        return do(self, command, now)

    def safe(self, now: int) -> None:
        self._arms = dict.fromkeys(self._arms, SeatArming())

    def state(self) -> DeviceState:
        armed = any(arm.mask for arm in self._arms.values())
        return DeviceState(0) if armed else DeviceState.LOCKED

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        broken = self._lamp_check and any(seat.broken for seat in self._lamps.values())
        return ((FaultCode.LAMPS, 0),) if broken else ()

    def hand(self, hand: ControlRequest, now: int) -> Answer:
        self.wake(now)
        return dispatch(self, _REQUESTS, hand, now)

    def wake(self, now: int) -> None:
        """All that has happened by now, in the order in which it did."""
        while (at := self.due()) is not None and at <= now:
            self._step(at, now)

    def due(self) -> int | None:
        return min(self._times(), default=None)

    # --- time -----------------------------------------------------------------------------

    def _times(self) -> Iterator[int]:
        for contact in self._contacts.values():
            at = contact.due(self._settle_us())
            if at is not None:
                yield at
        for arm in self._arms.values():
            if arm.mask and arm.until is not None:
                yield arm.until
        if not self._desk.broken("stuck-counts"):
            yield from (down.since + STUCK_US for down in self._down.values() if not down.stuck)
        if self._owed.events:
            yield self._poll_at

    def _step(self, at: int, now: int) -> None:
        """What happens at `at`. An arm that ends then ends before an edge of that moment."""
        for seat, arm in self._arms.items():
            if arm.mask and not arm.at(at):
                self._arms[seat] = SeatArming()
        for place, contact in self._contacts.items():
            due = contact.due(self._settle_us())
            if due is not None and due <= at and contact.step(at, self._settle_us()):
                self._edge(place, contact.closed, at)
        if not self._desk.broken("stuck-counts"):
            self._find_stuck(at)
        if self._owed.events and self._poll_at <= at:
            self._settle(now)

    def _settle_us(self) -> int:
        return 0 if self._desk.broken("bounces") else DEBOUNCE_US

    # --- buttons --------------------------------------------------------------------------

    def _edge(self, place: ButtonId, closed: bool, at: int) -> None:
        if closed:
            self._went_down(place, at)
        else:
            self._came_up(place, at)

    def _went_down(self, place: ButtonId, at: int) -> None:
        self._down[place] = down = PressedButton(at)
        arm = self._arms[place.seat]
        counts = arm.at(at) and arm.mask >> place.button & 1
        if not counts and not self._desk.broken("unarmed-counts"):
            return
        self._presses += 1
        down.press, down.token = self._presses, arm.token
        self._report(at, Button(*place, Edge.DOWN, 0, down.press, down.token))

    def _came_up(self, place: ButtonId, at: int) -> None:
        down = self._down.pop(place)
        if down.press:
            held = min((at - down.since) // 1000, MAX_HELD_MS)
            self._report(at, Button(*place, Edge.UP, held, down.press, down.token))

    def _find_stuck(self, at: int) -> None:
        for place, down in self._down.items():
            if not down.stuck and down.since + STUCK_US <= at:
                down.stuck = True
                self._report(at, Stuck(*place))

    def _report(self, now: int, event: Event) -> None:
        if self._owed.takes(1):
            self._owed.add(self._desk, event)
            if len(self._owed.events) > 1:  # else it is recorded at once, or kept right after
                self._keep()
        self._settle(now)

    def _settle(self, now: int) -> None:
        self._poll_at = now + POLL_US
        self._owed.settle(self._desk, now)
        self._keep()

    def _keep(self) -> None:
        """What waits for room, durably; nothing is written while nothing does."""
        fresh = msgspec.msgpack.encode(self._owed) if self._owed.events else b""
        if fresh != self._written:
            self._desk.save(_KEPT, fresh)
            self._written = fresh

    # --- commands -------------------------------------------------------------------------

    def _seat(self, seat: int) -> int:
        if seat not in self._arms:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        return seat

    def _arm(self, command: Arm, now: int) -> ArmReply:
        seat = self._seat(command.seat)
        if not command.mask or not command.ttl:
            self._arms[seat] = SeatArming()
        elif self._desk.full():
            raise CommandRefusal(Refusal.NOT_NOW)
        else:
            until = None if self._desk.broken("ttl-ignored") else now + command.ttl * 1000
            self._arms[seat] = SeatArming(command.mask, command.token, until)
        return ArmReply()

    def _show(self, command: Lamps, now: int) -> LampsReply:
        seat = self._lamps[self._seat(command.seat)]
        lease_ends = not self._desk.broken("lease-ignored")
        seat.shown = lamps.display_after(command, now, colour=self._colour, lease_ends=lease_ends)
        self._check_lamps(command.seat, now)
        return LampsReply()

    def _play(self, command: Buzz, now: int) -> BuzzReply:
        if not self._buzzer:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        self._buzz = command.pattern
        self._buzz_until = now + BUZZ_MS[command.pattern] * 1000
        self._buzzes += 1
        return BuzzReply()

    def _check_lamps(self, seat: int, now: int) -> None:
        if self._lamp_check:
            for index in self._lamps[seat].notice(now):
                self._report(now, LampFault(seat, index))

    # --- hands ----------------------------------------------------------------------------

    def _contact(self, seat: int, button: str) -> Contact:
        if seat not in self._arms:
            raise CannotDo(f"there is no seat {seat} here", f"seats {sorted(self._arms)}")
        return self._contacts[ButtonId(seat, WhichButton[button.upper()])]

    def _free(self, seat: int, button: str) -> Contact:
        contact = self._contact(seat, button)
        if contact.touched or contact.moving:
            raise CannotDo(f"{button} of seat {seat} is down", "let_go first")
        return contact

    def _press(self, hand: Press, now: int) -> Answer:
        down = bouncing(now, hand.bounces)
        contact = self._free(hand.seat, hand.button)
        contact.flip(down)
        if hand.held_ms is not None:
            up_at = max(now + hand.held_ms * 1000, down[-1] + 1)
            contact.flip(bouncing(up_at, hand.bounces))
        self.wake(now)
        return {}

    def _let_go(self, hand: LetGo, now: int) -> Answer:
        contact = self._contact(hand.seat, hand.button)
        if not contact.touched and not contact.moving:
            raise CannotDo(f"{hand.button} of seat {hand.seat} is not down", "press it first")
        contact.let_go(bouncing(now, hand.bounces))
        self.wake(now)
        return {}

    def _chord(self, hand: Chord, now: int) -> Answer:
        if not hand.buttons or len(set(hand.buttons)) < len(hand.buttons):
            raise CannotDo("this is no chord", "one button or several, each once")
        contacts = [self._free(hand.seat, button) for button in hand.buttons]
        for number, contact in enumerate(contacts):
            down = now + number * CHORD_STEP_US
            contact.flip((down, max(down + hand.held_ms * 1000, down + 1)))
        self.wake(now)
        return {}

    def _lamp(self, hand: LampHand, now: int) -> Answer:
        if hand.seat not in self._lamps:
            raise CannotDo(f"there is no seat {hand.seat} here", f"seats {sorted(self._lamps)}")
        seat = self._lamps[hand.seat]
        if hand.index >= seat.count:
            raise CannotDo(f"seat {hand.seat} has no such lamp", f"lamps 0 to {seat.count - 1}")
        if hand.broken:
            seat.broken.add(hand.index)
        else:
            seat.mend(hand.index)
        self._check_lamps(hand.seat, now)
        return {}

    def _defect(self, hand: InjectDefect, now: int) -> Answer:
        return {}

    def _describe(self, hand: Describe, now: int) -> Answer:
        plays = self._buzz if now < self._buzz_until else BuzzPattern.OFF
        return {
            "seats": {str(seat): self._describe_seat(seat, now) for seat in self._arms},
            "presses": self._presses,
            "buzz": plays.name.lower(),
            "buzzes": self._buzzes,
        }

    def _describe_seat(self, seat: int, now: int) -> Answer:
        arm = self._arms[seat]
        buttons = {place.button: down for place, down in self._down.items() if place.seat == seat}
        return {
            "armed": [button.name.lower() for button in WhichButton if arm.mask >> button & 1],
            "token": arm.token,
            "ttl_ms": None if arm.until is None else max(0, arm.until - now) // 1000,
            "down": [button.name.lower() for button in buttons],
            "stuck": [button.name.lower() for button, down in buttons.items() if down.stuck],
            "lamps": self._lamps[seat].describe(now),
        }


_COMMANDS: Final[dict[type[Any], Callable[[SimulatedStation, Any, int], Reply]]] = {
    Arm: SimulatedStation._arm,
    Lamps: SimulatedStation._show,
    Buzz: SimulatedStation._play,
}
_REQUESTS: Final[dict[type[Any], Callable[[SimulatedStation, Any, int], Answer]]] = {
    Press: SimulatedStation._press,
    LetGo: SimulatedStation._let_go,
    Chord: SimulatedStation._chord,
    LampHand: SimulatedStation._lamp,
    InjectDefect: SimulatedStation._defect,
    Describe: SimulatedStation._describe,
}
