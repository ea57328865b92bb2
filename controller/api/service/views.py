"""What is seen now, made once for each change and not once for each who looks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec import Struct

from controller.api.contract.messages import Health, LinkShown
from controller.api.contract.view import DeviceShown, Named, Stands, View, dealer_of, view_of
from controller.api.service.context import Serving
from controller.config import TableConfig
from controller.procedure.prompts import MoneyFormat
from controller.table.loop import TableParts
from controller.table.running import RunningTable
from drivers.devices import State as LinkState


class Seen(Struct, frozen=True):
    """A view, and the same as it is sent."""

    view: View
    body: bytes


class Looking:
    """One table's."""

    def __init__(self, served: Serving) -> None:
        self._served = served
        self._named = named(served.table.parts)
        self._stands: Stands | None = None
        self._seen: Seen | None = None
        self._told: set[Callable[[], None]] = set()
        served.table.watch_all(self.news)

    def now(self) -> Seen:
        """As all stands now."""
        moment = self._served.moment()
        stands = self._how(moment.quality)
        if self._seen is None or stands != self._stands:
            view = view_of(self._named, stands, moment.utc)
            self._stands, self._seen = stands, Seen(view, encode(view))
        return self._seen

    def health(self) -> Health:
        table = self._served.table
        stopped = table.shown.stopped
        links = tuple(_link(one) for one in devices_of(table))
        ready = not stopped and all(one.state == LinkState.READY.value for one in links)
        return Health(self._named.table, ready, stopped, table.table.seq, links)

    def news(self) -> None:
        """Something may stand otherwise."""
        for tell in tuple(self._told):
            tell()

    @contextmanager
    def telling(self, tell: Callable[[], None]) -> Iterator[None]:
        """`tell` is told of news; it must not wait."""
        self._told.add(tell)
        try:
            yield
        finally:
            self._told.discard(tell)

    def _how(self, quality: str) -> Stands:
        table = self._served.table
        return Stands(
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


def named(parts: TableParts) -> Named:
    """What stays the same at this table."""
    what, game = parts.what, parts.game
    if not isinstance(what, TableConfig):
        return Named(parts.name, game.name, game.title)
    money = MoneyFormat(what.currency.symbol, what.currency.minor_digits)
    return Named(parts.name, game.name, what.title, money)


encode: Final = msgspec.json.Encoder().encode
