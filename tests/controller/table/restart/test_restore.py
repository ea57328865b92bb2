"""Where the table goes on after a start: the same step, the same card face down; or people say."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import DiskFull, OtherTable
from controller.audit.format.hole_cards import opened_card
from controller.audit.format.records import Record, RecordActor, RecordEntry
from controller.audit.log import RecordOpening
from controller.audit.replay import decode_decision
from controller.procedure.engine import Procedure
from controller.procedure.model import events as e
from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Step
from controller.table.loop import ANOTHER_CARD
from controller.table.loop.acts import TooManyWrongCards, WrongCard
from controller.table.memory import NotInVault
from controller.table.memory.display import PAYMENTS
from controller.table.restart import RestoredTable
from controller.table.restart.restore import restore
from drivers.devices import LinkState
from firmware_protocol.device import Draw, Firmware, RingMemory
from hil.table.robots.robot import card_of, mechanism
from tests.support.asynchronous import in_turn, raised, simulated, simulated_in
from tests.support.drivers.simulated import until
from tests.support.table.simulated.serving import (
    DEALER,
    FLOOR,
    KEYS,
    SHOE,
    SURVEILLANCE,
    TABLE,
    Ended,
    Room,
    Served,
    dealt,
    kept,
    right,
    room,
    served,
    serving,
)

CARDS = ("2c", "6c", "8d", "Ah", "5d", "Th", "7s", "Tc", "3c", "9s", "Td")
SEVEN = 45
"""The hole card: the seven of spades."""
NOTE = RecordEntry("note", RecordActor("device", "controller"), {"text": "x" * 900})


def found(made: Room) -> RestoredTable:
    """What a start would begin with."""
    opening = RecordOpening.at(made.record, table=TABLE)
    try:
        devices = [(one.device, one.serial) for one in made.parts().devices]
        return restore(opening, Procedure(made.game), devices)
    finally:
        opening.close()


def hole(made: Room) -> Record:
    """The record that the hole card stands in, sealed."""
    return [
        record
        for record in made.records("decision")
        if isinstance(decode_decision(record).event, e.HoleDealt)
    ][-1]


# --- the same step ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step", [Step.DEALING, Step.INSURANCE, Step.CHECK, Step.TURN, Step.REVEAL, Step.PAYING]
)
@simulated_in(kept, "classic")
async def test_a_round_goes_on_at_its_step(made: Room, step: Step) -> None:
    async with served(made, None, *CARDS) as one:
        await one.to_step(step)
        before = one.state
    recovered = found(made)
    assert recovered.now.state == before
    assert recovered.restarted is not None
    assert {hidden.commitment for hidden in recovered.hidden} == {before.hole} - {""}
    async with served(made) as two:
        assert two.table.shown.stopped  # nobody does anything before that is told
        await until(lambda: two.at(Step.FELT), 20)
        prompt = two.table.shown.prompt
        assert prompt is not None
        assert prompt.tell is Tell.CONFIRM_FELT
        await two.robot.act("FeltConfirmed")
        assert two.state == before
        await two.to_end()


@simulated_in(kept, "classic")
async def test_a_closed_table_begins_as_any_other_day(made: Room) -> None:
    async with served(made):
        pass
    assert found(made).restarted is None
    async with served(made) as two:
        assert not two.table.shown.stopped
        await two.to_step(Step.WAGERING)


@simulated_in(kept, "classic")
async def test_the_felt_is_not_compared_twice(made: Room) -> None:
    async with served(made) as one:
        await one.to_step(Step.TURN)
    for _ in range(3):
        async with served(made) as again:
            await again.comes_to(Step.FELT, 20)
            assert len(again.state.holds) == 1
    async with served(made) as last:
        await in_turn(
            last.robot.act("FeltConfirmed"),
            last.stands(Step.TURN),
            last.to_end(),
        )


@simulated_in(kept, "classic")
async def test_what_happened_before_the_start_is_heard_at_its_step(made: Room) -> None:
    """A card was on its way when the controller died."""
    async with served(made, None, *CARDS) as one:
        await one.to(lambda s: s.step is Step.DEALING and s.dealt == 2)
        await until(lambda: mechanism(made.shoe)["lock"] == "open")
        made.cut_cables()
        made.shoe.request(Draw())
        await asyncio.sleep(0.2)
        assert one.state.dealt == 2
    async with served(made) as two:
        await until(lambda: two.at(Step.FELT), 20)
        assert (two.state.dealt, two.state.spare) == (3, None)
        await two.to_end()


@simulated_in(room, "classic")
async def test_a_shoe_that_does_not_come_back_is_not_waited_for_for_ever(made: Room) -> None:
    async with served(made) as one:
        await one.to_step(Step.TURN)
    made.shoe.stand.plugged = False
    table = made.serve()
    async with table:
        await until(lambda: table.shown.state.step is Step.FELT, 10)
        await until(lambda: table.shown.state.step is Step.DEVICE, 30)
        made.shoe.stand.plugged = True
        await until(lambda: table.shown.state.lost == (), 10)


@simulated_in(kept, "classic")
async def test_a_start_without_room_waits_for_it(made: Room) -> None:
    async with served(made) as one:
        await one.to_step(Step.TURN)
    made.refusing = DiskFull("here", "no room", "free some")
    table = made.serve()
    async with table:
        await asyncio.sleep(20)
        assert table.shown.state.step is Step.TURN
        assert table.shown.stopped
        assert mechanism(made.shoe)["lock"] == "locked"
        made.book.refusing = None
        await until(lambda: table.shown.state.step is Step.FELT, 20)


@simulated_in(room, "classic")
async def test_it_is_the_record_of_the_same_table(made: Room) -> None:
    async with served(made):
        pass
    made.keys = KEYS._replace(table=Ed25519PrivateKey.generate())
    with pytest.raises(OtherTable, match="another table's key"):
        async with made.serve():
            raise AssertionError("it began")
    made.keys = KEYS
    async with served(made):  # and it was let go of
        pass


# --- the card that lies face down -------------------------------------------------------------


@simulated_in(kept, "classic")
async def test_the_hole_card_is_found_segments_back(made: Room) -> None:
    made.segment = 32 * 1024
    async with served(made, None, *CARDS) as one:
        await one.to_step(Step.TURN)
        for _ in range(60):
            await one.table.record(NOTE)
    dealt, last = hole(made), made.records()[-1]
    opening = RecordOpening.at(made.record, table=TABLE)
    assert dealt.seq < opening.records[0].seq < last.seq
    opening.close()
    assert [(one.cursor, one.seq) for one in found(made).hidden] == [(dealt.cursor, dealt.seq)]
    async with served(made) as two:
        await two.to_step(Step.REVEAL)
        await two.robot.act("RevealHole")
        assert two.state.dealer[1] == SEVEN
        await two.to_end()


@simulated_in(kept, "classic")
async def test_a_shoe_that_has_lost_it_holds_the_table(made: Room) -> None:
    """Another memory is in the shoe: two people adopt it, nobody guesses the card, and what is
    sealed opens for surveillance."""
    async with served(made, None, *CARDS) as one:
        await one.to_step(Step.TURN)
    made.shoe.request(RingMemory(what="replace"))
    async with served(made) as two:
        await until(lambda: two.at(Step.DEVICE), 30)
        assert "does not know the card" in two.state.holds[-1].detail
        await two.robot.act("CountersAccepted", "two")
        await two.to_step(Step.REVEAL)
        await raised(NotInVault, two.robot.act("RevealHole"), "not known here")
        await two.robot.act("RoundVoided", "two", reason="the card is not known")
        await two.to_end()
    faults = [msgspec.json.decode(record.data) for record in made.records("fault")]
    assert [fault["what"] for fault in faults] == ["hidden card"]
    dealt = hole(made)
    assert f"seq {dealt.seq}" in faults[0]["detail"]
    said = decode_decision(dealt)
    assert isinstance(said.event, e.HoleDealt)
    assert isinstance(said.sealed, str)
    assert dealt.cursor is not None
    card = opened_card(dealt.cursor, TABLE, said.event.commitment, said.sealed, SURVEILLANCE)
    assert card == SEVEN


@simulated_in(room, "classic")
async def test_another_shoe_does_not_have_it(made: Room) -> None:
    async with served(made, None, *CARDS) as one:
        await one.to_step(Step.TURN)
    made.other_shoe("SH-2")
    table = made.serve()
    async with table:
        supervisor = table.supervisor("SH-2")
        await until(lambda: supervisor.held is not None, 20)
        await supervisor.adopt(("Flo", "Bob"))
        await until(lambda: supervisor.state is LinkState.READY, 20)
        await until(lambda: table.shown.state.step is Step.DEVICE, 20)
    data = [msgspec.json.decode(record.data) for record in made.records("fault")]
    assert f"came from the shoe {SHOE}, and this is SH-2" in data[0]["detail"]


@simulated
async def test_a_start_forgets_no_card_that_was_said_wrongly(tmp_path: Path) -> None:
    """Nobody ends the controller to try another two."""

    def says(name: str) -> dict[str, object]:
        return {"type": "ErrorCardExposed", "card": card_of(name)}

    async with room(tmp_path, "classic") as made:
        async with served(made, None, *CARDS) as one:
            await one.to_step(Step.TURN)
            made.shoe.request(Draw(force=True))
            await until(lambda: one.state.spare is not None)
            for name in ("Ks", "Kd"):
                await raised(WrongCard, one.table.act(says(name), DEALER))
        assert {one.wrong for one in found(made).hidden} == {2}
        async with served(made) as two:
            await two.comes_to(Step.FELT, 20)
            await two.to_step(Step.TURN)
            for name in ("Kc", "Tc"):
                await raised(TooManyWrongCards, two.table.act(says(name), DEALER))
            assert two.whats("fault") == [ANOTHER_CARD] * 2 + ["person"] * 2
            assert isinstance((await two.table.act(says("Tc"), FLOOR)).answered[0].answer, Decision)
        right(made)


@simulated_in(kept, "classic")
async def test_a_card_drawn_in_error_is_known_again_too(made: Room) -> None:
    async with served(made, None, *CARDS) as one:
        await one.to_step(Step.TURN)
        made.shoe.request(Draw(force=True))
        await until(lambda: one.state.spare is not None)
        assert len(found_hidden(one)) == 2
    assert len(found(made).hidden) == 2
    async with served(made) as two:
        await two.to_end()
    events = [decode_decision(record).event for record in made.records("decision")]
    laid = [one for one in events if isinstance(one, e.CardDrawn) and one.spare]
    assert [one.card for one in laid] == [9]


def found_hidden(one: Served) -> set[str]:
    state = one.state
    spare = state.spare.commitment if state.spare is not None else ""
    return {state.hole, spare} - {""}


# --- what is remembered beside the state ------------------------------------------------------


@simulated_in(room, "mega")
async def test_what_was_remembered_is_remembered(made: Room) -> None:
    made.segment = 32 * 1024
    async with served(made) as one:
        await one.to(lambda s: s.step is Step.WAGERING and s.round == 2)
        await one.to_step(Step.TURN)
        before = one.table.table.now.memory
    assert len(before.faces) > 10
    recovered = found(made)
    assert recovered.now.memory == before
    assert recovered.now.faults.any_of("shoe")  # until it is found
    assert recovered.now.arms.last > 100


@simulated_in(room, "classic")
async def test_other_firmware_is_noticed(made: Room) -> None:
    async with served(made):
        pass
    known = found(made).known[SHOE]
    assert (len(known.firmware), known.boot) == (32, 1)
    made.shoe.request(Firmware(version="9.9"))
    async with served(made) as two:
        pass
    assert "FirmwareChanged" in two.whats("link")


@simulated_in(serving)
async def test_a_table_runs_once(one: Served) -> None:
    await raised(ValueError, one.table.__aenter__(), "once")


STEP = 30


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    return dealt(tmp_path_factory.mktemp("whole"), "classic")


def same(found: Ended, whole: Ended, kill: int) -> None:
    assert found.state == whole.state, kill
    assert found.settled == whole.settled, kill
    assert found.findings == [], kill
    assert found.kinds.count("opened") == 2


def test_nobody_dies(whole: Ended) -> None:
    assert (len(whole.settled), whole.findings, whole.repeats) == (4, [], [])
    assert whole.kinds.count("opened") == 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("before", [False, True], ids=["after", "before"])
def test_it_dies_at_a_record(before: bool, whole: Ended, tmp_path: Path) -> None:
    repeats: list[Prompt] = []
    for kill in sorted({*range(1 if before else 0, whole.groups, STEP), *whole.paid}):
        found = dealt(tmp_path / str(kill), "classic", kill, before=before)
        same(found, whole, kill)
        repeats += found.repeats
    # Payments that were shown already say so, and nothing else does.
    assert len(repeats) >= len(whole.paid) // 2
    assert {prompt.tell for prompt in repeats} <= PAYMENTS
