"""Results of a scripted round in the format of scripts, and their comparison."""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct

from controller.procedure.model.effects import Settled
from controller.procedure.model.state import State
from controller.rules.cards import card_names

_SIDE_ORDER = ("insurance", "diamond", "buster", "toke_main", "toke_buster")


class HandResult(Struct, frozen=True):
    seat: int
    hand: int
    cards: list[str]
    wager: int
    outcome: str
    odds: str | None
    returned: int
    net: int
    when: str


class SideBetResult(Struct, frozen=True):
    seat: int
    bet: str
    stake: int
    outcome: str
    odds: str | None
    returned: int
    net: int


class RejectedBet(Struct, frozen=True):
    seat: int
    bet: str
    amount: int
    why: str


class RoundResult(Struct, frozen=True):
    id: str
    ok: bool
    failures: list[str]
    dealer_cards: list[str]
    hands: list[HandResult]
    side_bets: list[SideBetResult]
    seat_net: dict[str, int]
    rejected_bets: list[RejectedBet]
    rejected_actions: list[int]


def _hand(fact: Settled) -> HandResult:
    return HandResult(
        fact.seat,
        fact.hand,
        list(card_names(fact.cards)),
        fact.stake,
        fact.outcome,
        None if fact.odds is None else str(fact.odds),
        fact.returned,
        fact.returned - fact.stake,
        "instant" if fact.instant else "settle",
    )


def _side(fact: Settled) -> SideBetResult:
    return SideBetResult(
        fact.seat,
        fact.bet,
        fact.stake,
        fact.outcome,
        None if fact.odds is None else str(fact.odds),
        fact.returned,
        fact.returned - fact.stake,
    )


def result_of(
    name: str,
    seats: Iterable[int],
    state: State,
    settled: Iterable[Settled],
    rejected_bets: list[RejectedBet],
    rejected_actions: list[int],
    failures: list[str],
) -> RoundResult:
    facts = tuple(settled)
    hands = sorted((f for f in facts if f.hand >= 0), key=lambda f: (f.seat, f.hand))
    sides = sorted(
        (f for f in facts if f.hand < 0), key=lambda f: (f.seat, _SIDE_ORDER.index(f.bet))
    )
    net = {str(seat): 0 for seat in sorted(seats)}
    for fact in facts:
        net[str(fact.seat)] += fact.returned - fact.stake
    return RoundResult(
        name,
        not failures,
        failures,
        list(card_names(state.dealer)),
        [_hand(fact) for fact in hands],
        [_side(fact) for fact in sides],
        net,
        rejected_bets,
        rejected_actions,
    )


def differences(expected: object, got: object, at: str = "") -> list[str]:
    """Returns the differences; fields that `expected` does not have are not compared."""
    if isinstance(expected, dict) and isinstance(got, dict):
        found = []
        for key, value in expected.items():
            path = f"{at}.{key}" if at else str(key)
            if key not in got:
                found.append(f"{path}: expected {_quoted(value)}, got nothing")
            else:
                found += differences(value, got[key], path)
        return found
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return [f"{at}: expected {len(expected)} of them, got {len(got)}: {_quoted(got)}"]
        return [
            text
            for index, (one, other) in enumerate(zip(expected, got, strict=True))
            for text in differences(one, other, f"{at}[{index}]")
        ]
    if expected == got:
        return []
    return [f"{at}: expected {_quoted(expected)}, got {_quoted(got)}"]


def _quoted(value: object) -> str:
    """Returns the value as JSON."""
    return json.dumps(value)
