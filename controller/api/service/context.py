"""The served table, and its reasons for rejecting a request as problems of the API."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

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
_SIGN_IN: Final = "POST /api/v1/sign-in, and then this"


@contextmanager
def table_problems() -> Iterator[None]:
    """Turn the reasons why the table or a device rejects a request into a Problem."""
    try:
        yield
    except TableStopped as problem:
        raise Problem(503, "stopped", str(problem)) from None
    except QueueFull as problem:
        raise Problem(429, "full", str(problem), wait=1) from None
    except InputRejected as problem:
        raise Problem(409, "cannot_take", str(problem)) from None
    except NotDealing as problem:
        raise Problem(403, "no_dealer", str(problem), _SIGN_IN) from None
    except CaseChanged as problem:
        raise Problem(409, "moved_on", str(problem)) from None
    except BadAct as problem:
        raise Problem(400, "no_act", str(problem)) from None
    except (NotInVault, SealProblem):
        raise Problem(409, "not_known", _NOT_KNOWN) from None
    except TwoPeopleNeeded as problem:
        raise Problem(403, "same_person", str(problem)) from None
    except NothingHeld as problem:
        raise Problem(409, "nothing_held", str(problem)) from None
    except StoreFailed as problem:
        raise Problem(503, "not_kept", str(problem)) from None
