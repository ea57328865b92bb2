"""What `holecard audit show` finds with an index, and how it writes amounts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from controller.audit.format.records import Record
from controller.audit.format.segments import segment_file
from controller.audit.index import Index, RecordQuery, find
from controller.audit.read.access_log import access_log_file
from controller.audit.read.reader import records
from controller.audit.replay import game_from, terms_of
from controller.audit.simulate import record_par
from controller.games import unburned_game
from controller.procedure.prompts import MoneyFormat
from tests.support.audit.record.dealing import keyring
from tests.support.audit.tools.audit_command import Runs, rounds

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    runs = Runs(tmp_path, capsys)
    runs.make(*rounds(2))
    return runs


def test_amounts_are_written_as_the_game_of_their_boot_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However a record is found: in the first segment and in later ones, over boots."""
    runs = Runs(tmp_path, capsys)
    for currency in (MoneyFormat("\u20ac", 2), None, MoneyFormat("kr", 0)):
        game = unburned_game("classic", {}, "a test")
        say = str if currency is None else currency.amount
        dealt = game_from(replace(terms_of(game), currency=currency))
        assert dealt.say_amount == say
        record_par(runs.record, dealt, 8, keyring, seed=3, size=48 * 1024)
    ways = (["--round", "1-99"], ["--seat", "1"], ["--kind", "decision"])
    every = [wagers(runs, *words) for words in ways]
    assert every[0] == every[1] == every[2]
    assert len(every[0]) == 24
    assert all(one.startswith("\u20ac") for one in every[0][:8])
    assert all(one.endswith(" units") for one in every[0][8:16])
    assert all(one.startswith("kr ") for one in every[0][16:])


def wagers(runs: Runs, *words: str) -> list[str]:
    """The amounts of the first seat's main wagers, as they are shown."""
    ran = runs("show", *words, "--limit", "9999")
    assert ran.code == 0
    parted = (
        line.partition("a wager is placed or changed: seat 1, main, ")
        for line in ran.out.splitlines()
    )
    return [amount for _, found, amount in parted if found]


@pytest.mark.parametrize(
    ("index", "words"),
    [
        ("nowhere/x.db", "cannot be made: No such file or directory"),
        ("segments", "is no file"),
        ("segments/00000001.seg", "holds something else than the index of a record"),
    ],
)
@pytest.mark.parametrize(
    "command", [("show", "--seat", "1"), ("rebuild-index",), ("sql", "SELECT 1")]
)
def test_an_index_that_cannot_be_used_is_a_mistake(
    command: tuple[str, ...], index: str, words: str, runs: Runs
) -> None:
    before = segment_file(runs.record, 1).read_bytes()
    ran = runs(*command, "--index", str(runs.record / index))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.line
    assert segment_file(runs.record, 1).read_bytes() == before


# --- by time and amount -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rounds in dollars."""
    place = tmp_path_factory.mktemp("dollars") / "record"
    terms = terms_of(unburned_game("classic", {}, "a test"))
    game = game_from(replace(terms, currency=MoneyFormat("$", 2)))
    record_par(place, game, 8, keyring, seed=3)
    return place


class Found:
    """`show`, by what was typed, as the seqs of what it shows; and what must come of it."""

    def __init__(self, record: Path, runs: Runs) -> None:
        self.record = record
        self._runs = runs
        self.every = [one for _, one in records(record)]

    def __call__(self, *words: str) -> list[int]:
        ran = self._runs("show", *words, "--json", "--limit", "9999", record=self.record)
        assert ran.code == (0 if ran.lines else 1), ran.err
        return [one["record"]["seq"] for one in ran.lines]

    def between(self, since: int, until: int) -> list[int]:
        return [one.seq for one in self.every if since <= one.utc <= until]


@pytest.fixture
def found(dealt: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Found:
    return Found(dealt, Runs(tmp_path, capsys))


def test_records_are_found_by_time(found: Found) -> None:
    first, last = found.every[0].utc, found.every[-1].utc
    middle = found.every[len(found.every) // 2].utc
    at = [f"{EPOCH + timedelta(microseconds=one):%Y-%m-%dT%H:%M:%S.%f}" for one in (first, middle)]
    assert found("--from", at[1]) == found.between(middle, last)
    assert found("--to", at[1]) == found.between(first, middle)
    assert found("--from", at[0], "--to", at[1]) == found.between(first, middle)
    day = at[0][:10]
    assert len(found("--from", day)) == len(found.every)
    assert found("--to", f"{int(day[:4]) - 1}-12-31") == []
    dealer = [one.seq for one in found.every if one.kind == "decision" and one.utc >= middle]
    assert found("--from", at[1], "--kind", "decision") == dealer


def test_records_are_found_by_amount_as_the_table_writes_it(found: Found) -> None:
    def with_amounts(least: int, most: int) -> list[int]:
        with Index.open_or_rebuild(found.record) as index:
            index.catch_up()
            page = find(index.db, RecordQuery(least=least, most=most), 0, 1000)
        return [row.seq for row in page.rows]

    amounts = sorted({amount for amount in _amounts(found.every) if amount > 0})
    low, high = amounts[0], amounts[-1]
    say = MoneyFormat("$", 2).amount
    assert with_amounts(low, low)
    for text in (say(low), say(low).lstrip("$"), f"{low / 100:.2f}"):
        assert found("--amount", text) == with_amounts(low, low)
    assert found("--amount", f"{say(low)}-{say(high)}") == with_amounts(low, high)
    assert found("--amount", f"{say(high)}-") == with_amounts(high, 10**15)
    assert found("--amount", "987654.32") == []


def _amounts(every: list[Record]) -> Iterator[int]:
    for one in every:
        if one.kind == "decision":
            event = msgspec.json.decode(one.data)["event"]
            if "amount" in event:
                yield event["amount"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--from", "yesterday"), '--from: "yesterday" is no time; allowed: a time in UTC'),
        (("--to", "2027-02-30"), '--to: "2027-02-30" is no time'),
        (
            ("--from", "2027-01-15", "--to", "2027-01-14"),
            "--to: '2027-01-14' is before --from; allowed: a later time",
        ),
        (("--amount", "much"), '--amount: "much" is no amount; allowed: an amount such as $25'),
        (("--amount", "1.234"), '--amount: "1.234" is no amount'),
        (("--amount", "1-2-3"), '--amount: "1-2-3" is no amount'),
        (("--amount", "50-25"), '--amount: "50-25" ends before it begins'),
        (("--amount", "25", "--seq", "3"), "--seq: cannot be combined"),
    ],
)
def test_what_is_no_time_and_no_amount_is_a_mistake(
    words: tuple[str, ...], told: str, dealt: Path, runs: Runs
) -> None:
    ran = runs("show", *words, record=dealt)
    assert (ran.code, ran.out) == (2, "")
    assert told in ran.line


def test_what_was_asked_for_stands_beside_the_record(found: Found) -> None:
    found("--from", "2020-01-01", "--to", "2099-12-31 23:59", "--amount", "5-")
    last = access_log_file(found.record).read_text().splitlines()[-1]
    assert "from 2020-01-01, to 2099-12-31 23:59, amount 5-" in last
