"""The log writer: queue, group commit, timeouts, errors, shutdown, validation of `data`."""

import asyncio
import errno
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path

import msgspec
import pytest

from controller.audit.errors import AppendTimeout, DiskFull, LogFailed, WriterBusy
from controller.audit.files import Disk
from controller.audit.format.records import Kind, RecordActor, RecordEntry
from controller.audit.format.validation import BadData
from controller.audit.log import Log, LogWriter, Together, writer
from controller.audit.log.log import EncodedEntry, EntryTooLarge
from controller.audit.read.reader import read_segment
from drivers.devices import SealedCard
from tests.support.asynchronous import asynchronous
from tests.support.audit.record.table import (
    ANN,
    FakeClock,
    begun,
    kinds_of,
    note,
    seqs,
    submitted,
)


class Gate(Disk):
    """A disk whose syncs block while the gate is shut, or fail."""

    def __init__(self) -> None:
        self.open_again = threading.Event()
        self.open_again.set()
        self.waits = threading.Event()
        self.syncs = 0
        self.fails = False

    def sync(self, fd: int) -> None:
        self.syncs += 1
        if not self.open_again.is_set():
            self.waits.set()
            assert self.open_again.wait(20)
        if self.fails:
            raise OSError(errno.EIO, "the disk is broken")
        super().sync(fd)

    def held(self, book: LogWriter) -> Future[Together]:
        """Shut it, and wait until the sync of a first entry stands before it."""
        self.open_again.clear()
        first = book.submit(note("first"))
        assert self.waits.wait(10)
        return first


@pytest.fixture
def gate() -> Gate:
    return Gate()


@pytest.fixture
def log(place: Path, gate: Gate) -> Log:
    return begun(place, disk=gate, size=256 * 1024)


@pytest.fixture
def book(log: Log, gate: Gate) -> Iterator[LogWriter]:
    book = LogWriter(log)
    yield book
    gate.open_again.set()
    if book.failed is None:
        book.close_now()


def test_a_submitted_entry_is_durable_when_its_future_resolves(
    place: Path, book: LogWriter
) -> None:
    assert seqs(book.submit(note("one"), note("two")).result(10)) == [5, 6]
    assert submitted(place) == [(5, b'{"text":"one"}'), (6, b'{"text":"two"}')]


async def waited_for(book: LogWriter) -> list[int]:
    made = await asyncio.gather(*(book.append(note(f"{at}")) for at in range(30)))
    return [one[0].seq for one in made]


def test_append_waits_in_an_event_loop(place: Path, book: LogWriter) -> None:
    assert asyncio.run(waited_for(book)) == list(range(5, 35))
    assert [data for _, data in submitted(place)] == [b'{"text":"%d"}' % at for at in range(30)]


def test_queued_entries_share_a_sync(place: Path, gate: Gate, book: LogWriter) -> None:
    first = gate.held(book)
    rest = [book.submit(note(f"{at}"), note("and this")) for at in range(50)]
    before = gate.syncs
    gate.open_again.set()
    assert seqs(first.result(10)) == [5]
    assert [seq for one in rest for seq in seqs(one.result(10))] == list(range(6, 106))
    assert gate.syncs - before == 1


def test_an_entry_may_request_a_checkpoint(place: Path, log: Log) -> None:
    book = LogWriter(log)
    book.submit(note("quiet")).result(10)
    book.submit(note("end of round", sign=True)).result(10)
    book.close_now()
    assert kinds_of(place)[4:] == ["note", "note", "checkpoint", "closed", "checkpoint"]


def test_everything_is_signed_within_a_second(place: Path) -> None:
    clock = FakeClock()
    book = LogWriter(begun(place, size=256 * 1024, clock=clock))
    book.submit(note("last for now")).result(10)
    deadline = time.monotonic() + 20
    while kinds_of(place)[-1] != "checkpoint":
        assert time.monotonic() < deadline
        clock.go(1.0)
        book.submit(note("more")).result(10)
    book.close_now()


def test_bad_entries_fail_only_their_submitter(place: Path, book: LogWriter) -> None:
    with pytest.raises(TypeError):
        book.submit(RecordEntry("note", ANN, SealedCard(17)))
    with pytest.raises(ValueError, match="a closed is written by the record itself"):
        book.submit(RecordEntry("closed", ANN, {}))
    with pytest.raises(ValueError, match="nothing to record"):
        book.submit()
    large = book.submit(note("x", 300_000))
    small = book.submit(note("fits"))
    with pytest.raises(EntryTooLarge, match="a note of"):
        large.result(10)
    assert len(small.result(10)) == 1
    assert [data for _, data in submitted(place)] == [b'{"text":"fits"}']


def test_the_queue_is_bounded(gate: Gate, book: LogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_QUEUED", 3)
    first = gate.held(book)
    waiting = [book.submit(note(f"{at}")) for at in range(3)]
    with pytest.raises(WriterBusy, match="3 entries wait"):
        book.submit(note("one too many"))
    gate.open_again.set()
    assert [one.result(10)[0].seq for one in (first, *waiting)] == [5, 6, 7, 8]


def test_the_first_failure_is_reported_once(place: Path, gate: Gate, log: Log) -> None:
    told: list[LogFailed] = []
    book = LogWriter(log, told.append)
    book.submit(note("kept")).result(10)
    gate.fails = True
    with pytest.raises(LogFailed, match="the disk is broken"):
        book.submit(note("lost")).result(10)
    gate.fails = False
    with pytest.raises(LogFailed, match="the disk is broken"):
        book.submit(note("later"))
    with pytest.raises(LogFailed, match="the disk is broken"):
        book.close_now()
    assert len(told) == 1
    assert book.failed is told[0]
    assert submitted(place)[0] == (5, b'{"text":"kept"}')


def test_all_queued_entries_fail_together(gate: Gate, log: Log) -> None:
    book = LogWriter(log)
    waiting = [gate.held(book), *(book.submit(note(f"{at}")) for at in range(20))]
    gate.fails = True
    gate.open_again.set()
    for one in waiting:
        with pytest.raises(LogFailed, match="the disk is broken"):
            one.result(10)
    with pytest.raises(LogFailed):
        book.close_now()


def test_a_full_disk_rejects_an_append_and_recovers(
    place: Path, log: Log, book: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(entries: object) -> None:
        raise DiskFull(place, "there is no room", "make some")

    monkeypatch.setattr(log, "write_ready", full)
    with pytest.raises(DiskFull):
        book.submit(note("not now")).result(10)
    assert book.failed is None
    monkeypatch.undo()
    assert len(book.submit(note("now")).result(10)) == 1


def test_cancelling_the_wait_does_not_cancel_the_append(
    place: Path, gate: Gate, book: LogWriter
) -> None:
    async def impatient() -> None:
        gate.open_again.clear()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await book.append(note("recorded all the same"))
        gate.open_again.set()
        await book.append(note("after it"))

    asyncio.run(impatient())
    assert [data for _, data in submitted(place)] == [
        b'{"text":"recorded all the same"}',
        b'{"text":"after it"}',
    ]


def test_an_append_timeout_fails_all_later_appends(
    place: Path, gate: Gate, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "APPEND_TIMEOUT", 0.2)
    told: list[LogFailed] = []
    book = LogWriter(log, told.append)

    async def patient() -> tuple[BaseException, ...]:
        await book.append(note("in time"))
        gate.open_again.clear()
        first = asyncio.create_task(book.append(note("it came late")))
        await asyncio.to_thread(gate.waits.wait, 10)
        second = asyncio.create_task(book.append(note("behind it"), note("and this")))
        outcomes = await asyncio.gather(first, second, return_exceptions=True)
        with pytest.raises(AppendTimeout):
            await book.append(note("later"))
        return tuple(one for one in outcomes if isinstance(one, BaseException))

    problems = asyncio.run(patient())
    assert [type(one) for one in problems] == [AppendTimeout, AppendTimeout]
    words = "nothing is recorded any more since: the disk has not answered for 0.2 s"
    assert words in str(problems[0])
    assert book.failed is problems[0]
    assert told == [book.failed]
    with pytest.raises(AppendTimeout):
        book.submit(note("later"))
    gate.open_again.set()
    with pytest.raises(AppendTimeout):
        book.close_now()
    # As a crash would leave it: only what was being written.
    assert [data for _, data in submitted(place)] == [
        b'{"text":"in time"}',
        b'{"text":"it came late"}',
    ]
    assert kinds_of(place)[-2:] == ["note", "note"]
    begun(place).close()


@asynchronous
async def test_no_timer_is_left_after_an_append(book: LogWriter, gate: Gate) -> None:
    def running() -> int:
        scheduled: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
        return sum(not timer.cancelled() for timer in scheduled)

    for _ in range(3):
        gate.open_again.clear()
        waiting = [asyncio.create_task(book.append(note(f"{at}"))) for at in range(20)]
        await asyncio.sleep(0)
        assert running() == 20
        gate.open_again.set()
        await asyncio.gather(*waiting)
        assert running() == 0


def test_a_batch_that_completes_after_a_timeout_fails(
    gate: Gate, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread that shares a batch with a timed-out append gets the same error."""
    monkeypatch.setattr(writer, "APPEND_TIMEOUT", 0.1)
    book = LogWriter(log)

    async def impatient() -> None:
        with pytest.raises(AppendTimeout):
            await book.append(note("together with it"))

    first = gate.held(book)
    shared = book.submit(note("handed in"))
    asyncio.run(impatient())
    gate.open_again.set()
    for one in (first, shared):
        with pytest.raises(AppendTimeout):
            one.result(10)
    with pytest.raises(AppendTimeout):
        book.close_now()


def test_closing_writes_the_queue(place: Path, gate: Gate, book: LogWriter) -> None:
    gate.open_again.clear()
    waiting = [book.submit(note(f"{at}")) for at in range(5)]
    closing = threading.Thread(target=book.close_now)
    closing.start()
    gate.open_again.set()
    closing.join(20)
    assert [one.result(1)[0].seq for one in waiting] == [5, 6, 7, 8, 9]
    assert kinds_of(place)[-2:] == ["closed", "checkpoint"]
    with pytest.raises(LogFailed, match="it is closed"):
        book.submit(note("late"))
    asyncio.run(book.close())


def test_a_bug_in_the_thread_fails_all_futures(
    place: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(threading, "excepthook", lambda found: seen.append(str(found.exc_value)))

    def broken(entries: object) -> None:
        raise ZeroDivisionError("a fault of ours")

    monkeypatch.setattr(log, "write_ready", broken)
    book = LogWriter(log)
    with pytest.raises(LogFailed, match="a fault of ours"):
        book.submit(note("lost")).result(10)
    with pytest.raises(LogFailed, match="a fault of ours"):
        book.close_now()
    with pytest.raises(LogFailed, match="a fault of ours"):
        book.submit(note("later"))
    assert seen == ["a fault of ours"]
    assert "closed" not in kinds_of(place)


def test_invalid_text_and_numbers_are_rejected_at_once(book: LogWriter) -> None:
    with pytest.raises(UnicodeEncodeError):
        book.submit(RecordEntry("note", RecordActor("dealer", "\ud800"), {}))
    with pytest.raises(ValueError, match="allowed: 0 to"):
        book.submit(note("x", round=2**70))
    assert len(book.submit(note("all is well")).result(10)) == 1


def test_the_order_is_kept_when_the_disk_is_full(
    place: Path, gate: Gate, log: Log, book: LogWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gate.held(book)
    large, small = book.submit(note("large")), book.submit(note("small"))
    real = log.write_ready

    def full(entries: list[EncodedEntry]) -> object:
        if len(entries) > 1 or b"small" not in entries[0].rest:
            raise DiskFull(place, "there is no room", "make some")
        return real(entries)

    monkeypatch.setattr(log, "write_ready", full)
    gate.open_again.set()
    assert first.result(10)
    for one in (large, small):
        with pytest.raises(DiskFull):
            one.result(10)


class Colour(Enum):
    RED = "red"
    HALF = 0.5


class Counted(msgspec.Struct, frozen=True):
    pays: object
    on: object


def nested(deep: int) -> object:
    return {"in": nested(deep - 1)} if deep else 1


AROUND: list[object] = []
AROUND.append(AROUND)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"amount": 1.5}, "data.amount is a float"),
        ({"amount": 2.0}, "data.amount is a float"),
        ({"amounts": [1, float("nan")]}, "data.amounts.1 is a float"),
        ({"amount": float("inf")}, "data.amount is a float"),
        ({"amount": 2**63}, "data.amount is an integer of more than 64 bits"),
        ({"amount": -(2**63) - 1}, "data.amount is an integer of more than 64 bits"),
        ({"seats": {1: "Ann"}}, "data.seats has a name that is a int"),
        ({None: 1}, "data has a name that is a NoneType"),
        ({"raw": b"bytes"}, "data.raw is a bytes"),
        ({"raw": bytearray(3)}, "data.raw is a bytearray"),
        ({"cards": {1, 2}}, "data.cards is a set"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "data.when is a datetime"),
        ({"due": Decimal("1.5")}, "data.due is a Decimal"),
        ({"path": Path("/x")}, "data.path is a PosixPath"),
        ({"colour": Colour.HALF}, "data.colour is a float"),
        ({"as it is": msgspec.Raw(b"[1.5]")}, "data.as it is.0 is a float"),
        ({"as it is": msgspec.Raw(b"[1")}, "data.as it is is no JSON"),
        ({"odds": Counted(1, 1.5)}, "data.odds.on is a float"),
        ({"card": SealedCard(17)}, "data.card is a SealedCard"),
        ({"deep": nested(70)}, "is nested more than 64 deep"),
        ({"around": AROUND}, "is nested more than 64 deep"),
        (1.5, "data is a float"),
    ],
)
def test_invalid_values_are_rejected_before_a_write(
    data: object, words: str, place: Path, book: LogWriter
) -> None:
    before = read_segment(place, 1).buffer
    mixed = RecordEntry("device", ANN, {"what": "it", "data": data})
    for group in ((mixed,), (note("with it"), mixed)):
        with pytest.raises(BadData) as refused:
            book.submit(*group)
        assert words.replace("data", "data.data", 1) in str(refused.value) or (
            words.startswith("is nested") and words in str(refused.value)
        )
        assert str(refused.value).endswith("lists, objects with names")
        assert "17" not in str(refused.value)
    with pytest.raises(BadData):
        asyncio.run(book.append(mixed))
    assert read_segment(place, 1).buffer == before
    assert len(book.submit(note("all is well")).result(10)) == 1


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("note", {}, "missing required field `text`"),
        ("note", {"text": 3}, "Expected `str`"),
        ("note", {"text": "x", "more": 1}, "it has note.more"),
        ("device", {"seat": 3}, "missing required field `what`"),
        ("fault", {"what": "x"}, "missing required field `detail`"),
        ("unwitnessed", {"since": -1}, "Expected `int` >= 0"),
        ("person", ["what"], "Expected `object`"),
    ],
)
def test_data_of_the_wrong_kind_is_rejected(
    kind: Kind, data: object, words: str, book: LogWriter
) -> None:
    with pytest.raises(BadData, match=f"data is none of a {kind}: .*{words}"):
        book.submit(RecordEntry(kind, ANN, data))


def test_valid_data_is_read_back_unchanged(place: Path, book: LogWriter) -> None:
    data = {
        "what": "all",
        "least": -(2**63),
        "most": 2**63 - 1,
        "text": "\u00e9\u2014\x00\x7f\U0001f0a1",
        "nothing": None,
        "both": [True, False, [], {}, ()],
        "colour": Colour.RED,
        "odds": Counted(3, 2),
        "as it is": msgspec.Raw(b'{"a":[1]}'),
        "deep": nested(50),
    }
    book.submit(RecordEntry("device", ANN, data)).result(10)
    ((_, found),) = submitted(place)
    assert msgspec.json.decode(found) == {
        **data,
        "both": [True, False, [], {}, []],
        "colour": "red",
        "odds": {"pays": 3, "on": 2},
        "as it is": {"a": [1]},
    }
