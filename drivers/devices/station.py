"""The player station in its own words: buttons that count for a while, and lamps on a lease.

Arms are the table's absolute wish and are never renewed here. Lamps are: the table says what they
show, and while the host lives and wants it the lease is taken anew at half of its time. When the
device has been away, lamps come back as they are wanted and arms do not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import ClassVar, Final

import structlog
from msgspec import Struct

from drivers.devices.commands import NOT_DONE, CommandRefused, CommandUnanswered, NotReady, unsent
from drivers.devices.driver import Driver, Line
from drivers.devices.events import COMMON, DeviceEvent, Makes, Origin, same_fields
from drivers.devices.state import IN_SESSION, State
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import registry
from firmware_protocol.messages.codec import Event
from firmware_protocol.messages.enums import (
    ButtonMask,
    BuzzPattern,
    DeviceClass,
    Edge,
    LampPattern,
    Refusal,
    WhichButton,
)
from firmware_protocol.messages.station import ArmReply, Button, BuzzReply, LampsReply

LEASE_MS: Final = 2000
DARK: Final = bytes(3)

_NEVER: Final = (Refusal.UNKNOWN, Refusal.MALFORMED, Refusal.UNSUPPORTED)
"""What a station refuses so it will not do in a second either."""

_log = structlog.get_logger("drivers.station")


class ButtonPressed(DeviceEvent, frozen=True):
    """An armed button went down."""

    seat: int
    button: WhichButton
    press: int
    """Number of the press; its release has the same."""
    token: int
    """Token of the arm under which it went down."""
    stale: bool
    """That is not the arm that the table wants now: the press came too late and means nothing."""


class ButtonReleased(DeviceEvent, frozen=True):
    """A button that had gone down came up."""

    seat: int
    button: WhichButton
    press: int
    token: int
    stale: bool
    held_ms: int


class ButtonStuck(DeviceEvent, frozen=True):
    """A button has been down for too long, and does not count until it has come up."""

    seat: int
    button: WhichButton


class LampBroken(DeviceEvent, frozen=True):
    """A lamp does not light."""

    seat: int
    index: int


class Wish(Struct, frozen=True):
    """What a seat's lamps shall show, until the table wants something else."""

    rgb: bytes = DARK
    pattern: LampPattern = LampPattern.STEADY
    period_ms: int = 0
    lease_ms: int = LEASE_MS

    def command(self, seat: int) -> registry.Lamps:
        return registry.Lamps(seat, self.rgb, self.pattern, self.period_ms, self.lease_ms)


OFF: Final = Wish(pattern=LampPattern.OFF, lease_ms=0)


def _unarmed(origin: Origin, event: Button) -> DeviceEvent:
    """Without a station that knows what is armed, every press is stale."""
    return _button(origin, event, stale=True)


def _button(origin: Origin, event: Button, *, stale: bool) -> DeviceEvent:
    head = (origin, event.seat, event.button, event.press, event.token, stale)
    return ButtonPressed(*head) if event.edge is Edge.DOWN else ButtonReleased(*head, event.held)


EVENTS: Final[Makes] = MappingProxyType(
    {
        **COMMON,
        registry.Button: _unarmed,
        registry.Stuck: same_fields(ButtonStuck),
        registry.LampFault: same_fields(LampBroken),
    }
)


class Station(Driver):
    """Buttons and lamps of one seat or several."""

    DEVICE_CLASS: ClassVar = DeviceClass.STATION
    EVENTS: ClassVar = EVENTS

    def __init__(self, line: Line) -> None:
        super().__init__(line)
        self._tokens: dict[int, int] = {}
        self._wishes: dict[int, Wish] = {}
        self._renew_at: dict[int, float] = {}
        self._changed = asyncio.Event()

    @property
    def armed(self) -> Mapping[int, int]:
        """The token that the table wants in force, by seat."""
        return MappingProxyType(self._tokens)

    @property
    def wishes(self) -> Mapping[int, Wish]:
        """What the lamps shall show, by seat."""
        return MappingProxyType(self._wishes)

    # --- what the supervisor asks ---------------------------------------------------------

    def state_changed(self, state: State) -> None:
        if state not in IN_SESSION:
            # The station disarms itself when its session ends.
            self._tokens.clear()
        if state is State.READY:
            self._renew_at = dict.fromkeys(self._wishes, 0.0)
            self._changed.set()

    async def work(self) -> None:
        """Takes the leases of what is wanted anew, each at half of its time."""
        while True:
            self._changed.clear()
            await self._renew()
            if self._changed.is_set():
                continue
            due = min(self._renew_at.values(), default=None)
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._changed.wait()

    def read(self, origin: Origin, event: Event) -> DeviceEvent:
        if isinstance(event, Button):
            return _button(origin, event, stale=self._tokens.get(event.seat) != event.token)
        return super().read(origin, event)

    # --- commands -------------------------------------------------------------------------

    async def arm(self, seat: int, buttons: ButtonMask, token: int, ttl_ms: int) -> None:
        """Let these buttons of a seat count for `ttl_ms` from now, under this token. It replaces
        the seat's former arm, whose presses are stale from now on, whatever becomes of this one;
        only if it was never sent, the former one is in force as before."""
        command = registry.Arm(seat, buttons, token, ttl_ms)
        command.encode()
        former = self._tokens.get(seat)
        self._tokens[seat] = token
        try:
            await self._ask(command, ArmReply)
        except NOT_DONE as problem:
            # Unless the table or the session's end has changed it meanwhile.
            if unsent(problem) and self._tokens.get(seat) == token:
                self._arm_again(seat, former)
            raise

    def _arm_again(self, seat: int, former: int | None) -> None:
        if former is None:
            del self._tokens[seat]
        else:
            self._tokens[seat] = former

    async def disarm(self, seat: int) -> None:
        """Let no button of a seat count."""
        self._tokens.pop(seat, None)
        await self._ask(registry.Arm(seat, ButtonMask(0), 0, 0), ArmReply)

    async def lamps(self, seat: int, wish: Wish) -> None:
        """Show this at a seat until something else is wanted. It stays wanted when the station
        does not answer or is away, and is shown once it is back."""
        command = wish.command(seat)
        command.encode()
        self._want(seat, wish)
        await self._ask(command, LampsReply)

    async def dark(self, seat: int) -> None:
        """Show nothing at a seat."""
        await self.lamps(seat, OFF)

    async def buzz(self, pattern: BuzzPattern) -> None:
        """Play a sound once."""
        await self._ask(registry.Buzz(pattern), BuzzReply)

    # --- leases ---------------------------------------------------------------------------

    def _want(self, seat: int, wish: Wish) -> None:
        if wish.lease_ms:
            self._wishes[seat] = wish
            self._renew_at[seat] = _half_time(wish)
        else:
            self._wishes.pop(seat, None)
            self._renew_at.pop(seat, None)
        self._changed.set()

    async def _renew(self) -> None:
        if self.line.state is not State.READY:
            self._renew_at.clear()
            return
        loop = asyncio.get_running_loop()
        for seat in tuple(self._renew_at):
            # While another seat was waited for, the table may have wanted something else here.
            wish, at = self._wishes.get(seat), self._renew_at.get(seat)
            if wish is not None and at is not None and at <= loop.time():
                await self._renew_one(seat, wish)

    async def _renew_one(self, seat: int, wish: Wish) -> None:
        self._renew_at[seat] = _half_time(wish)
        try:
            await self._ask(wish.command(seat), LampsReply)
        except CommandRefused as refused:
            hopeless = refused.why in _NEVER
            _log.warning("lamps refused", seat=seat, why=refused.why.name, given_up=hopeless)
            if hopeless and self._wishes.get(seat) is wish:
                self._want(seat, OFF)
        except (CommandUnanswered, LinkBusy, NotReady) as problem:
            _log.info("lamps not renewed", seat=seat, why=str(problem))


def _half_time(wish: Wish) -> float:
    return asyncio.get_running_loop().time() + wish.lease_ms / 2000
