"""What people do at a table with an API, and what its record has of it then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from controller.audit.replay import decode_decision
from controller.procedure.model.events import Event
from controller.procedure.model.game import DECISIONS
from hil.table.robots import Screen
from tests.support.api.at_api import AtApi

VOID = {"type": "RoundVoided", "reason": "cards on the floor"}


def events(at: AtApi) -> list[Event]:
    return [decode_decision(record.data).event for record in at.room.records("decision")]


def last_event(at: AtApi) -> Event:
    return events(at)[-1]


@contextmanager
def nothing_recorded(at: AtApi, *kinds: str) -> Iterator[None]:
    before = [record.seq for kind in kinds for record in at.room.records(kind)]
    yield
    assert [record.seq for kind in kinds for record in at.room.records(kind)] == before


FIELDS: dict[str, dict[str, Any]] = {
    **{one.__name__: {"seat": 1, "hand": 0} for one in DECISIONS},
    **{one: {"seat": 1} for one in ("EvenMoney", "Decline", "PayTaken", "PayDeclined")},
    "Insure": {"seat": 1, "amount": 500},
    "ShoeLoaded": {"count": 312},
    "WagerPlaced": {"seat": 1, "bet": "main", "amount": 500},
    "WagerRemoved": {"seat": 1, "bet": "main"},
    "PaymentCorrected": {
        "round": 1,
        "seat": 1,
        "hand": 0,
        "bet": "main",
        "paid": 100,
        "due": 200,
    },
    "FaceUpCardFound": {"card": 1},
    "ErrorCardExposed": {"card": 1},
    "CardEntered": {"card": 1},
    "DealerCardMissed": {"which": 1},
    "SeatMissed": {"seat": 1},
    "SeatShorted": {"seat": 1},
    "PlayerAbsent": {"seat": 1},
    "DeckSuspect": {"why": "duplicate"},
    "FloorRuled": {"way": "void"},
    "RoundVoided": {"reason": "spilt"},
}
"""What each act has to say."""


async def send(screen: Screen, act: Mapping[str, Any]) -> Any:
    fields = dict(act)
    return await screen.act(fields.pop("type"), **fields)
