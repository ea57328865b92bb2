"""Irregularities told at a table that is served: real devices' words over the wire, people's acts,
what is shown, and a record that says it all.

    @irregular(Odd.SEAT_MISSED, "seat_missed", default=(Way.DEAD_HAND,), strict=(...))
    async def test_a_seat_that_got_no_cards(t: Told, way: Way) -> None: ...

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
import pytest

from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.model.effects import Ruled
from controller.procedure.model.effects import Told as Informed
from controller.procedure.model.state import Step
from controller.rules.irregularities import FIXED, Irregularity, Way
from tests.support.table.simulated.serving import run
from tests.support.table.simulated.simulated_table import FLOOR, SECOND, Room
from tests.support.table.simulated.telling import HOUSES, OVER, Setting, Told, opened

OTHERWISE: Final = {
    (Irregularity.DEALER_RELIEVED, Way.BURN): {"way_relief_burn"},
    (Irregularity.DEVICE_LOST, Way.DEVICE_CHECK): {"way_device_check", "way_device_there"},
}
"""Rows of a way on that are not named like it."""

Story: TypeAlias = Callable[[Told, Way], Awaitable[None]]


# --- which stories there are ------------------------------------------------------------------


class Case(NamedTuple):
    """What a story shows."""

    test: str
    what: Irregularity
    rows: tuple[str, ...]
    """Rows and refusals that are shown, without the step that they are for."""
    ways: Mapping[str, tuple[Way, ...]]
    """By house."""


CASES: Final[list[Case]] = []

Test: TypeAlias = Callable[[str, Way, Path], None]


def irregular(
    what: Irregularity,
    *rows: str,
    ways: tuple[Way, ...] = (),
    default: tuple[Way, ...] = (),
    strict: tuple[Way, ...] = (),
    also: Mapping[Way, tuple[str, ...]] = MappingProxyType({}),
    **setting: Any,
) -> Callable[[Story], Test]:
    """`ways`: those that are told in each house; `default` and `strict`: in that one only. `also`:
    rows that are shown on a way only. The rest is the table's: see Setting."""
    told = {"default": ways or default, "strict": ways or strict}
    at = Setting(**setting)

    def test_of(story: Story) -> Test:
        name = getattr(story, "__name__", "")
        every = (*rows, *(row for more in also.values() for row in more))
        CASES.append(Case(f"{story.__module__}.{name}", what, every, told))

        async def main(house: str, way: Way, folder: Path) -> None:
            async with opened(folder, at, house) as t:
                await story(t, way)
                await t.robot.play(lambda s: s.state.step in OVER and not s.state.seats)
            holds(t.room, what, (*rows, *also.get(way, ())), way)

        def test(house: str, way: Way, tmp_path: Path) -> None:
            run(main(house, way, tmp_path))

        test.__name__, test.__doc__ = name, story.__doc__
        values = [(house, way) for house in HOUSES for way in told[house]]
        ids = [f"{house}-{way.value}" for house, way in values]
        parametrized: Test = pytest.mark.parametrize(("house", "way"), values, ids=ids)(test)
        return parametrized

    return test_of


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
