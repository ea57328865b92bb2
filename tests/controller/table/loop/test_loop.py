"""The table's loop: recorded first, then true, then shown and answered; one thing at a time.
The store of the devices' records has the same append."""

import asyncio
import errno
from collections.abc import Callable

import pytest

from controller.audit.errors import DiskFull, LogFailed
from controller.procedure.model import events
from controller.procedure.model import events as e
from controller.procedure.model.effects import ShoeLock
from controller.procedure.model.state import Step
from controller.table.intake import CONTROLLER, TableInput, TableSnapshot
from controller.table.loop import (
    DeviceRecordStore,
    InputRejected,
    QueueFull,
    StoredPosition,
    TableClosing,
    TableStopped,
)
from controller.table.loop.loop import MAX_WAITING, SLOW_AFTER, PositionUnknown
from controller.table.memory import DeviceFault
from drivers.devices import Origin
from drivers.devices.shoe import CoverMoved
from drivers.session import AdoptedRing
from firmware_protocol.host import NO_CURSOR, RecordCursor, RingHeld
from firmware_protocol.messages import Cover, Verdict
from firmware_protocol.tablelink import NO_CHAIN, EventRecord, chained
from tests.support.asynchronous import raised, simulated
from tests.support.drivers.simulated import now_us, stopped, until
from tests.support.table.simulated.serving import DEALER, FLOOR, SECOND
from tests.support.table.typed.listening import (
    LIVE,
    NOTE,
    OPENS,
    Rig,
    at,
    card,
    on_rig,
    opens,
    press,
    rig,
    source,
    states,
)

ROOMLESS = DiskFull("here", "no room", "free some")
FAILED = LogFailed("here", OSError(errno.EIO, "broken"))


def raises(problem: Exception) -> Callable[[TableSnapshot], TableInput]:
    def make(now: TableSnapshot) -> TableInput:
        raise problem

    return make


# --- the way of what happens ------------------------------------------------------------------


@on_rig()
async def test_it_is_durable_before_it_is_true_and_true_before_it_is_shown(made: Rig) -> None:
    act = asyncio.create_task(made.table.act(opens))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (made.log, made.step()) == ([("append", 1)], Step.CLOSED)
    done = await act
    assert made.log[1:] == [
        ("durable", 101),
        ("shown", Step.SHUFFLE_NEEDED, False),
        ("told", 1),
    ]
    assert (made.table.seq, done.appended[0].seq) == (101, 101)
    assert made.table.shown.seq == 101


@on_rig()
async def test_one_thing_after_the_other(made: Rig) -> None:
    """Each is made of what the ones before it have come to."""
    seen: list[Step] = []

    def make(now: TableSnapshot) -> TableInput:
        seen.append(now.state.step)
        return OPENS

    await asyncio.gather(*(made.table.act(make) for _ in range(5)))
    assert seen == [Step.CLOSED, *[Step.SHUFFLE_NEEDED] * 4]
    assert made.kinds == ["decision", *["refusal"] * 4]


@on_rig()
async def test_what_nobody_can_do_is_told_and_nothing_has_happened(made: Rig) -> None:
    for problem in (LookupError("not here"), ValueError("not so")):
        await raised(type(problem), made.table.act(raises(problem)), str(problem))
    assert made.entries == []
    await made.table.act(opens)


@on_rig(Step.TURN)
async def test_what_cannot_be_written_down_is_refused(made: Rig) -> None:
    before = made.table.now
    void = events.RoundVoided(FLOOR, "\ud800", SECOND)
    await raised(
        InputRejected,
        made.table.act(lambda now: TableInput((void,))),
        "cannot be recorded: UnicodeEncodeError",
    )
    assert (made.table.now, made.kinds) == (before, ["fault"])
    assert made.table.stopped is None
    await made.table.record(NOTE)


@on_rig(Step.CARD_ENTRY)
async def test_an_act_that_the_rules_choke_on_changes_nothing(made: Rig) -> None:
    before = made.table.now
    await raised(
        InputRejected,
        made.table.act(lambda now: TableInput((events.CardEntered(DEALER, -1),))),
        "the rules cannot take CardEntered: ValueError",
    )
    assert made.table.now == before
    assert made.entries[0].data == {
        "what": "person",
        "detail": "the rules cannot take CardEntered: ValueError",
    }


@on_rig(Step.CARD_ENTRY)
async def test_what_is_told_of_a_fault_is_measured_and_counted_as_all_else(made: Rig) -> None:
    made.slow = SLOW_AFTER + 2
    wrong = TableInput((events.CardEntered(DEALER, -1),))
    act = asyncio.create_task(made.table.act(lambda now: wrong))
    await asyncio.sleep(SLOW_AFTER + 1)
    assert made.table.append_seconds == pytest.approx(SLOW_AFTER + 1)
    assert "slow" in made.table.shown.stopped
    await raised(InputRejected, act)
    assert (made.table.append_seconds, made.table.seq) == (0, 101)


@on_rig()
async def test_whoever_gives_up_before_the_turn_calls_it_off(made: Rig) -> None:
    first = asyncio.create_task(made.table.record(NOTE))
    act = asyncio.create_task(made.table.act(opens))
    await asyncio.sleep(0)
    act.cancel()
    await first
    await made.table.record(NOTE)
    assert made.step() is Step.CLOSED


@on_rig()
async def test_whoever_gives_up_afterwards_does_not(made: Rig) -> None:
    act = asyncio.create_task(made.table.act(opens))
    await until(lambda: bool(made.log))
    act.cancel()
    await until(lambda: made.step() is Step.SHUFFLE_NEEDED)
    assert made.table.shown.state.step is Step.SHUFFLE_NEEDED


@on_rig()
async def test_so_many_wait_and_no_more(made: Rig) -> None:
    made.slow = 1.0
    first = asyncio.create_task(made.table.record(NOTE))
    await until(lambda: bool(made.log))
    waiting = [asyncio.create_task(made.table.record(NOTE)) for _ in range(MAX_WAITING)]
    await asyncio.sleep(0)
    await raised(QueueFull, made.table.act(opens))
    made.table.later(NOTE)  # dropped, and nobody waits
    # A device is never turned away for people's sake.
    told = asyncio.ensure_future(made.table.device_event(card(3), source()))
    made.slow = 0.001
    await asyncio.gather(first, *waiting, told)
    assert made.kinds.count("note") == MAX_WAITING + 1


@simulated
async def test_a_closing_table_does_what_waits_and_takes_nothing_more() -> None:
    made = Rig(at(Step.CLOSED))
    task = asyncio.create_task(made.table.run())
    act = asyncio.create_task(made.table.act(opens))
    await asyncio.sleep(0)
    await made.table.close()
    await raised(TableClosing, made.table.record(NOTE))
    await act
    await task
    assert made.kinds == ["decision"]


@simulated
async def test_who_waits_when_it_is_cancelled_is_told() -> None:
    made = Rig(at(Step.CLOSED))
    made.slow = 60.0
    task = asyncio.create_task(made.table.run())
    settled: list[bool] = []
    acts = [asyncio.create_task(made.table.act(opens)) for _ in range(2)]
    await asyncio.sleep(0)
    told = asyncio.ensure_future(made.table.device_event(card(3), source(), settled.append))
    await until(lambda: bool(made.log))
    await stopped(task)
    for act in (*acts, told):
        await raised(TableClosing, act)
    assert settled == [False]  # it stands in no record: it waited behind the others


# --- nothing can be recorded ------------------------------------------------------------------


@on_rig(Step.TURN)
async def test_a_record_that_says_no(made: Rig) -> None:
    """No answer, no effect, all safe; and on it goes when there is room."""
    before = made.table.now
    made.problem = ROOMLESS
    settled: list[bool] = []
    await raised(
        TableStopped, made.table.device_event(card(3), source(), settled.append), "no room"
    )
    assert settled == [False]
    assert (made.table.now, made.log) == (before, [("append", 2), ("shown", Step.TURN, True)])
    assert made.table.can_resume
    await raised(TableStopped, made.table.act(opens))
    await raised(TableStopped, made.table.record(NOTE))
    made.table.later(NOTE)
    assert made.log[2:] == []  # nobody tries again and again
    assert not await made.table.try_again("again")
    made.problem = None
    assert await made.table.try_again("again")
    assert (made.table.stopped, made.kinds) == (None, ["note"])
    assert ("shown", Step.TURN, False) in made.log
    assert made.table.working.is_set()


@on_rig()
async def test_a_record_that_has_failed_takes_nothing_more(made: Rig) -> None:
    made.problem = FAILED
    await raised(TableStopped, made.table.act(opens), "nothing is recorded any more")
    assert not made.table.can_resume
    assert made.table.shown.stopped == str(FAILED)


@on_rig()
async def test_a_record_that_fails_between_two_things(made: Rig) -> None:
    made.table.fail(FAILED)
    assert made.log == [("shown", Step.CLOSED, True)]
    await raised(TableStopped, made.table.act(opens))


@simulated
async def test_devices_that_are_lost_meanwhile_are_told_when_all_goes_on() -> None:
    lost = (DeviceFault("shoe", "SH-1", "link", "", "gone"),)
    async with rig(Step.TURN) as made:
        made.problem = ROOMLESS
        await raised(TableStopped, made.table.record(NOTE))
        await made.table.change_faults(lost)
        assert made.table.state.lost == ()
        made.problem = None
        await made.table.try_again("again")
        await until(lambda: made.table.state.lost == ("shoe",))
        assert made.step() is Step.DEVICE
        await made.table.change_faults((), lost)
        assert made.step() is Step.FELT


@on_rig(Step.TURN)
async def test_what_a_device_told_and_cannot_be_taken_stops_the_table(made: Rig) -> None:
    """A button that does not exist: the table's real state is unknown."""
    unknown = press(1, 99, 1)  # type: ignore[arg-type]
    await raised(KeyError, made.table.device_event(unknown, source("station")))
    assert made.table.stopped is not None
    assert not made.table.can_resume
    assert made.kinds == ["fault"]


# --- a start ----------------------------------------------------------------------------------


@on_rig(Step.TURN, waits="started")
async def test_nobody_does_anything_before_the_first_word(made: Rig) -> None:
    assert made.table.shown.stopped == "started"
    await raised(TableStopped, made.table.act(opens), "started")
    await made.table.record(NOTE)
    # What had happened before is heard, at the step at which it happened.
    await made.table.device_event(card(3), source())
    assert made.table.shown.stopped == "started"
    await made.table.first(TableInput((e.ControllerRestarted(CONTROLLER),)))
    assert (made.table.shown.stopped, made.step()) == ("", Step.FELT)
    done = await made.table.act(lambda now: TableInput((e.FeltConfirmed(DEALER),)))
    assert made.step() is not Step.FELT
    assert done.entries[0].kind == "decision"


@on_rig(Step.PAYING, waits="started", repeated=True)
async def test_a_payment_that_is_shown_again_says_so(made: Rig) -> None:
    assert made.again()
    await made.table.first(TableInput((e.ControllerRestarted(CONTROLLER),)))
    assert not made.again()
    await made.table.act(lambda now: TableInput((e.FeltConfirmed(DEALER),)))
    assert made.table.shown.state.step is Step.PAYING
    assert made.again()
    due = made.table.state.due[0]
    events = (e.PaymentApproved(FLOOR),) if due.floor else ()
    await made.table.act(lambda now: TableInput((*events, e.Paid(DEALER, due.moves))))
    assert not made.again()


def test_the_shoe_is_open_only_where_a_card_may_come() -> None:
    for s in states():
        locks = [one.locked for one in LIVE.shows(s) if isinstance(one, ShoeLock)]
        takes_cards = s.step in (
            Step.BURNING,
            Step.RELIEF_BURN,
            Step.DEALING,
            Step.HAND_CARD,
            Step.DEALER_CARD,
            Step.DEALER_LATE,
            Step.WAGERING,
        )
        assert locks, s.step
        assert takes_cards or all(locks), s.step


SERIAL = "SH-1"


def store(made: Rig, stood: StoredPosition | None = None) -> DeviceRecordStore:
    return DeviceRecordStore(made.table, "shoe", SERIAL, stood or StoredPosition())


async def keep(one: DeviceRecordStore, records: list[EventRecord]) -> None:
    for record in records:
        origin = Origin(SERIAL, record.epoch, record.seq, record.boot, record.t_us, now_us())
        await one.store(record, CoverMoved(origin, record.event.open))  # type: ignore[attr-defined]


def ring(
    count: int, *, epoch: int = 5, first: int = 1, chain: bytes = NO_CHAIN
) -> list[EventRecord]:
    """Records of a ring: the cover, opened and closed."""
    made = []
    for seq in range(first, first + count):
        event = Cover(open=bool(seq % 2))
        record = chained(chain, epoch=epoch, seq=seq, boot=1, t_us=seq, event=event)
        chain = record.chain
        made.append(record)
    return made


def adoption(*, skip: bool = False) -> AdoptedRing:
    return AdoptedRing(RingHeld(Verdict.NEW_EPOCH, 5, 4, 9, b"headhead"), ("Flo", "Bob"), skip)


@on_rig()
async def test_each_record_has_its_cursor(made: Rig) -> None:
    one, records = store(made), ring(3)
    assert (one.cursor(), dict(one.recent())) == (NO_CURSOR, {})
    await keep(one, records)
    cursors = [entry.cursor for entry in made.entries]
    assert [at and (at.device, at.epoch, at.seq, at.chain, at.t_us) for at in cursors] == [
        (SERIAL, 5, record.seq, record.chain.hex(), record.seq) for record in records
    ]
    assert one.cursor() == RecordCursor(5, 3, records[-1].chain)
    assert (dict(one.recent()), one.seq) == ({record.seq: record.chain for record in records}, 3)


@pytest.mark.parametrize(
    "wrong",
    [ring(1, first=3)[0], ring(1, first=1)[0], ring(1, epoch=6, first=2)[0]],
    ids=["a gap", "again", "another ring"],
)
@on_rig()
async def test_what_does_not_go_on_is_not_taken(made: Rig, wrong: EventRecord) -> None:
    """The link has seen to that already; a record that is taken twice would be played twice."""
    one = store(made)
    await keep(one, ring(1))
    await raised(ValueError, keep(one, [wrong]), "does not follow")
    assert len(made.entries) == 1
    assert one.seq == 1


@on_rig()
async def test_it_goes_on_from_where_the_record_stood(made: Rig) -> None:
    before = ring(4)
    recent = {record.seq: record.chain for record in before}
    one = store(made, StoredPosition(RecordCursor(5, 4, before[-1].chain), recent))
    await keep(one, ring(2, first=5, chain=before[-1].chain))
    assert (one.seq, len(one.recent())) == (6, 6)


@on_rig()
async def test_nobody_says_how_far_it_goes_while_something_is_on_its_way(made: Rig) -> None:
    made.slow = 1.0
    one = store(made)
    keeping = asyncio.create_task(keep(one, ring(1)))
    await until(lambda: bool(made.log))
    with pytest.raises(PositionUnknown):
        one.cursor()
    # Whoever kept gives up; it comes to the disk all the same, and is not taken again.
    await stopped(keeping)
    with pytest.raises(PositionUnknown):
        one.recent()
    await until(lambda: bool(made.entries))
    assert one.cursor().seq == 1


@on_rig(Step.TURN)
async def test_what_the_record_refuses_is_not_kept(made: Rig) -> None:
    one = store(made)
    made.problem = DiskFull("here", "no room", "free some")
    await raised(TableStopped, keep(one, ring(3)))
    assert one.cursor() == NO_CURSOR
    made.problem = None
    await made.table.try_again("again")
    await keep(one, ring(3))
    assert one.seq == 3


@on_rig()
async def test_a_cursor_goes_back_only_with_an_adoption(made: Rig) -> None:
    one = store(made, StoredPosition(RecordCursor(5, 9, b"lasthead"), {9: b"lasthead"}))
    await raised(ValueError, keep(one, ring(1, first=4)), "does not follow")
    await one.adopt(adoption())
    entry = made.entries[-1]
    assert (entry.kind, entry.sign, entry.cursor) == ("link", True, None)
    assert (entry.data["what"], entry.data["next"]) == ("adopted", 4)
    assert entry.data["two"] == ["Flo", "Bob"]
    assert one.cursor().seq == 9  # until it has come
    await keep(one, ring(2, first=4))
    assert one.seq == 5
    await raised(ValueError, keep(one, ring(1, first=4)), "does not follow")


@on_rig()
async def test_an_adoption_that_lets_the_rest_go_has_its_cursor(made: Rig) -> None:
    one = store(made)
    await one.adopt(adoption(skip=True))
    cursor = made.entries[-1].cursor
    assert cursor is not None
    assert (cursor.epoch, cursor.seq, cursor.chain) == (5, 9, b"headhead".hex())
    assert one.cursor() == RecordCursor(5, 9, b"headhead")
    await keep(one, ring(1, first=10, chain=b"headhead"))
    assert one.seq == 10


@on_rig()
async def test_an_adoption_that_is_not_recorded_is_none(made: Rig) -> None:
    one = store(made)
    made.problem = DiskFull("here", "no room", "free some")
    await raised(TableStopped, one.adopt(adoption(skip=True)))
    assert one.cursor() == NO_CURSOR


@simulated
async def test_a_table_that_closes_keeps_nothing_more() -> None:
    made = Rig(at(Step.CLOSED))
    task = asyncio.create_task(made.table.run())
    one = store(made)
    await made.table.close()
    await task
    await raised(TableStopped, keep(one, ring(1)))
    assert one.cursor() == NO_CURSOR
