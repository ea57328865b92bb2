"""How long a device may be away before anybody is told, where its records cannot be kept either."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller.audit.errors import RetryLater
from controller.procedure.model.events import DeviceLost
from controller.procedure.model.state import Step
from controller.table.devices.links import LOST_AFTER, DeviceLink
from controller.table.loop import TableStopped
from drivers.devices import LinkState
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import Served, serving
from tests.support.table.simulated.simulated_table import DEALER, SHOE


class Stands:
    """A device that stands as it is told to."""

    def __init__(self, link: DeviceLink) -> None:
        self.state = LinkState.READY
        self.why = ""
        self._link = link
        link.supervisor = self

    async def is_(self, state: LinkState, seconds: float) -> None:
        """From now on, and for so long."""
        self.state, self.why = state, "so it is told"
        self._link.check()
        await asyncio.sleep(seconds)


def shoe(one: Served) -> Stands:
    return Stands(one.table.devices.supervised[SHOE].link)


def lost(one: Served) -> list[str]:
    return [event.why for event in one.events() if isinstance(event, DeviceLost)]


@simulated
async def test_a_device_that_is_mended_has_its_moment_to_come_back(tmp_path: Path) -> None:
    """However long the record had no room, and whatever was before that."""

    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        stands = shoe(one)
        await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)
        one.room.book.refusing = RetryLater("record", "no room", "make room")
        with pytest.raises(TableStopped):
            await one.table.act({"type": "CheckHole"}, DEALER)
        await stands.is_(LinkState.UNKEPT, 60)
        assert one.table.shown.stopped
        one.room.book.refusing = None
        await until(lambda: not one.table.shown.stopped, 40)
        await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)
        await stands.is_(LinkState.READY, 60)
        assert lost(one) == []
        await stands.is_(LinkState.LOST, LOST_AFTER + 0.5)
        assert lost(one) == ["lost: so it is told"]


@simulated
async def test_people_are_told_of_a_device_that_nothing_is_kept_of(tmp_path: Path) -> None:
    """The record takes all else, so nobody is told by that."""

    async with serving(tmp_path) as one:
        await one.to_step(Step.TURN)
        stands = shoe(one)
        await stands.is_(LinkState.UNKEPT, LOST_AFTER - 0.5)
        await stands.is_(LinkState.LOST, LOST_AFTER - 0.5)  # tried again
        assert lost(one) == []
        await stands.is_(LinkState.UNKEPT, 1)
        assert lost(one) == ["unkept: so it is told"]
        assert one.at(Step.DEVICE)
        await stands.is_(LinkState.READY, 1)
        assert one.at(Step.FELT)
