"""Refusals checked before all rows: the actor may not bring the event."""

from __future__ import annotations

from controller.procedure.model.events import Event
from controller.procedure.model.game import DECISIONS, WHO, Game
from controller.procedure.model.row import Refusal, Row
from controller.procedure.model.state import WAITING, State


def _player_where_signals(g: Game, s: State, e: Event) -> bool:
    return e.actor.role == "player" and "player" not in g.who[type(e)]


def _dealer_where_buttons(g: Game, s: State, e: Event) -> bool:
    return e.actor.role == "dealer" and "dealer" not in g.who[type(e)]


def _not_theirs(g: Game, s: State, e: Event) -> bool:
    return e.actor.role not in g.who[type(e)]


def _other_seat(g: Game, s: State, e: Event) -> bool:
    return e.actor.role == "player" and getattr(e, "seat", 0) not in (0, e.actor.seat)


def _who_detail(g: Game, s: State, e: Event) -> dict[str, str]:
    return {
        "role": e.actor.role,
        "allowed": " or ".join(sorted(g.who[type(e)])),
        "own": str(e.actor.seat),
        "seat": str(getattr(e, "seat", 0)),
    }


ROWS: tuple[Row, ...] = ()

REFUSALS = (
    *(
        Refusal(
            "hand_signals",
            WAITING,
            event,
            "decisions are hand signals here: the dealer enters them",
            _player_where_signals,
            rule=("classic.rule7",),
        )
        for event in DECISIONS
    ),
    *(
        Refusal(
            "buttons_only",
            WAITING,
            event,
            "players decide with their buttons here",
            _dealer_where_buttons,
        )
        for event in DECISIONS
    ),
    *(
        Refusal(
            "not_theirs",
            WAITING,
            event,
            "this is not for the {role} to do: {allowed}",
            _not_theirs,
            _who_detail,
        )
        for event in (*DECISIONS, *WHO)
    ),
    *(
        Refusal(
            "other_seat",
            WAITING,
            event,
            "the station of seat {own} cannot act for seat {seat}",
            _other_seat,
            _who_detail,
        )
        for event in (*DECISIONS, *WHO)
        if "seat" in event.__struct_fields__
    ),
)
