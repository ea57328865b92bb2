"""What is before whoever stands at a table: devices to put a hand to, chips on the felt."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final, Protocol

from controller.procedure.model.felt import seat_of
from controller.procedure.model.state import State
from firmware_protocol.device.control import ButtonName, ControlRequest, Describe
from firmware_protocol.device.interfaces import Answer, CannotDo

ARMING: Final = 0.5
"""Seconds for a button to light up."""
LOOK: Final = 0.001
"""Seconds from one look at the screen to the next."""
LOOK_AT_DEVICE: Final = 0.005
"""The same at a device."""


class HandledDevice(Protocol):
    """A device that somebody stands before."""

    def request(self, request: ControlRequest, /) -> Answer: ...


class TableSurroundings(Protocol):
    """What whoever is at a table has before them."""

    @property
    def decks(self) -> int:
        """Of the cards of this table."""

    @property
    def shoe(self) -> HandledDevice: ...
    @property
    def shuffler(self) -> HandledDevice | None: ...
    def station_of(self, seat: int, /) -> HandledDevice | None: ...


def chips(felt: State, seat: int, bet: str) -> int:
    """What lies on the felt for this bet."""
    found = seat_of(felt, seat)
    return 0 if found is None else int(getattr(found, bet))


def mechanism(device: HandledDevice) -> Mapping[str, Any]:
    """How a device stands, as somebody sees who stands before it. CannotDo without power."""
    found: Mapping[str, Any] | None = device.request(Describe()).get("mechanism")
    if not found:
        raise CannotDo("there is no power", "wait until it is back")
    return found


async def lit(station: HandledDevice, seat: int, button: ButtonName) -> bool:
    """Whether the button lights up, soon."""
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
