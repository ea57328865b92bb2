"""What the API is given: the table that it shows and acts at, the desk where people sign in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from msgspec import Struct, field

from controller.audit.format.records import Moment
from controller.people import PeopleDesk
from controller.table.running import RunningTable


class ServedTable(Struct, frozen=True):
    """To be built by whoever runs the table, in the loop in which it runs."""

    table: RunningTable
    desk: PeopleDesk
    """One that records by `table.record`."""
    moment: Callable[[], Moment]
    """The clocks."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when the table is to stop: streams end, and nobody begins anything."""
