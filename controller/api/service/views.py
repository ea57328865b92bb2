"""The current view of a table: made and encoded once for each change, for all clients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from controller.api.contract.messages import Health, LinkShown
from controller.api.contract.view import (
    DeviceShown,
    TableIdentity,
    View,
    ViewInput,
    dealer_of,
    view_of,
)
from controller.api.service.context import ServedTable
from controller.config import TableConfig
from controller.procedure.prompts import MoneyFormat
from controller.table.loop import TableParts
from controller.table.running import RunningTable
from drivers.devices import LinkState


class CachedView(Struct, frozen=True):
    view: View
    body: bytes
    """The view, encoded."""


class ViewCache:
    """The view of one table, and the callbacks that are notified when it may have changed."""

    def __init__(self, served: ServedTable) -> None:
        self._served = served
        self._identity = table_identity(served.table.parts)
        self._input: ViewInput | None = None
        self._cached: CachedView | None = None
        self._callbacks: list[Callable[[], None]] = []
        served.table.watch_all(self.notify)

    def now(self) -> CachedView:
        """Return the current view; the same object while nothing has changed."""
        moment = self._served.moment()
        current = self._current(moment.quality)
        if self._cached is None or current != self._input:
            view = view_of(self._identity, current, moment.utc)
            self._input, self._cached = current, CachedView(view, encode(view))
        return self._cached

    def health(self) -> Health:
        table = self._served.table
        stopped = table.shown.stopped
        links = tuple(
            LinkShown(one.device, one.serial, one.state, one.held) for one in devices_of(table)
        )
        ready = not stopped and all(one.state == LinkState.READY.value for one in links)
        return Health(self._identity.table, ready, stopped, table.table.seq, links)

    def notify(self) -> None:
        """Call the callbacks: the view may have changed."""
        for callback in self._callbacks:
            callback()

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call `callback` when the view may have changed. It must not block."""
        self._callbacks.append(callback)

    def _current(self, quality: str) -> ViewInput:
        table = self._served.table
        return ViewInput(
            table.shown,
            dealer_of(self._served.desk.standing),
            devices_of(table),
            table.shuffle_problem,
            table.by_hand,
            table.table.seq,
            quality,
            table.witness,
        )


def devices_of(table: RunningTable) -> tuple[DeviceShown, ...]:
    found = []
    for serial, one in table.devices.supervised.items():
        supervisor = one.supervisor
        held = "" if supervisor.held is None else supervisor.held.verdict.name.lower()
        state, why = supervisor.state.value, supervisor.why
        found.append(DeviceShown(one.config.device, serial, state, why, held))
    return tuple(found)


def table_identity(parts: TableParts) -> TableIdentity:
    what, game = parts.what, parts.game
    if not isinstance(what, TableConfig):
        return TableIdentity(parts.name, game.name, game.title)
    money = MoneyFormat(what.currency.symbol, what.currency.minor_digits)
    return TableIdentity(parts.name, game.name, what.title, money)


encode: Final = msgspec.json.Encoder().encode
