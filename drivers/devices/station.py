"""Driver and events of the player station: armed buttons, and lamps with a lease.

The table arms buttons for a limited time; the driver never renews that. It does renew the leases
of the lamps, each at half of its time, while the host runs. When the device was away, the lamps
are set again and the buttons are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import ClassVar, Final

import structlog
from msgspec import Struct

from drivers.devices.commands import (
    NOT_DONE,
    PERMANENT_REFUSALS,
    CommandRefusedError,
    CommandUnansweredError,
    NotReady,
    unsent,
)
from drivers.devices.driver import CommandChannel, Driver
from drivers.devices.events import COMMON, DeviceEvent, Makes, Origin, same_fields
from drivers.devices.state import IN_SESSION, LinkState
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import (
    Arm,
    ArmReply,
    Button,
    ButtonMask,
    Buzz,
    BuzzPattern,
    BuzzReply,
    DeviceClass,
    Edge,
    Event,
    LampFault,
    LampPattern,
    Lamps,
    LampsReply,
    Stuck,
    WhichButton,
)

LEASE_MS: Final = 2000
DARK: Final = bytes(3)

_log = structlog.get_logger("drivers.station")


class ButtonPressed(DeviceEvent, frozen=True):
    """An armed button went down."""

    seat: int
    button: WhichButton
    press: int
    """Number of the press; its release has the same."""
    token: int
    """Token with which the button was armed."""
    stale: bool
    """The token is not the current one: the press is too late and is ignored."""


class ButtonReleased(DeviceEvent, frozen=True):
    """A pressed button came up."""

    seat: int
    button: WhichButton
    press: int
    token: int
    stale: bool
    held_ms: int


class ButtonStuck(DeviceEvent, frozen=True):
    """A button has been down for too long; it is ignored until it has come up."""

    seat: int
    button: WhichButton


class LampBroken(DeviceEvent, frozen=True):
    """A lamp does not light."""

    seat: int
    index: int


class LampSetting(Struct, frozen=True):
    """What the lamps of a seat show, until the table sets something else."""

    rgb: bytes = DARK
    pattern: LampPattern = LampPattern.STEADY
    period_ms: int = 0
    lease_ms: int = LEASE_MS

    def command(self, seat: int) -> Lamps:
        return Lamps(seat, self.rgb, self.pattern, self.period_ms, self.lease_ms)


LAMPS_OFF: Final = LampSetting(pattern=LampPattern.OFF, lease_ms=0)


def _unarmed(origin: Origin, event: Button) -> DeviceEvent:
    """Without a Station, which knows the current tokens, every press is stale."""
    return _button(origin, event, stale=True)


def _button(origin: Origin, event: Button, *, stale: bool) -> DeviceEvent:
    head = (origin, event.seat, event.button, event.press, event.token, stale)
    return ButtonPressed(*head) if event.edge is Edge.DOWN else ButtonReleased(*head, event.held)


EVENTS: Final[Makes] = MappingProxyType(
    {
        **COMMON,
        Button: _unarmed,
        Stuck: same_fields(ButtonStuck),
        LampFault: same_fields(LampBroken),
    }
)


class StationDriver(Driver):
    """Buttons and lamps of one seat or several."""

    DEVICE_CLASS: ClassVar = DeviceClass.STATION
    EVENTS: ClassVar = EVENTS

    def __init__(self, channel: CommandChannel) -> None:
        super().__init__(channel)
        self._tokens: dict[int, int] = {}
        self._settings: dict[int, LampSetting] = {}
        self._renew_at: dict[int, float] = {}
        self._changed = asyncio.Event()

    @property
    def armed(self) -> Mapping[int, int]:
        """The current token of each armed seat."""
        return MappingProxyType(self._tokens)

    @property
    def settings(self) -> Mapping[int, LampSetting]:
        """What the lamps of each seat show."""
        return MappingProxyType(self._settings)

    # --- called by the supervisor ---------------------------------------------------------

    def state_changed(self, state: LinkState) -> None:
        if state not in IN_SESSION:
            # The station disarms itself when its session ends.
            self._tokens.clear()
        if state is LinkState.READY:
            self._renew_at = dict.fromkeys(self._settings, 0.0)
            self._changed.set()

    async def work(self) -> None:
        """Renew the leases of the lamps, each at half of its time."""
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
        """Arm these buttons of a seat for `ttl_ms`, with this token. Presses with the seat's former
        token are stale from now on, even if the command fails; unless it was never sent: then the
        former token stays current."""
        command = Arm(seat, buttons, token, ttl_ms)
        command.encode()
        former = self._tokens.get(seat)
        self._tokens[seat] = token
        try:
            await self._call(command, ArmReply)
        except NOT_DONE as problem:
            # Unless the table or the end of the session has changed it meanwhile.
            if unsent(problem) and self._tokens.get(seat) == token:
                self._restore(seat, former)
            raise

    def _restore(self, seat: int, former: int | None) -> None:
        if former is None:
            del self._tokens[seat]
        else:
            self._tokens[seat] = former

    async def disarm(self, seat: int) -> None:
        """Disarm all buttons of a seat."""
        self._tokens.pop(seat, None)
        await self._call(Arm(seat, ButtonMask(0), 0, 0), ArmReply)

    async def lamps(self, seat: int, setting: LampSetting) -> None:
        """Show this at a seat until the next call. If the station does not answer or is away, it is
        shown once it is back."""
        command = setting.command(seat)
        command.encode()
        self._set(seat, setting)
        await self._call(command, LampsReply)

    async def buzz(self, pattern: BuzzPattern) -> None:
        """Play a sound once."""
        await self._call(Buzz(pattern), BuzzReply)

    # --- leases ---------------------------------------------------------------------------

    def _set(self, seat: int, setting: LampSetting) -> None:
        if setting.lease_ms:
            self._settings[seat] = setting
            self._renew_at[seat] = _half_time(setting)
        else:
            self._settings.pop(seat, None)
            self._renew_at.pop(seat, None)
        self._changed.set()

    async def _renew(self) -> None:
        if self.channel.state is not LinkState.READY:
            self._renew_at.clear()
            return
        loop = asyncio.get_running_loop()
        for seat in tuple(self._renew_at):
            # The table may have set something else while the renewal of another seat waited.
            setting, at = self._settings.get(seat), self._renew_at.get(seat)
            if setting is not None and at is not None and at <= loop.time():
                await self._renew_one(seat, setting)

    async def _renew_one(self, seat: int, setting: LampSetting) -> None:
        self._renew_at[seat] = _half_time(setting)
        try:
            await self._call(setting.command(seat), LampsReply)
        except CommandRefusedError as refused:
            permanent = refused.why in PERMANENT_REFUSALS
            _log.warning("lamps refused", seat=seat, why=refused.why.name, given_up=permanent)
            if permanent and self._settings.get(seat) is setting:
                self._set(seat, LAMPS_OFF)
        except (CommandUnansweredError, LinkBusy, NotReady) as problem:
            _log.info("lamps not renewed", seat=seat, why=str(problem))


def _half_time(setting: LampSetting) -> float:
    return asyncio.get_running_loop().time() + setting.lease_ms / 2000
