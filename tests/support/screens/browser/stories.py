"""Irregularities at the dealer's page: each is said there, or happens at a device; the way on is
taken there, with the floor's badges and PINs where they are asked for, to the end of the round.

    @tells(Odd.SEAT_MISSED, "seat_missed", wagers=THREE)
    async def a_seat_that_got_no_cards(t: AtTable) -> None: ...
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import msgspec

from controller.audit.read.reader import records
from controller.audit.replay import decode_decision
from controller.audit.verify import verify
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from tests.support.screens.browser.table import AtTable
from tests.support.table.simulated.irregular import family
from tests.support.table.simulated.telling import BOTH, CARDS

Story: TypeAlias = Callable[[AtTable], Awaitable[None]]
Wagers: TypeAlias = tuple[tuple[int, str, int], ...]
THREE: Final = ((1, "main", 1000), (2, "main", 1000), (3, "main", 1000))
ACE_UP: Final = ("9c", "8c", "As", "2h", "Kc", "9d", "9h")
HIT: Final[Mapping[int, str]] = MappingProxyType({1: "hit"})
NOBODY: Final[Mapping[int, str]] = MappingProxyType({})


class Told(NamedTuple):
    """A story, its shoe, and what the record holds of it."""

    tell: Story
    what: Odd
    rows: tuple[str, ...]
    cards: tuple[str, ...]
    wagers: Wagers
    plan: Mapping[int, str]


STORIES: Final[dict[str, Told]] = {}


def tells(
    what: Odd,
    *rows: str,
    cards: tuple[str, ...] = CARDS,
    wagers: Wagers = BOTH,
    plan: Mapping[int, str] = HIT,
) -> Callable[[Story], Story]:
    """`rows`: that fire, or refuse."""

    def told(story: Story) -> Story:
        name = getattr(story, "__name__", "")
        STORIES[name] = Told(story, what, rows, cards, wagers, plan)
        return story

    return told


async def play(t: AtTable, names: Iterable[str]) -> None:
    """One story after the other, each with a shoe of its own, each to the end of its round."""
    for name in names:
        told = STORIES[name]
        await t.fresh(told.cards, told.wagers, told.plan)
        await told.tell(t)
        await t.to_end()
        assert t.wrong == [], name


def recorded(record: Path, names: Iterable[str]) -> None:
    """The record verifies, and holds each story."""
    report = verify(record)
    found = [finding.what for finding in report.findings]
    assert found == [], found
    made = [one for _, one in records(record)]
    fired = {family(row) for one in made if one.kind == "decision" for row in _rows(one.data)}
    fired |= {msgspec.json.decode(one.data)["id"] for one in made if one.kind == "refusal"}
    for name in names:
        assert set(STORIES[name].rows) <= fired, (name, set(STORIES[name].rows) - fired)


def _rows(data: msgspec.Raw) -> tuple[str, ...]:
    return tuple(decode_decision(data).rows)


async def ruled(t: AtTable, what: Odd, way: str) -> None:
    """The page says that the floor is to rule, and the floor does."""
    assert t.stands.step is Step.HELD, t.stands.step
    assert t.stands.holds[-1].what is what
    await t.shows("rule on", "floor")
    await t.says("FloorRuled", "floor", way=way)
