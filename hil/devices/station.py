"""A player station: the buttons, lamps and buzzer of one seat or several.

Events have the time at which they happened, independent of when wake() is called: debounced edges,
ends of armings and stuck buttons are processed in the order of their times. Lamps and buzzer are
functions of the time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from msgspec import Struct

from firmware_protocol.device import (
    Answer,
    CannotDo,
    Chord,
    CommandRefusal,
    ControlRequest,
    Describe,
    InjectDefect,
    LetGo,
    Press,
    SetLamp,
)
from firmware_protocol.messages import (
    MAX_SEAT,
    STUCK_AFTER_MS,
    Arm,
    ArmReply,
    Button,
    Buzz,
    BuzzPattern,
    BuzzReply,
    Capabilities,
    Command,
    DeviceClass,
    DeviceState,
    Edge,
    Event,
    FaultCode,
    LampFault,
    Lamps,
    LampsReply,
    Refusal,
    Reply,
    Stuck,
    WhichButton,
)
from hil.devices.button_contact import DEBOUNCE_US, Contact, bounce_times
from hil.devices.lamps import SeatLamps, display_after
from hil.devices.mechanism import CommandTable, RequestTable, SimulatedMechanism, flag_set
from hil.devices.pending_events import PendingEvents

STUCK_US: Final = STUCK_AFTER_MS * 1000
MAX_HELD_MS: Final = 65_535
CHORD_STEP_US: Final = 1_000
"""Between two buttons of a chord."""
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
    """None: no end, which is a defect."""

    def is_active(self, at: int) -> bool:
        return bool(self.mask) and (self.until is None or at < self.until)


class PressedButton(Struct):
    """A button that is down, after debouncing."""

    since: int
    press: int = 0
    """0: it was not armed when it went down, so the press is not reported."""
    token: int = 0
    stuck: bool = False


class ButtonId(NamedTuple):
    seat: int
    button: WhichButton


class SimulatedStation(SimulatedMechanism):
    device_class = DeviceClass.STATION
    STATE = "station"
    CONTENTS = PendingEvents
    _contents: PendingEvents

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
        self.capabilities = flag_set(
            Capabilities,
            {
                Capabilities.COLOUR: colour,
                Capabilities.BUZZER: buzzer,
                Capabilities.LAMP_CHECK: lamp_check,
            },
        )
        self._colour, self._buzzer, self._lamp_check = colour, buzzer, lamp_check
        self._lamps = {seat: SeatLamps(lamps_per_seat) for seat in seats}
        self._contacts = {
            ButtonId(seat, button): Contact() for seat in seats for button in WhichButton
        }
        self._reset(0)

    def _reset(self, now: int) -> None:
        """The physical state of contacts and lamps stays."""
        self._arms = dict.fromkeys(self._lamps, SeatArming())
        for seat in self._lamps.values():
            seat.reset()
        for contact in self._contacts.values():
            contact.reset(now)
        self._down: dict[ButtonId, PressedButton] = {}
        self._presses = 0
        self._buzz = BuzzPattern.OFF
        self._buzz_until = 0
        self._buzzes = 0
        self._contents = PendingEvents()

    def _encode(self) -> bytes:
        return super()._encode() if self._contents.events else b""

    # --- for the core ---------------------------------------------------------------------

    def command(self, command: Command, now: int) -> Reply:
        self.wake(now)
        return super().command(command, now)

    def request(self, request: ControlRequest, now: int) -> Answer:
        self.wake(now)
        return super().request(request, now)

    def safe(self, now: int) -> None:
        self._arms = dict.fromkeys(self._arms, SeatArming())

    def state(self) -> DeviceState:
        armed = any(arm.mask for arm in self._arms.values())
        return DeviceState(0) if armed else DeviceState.LOCKED

    def selftest(self, now: int) -> tuple[tuple[FaultCode, int], ...]:
        broken = self._lamp_check and any(seat.broken for seat in self._lamps.values())
        return ((FaultCode.LAMPS, 0),) if broken else ()

    def wake(self, now: int) -> None:
        """Process everything up to `now`, in the order of its times."""
        while (at := self.due()) is not None and at <= now:
            self._step(at, now)

    def due(self) -> int | None:
        return min(self._times(), default=None)

    # --- time -----------------------------------------------------------------------------

    def _times(self) -> Iterator[int]:
        settle_us = self._settle_us()
        for contact in self._contacts.values():
            at = contact.due(settle_us)
            if at is not None:
                yield at
        for arm in self._arms.values():
            if arm.mask and arm.until is not None:
                yield arm.until
        if not self._core.broken("stuck-counts"):
            yield from (down.since + STUCK_US for down in self._down.values() if not down.stuck)
        yield from self._poll_due()

    def _step(self, at: int, now: int) -> None:
        """Process the time `at`. An arming ends before an edge of the same moment."""
        for seat, arm in self._arms.items():
            if arm.mask and not arm.is_active(at):
                self._arms[seat] = SeatArming()
        settle_us = self._settle_us()
        for place, contact in self._contacts.items():
            due = contact.due(settle_us)
            if due is not None and due <= at and contact.step(at, settle_us):
                if contact.closed:
                    self._went_down(place, at)
                else:
                    self._came_up(place, at)
        if not self._core.broken("stuck-counts"):
            self._find_stuck(at)
        if self._contents.events and self._poll_at <= at:
            self._flush(now)

    def _settle_us(self) -> int:
        return 0 if self._core.broken("bounces") else DEBOUNCE_US

    # --- buttons --------------------------------------------------------------------------

    def _went_down(self, place: ButtonId, at: int) -> None:
        self._down[place] = down = PressedButton(at)
        arm = self._arms[place.seat]
        armed = arm.is_active(at) and arm.mask >> place.button & 1
        if not armed and not self._core.broken("unarmed-counts"):
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

    def _report(self, now: int, *events: Event) -> None:
        """Record events, or drop them if too many are pending."""
        if self._contents.has_capacity(len(events)):
            self._contents.add(self._core, *events)
            if len(self._contents.events) > 1:  # a single event is recorded or stored by _flush()
                self._store()
        self._flush(now)

    # --- commands -------------------------------------------------------------------------

    def _require_seat(self, seat: int) -> int:
        if seat not in self._arms:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        return seat

    def _arm(self, command: Arm, now: int) -> ArmReply:
        seat = self._require_seat(command.seat)
        if not command.mask or not command.ttl:
            self._arms[seat] = SeatArming()
        elif self._core.full():
            raise CommandRefusal(Refusal.NOT_NOW)
        else:
            until = None if self._core.broken("ttl-ignored") else now + command.ttl * 1000
            self._arms[seat] = SeatArming(command.mask, command.token, until)
        return ArmReply()

    def _show(self, command: Lamps, now: int) -> LampsReply:
        seat = self._lamps[self._require_seat(command.seat)]
        lease_ends = not self._core.broken("lease-ignored")
        seat.display = display_after(command, now, colour=self._colour, lease_ends=lease_ends)
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
            for index in self._lamps[seat].new_faults(now):
                self._report(now, LampFault(seat, index))

    # --- requests -------------------------------------------------------------------------

    def _contact(self, seat: int, button: str) -> Contact:
        self._check_seat(seat)
        return self._contacts[ButtonId(seat, WhichButton[button.upper()])]

    def _check_seat(self, seat: int) -> None:
        if seat not in self._arms:
            raise CannotDo(f"there is no seat {seat} here", f"seats {sorted(self._arms)}")

    def _free_contact(self, seat: int, button: str) -> Contact:
        contact = self._contact(seat, button)
        if contact.touched or contact.moving:
            raise CannotDo(f"{button} of seat {seat} is down", "let_go first")
        return contact

    def _press(self, request: Press, now: int) -> Answer:
        down = bounce_times(now, request.bounces)
        contact = self._free_contact(request.seat, request.button)
        contact.flip(down)
        if request.held_ms is not None:
            up_at = max(now + request.held_ms * 1000, down[-1] + 1)
            contact.flip(bounce_times(up_at, request.bounces))
        self.wake(now)
        return {}

    def _let_go(self, request: LetGo, now: int) -> Answer:
        contact = self._contact(request.seat, request.button)
        if not contact.touched and not contact.moving:
            where = f"{request.button} of seat {request.seat}"
            raise CannotDo(f"{where} is not down", "press it first")
        contact.release(bounce_times(now, request.bounces))
        self.wake(now)
        return {}

    def _chord(self, request: Chord, now: int) -> Answer:
        buttons = request.buttons
        if not buttons or len(set(buttons)) < len(buttons):
            raise CannotDo("this is no chord", "one button or several, each once")
        contacts = [self._free_contact(request.seat, button) for button in buttons]
        for number, contact in enumerate(contacts):
            down = now + number * CHORD_STEP_US
            contact.flip((down, max(down + request.held_ms * 1000, down + 1)))
        self.wake(now)
        return {}

    def _lamp(self, request: SetLamp, now: int) -> Answer:
        self._check_seat(request.seat)
        seat = self._lamps[request.seat]
        if request.index >= seat.count:
            allowed = f"lamps 0 to {seat.count - 1}"
            raise CannotDo(f"seat {request.seat} has no such lamp", allowed)
        if request.broken:
            seat.broken.add(request.index)
        else:
            seat.repair(request.index)
        self._check_lamps(request.seat, now)
        return {}

    def _describe(self, request: Describe, now: int) -> Answer:
        buzz = self._buzz if now < self._buzz_until else BuzzPattern.OFF
        return {
            "seats": {str(seat): self._describe_seat(seat, now) for seat in self._arms},
            "presses": self._presses,
            "buzz": buzz.name.lower(),
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

    COMMANDS: ClassVar[CommandTable] = {Arm: _arm, Lamps: _show, Buzz: _play}
    REQUESTS: ClassVar[RequestTable] = {
        Press: _press,
        LetGo: _let_go,
        Chord: _chord,
        SetLamp: _lamp,
        InjectDefect: SimulatedMechanism._ignore,
        Describe: _describe,
    }
