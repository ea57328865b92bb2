"""Validation of `data` before anything is written."""

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path

import msgspec
import pytest

from controller.audit.format.records import Kind, RecordEntry
from controller.audit.format.validation import BadData
from controller.audit.log import LogWriter
from controller.audit.read.reader import read_segment
from drivers.devices import SealedCard
from tests.support.audit.record.table import ANN, begun, handed_in, note


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


@pytest.fixture
def book(place: Path) -> Iterator[LogWriter]:
    book = LogWriter(begun(place, size=256 * 1024))
    yield book
    book.close_now()


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
        asyncio.run(appended(book, mixed))
    assert read_segment(place, 1).buffer == before
    assert len(book.submit(note("all is well")).result(10)) == 1


async def appended(book: LogWriter, entry: RecordEntry) -> None:
    await book.append(entry)


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("note", {}, "missing required field `text`"),
        ("note", {"text": 3}, "Expected `str`"),
        ("note", {"text": "x", "more": 1}, "unknown field `more`"),
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
    ((_, found),) = handed_in(place)
    wanted = {
        **data,
        "both": [True, False, [], {}, []],
        "colour": "red",
        "odds": {"pays": 3, "on": 2},
        "as it is": {"a": [1]},
    }
    assert msgspec.json.decode(found) == wanted
