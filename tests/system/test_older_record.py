"""The daemon is stopped, its record replaced by a copy from two rounds before, and started."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.verify import verify
from controller.procedure.model.events import ErrorCardDrawn
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity
from controller.table.memory import TableDisplay
from hil.table.demo.demo import TABLES
from hil.table.robots import Api, Robot, open_console
from hil.table.setup import FEW, Stage, example, staged
from tests.support.asynchronous import asynchronous
from tests.support.system.killed import decisions
from tests.support.table.simulated.serving import Policy

POLL = 0.05
OLDER = "this record ends before events that the shoe was told are stored, up to "


async def played(stage: Stage, rounds: int) -> None:
    """Play on until so many rounds of the record are over. Devices whose log is held are adopted by
    two people with their badges."""

    def over(shown: TableDisplay) -> bool:
        s = shown.state
        return s.round >= rounds and s.step is Step.WAGERING and not s.seats

    async with Api(stage.control) as api:
        while (await api.health()).stopped:  # until the devices have caught up after a start
            await asyncio.sleep(POLL)
    async with open_console(stage.control) as screen:
        await Robot(stage, screen, Policy()).play(over)


async def served(stage: Stage, rounds: int) -> None:
    await stage.daemon.start()
    await played(stage, rounds)
    assert await stage.daemon.stop() == 0


@pytest.mark.timeout(300)
@asynchronous
async def test_an_older_copy_of_the_record_is_held_until_two_people_go_on(tmp_path: Path) -> None:
    async with staged(tmp_path, FEW) as stage:
        stage.write(example(TABLES["classic"]))
        record, copy = stage.house.record, tmp_path / "older"
        await served(stage, 1)
        shutil.copytree(record, copy)
        await served(stage, 3)
        shutil.rmtree(record)
        shutil.copytree(copy, record)

        await stage.daemon.start()
        async with Api(stage.control) as api:
            health = await api.health()
            while not any(link.held for link in health.links if link.device == "shoe"):
                await asyncio.sleep(POLL)
                health = await api.health()
            (shoe,) = [link for link in health.links if link.device == "shoe"]
            assert (health.ready, shoe.held) == (False, "behind")
            assert shoe.why.startswith(OLDER)
            assert shoe.why.endswith(": an older copy?: two people decide")
            screen = await api.open("dealer")
            view = await screen.table()
            while not any(hold.what is Irregularity.DEVICE_LOST for hold in view.state.holds):
                await asyncio.sleep(POLL)
                view = await screen.table()
            assert any(hold.detail.startswith(OLDER) for hold in view.state.holds)
        await played(stage, 3)
        assert await stage.daemon.stop() == 0
        assert not any(isinstance(one.event, ErrorCardDrawn) for one in decisions(record))
        assert verify(record).findings == ()
        assert verify_record.main([str(record)]) in (0, 3)
