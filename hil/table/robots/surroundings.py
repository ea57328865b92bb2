"""What a person at the table can reach and see: devices, and chips on the felt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from controller.procedure.model.felt import seat_of
from controller.procedure.model.state import State
from firmware_protocol.device import Answer, ButtonName, CannotDo, ControlRequest, Describe

ARMING: Final = 0.5
"""Timeout in seconds for a button to be lit."""
LOOK: Final = 0.001
"""Interval in seconds between checks of the screen."""
LOOK_AT_DEVICE: Final = 0.005
"""Interval in seconds between checks of a device."""


class HandledDevice(Protocol):
    """A device that takes control requests."""

    def request(self, request: ControlRequest, /) -> Answer: ...


class TableSurroundings(Protocol):
    """The devices of a table, by what they are for."""

    @property
    def decks(self) -> int:
        """Number of decks of this table."""

    @property
    def shoe(self) -> HandledDevice: ...
    @property
    def shuffler(self) -> HandledDevice | None: ...
    def station_of(self, seat: int, /) -> HandledDevice | None: ...


def chips(felt: State, seat: int, bet: str) -> int:
    """Returns the amount of a bet on the felt."""
    found = seat_of(felt, seat)
    return 0 if found is None else int(getattr(found, bet))


def mechanism(device: HandledDevice) -> Mapping[str, Any]:
    """Returns the mechanism's state. Raises CannotDo if the device has no power."""
    found: Mapping[str, Any] | None = device.request(Describe()).get("mechanism")
    if not found:
        raise CannotDo("there is no power", "wait until it is back")
    return found


async def lit(station: HandledDevice, seat: int, button: ButtonName) -> bool:
    """Whether the button is lit within ARMING seconds."""
    try:
        async with asyncio.timeout(ARMING):
            while not _may_press(station, seat, button):
                await asyncio.sleep(LOOK_AT_DEVICE)
    except TimeoutError:
        return False
    return True


def _may_press(station: HandledDevice, seat: int, button: str) -> bool:
    inside = station.request(Describe()).get("mechanism")
    if not inside:
        return False  # it has no power
    lit = inside["seats"][str(seat)]
    return button in lit["armed"] and button not in lit["down"]
