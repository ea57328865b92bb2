"""The shoe lets a card out where one is due, and at no other step whatever happens."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

import pytest

from controller.procedure.model.state import WAITING, Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from firmware_protocol.device import CannotDo, Draw, SetJam, ShufflePace
from hil.table.robots.robot import mechanism
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.serving import run
from tests.support.table.simulated.simulated_table import FLOOR, SECOND, room
from tests.support.table.simulated.telling import DEAL, Setting, Told, opened, telling

CARD_DUE: Final = (
    Step.BURNING,
    Step.RELIEF_BURN,
    Step.DEALING,
    Step.HAND_CARD,
    Step.DEALER_LATE,
    Step.DEALER_CARD,
)
RESTING: Final = 0.1
"""Seconds after which all that was wanted of the shoe is done."""


class Watch:
    """Looks at the shoe wherever a table stands."""

    def __init__(self, t: Told) -> None:
        self.t = t
        self.seen: set[Step] = set()

    async def look(self) -> None:
        t, s = self.t, self.t.state
        await asyncio.sleep(RESTING)
        if t.state != s:
            return  # it has gone on by itself
        due = s.step in CARD_DUE or (s.step is Step.WAGERING and bool(s.seats))
        beside = s.spare is not None
        assert t.locked == (not due or beside), t.words
        if t.locked and mechanism(t.room.shoe)["left"] and not s.lost:
            out = mechanism(t.room.shoe)["position"]
            with pytest.raises(CannotDo, match="locked"):
                t.room.shoe.request(Draw())
            assert mechanism(t.room.shoe)["position"] == out
        self.seen.add(s.step)

    async def to(self, *steps: Step) -> None:
        """Looks at each step on the way."""
        for _ in range(200):
            await self.look()
            if self.t.state.step in steps:
                return
            await self.t.robot.step()
        raise AssertionError(f"never came to {steps}")

    async def round(self) -> None:
        await self.to(Step.DEALING)
        await self.to(Step.WAGERING)


# A pair of eights for seat 1 against an ace; seat 2 has 11.
WHOLE: Final = ("8c", "6c", "As", "8h", "5d", "7h", "3d", "Td", "2c", "9d", "2d", "Tc", "4h")


async def a_round(t: Told, watch: Watch) -> None:
    """Insurance, a check, a split, a double, draws; with the shuffler at work before it."""
    assert t.room.shuffler is not None
    t.room.shuffler.request(ShufflePace(shuffle_ms=1500))
    await watch.round()


async def held(t: Told, watch: Watch) -> None:
    """The floor, an unread card, a jam, a dealer who is relieved."""
    await watch.to(Step.TURN)
    await t.does("FloorCalled")
    await watch.look()
    await t.ruled(Odd.FLOOR_CALLED, Way.RESUME)
    await watch.to(Step.HAND_CARD)
    await t.draws(read="unreadable")
    await watch.look()
    await t.does("CardEntered", card=21)
    await watch.look()
    await t.does("CardConfirmed", FLOOR)
    await watch.look()
    t.room.shoe.request(SetJam(code="stuck"))
    await until(lambda: t.at(Step.DEVICE))
    await watch.look()
    t.room.shoe.request(SetJam(code=None))
    await until(lambda: t.at(Step.FELT))
    await watch.to(Step.WAGERING)
    await t.does("DealerRelieved", SECOND)
    await watch.round()


async def beside(t: Told, watch: Watch) -> None:
    """A card that slipped out is the next one: none comes before it lies on its place."""
    await watch.to(Step.TURN)
    await t.forces()
    await watch.look()
    await watch.to(Step.HAND_CARD)
    assert t.locked
    await watch.to(Step.WAGERING)


async def late(t: Told, watch: Watch) -> None:
    """The dealer's second card comes last."""
    await t.to_deal(5)
    await t.does("DealerCardMissed", which=2)
    await watch.to(Step.WAGERING)


NATURAL: Final = ("Ac", "9c", "8s", "Kh", "9h", "Td")


async def naturals(t: Told, watch: Watch) -> None:
    """A blackjack that may decline its pay."""
    await watch.to(Step.NATURALS)
    await watch.to(Step.WAGERING)


WALKS: Final = (
    (a_round, Setting(cards=WHOLE, plan={1: "insure split hit", 2: "double"})),
    (held, Setting()),
    (beside, Setting(cards=(*DEAL, "9d", "9h"))),
    (late, Setting(cards=("9c", "8c", "8s", "2h", "Kc", "9d", "Td"))),
    (
        naturals,
        Setting(cards=("Ac", "9c", "8s", "Kh", "9h", "Td"), options={"double.natural": True}),
    ),
)


def test_no_card_comes_where_none_is_due(tmp_path: Path) -> None:
    """At every step at which a table waits."""
    seen: set[Step] = set()

    async def walk(at: int) -> None:
        story, setting = WALKS[at]
        async with opened(tmp_path / str(at), setting) as t:
            watch = Watch(t)
            await watch.look()
            await story(t, watch)
            seen.update(watch.seen)

    for number in range(len(WALKS)):
        run(walk(number))
    assert set(WAITING) - seen == {Step.REFILL}  # see test_the_shoe_runs_out_in_a_round


@simulated
async def test_a_shoe_is_locked_before_the_table_is_served_and_after(tmp_path: Path) -> None:
    """Between two starts of the controller nobody lets a card out."""

    at = Setting()
    async with room(tmp_path, game_with("classic", {}), stations=False) as made:
        assert mechanism(made.shoe)["lock"] == "locked"
        async with telling(made, at.cards, at.wagers, at.plan) as t:
            await t.to_step(Step.DEALING)
            await until(lambda: not t.locked)
        assert mechanism(made.shoe)["lock"] == "locked"
