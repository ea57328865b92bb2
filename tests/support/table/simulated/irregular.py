"""Irregularities told at a table that is served: real devices' words over the wire, people's acts,
what is shown, and a record that says it all.

    @irregular(Odd.SEAT_MISSED, "seat_missed", default=(Way.DEAD_HAND,), strict=(...))
    async def a_seat_that_got_no_cards(t: Told, way: Way) -> None: ...

A story is told in each house, once for each way that the house leaves open. When it is over the
round is over, and its record verifies and holds what found it, the ruling and who ruled.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.model.effects import Ruled
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.state import Step
from controller.rules.irregularities import FIXED, Irregularity, Way
from tests.support.table.simulated.serving import FLOOR, SECOND, Room, run
from tests.support.table.simulated.telling import OVER, Setting, Told, opened

OTHERWISE: Final = {
    (Irregularity.DEALER_RELIEVED, Way.BURN): {"way_relief_burn"},
    (Irregularity.DEVICE_LOST, Way.DEVICE_CHECK): {"way_device_check", "way_device_there"},
}
"""Rows of a way on that are not named like it."""

Story: TypeAlias = Callable[[Told, Way], Awaitable[None]]


# --- which stories there are ------------------------------------------------------------------


class Case(NamedTuple):
    """What a story shows."""

    name: str
    what: Irregularity
    rows: tuple[str, ...]
    """Rows and refusals that it shows in every way, without the step."""
    ways: Mapping[str, tuple[Way, ...]]
    """By house."""
    also: Mapping[Way, tuple[str, ...]] = MappingProxyType({})
    """Rows that it shows in one way only."""
    setting: Setting = Setting()
    nets: Mapping[int, int] | None = None
    """What the seats win in the end, unless the round is void; None: not compared."""
    story: Story | None = None
    """None: a test of its own."""


CASES: Final[list[Case]] = []
WON: Final = {1: 1000, 2: 0}
VOID: Final = {1: 0, 2: 0}
"""The nets of the two seats when the round is played, and when it is void."""
TWO: Final = " - bring a second person"


def irregular(
    what: Irregularity,
    *rows: str,
    ways: tuple[Way, ...] = (),
    default: tuple[Way, ...] = (),
    strict: tuple[Way, ...] = (),
    also: Mapping[Way, tuple[str, ...]] = MappingProxyType({}),
    nets: Mapping[int, int] | None = WON,
    **setting: Any,
) -> Callable[[Story], Story]:
    """Register a story. `ways`: those of each house; `default` and `strict`: those of that house
    only. `nets`: what the seats win in the end, unless the round is void. The other arguments are
    those of Setting."""

    def register(story: Story) -> Story:
        name = f"{story.__module__.rpartition('.')[2]}.{getattr(story, '__name__', '')}"
        by_house = {"default": ways or default, "strict": ways or strict}
        CASES.append(Case(name, what, rows, by_house, also, Setting(**setting), nets, story))
        return story

    return register


def tell(case: Case, house: str, way: Way, folder: Path) -> None:
    """Play a story to the end of its round, and verify its record."""
    assert case.story is not None
    story = case.story

    async def main() -> None:
        async with opened(folder, case.setting, house) as t:
            await story(t, way)
            await t.robot.play(lambda s: s.state.step in OVER and not s.state.seats)
            if case.nets is not None:
                assert t.nets() == (VOID if way in (Way.VOID, Way.DECKS_OUT) else case.nets)
        holds(t.room, case.what, (*case.rows, *case.also.get(way, ())), way)

    run(main())


_AT_STEP: Final = re.compile(rf"_at_({'|'.join(step.value for step in Step)})\Z")


def family(row: str) -> str:
    """A row that stands at each step for itself, by the name that all of them share."""
    if row.startswith("resume_"):
        return "resume"
    return _AT_STEP.sub("", row)


def holds(made: Room, what: Irregularity, rows: tuple[str, ...], way: Way) -> None:
    """The record says what was found, which way was gone and who has ruled it."""
    decided = [decode_decision(record.data) for record in made.records("decision")]
    refused = [msgspec.json.decode(record.data)["id"] for record in made.records("refusal")]
    fired = {family(row) for one in decided for row in one.rows}
    assert set(rows) <= fired | set(refused), set(rows) - fired
    if what in FIXED:
        return
    informed = [one for each in decided for one in each.effects if isinstance(one, Informed)]
    assert what.value in {one.what for one in informed}
    ways = OTHERWISE.get((what, way), {f"way_{way.value}"})
    gone = [one for one in decided if ways & set(one.rows)]
    at_once = [one for one in gone if "floor_rules" not in one.rows and set(rows) & _families(one)]
    second = SECOND.name if made.game.needs_two(what, way) else ""
    ruled = Ruled(what.value, way.value, FLOOR.name, second)
    by_floor = [one for one in gone if ruled in one.effects]
    assert bool(at_once) != bool(by_floor), (at_once, by_floor)


def _families(made: DecisionData) -> set[str]:
    return {family(row) for row in made.rows}
