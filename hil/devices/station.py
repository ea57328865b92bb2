"""A player station: the buttons, lamps and buzzer of one seat or several.

Events have the time at which they happened, independent of when wake() is called: debounced edges,
ends of armings and stuck buttons are processed in the order of their times. Lamps and buzzer are
functions of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
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
    DEBOUNCE_MS,
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
    LampPattern,
    Lamps,
    LampsReply,
    Refusal,
    Reply,
    Stuck,
    WhichButton,
)
from hil.devices.mechanism import (
    CommandTable,
    PendingEvents,
    RequestTable,
    SimulatedMechanism,
    flag_set,
)

DARK: Final = bytes(3)
DEBOUNCE_US: Final = DEBOUNCE_MS * 1000
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


class LampDisplay(Struct, frozen=True):
    """The values of a LAMPS command and the time of its arrival."""

    rgb: bytes = DARK
    pattern: LampPattern = LampPattern.OFF
    period_us: int = 0
    since: int = 0
    until: int | None = 0
    """End of the lease; None: never, which is a defect."""

    def is_leased(self, now: int) -> bool:
        return self.until is None or now < self.until

    def is_active(self, now: int) -> bool:
        """Whether some lamp is lit during some part of the pattern."""
        return self.is_leased(now) and self.pattern is not LampPattern.OFF and self.rgb != DARK

    def brightness(self, now: int, index: int, count: int) -> int:
        """Of one lamp of `count`, in percent of its colour."""
        if not self.is_active(now):
            return 0
        if self.pattern is LampPattern.STEADY or not self.period_us:
            return 100
        phase = (now - self.since) % self.period_us * 1000 // self.period_us  # in thousandths
        if self.pattern is LampPattern.BLINK:
            return 100 if phase < 500 else 0
        if self.pattern is LampPattern.PULSE:
            return (phase if phase < 500 else 1000 - phase) // 5
        return 100 if phase * count // 1000 == index else 0


class SeatLamps:
    """All lamps of a seat. A broken one stays dark."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.broken: set[int] = set()
        self.reset()

    def reset(self) -> None:
        """The firmware starts: all lamps are dark, and no fault is reported yet."""
        self.display = LampDisplay()
        self._reported: set[int] = set()

    def repair(self, index: int) -> None:
        self.broken.discard(index)
        self._reported.discard(index)

    def new_faults(self, now: int) -> list[int]:
        """The broken lamps that should be lit, each exactly once. A dark lamp cannot be checked,
        since no current flows through it."""
        if not self.display.is_active(now):
            return []
        found = sorted(self.broken - self._reported)
        self._reported.update(found)
        return found

    def describe(self, now: int) -> Answer:
        display = self.display
        levels = [
            0 if index in self.broken else display.brightness(now, index, self.count)
            for index in range(self.count)
        ]
        leased = display.is_leased(now)
        return {
            "rgb": list(display.rgb if leased else DARK),
            "pattern": (display.pattern if leased else LampPattern.OFF).name.lower(),
            "period_ms": display.period_us // 1000 if leased else 0,
            "lit": any(levels),
            "percent": levels,
            "lease_ms": None if display.until is None else max(0, display.until - now) // 1000,
            "broken": sorted(self.broken),
        }


def bounce_times(start: int, bounces: int) -> list[int]:
    """The times at which a contact changes that is moved at `start`, all within the debounce time.
    Each bounce is one change back and one forth."""
    changes = 2 * bounces + 1
    return [start + DEBOUNCE_US * number // changes for number in range(changes)]


class Contact:
    """A contact, open at first. A change becomes an edge once it has been stable."""

    def __init__(self) -> None:
        self.touched = False
        """The physical state."""
        self.closed = False
        """The debounced state."""
        self._since = 0
        self._flips: deque[int] = deque()

    def reset(self, now: int) -> None:
        """The firmware starts: the physical state stays, the debounced state is open."""
        self.closed = False
        self._since = now

    def flip(self, times: Iterable[int]) -> None:
        """Schedule changes, in order and after those that are scheduled already."""
        self._flips.extend(times)

    def release(self, times: Iterable[int]) -> None:
        """Cancel what is scheduled and open the contact at these times."""
        self._flips.clear()
        if self.touched:
            self._flips.extend(times)

    @property
    def moving(self) -> bool:
        """Whether changes are scheduled."""
        return bool(self._flips)

    def due(self, settle_us: int = DEBOUNCE_US) -> int | None:
        """The time of the next change or edge."""
        times = [*self._flips][:1]
        if self.touched != self.closed:
            times.append(self._since + settle_us)
        return min(times, default=None)

    def step(self, at: int, settle_us: int = DEBOUNCE_US) -> bool:
        """Process the time `at`, which due() returned. Returns whether it is an edge."""
        if self.touched != self.closed and self._since + settle_us <= at:
            # Before a flip of the same moment: it was stable for just long enough.
            self.closed = self.touched
            return True
        if self._flips and self._flips[0] <= at:
            self._since = self._flips.popleft()
            self.touched = not self.touched
        return False


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
        checked = Capabilities.LAMP_CHECK in self.capabilities
        broken = checked and any(seat.broken for seat in self._lamps.values())
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
                moved = self._went_down if contact.closed else self._came_up
                moved(place, at)
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
        colour = Capabilities.COLOUR in self.capabilities
        lease_ends = not self._core.broken("lease-ignored")
        seat.display = LampDisplay(
            rgb=command.rgb if colour else bytes((max(command.rgb),)) * 3,
            pattern=command.pattern,
            period_us=command.period * 1000,
            since=now,
            until=now + command.lease * 1000 if lease_ends else None,
        )
        self._check_lamps(command.seat, now)
        return LampsReply()

    def _play(self, command: Buzz, now: int) -> BuzzReply:
        if Capabilities.BUZZER not in self.capabilities:
            raise CommandRefusal(Refusal.UNSUPPORTED)
        self._buzz = command.pattern
        self._buzz_until = now + BUZZ_MS[command.pattern] * 1000
        self._buzzes += 1
        return BuzzReply()

    def _check_lamps(self, seat: int, now: int) -> None:
        if Capabilities.LAMP_CHECK in self.capabilities:
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
