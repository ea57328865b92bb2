"""What is seen now, made once for each change and not once for each who looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
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
from drivers.devices import State as LinkState


class CachedView(Struct, frozen=True):
    """A view, and the same as it is sent."""

    view: View
    body: bytes


class ViewCache:
    """One table's."""

    def __init__(self, served: ServedTable) -> None:
        self._served = served
        self._named = named(served.table.parts)
        self._stands: ViewInput | None = None
        self._seen: CachedView | None = None
        self._callbacks: set[Callable[[], None]] = set()
        served.table.watch_all(self.notify)

    def now(self) -> CachedView:
        """As all stands now."""
        moment = self._served.moment()
        stands = self._how(moment.quality)
        if self._seen is None or stands != self._stands:
            view = view_of(self._named, stands, moment.utc)
            self._stands, self._seen = stands, CachedView(view, encode(view))
        return self._seen

    def health(self) -> Health:
        table = self._served.table
        stopped = table.shown.stopped
        links = tuple(_link(one) for one in devices_of(table))
        ready = not stopped and all(one.state == LinkState.READY.value for one in links)
        return Health(self._named.table, ready, stopped, table.table.seq, links)

    def notify(self) -> None:
        """Something may stand otherwise."""
        for callback in tuple(self._callbacks):
            callback()

    @contextmanager
    def subscribe(self, callback: Callable[[], None]) -> Iterator[None]:
        """`callback` is told of news; it must not wait."""
        self._callbacks.add(callback)
        try:
            yield
        finally:
            self._callbacks.discard(callback)

    def _how(self, quality: str) -> ViewInput:
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
    for serial, one in table.fittings.served.items():
        supervisor = one.supervisor
        held = "" if supervisor.held is None else supervisor.held.verdict.name.lower()
        state, why = supervisor.state.value, supervisor.why
        found.append(DeviceShown(one.fitted.device, serial, state, why, held))
    return tuple(found)


def _link(one: DeviceShown) -> LinkShown:
    return LinkShown(one.device, one.serial, one.state, one.held)


def named(parts: TableParts) -> TableIdentity:
    """What stays the same at this table."""
    what, game = parts.what, parts.game
    if not isinstance(what, TableConfig):
        return TableIdentity(parts.name, game.name, game.title)
    money = MoneyFormat(what.currency.symbol, what.currency.minor_digits)
    return TableIdentity(parts.name, game.name, what.title, money)


encode: Final = msgspec.json.Encoder().encode
