"""Outputs of the procedure to the devices: shoe lock, armed buttons, lamps, start of a shuffle.

An output is an absolute setting that replaces the one before it, never a change. So it is sent
again, without side effects, until the device has accepted it, and when the device is back. The
start of a shuffle is not of this kind: START is sent once for each time that people ask for it, and
never retried automatically. The shuffler's event shows whether it was carried out; if that is
unknown, people look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Generic, Protocol, TypeVar

import structlog
from msgspec import Struct

from controller.audit.format.records import CONTROLLER, RecordEntry
from controller.procedure.model.effects import Lamp, ShoeLock, Stations
from controller.table.devices.lamps import LAMPS
from controller.table.memory import NO_BUTTONS, TableDisplay
from drivers.devices import (
    PERMANENT_REFUSALS,
    CommandRefusedError,
    CommandUnansweredError,
    InDoubt,
    LampSetting,
    NotReady,
    ResultMissing,
)
from firmware_protocol.host import LinkBusy
from firmware_protocol.messages import ButtonMask, Refusal

RETRY_DELAY: Final = 0.5
"""Seconds until the retry of a setting that a device has not accepted."""
ARM_LIFE_MS: Final = 60_000
REARM_INTERVAL: Final = 30.0
"""Seconds after which buttons that are still wanted are armed again."""

_log: Final = structlog.get_logger("table.outlets")
_S = TypeVar("_S")


class SeatOutput(Struct, frozen=True):
    """Buttons and lamp of one seat."""

    buttons: ButtonMask = NO_BUTTONS
    token: int = 0
    lamp: Lamp = "dark"


SAFE: Final = SeatOutput(lamp="fault")


class DeviceOutput(Generic[_S]):
    """One setting of one device, or of one seat."""

    def __init__(
        self,
        name: str,
        serial: str,
        setting: _S,
        send: Callable[[_S], Awaitable[object]],
        repeat: float | None = None,
    ) -> None:
        """`repeat`: seconds after which an accepted setting is sent again."""
        self.name = name
        self.serial = serial
        self.setting = setting
        self._send = send
        self._repeat = repeat
        self._changed = asyncio.Event()
        self._changed.set()
        self.accepted = asyncio.Event()
        """Set while the device has the setting, as far as is known."""
        self._why = ""
        """Why the last setting was not accepted, as logged."""

    def set(self, setting: _S) -> None:
        if setting != self.setting:
            self.setting = setting
            self.renew()

    def renew(self) -> None:
        """Send the setting again: it is not known what the device does now."""
        self.accepted.clear()
        self._changed.set()

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._changed.clear()
            delay = await self._try()
            if self._changed.is_set():
                continue
            try:
                async with asyncio.timeout(delay):
                    await self._changed.wait()
            except TimeoutError:
                continue

    async def _try(self) -> float | None:
        """Send the setting. Returns seconds until the next time; None: when something changes."""
        setting = self.setting
        try:
            await self._send(setting)
        except NotReady as away:
            return self._rejected(away, None)  # renew() is called when it is back
        except CommandRefusedError as refused:
            return self._rejected(
                refused, None if refused.why in PERMANENT_REFUSALS else RETRY_DELAY
            )
        except (CommandUnansweredError, LinkBusy) as problem:
            return self._rejected(problem, RETRY_DELAY)
        self._why = ""
        if setting == self.setting:
            self.accepted.set()
        return self._repeat

    def _rejected(self, problem: Exception, delay: float | None) -> float | None:
        if str(problem) != self._why:
            self._why = str(problem)
            _log.info("not taken", outlet=self.name, why=self._why)
        return delay


class LockableShoe(Protocol):
    """Lock of the shoe."""

    async def lock(self) -> object: ...
    async def open_gate(self) -> object: ...


class SeatDevice(Protocol):
    """Buttons and lamps of a station."""

    async def arm(self, seat: int, buttons: ButtonMask, token: int, ttl_ms: int) -> None: ...
    async def disarm(self, seat: int) -> None: ...
    async def lamps(self, seat: int, setting: LampSetting) -> None: ...


class DeviceOutputs:
    """The outputs of one table."""

    def __init__(
        self,
        the_shoe: tuple[str, LockableShoe],
        stations: Mapping[int, tuple[str, SeatDevice]],
    ) -> None:
        """Each with its serial number; `stations` by seat."""
        serial, shoe = the_shoe
        self._lock: DeviceOutput[bool] = DeviceOutput(
            "shoe", serial, True, lambda locked: shoe.lock() if locked else shoe.open_gate()
        )
        self._seats = {
            seat: _seat_output(seat, serial, station)
            for seat, (serial, station) in stations.items()
        }

    def show(self, display: TableDisplay) -> None:
        """Set the outputs for this display. While the table is stopped all is made safe: locked,
        no buttons, and the lamps of a fault."""
        if display.stopped:
            self.make_safe()
            return
        for effect in display.effects:
            if isinstance(effect, ShoeLock):
                self._lock.set(effect.locked)
            elif isinstance(effect, Stations):
                lamps = dict(effect.lamps)
                arms = {arm.seat: arm for arm in display.arms.seats}
                for seat, output in self._seats.items():
                    arm = arms.get(seat)
                    lamp = lamps.get(seat, "dark")
                    if arm is None:
                        output.set(SeatOutput(lamp=lamp))
                    else:
                        output.set(SeatOutput(arm.buttons, arm.token, lamp))

    def make_safe(self) -> None:
        self._lock.set(True)
        for output in self._seats.values():
            output.set(SAFE)

    def back(self, serial: str) -> None:
        """A device accepts commands again."""
        for output in self._all:
            if output.serial == serial:
                output.renew()

    async def settled(self, serials: frozenset[str]) -> None:
        """Returns when these devices have accepted all settings."""
        for output in self._all:
            if output.serial in serials:
                await output.accepted.wait()

    @property
    def _all(self) -> tuple[DeviceOutput[bool] | DeviceOutput[SeatOutput], ...]:
        return (self._lock, *self._seats.values())

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for output in self._all:
                group.create_task(output.run(), name=f"output {output.name}")


def _seat_output(seat: int, serial: str, station: SeatDevice) -> DeviceOutput[SeatOutput]:
    async def send(setting: SeatOutput) -> None:
        if setting.buttons:
            await station.arm(seat, setting.buttons, setting.token, ARM_LIFE_MS)
        else:
            await station.disarm(seat)
        await station.lamps(seat, LAMPS[setting.lamp])

    return DeviceOutput(f"seat {seat}", serial, SeatOutput(), send, REARM_INTERVAL)


_TODO: Final = "look at the shuffler, then ask for the shuffle again"
_NO_CARDS: Final = "no cards are in the shuffler"
_PUT_IN: Final = "put them in, then ask for the shuffle again"
NONE_RUNS: Final = f"no shuffle runs: it has ended, or was never begun; {_TODO}"
"""After a shuffle that was not right, or a restart of the controller."""
_NOT_STARTED: Final = (CommandRefusedError, CommandUnansweredError, LinkBusy, NotReady)


class StartableShuffler(Protocol):
    """Start command of the shuffler."""

    async def start(self, decks: int) -> object: ...
    def looked(self) -> None: ...


class ShuffleStarter:
    """Starts the shuffles of one table, one at a time."""

    def __init__(self, shuffler: StartableShuffler, record: Callable[[RecordEntry], None]) -> None:
        """`record` records a fault; it must not block."""
        self._shuffler = shuffler
        self._record = record
        self._decks = 0
        self._requested = asyncio.Event()
        self.asked = False
        """People have asked for the shuffle that the table waits for, and it has no result yet."""
        self.problem = ""
        """Why the last shuffle may not have started, for people."""

    def want(self, decks: int) -> None:
        """People have asked for a shuffle."""
        self.asked = True
        self._decks = decks
        self._requested.set()

    def want_again(self, decks: int) -> None:
        """People have looked: the shuffler is not shuffling, and has to be started."""
        self._shuffler.looked()
        self.want(decks)

    def over(self) -> None:
        """No shuffle is wanted any more."""
        self.asked = False
        self._decks = 0
        self.problem = ""

    def problem_now(self, *, shuffling: bool) -> str:
        """Returns why the shuffle that the table waits for may not have started, for people; empty
        if it may. `shuffling`: the shuffler has reported its start, and not its end."""
        if self.problem or self.asked or shuffling:
            return self.problem
        return NONE_RUNS

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            await self._requested.wait()
            self._requested.clear()
            decks, self._decks = self._decks, 0
            if decks:
                await self._start(decks)

    async def _start(self, decks: int) -> None:
        self.problem = ""
        try:
            await self._shuffler.start(decks)
        except _NOT_STARTED as problem:
            empty = isinstance(problem, CommandRefusedError) and problem.why is Refusal.EMPTY
            if empty:
                self._report(f"the shuffle was not started: {_NO_CARDS}", _PUT_IN)
            else:
                self._report(f"the shuffle was not started: {problem}")
        except (ResultMissing, InDoubt) as problem:
            self._report(f"nobody knows whether the shuffle was started: {problem}")

    def _report(self, problem: str, todo: str = _TODO) -> None:
        if self.asked:  # else the shuffle is not wanted any more
            self.problem = f"{problem}; {todo}"
        self._record(RecordEntry("fault", CONTROLLER, {"what": "shuffle", "detail": problem}))
