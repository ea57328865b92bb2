"""A controller that restarts in a round: over the wire and in each house."""

from __future__ import annotations

from pathlib import Path

import pytest

from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity as Odd
from controller.rules.irregularities import Way
from firmware_protocol.device import Draw
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import until
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.irregular import WON, holds
from tests.support.table.simulated.serving import right
from tests.support.table.simulated.simulated_table import FLOOR, room
from tests.support.table.simulated.telling import BOTH, CARDS, HOUSES, telling


@pytest.mark.parametrize("step", [Step.WAGERING, Step.TURN, Step.PAYING], ids=lambda s: s.value)
@pytest.mark.parametrize("house", HOUSES)
@simulated
async def test_a_controller_that_restarts(house: str, step: Step, tmp_path: Path) -> None:
    """A card that came while it was down is processed at the step at which it came."""

    async with room(tmp_path, game_with("classic", {}, house), stations=False) as made:
        async with telling(made, CARDS, BOTH, {1: "hit"}) as t:
            await t.to(lambda s: s.step is step and len(s.seats) == 2)
            stood, words = t.state, t.words
        if step is Step.TURN:
            made.shoe.request(Draw(force=True))
        async with telling(made, CARDS, BOTH, {1: "hit"}) as t:
            t.robot.pending_wagers = []
            await until(lambda: t.at(Step.FELT), 20)
            t.shows(
                "Compare the felt with the screen, confirm when they agree - controller restarted"
            )
            await until(lambda: t.locked)
            assert await t.refuses("FeltConfirmed", FLOOR) == "not_theirs"
            await t.does("FeltConfirmed")
            if step is Step.TURN:
                await t.ruled(Odd.ERROR_CARD, Way.USE_NEXT)
                assert t.state.spare is not None
            else:
                assert t.state == stood
                t.shows(words)
            await t.to_end()
            assert t.nets() == WON
            assert t.shown.again is False
        right(made)
        holds(made, Odd.RESTARTED, ("controller_restarted", "confirm_felt"), Way.FELT_CHECK)
