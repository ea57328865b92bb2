"""Pace and errors, held against rounds whose times are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import apsw
import pytest

from controller.audit.index.schema import ROUNDS, SCHEMA
from controller.audit.text import format_time
from controller.procedure.model.state import Step
from controller.rules.irregularities import Irregularity
from controller.screens.review.source import FileSource
from controller.screens.review.view.queries import ask
from controller.screens.review.view.report import (
    PAUSE,
    GameStart,
    PaceReport,
    bars,
    columns,
    last_day,
    report,
)
from tests.support.screens.looked_at import Browser, dealt, written

SECOND: Final = 1_000_000
NOON: Final = 1_800_014_400 * SECOND  # 2027-01-15 12:00
WORDS: Final = ("", "Ann", "Bob", "ShuffleStarted", "refusal", "Paid", "not_due", "misdeal")


@pytest.fixture
def db(tmp_path: Path) -> Iterator[apsw.Connection]:
    made = apsw.Connection(str(tmp_path / "index.db"))
    for statement in SCHEMA:
        made.execute(statement)
    made.executemany("INSERT INTO words VALUES (?, ?)", list(enumerate(WORDS)))
    yield made
    made.close()


class Rounds:
    """Rounds put into an index one after the other."""

    def __init__(self, db: apsw.Connection) -> None:
        self._db = db
        self.seq, self.utc, self.number = 1, NOON, 0

    def dealt(self, seconds: int, dealer: str = "Ann", *, void: int = 0, over: bool = True) -> None:
        self.number += 1
        first, began = self.seq + 1, self.utc
        self.seq += 10
        self.utc += seconds * SECOND
        row = {
            "round": self.number,
            "first_seq": first,
            "last_seq": self.seq,
            "first_utc": began,
            "last_utc": self.utc,
            "over_seq": self.seq if over else 0,
            "over_utc": self.utc if over else 0,
            "dealer": WORDS.index(dealer),
            "wagered": 1000,
            "won": 0,
            "void": void,
            "irregularities": void,
            "corrected": 1 - void if dealer == "Bob" else 0,
        }
        self._db.execute(ROUNDS.insert, tuple(row[name] for name in ROUNDS.names))

    def goes_on(self) -> None:
        """The last round has all that was recorded since."""
        self._db.execute(
            "UPDATE raw_rounds SET last_seq = ? WHERE round = ?", (self.seq, self.number)
        )

    def wait(self, seconds: int) -> None:
        self.utc += seconds * SECOND

    def record(self, event: str, kind: str = "") -> None:
        self.seq += 1
        numbers = {"kind": WORDS.index(kind), "event": WORDS.index(event)}
        names = "seq utc day round kind role name seat event dealer cause segment offset length"
        row = [numbers.get(name, self.seq if name == "seq" else 0) for name in names.split()]
        self._db.execute(f"INSERT INTO raw_records VALUES ({', '.join('?' * 14)})", row)

    def problem(self, what: str) -> None:
        self._db.execute("INSERT INTO raw_problems VALUES (?, ?)", (self.seq, WORDS.index(what)))


def made(db: apsw.Connection, games: tuple[GameStart, ...] = (GameStart(1, "Mega"),)) -> PaceReport:
    return report(db, *last_day(db), games, lambda utc: format_time(utc)[:16])


def test_a_round_takes_from_the_end_of_the_one_before_to_its_own(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    for _ in range(4):
        rounds.dealt(50)
        rounds.wait(10)
    # The first from its first wager, the others with the ten seconds before it.
    assert made(db).whole.micros == (50 + 3 * 60) * SECOND
    assert made(db).whole.an_hour == pytest.approx(4 * 3600 / 230)


def test_shuffles_breaks_and_pauses_do_not_count(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(50)
    rounds.record("ShuffleStarted")
    rounds.wait(120)
    rounds.dealt(50)
    rounds.wait(PAUSE // SECOND + 1)
    rounds.dealt(50)
    rounds.wait(PAUSE // SECOND)
    rounds.dealt(50)
    found = made(db)
    assert (found.whole.micros, found.shuffles) == ((4 * 50 + PAUSE // SECOND) * SECOND, 1)


def test_void_and_open_rounds_are_counted_and_not_timed(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(50)
    rounds.dealt(70, void=1)
    rounds.dealt(40)
    rounds.dealt(30, over=False)
    whole = made(db).whole
    assert (whole.rounds, whole.timed, whole.void, whole.irregular) == (4, 2, 1, 1)
    assert whole.seconds == 45


def test_dealers_and_games_have_their_own(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(60)
    rounds.dealt(60)
    begins = rounds.seq + 1
    rounds.dealt(30, "Bob")
    found = made(db, (GameStart(1, "Mega"), GameStart(begins, "Classic")))
    assert [(one.name, one.rounds, one.an_hour) for one in found.dealers] == [
        ("Ann", 2, 60),
        ("Bob", 1, 120),
    ]
    assert [(one.name, one.rounds) for one in found.games] == [("Classic", 1), ("Mega", 2)]
    assert (found.dealers[1].corrected, found.whole.corrected) == (1, 1)


def test_hours_come_in_their_order_and_days_where_there_are_many(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    for _ in range(3):
        rounds.dealt(60)
        rounds.wait(3600)
    found = made(db)
    assert [one.name for one in found.spans] == [
        "2027-01-15 12:00",
        "2027-01-15 13:00",
        "2027-01-15 14:00",
    ]
    rounds.wait(5 * 86_400)
    rounds.dealt(60)
    later = report(db, 0, 1 << 60, (), lambda utc: format_time(utc)[:16])
    assert later.by_day
    assert [one.name for one in later.spans] == ["2027-01-15", "2027-01-20"]


def test_what_went_wrong_is_counted(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(60)
    for event, kind, what in (
        ("Paid", "refusal", "not_due"),
        ("Paid", "refusal", "not_due"),
        ("ShuffleStarted", "refusal", "not_due"),
        ("", "", "misdeal"),
    ):
        rounds.record(event, kind)
        rounds.problem(what)
    rounds.dealt(60)
    found = made(db)
    assert found.problems == (("not_due", 3), ("misdeal", 1))
    assert found.caught == 2


def test_what_went_wrong_in_a_round_that_is_not_over_is_counted(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(60)
    rounds.dealt(30, over=False)
    rounds.record("Paid", "refusal")
    rounds.problem("not_due")
    rounds.record("ShuffleStarted")
    rounds.record("")
    rounds.problem("misdeal")
    rounds.goes_on()
    found = made(db)
    assert found.problems == (("misdeal", 1), ("not_due", 1))
    assert (found.caught, found.shuffles) == (1, 1)


def test_tiles_and_what_went_wrong_agree_while_a_round_is_open(tmp_path: Path) -> None:
    table = dealt("agree", 2)
    while not table.state.holds or table.state.step is Step.CLOSED:
        table.once()
    written(tmp_path / "mega", table)
    source = FileSource(tmp_path / "mega")
    source.begin(lambda words: None)
    with source.index() as (db, _):
        found = made(db)
        rows = ask(db, "SELECT irregularities, over_seq FROM raw_rounds ORDER BY round")
        kinds = {what.value for what in Irregularity}
    assert rows[-1][0]
    assert not rows[-1][1]
    assert found.whole.irregular == sum(count for what, count in found.problems if what in kinds)


def test_nothing_is_made_of_nothing(db: apsw.Connection) -> None:
    found = made(db)
    assert (found.whole.rounds, found.whole.an_hour, found.dealers) == (0, 0, ())
    Rounds(db).dealt(0, over=False)
    assert made(db).whole.an_hour == 0


def test_the_day_of_the_last_round_is_the_usual_time(db: apsw.Connection) -> None:
    rounds = Rounds(db)
    rounds.dealt(60)
    rounds.wait(86_400)
    rounds.dealt(60)
    assert made(db).whole.rounds == 1
    assert format_time(last_day(db)[0]).startswith("2027-01-16 00:00:00")
    assert ask(db, "SELECT count(*) FROM raw_rounds")[0][0] == 2


def test_plots_tell_every_figure_and_nothing_that_is_markup() -> None:
    rows = [("Ann <b>", 61.5), ("Bob", 0.0)]
    for text in (bars("Pace & more", rows, 1), columns("Pace & more", rows)):
        assert "<b>" not in text
        assert "Pace &amp; more" in text
        assert "Ann &lt;b&gt;" in text
    assert "61.5" in bars("Pace", rows, 1)
    for count in (0, 1, 200):
        assert columns("Pace", [(str(n), n * 1.7) for n in range(count)]).count("<rect") == count


def test_the_page_has_the_figures(browser: Browser) -> None:
    page = browser.get("/report")
    assert page.status == 200
    assert "dealer-2" in page.words
    assert page.text.count('<svg class="plot"') == 4
    assert re.findall("<summary>(.*?)</summary>", page.text) == [
        "The figures of this plot, as a table"
    ]
    assert browser.get("/report?from=1999-01-01&to=1999-01-02").words.count("No round began") == 1
