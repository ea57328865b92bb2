"""A dealer takes another one's place: what signing in tells the procedure, in one write."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from controller.audit.errors import RetryLater
from controller.audit.format.records import RecordActor
from controller.people import SignInData, SignOutData, entry_for
from controller.procedure.model.events import DealerRelieved
from controller.procedure.model.state import State, Step
from controller.table.intake import TableSnapshot
from controller.table.loop import TableStopped
from controller.table.running.table import is_relief, relief_input
from tests.support.asynchronous import simulated
from tests.support.table.simulated.serving import serving
from tests.support.table.simulated.simulated_table import room


def signed(name: str, relieved: str = "") -> SignInData:
    return SignInData("dealer", name, "D-1", "l", "dealer", 0, relieved)


@pytest.mark.parametrize(
    ("name", "relieved", "dealt", "does"),
    [
        ("Ann Lee", "", "", False),
        ("Ann Lee", "", "Ann Lee", False),
        ("Ann Lee", "", "ANN  lee", False),
        ("Ann Lee", "", "Bo Chan", True),
        ("Ann Lee", "Bo Chan", "", True),
        ("Ann Lee", "Bo Chan", "Bo Chan", True),
    ],
)
def test_whose_place_it_is(name: str, relieved: str, dealt: str, does: bool) -> None:
    assert is_relief(signed(name, relieved), dealt) is does


@pytest.mark.parametrize("step", list(Step))
def test_an_open_table_is_told_and_a_closed_one_is_not(step: Step) -> None:
    entry = entry_for(signed("Ann Lee", "Bo Chan"))
    heard = relief_input(entry)(TableSnapshot(State(step=step, round=4)))
    assert [type(one) for one in heard.events] == ([] if step is Step.CLOSED else [DealerRelieved])
    (note,) = heard.notes
    assert (note.data, note.by, note.round) == (entry.data, RecordActor("dealer", "Ann Lee"), 4)


@simulated
async def test_both_stand_in_one_write(tmp_path: Path) -> None:
    async with serving(tmp_path) as at:
        await at.to_step(Step.WAGERING)
        table = at.table
        await table.record(entry_for(signed("Ann Lee")))
        assert not any(isinstance(one, DealerRelieved) for one in at.events())
        groups = at.room.book.appended
        await table.record(entry_for(signed("Bo Chan")))
        assert at.room.book.appended == groups + 1
        last = at.events()[-1]
        assert isinstance(last, DealerRelieved)
        assert (last.actor.role, last.actor.name) == ("dealer", "Bo Chan")
        person = at.room.records("person")[-1]
        assert (person.seq, person.round) == (table.table.seq, at.state.round)


@simulated
async def test_whoever_comes_back_relieves_nobody(tmp_path: Path) -> None:
    async with serving(tmp_path) as at:
        await at.to_step(Step.WAGERING)
        left = SignOutData("dealer", "Ann Lee", "D-1", "dealer", "asked")
        for entry in (signed("Ann Lee"), left, signed("Ann Lee")):
            await at.table.record(entry_for(entry))
        assert not any(isinstance(one, DealerRelieved) for one in at.events())


@simulated
async def test_where_it_cannot_be_recorded_nobody_has_signed_in(tmp_path: Path) -> None:
    """The next one to come relieves whoever dealt before."""
    async with serving(tmp_path) as at:
        await at.to_step(Step.WAGERING)
        await at.table.record(entry_for(signed("Ann Lee")))
        at.room.book.refusing = RetryLater("record", "no room", "make room")
        with pytest.raises(TableStopped):
            await at.table.record(entry_for(signed("Bo Chan")))
        at.room.book.refusing = None
        async with asyncio.timeout(30):
            await at.table.table.working.wait()
        await at.table.record(entry_for(signed("Ann Lee")))
        assert not any(isinstance(one, DealerRelieved) for one in at.events())


@simulated
async def test_a_table_that_was_closed_has_no_dealer_to_relieve(tmp_path: Path) -> None:
    async with room(tmp_path) as made:
        table = made.serve()
        async with table:
            await table.record(entry_for(signed("Ann Lee")))
            await table.record(entry_for(signed("Bo Chan", "Ann Lee")))
        kinds = [record.kind for record in made.records()]
        assert (kinds.count("person"), kinds.count("refusal")) == (2, 0)
