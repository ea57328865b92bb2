"""What the procedure wants of the devices: absolute wishes, carried out until they hold.

A wish replaces the one before it. What a device does not take now it is asked again when it is
back, for each wish says how things shall be and never how they shall change. A shuffle is none of
them: see `starting`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Final, Generic, Protocol, TypeVar

import structlog
from msgspec import Struct

from controller.procedure.model.effects import Lamp, ShoeLock, Stations
from controller.table.memory import NO_BUTTONS, TableDisplay
from drivers.devices import CommandRefused, CommandUnanswered, NotReady, station
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages.enums import ButtonMask, LampPattern, Refusal

RETRY: Final = 0.5
"""Seconds until a device that has not taken a wish is asked again."""
ARM_MS: Final = 60_000
REARM: Final = 30.0
"""Seconds after which buttons that are still wanted are armed anew."""
_HOPELESS: Final = (Refusal.UNKNOWN, Refusal.MALFORMED, Refusal.UNSUPPORTED)
"""What a device refuses so it will not do in a second either."""

_log: Final = structlog.get_logger("table.outlets")
_W = TypeVar("_W")

_BLUE, _GREEN, _AMBER, _RED = b"\x00\x00\xff", b"\x00\xff\x00", b"\xff\xa0\x00", b"\xff\x00\x00"
_SLOW, _FAST = 1500, 600
"""Milliseconds: 40 and 100 times a minute."""
LAMPS: Final[Mapping[Lamp, station.Wish]] = MappingProxyType(
    {
        "dark": station.OFF,
        "turn": station.Wish(_BLUE, LampPattern.STEADY),
        "asked": station.Wish(_AMBER, LampPattern.BLINK, _SLOW),
        "accepted": station.Wish(_GREEN, LampPattern.STEADY),
        "won": station.Wish(_GREEN, LampPattern.BLINK, _SLOW),
        "attention": station.Wish(_AMBER, LampPattern.STEADY),
        "fault": station.Wish(_RED, LampPattern.BLINK, _FAST),
    }
)


class Armed(Struct, frozen=True):
    """What a seat's station shall do."""

    buttons: ButtonMask = NO_BUTTONS
    token: int = 0
    lamp: Lamp = "dark"


SAFE: Final = Armed(lamp="fault")


class Outlet(Generic[_W]):
    """One wish of one device, or of one seat."""

    def __init__(
        self,
        name: str,
        serial: str,
        wish: _W,
        do: Callable[[_W], Awaitable[object]],
        again: float | None = None,
    ) -> None:
        """`again`: seconds after which a wish that holds is told once more."""
        self.name = name
        self.serial = serial
        self.wish = wish
        self._do = do
        self._again = again
        self._changed = asyncio.Event()
        self._changed.set()
        self.holds = asyncio.Event()
        """Set while the wish holds, as far as anybody knows."""
        self._why = ""
        """Why the last one was not taken, as it was told."""

    def want(self, wish: _W) -> None:
        if wish != self.wish:
            self.wish = wish
            self.renew()

    def renew(self) -> None:
        """The device was away: what it does now is not known."""
        self.holds.clear()
        self._changed.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self._changed.clear()
            patience = await self._carry_out(self.wish)
            if self._changed.is_set():
                continue
            try:
                async with asyncio.timeout(patience):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _carry_out(self, wish: _W) -> float | None:
        """Seconds until it is wanted again; None: not before something changes."""
        try:
            await self._do(wish)
        except NotReady as away:
            return self._not_taken(away, None)  # renew() comes when it is back
        except CommandRefused as refused:
            return self._not_taken(refused, None if refused.why in _HOPELESS else RETRY)
        except (CommandUnanswered, LinkBusy) as problem:
            return self._not_taken(problem, RETRY)
        self._why = ""
        if wish == self.wish:
            self.holds.set()
        return self._again

    def _not_taken(self, problem: Exception, patience: float | None) -> float | None:
        if str(problem) != self._why:
            self._why = str(problem)
            _log.info("not taken", outlet=self.name, why=self._why)
        return patience


class Lockable(Protocol):
    """A shoe."""

    async def lock(self) -> object: ...
    async def open_gate(self) -> object: ...


class Lit(Protocol):
    """A station."""

    async def arm(self, seat: int, buttons: ButtonMask, token: int, ttl_ms: int) -> None: ...
    async def disarm(self, seat: int) -> None: ...
    async def lamps(self, seat: int, wish: station.Wish) -> None: ...


class Outlets:
    """Shoe and stations of one table."""

    def __init__(
        self,
        the_shoe: tuple[str, Lockable],
        stations: Mapping[int, tuple[str, Lit]],
    ) -> None:
        """Each with its serial number; `stations` by seat."""
        serial, shoes = the_shoe
        self._lock: Outlet[bool] = Outlet("shoe", serial, True, lambda on: _locked(shoes, on))
        self._seats = {seat: _seat(seat, serial, lit) for seat, (serial, lit) in stations.items()}

    def want(self, shown: TableDisplay) -> None:
        """What is shown now. While nothing can be recorded, and at the end, all is made safe: no
        card, no button, and the lamps of a fault."""
        if shown.stopped:
            self.safe()
            return
        for effect in shown.effects:
            if isinstance(effect, ShoeLock):
                self._lock.want(effect.locked)
            elif isinstance(effect, Stations):
                lamps = dict(effect.lamps)
                arms = {arm.seat: arm for arm in shown.arms.seats}
                for seat, outlet in self._seats.items():
                    arm = arms.get(seat)
                    lamp = lamps.get(seat, "dark")
                    if arm is None:
                        outlet.want(Armed(lamp=lamp))
                    else:
                        outlet.want(Armed(arm.buttons, arm.token, lamp))

    def safe(self) -> None:
        self._lock.want(True)
        for outlet in self._seats.values():
            outlet.want(SAFE)

    def back(self, serial: str) -> None:
        """A device is ready again, or stands otherwise."""
        for outlet in self._all:
            if outlet.serial == serial:
                outlet.renew()

    async def settled(self, serials: frozenset[str]) -> None:
        """Returns when every wish of these devices holds."""
        for outlet in self._all:
            if outlet.serial in serials:
                await outlet.holds.wait()

    @property
    def _all(self) -> tuple[Outlet[bool] | Outlet[Armed], ...]:
        return (self._lock, *self._seats.values())

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for outlet in self._all:
                group.create_task(outlet.run(), name=f"outlet {outlet.name}")


async def _locked(the_shoe: Lockable, on: bool) -> None:
    await (the_shoe.lock() if on else the_shoe.open_gate())


def _seat(seat: int, serial: str, lit: Lit) -> Outlet[Armed]:
    async def do(wish: Armed) -> None:
        if wish.buttons:
            await lit.arm(seat, wish.buttons, wish.token, ARM_MS)
        else:
            await lit.disarm(seat)
        await lit.lamps(seat, LAMPS[wish.lamp])

    return Outlet(f"seat {seat}", serial, Armed(), do, REARM)
