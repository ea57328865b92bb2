"""The served table, and its reasons for rejecting a request as problems of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct, field

from controller.api.contract.errors import Problem
from controller.audit.format.hole_cards import SealProblem
from controller.audit.format.records import Moment
from controller.people import PeopleDesk
from controller.table.loop import (
    BadAct,
    CaseChanged,
    InputRejected,
    NotDealing,
    QueueFull,
    TableStopped,
)
from controller.table.memory import NotInVault
from controller.table.running import RunningTable
from drivers.keys import TwoPeopleNeeded
from drivers.session import NothingHeld, StoreFailed


class ServedTable(Struct, frozen=True):
    """A running table with what requests need beside it. Create it in the table's event loop."""

    table: RunningTable
    desk: PeopleDesk
    """One that records through `table.record`."""
    moment: Callable[[], Moment]
    """Reads the clocks."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    """Set at shutdown: streams end, and requests that change anything are rejected."""


_NOT_KNOWN: Final = "the card that lies face down is not known: call the floor"


class Rejection(NamedTuple):
    """How an exception of the table or of a device is answered."""

    status: int
    code: str
    what: str = ""
    """Empty: the text of the exception."""
    allowed: str = ""
    wait: int = 0


_REJECTIONS: Final[Mapping[type[Exception], Rejection]] = MappingProxyType(
    {
        TableStopped: Rejection(503, "stopped"),
        QueueFull: Rejection(429, "full", wait=1),
        InputRejected: Rejection(409, "cannot_take"),
        NotDealing: Rejection(403, "no_dealer", allowed="POST /api/v1/sign-in, and then this"),
        CaseChanged: Rejection(409, "moved_on"),
        BadAct: Rejection(400, "no_act"),
        NotInVault: Rejection(409, "not_known", _NOT_KNOWN),
        SealProblem: Rejection(409, "not_known", _NOT_KNOWN),
        TwoPeopleNeeded: Rejection(403, "same_person"),
        NothingHeld: Rejection(409, "nothing_held"),
        StoreFailed: Rejection(503, "not_kept"),
    }
)


@contextmanager
def table_problems() -> Iterator[None]:
    """Turn the reasons why the table or a device rejects a request into a Problem."""
    try:
        yield
    except tuple(_REJECTIONS) as problem:
        kind = next(kind for kind in type(problem).__mro__ if kind in _REJECTIONS)
        status, code, what, allowed, wait = _REJECTIONS[kind]
        raise Problem(status, code, what or str(problem), allowed, wait=wait) from None
