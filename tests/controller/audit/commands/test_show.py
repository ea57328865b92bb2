"""`holecard audit show`, `tail`, `sql` and `rebuild-index`: what stands in a record."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from controller.audit.format.records import Record, RecordActor, RecordEntry
from controller.audit.format.segments import segment_file
from controller.audit.index import Index, RecordQuery, find
from controller.audit.read.access_log import access_log_file
from controller.audit.read.lookup import gone_before, last_of, of_rounds, of_seqs
from controller.audit.read.reader import records
from controller.audit.replay import game_from, terms_of
from controller.audit.simulate import record_par
from controller.games import unburned_game
from controller.procedure.model.state import State
from controller.procedure.prompts import MoneyFormat
from tests.support.audit.record.dealing import keyring
from tests.support.audit.record.table import begun, device_report, note
from tests.support.audit.tools.audit_command import LEFT_OPEN, Runs, refused, rounds
from tests.support.audit.tools.outside import audit, of_round, played, printed
from tests.support.paths import ROOT


@pytest.fixture
def runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Runs:
    return Runs(tmp_path, capsys, *rounds(2))


def looks(record: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in access_log_file(record).read_text().splitlines()]


# --- a round as a timeline --------------------------------------------------------------------


def test_a_round_is_shown_from_its_first_wager_to_the_last_card_picked_up(runs: Runs) -> None:
    ran = runs("show", "--round", "1")
    assert (ran.code, ran.err) == (0, "")
    head, *shown = ran.out.splitlines()
    assert head.endswith("table scripts")
    assert "UTC, gaming day 20" in head
    wanted = (
        "seat-1 (seat 1): a wager is placed or changed: seat 1, main, 1,000 units",
        "shoe: a card comes face up: 10 of clubs",
        "Round 1: wagers of 1,000 units are locked",
        "> Deal the dealer's up card, face up",
        "shoe: a card is dealt face down",
        "> Seat 1 - hard 20 - hit, stand, double or split",
        "dealer: the hand stands: seat 1",
        "shoe: the hole card is turned over: 10 of spades",
        "> Seat 1 - 20 loses to the dealer - take 1,000 units",
        "Seat 1 - 20 loses to the dealer - 1,000 units taken",
        "Round 1 is over, 0 units won",
    )
    rest = iter(shown)
    for words in wanted:
        assert any(line.endswith(words) for line in rest), words
    assert not any("a wager is placed" in line for line in rest)


def test_each_round_has_its_own_records_and_none_is_in_two(runs: Runs) -> None:
    one, two, both = (
        [told.place.seq for told in of_rounds(runs.record, first, last)]
        for first, last in ((1, 1), (2, 2), (1, 2))
    )
    assert one + two == both == list(range(both[0], both[-1] + 1))
    assert not list(of_rounds(runs.record, 3, 9))


def test_rounds_are_found_over_segments(tmp_path: Path) -> None:
    with closing(begun(tmp_path / "record")) as log:
        for turn in range(1, 40):
            for at in range(3):
                log.write([note(f"{turn}.{at}", 300, round=turn)])
    everything = [
        (found.round, place.seq)
        for place, found in records(tmp_path / "record")
        if found.kind == "note"
    ]
    for first, last in ((1, 1), (17, 17), (20, 23), (39, 39), (1, 39)):
        assert [
            (one.record.round, one.place.seq)
            for one in of_rounds(tmp_path / "record", first, last)
            if one.record.kind == "note"
        ] == [pair for pair in everything if first <= pair[0] <= last]
    seqs = [seq for _, seq in everything]
    for first, last in ((1, 5), (seqs[50], seqs[60]), (seqs[-1], 10**6)):
        assert [one.place.seq for one in of_seqs(tmp_path / "record", first, last)] == list(
            range(first, min(last, seqs[-1] + 2) + 1)
        )
    assert [one.place.seq for one in last_of(tmp_path / "record", 60)][-1] == seqs[-1] + 2
    assert len(last_of(tmp_path / "record", 60)) == 60
    assert len(last_of(tmp_path / "record", 10**6)) == seqs[-1] + 2


def test_wagers_that_were_taken_back_belong_to_the_round_before(place: Path) -> None:
    with closing(begun(place)) as log:

        def decided(turn: int, *, seats: int | None = None) -> int:
            effects = (
                [] if seats is None else [{"type": "Prompt", "tell": "take_wagers", "count": seats}]
            )
            data = {"event": {"type": "Something"}, "rows": [], "effects": effects}
            return log.write(
                [RecordEntry("decision", RecordActor("dealer", "Ann"), data, turn, state=State())]
            )[0].seq

        first = [decided(0, seats=1), decided(1), decided(1, seats=0)]
        first += [decided(1, seats=1), decided(1, seats=2), decided(1, seats=0), decided(1)]
        second = [decided(1, seats=1), decided(1, seats=2), decided(2), decided(2, seats=0)]
        lying = [decided(2, seats=1)]
        assert {
            turn: [one.place.seq for one in of_rounds(place, turn, turn)] for turn in (1, 2, 3)
        } == {1: first, 2: second, 3: lying}


def test_without_anything_the_round_at_hand_is_shown(runs: Runs) -> None:
    assert [one["record"]["round"] for one in runs("show", "--json").lines][-1] == 2
    assert runs("show", "--json").lines == runs("show", "--round", "2", "--json").lines


def test_records_are_shown_by_their_numbers_as_they_were_written(runs: Runs) -> None:
    whole = {place.seq: place for place, _ in records(runs.record)}
    found = runs("show", "--seq", "3-7", "--json").lines
    assert [one["record"]["seq"] for one in found] == [3, 4, 5, 6, 7]
    for one in found:
        place = whole[one["record"]["seq"]]
        assert (one["segment"], one["offset"]) == (place.segment, place.offset)
    assert "the controller starts: holecard" in runs("show", "--seq", "2").out


def test_a_card_that_lies_face_down_is_told_by_nothing(runs: Runs) -> None:
    """A voided round: its hole card was never turned over."""
    runs.make(LEFT_OPEN)
    shown = runs("show", "--round", "3").out
    assert "a card is dealt face down" in shown
    assert "spades" not in shown
    assert "commitment" not in shown
    decisions = [one["record"]["data"] for one in runs("show", "--round", "3", "--json").lines]
    (event,) = [
        data["event"] for data in decisions if data.get("event", {}).get("type") == "HoleDealt"
    ]
    assert set(event) == {"type", "commitment"}


def test_what_is_looked_for_is_found_with_an_index(runs: Runs) -> None:
    found = runs("show", "--card", "TS", "--json").lines
    assert {one["record"]["data"]["event"]["type"] for one in found} == {"HoleRevealed"}
    assert len(found) == 2
    assert {
        one["record"]["kind"] for one in runs("show", "--kind", "checkpoint", "--json").lines
    } == {"checkpoint"}
    dealt = runs("show", "--dealer", "dealer", "--round", "2", "--seat", "1", "--json").lines
    assert {one["record"]["round"] for one in dealt} <= {1, 2}
    assert dealt
    limited = runs("show", "--kind", "decision", "--limit", "3")
    assert len([line for line in limited.out.splitlines() if "round" in line]) >= 3
    assert "there are more records; --limit 3 was asked for" in limited.err
    assert runs("show", "--person", "Nobody").code == 1
    (runs.record / "index.db").write_bytes(b"no index")
    ran = runs("show", "--card", "TS", "--json")
    assert (ran.code, len(ran.lines)) == (0, 2)
    assert "it is being made anew" in ran.err


def test_each_look_is_written_beside_the_record_before_anything_is_shown(runs: Runs) -> None:
    runs("show", "--round", "1", "--by", "Ann")
    runs("tail")
    runs("sql", "SELECT 1")
    found = looks(runs.record)
    assert [(one["what"], one["of"]) for one in found] == [
        ("show", "round 1"),
        ("tail", "the last 10"),
        ("sql", "SELECT 1"),
    ]
    assert found[0]["who"] == "Ann"
    access_log_file(runs.record).unlink()
    access_log_file(runs.record).mkdir()
    refused(runs("show", "--round", "1"), "nobody looks without it")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--round", "0"], "--round: '0' is no round"),
        (["--round", "2-1"], "--round: '2-1' is no round"),
        (["--seq", "x"], "--seq: 'x' is no record"),
        (["--seq", "0"], "--seq: '0' is no record"),
        (["--seq", "9-8"], "--seq: '9-8' is no record"),
        (["--seq", "9", "--round", "1"], "--seq: cannot be combined"),
        (["--seq", "9", "--seat", "1"], "--seq: cannot be combined"),
        (["--card", "1X"], "--card: '1X' is not a card"),
        (["--kind", "sermon"], "invalid choice: 'sermon'"),
        (["--seat", "0"], "seat: there is no seat 0"),
        (["--irregularity", "rain"], "'rain' is no irregularity"),
        (["--limit", "0", "--seat", "1"], "--limit: '0'; allowed: 1 to 100000"),
        (["--by", " "], "--by: is no text"),
    ],
)
def test_mistakes_are_said(runs: Runs, options: list[str], words: str) -> None:
    refused(runs("show", *options), words)


def test_a_place_without_a_record_is_told_and_nobody_has_looked(runs: Runs) -> None:
    for name in ("show", "tail"):
        refused(runs(name, record=runs.folder / "elsewhere"), "there is no record here")
    assert not list(runs.folder.glob("elsewhere*"))


def test_a_round_that_is_not_there_is_said(runs: Runs) -> None:
    refused(runs("show", "--round", "99"), "nothing was found in the record", 1)


# --- tail -------------------------------------------------------------------------------------


def test_the_last_records_are_shown(runs: Runs) -> None:
    last = [place.seq for place, _ in records(runs.record)][-1]
    found = runs("tail", "--lines", "4", "--json").lines
    assert [one["record"]["seq"] for one in found] == list(range(last - 3, last + 1))
    assert runs("tail", "--lines", "0").out == ""
    assert "the controller ends in good order" in runs("tail").out
    assert runs("tail", "--lines", "-1").code == 2


@contextmanager
def following(record: Path) -> Iterator[subprocess.Popen[str]]:
    run = subprocess.Popen(
        [
            *(sys.executable, "-m", "controller.cli", "audit", "tail", str(record)),
            *("--follow", "--json", "--lines", "2"),
        ],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield run
    finally:
        run.kill()
        run.communicate(timeout=30)


def test_a_record_is_followed_as_it_grows_over_segments_and_boots(place: Path) -> None:
    log = begun(place)
    first = log.where.seq
    with following(place) as run:
        assert run.stdout is not None
        shown = [json.loads(run.stdout.readline())["record"]["seq"]]
        assert shown == [first - 1]  # nothing says yet that the last one is on the disk
        for at in range(60):
            log.write([note(f"{at}", 300), device_report("SH-1", at + 1)])
        log.close()
        log = begun(place)
        log.write([note("after a start", 100)])
        last = log.where.seq
        log.write([note("what is not shown yet")])
        while shown[-1] < last:
            shown.append(json.loads(run.stdout.readline())["record"]["seq"])
        assert shown == list(range(first - 1, last + 1))
        assert len(list((place / "segments").glob("0*.seg"))) > 2
        run.send_signal(signal.SIGINT)
        _, err = run.communicate(timeout=30)
        assert (run.returncode, err) == (130, "")
    log.close()


def test_following_waits_without_working(tmp_path: Path) -> None:
    record = played(tmp_path / "record")
    with following(record) as run:
        assert run.stdout is not None
        run.stdout.readline()
        before = ticks(run.pid)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(2)
        assert ticks(run.pid) - before <= 0.3 * os.sysconf("SC_CLK_TCK")


def ticks(pid: int) -> int:
    """Processor time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


# --- the index --------------------------------------------------------------------------------


def test_the_index_is_made_anew(runs: Runs) -> None:
    last = [place.seq for place, _ in records(runs.record)][-1]
    assert runs("rebuild-index", "--json").json == {
        "index": str(runs.record / "index.db"),
        "records": last,
        "seq": last,
    }
    elsewhere = str(runs.folder / "elsewhere.db")
    said = f"{elsewhere}: {last} records, up to {last}\n"
    assert runs("rebuild-index", "--index", elsewhere)[:2] == (0, said)


def test_questions_in_sql_only_read(runs: Runs) -> None:
    said = "round  wagered\n1      1000\n2      1000\n"
    assert runs("sql", "SELECT round, wagered FROM rounds ORDER BY round")[:2] == (0, said)
    found = runs("sql", "SELECT seq FROM records ORDER BY seq", "--rows", "2", "--json")
    assert found.json == {"columns": ["seq"], "rows": [[1], [2]], "more": True}
    assert "there are more rows" in found.err
    refused(runs("sql", "DELETE FROM words"), "sql: does more than reading")


# --- What `holecard audit show` finds with an index, and how it writes amounts ----------------


def test_amounts_are_written_as_the_game_of_their_boot_writes_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """However a record is found: in the first segment and in later ones, over boots."""
    runs = Runs(tmp_path, capsys)
    for currency in (MoneyFormat("\u20ac", 2), None, MoneyFormat("kr", 0)):
        game = unburned_game("classic", {}, "a test")
        say = str if currency is None else currency.amount
        dealt = game_from(msgspec.structs.replace(terms_of(game), currency=currency))
        assert dealt.say_amount == say
        record_par(runs.record, dealt, 8, keyring, seed=3, size=48 * 1024)
    ways = (["--round", "1-99"], ["--seat", "1"], ["--kind", "decision"])
    found, *others = [wagers(runs, *words) for words in ways]
    assert (others, len(found)) == ([found] * 2, 24)
    assert all(one.startswith("\u20ac") for one in found[:8])
    assert all(one.endswith(" units") for one in found[8:16])
    assert all(one.startswith("kr ") for one in found[16:])


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
    refused(runs(*command, "--index", str(runs.record / index)), words)
    assert segment_file(runs.record, 1).read_bytes() == before


# --- by time and amount -----------------------------------------------------------------------


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rounds in dollars."""
    place = tmp_path_factory.mktemp("dollars") / "record"
    terms = terms_of(unburned_game("classic", {}, "a test"))
    record_par(
        place,
        game_from(msgspec.structs.replace(terms, currency=MoneyFormat("$", 2))),
        8,
        keyring,
        seed=3,
    )
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
    at = [
        f"{datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=one):%Y-%m-%dT%H:%M:%S.%f}"
        for one in (first, middle)
    ]
    assert found("--from", at[1]) == found.between(middle, last)
    assert found("--to", at[1]) == found.between(first, middle)
    assert found("--from", at[0], "--to", at[1]) == found.between(first, middle)
    day = at[0][:10]
    assert len(found("--from", day)) == len(found.every)
    assert found("--to", f"{int(day[:4]) - 1}-12-31") == []
    assert found("--from", at[1], "--kind", "decision") == [
        one.seq for one in found.every if one.kind == "decision" and one.utc >= middle
    ]


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
    refused(runs("show", *words, record=dealt), told)


def test_what_was_asked_for_stands_beside_the_record(found: Found) -> None:
    found("--from", "2020-01-01", "--to", "2099-12-31 23:59", "--amount", "5-")
    last = access_log_file(found.record).read_text().splitlines()[-1]
    assert "from 2020-01-01, to 2099-12-31 23:59, amount 5-" in last


# --- without the first segment records may be missing, and that is reported -------------------


Out = pytest.CaptureFixture[str]
GONE = "segments before 2 are not here"


@pytest.fixture
def cut(record: Path) -> Path:
    """Remove the first segment, which contains the first rounds."""
    segment_file(record, 1).unlink()
    assert not of_round(record, 1)
    return record


def test_a_complete_record_has_no_warning(record: Path, capsys: Out, tmp_path: Path) -> None:
    assert gone_before(record) == ""
    for words in (
        ("show", record, "--round", "1"),
        ("show", record, "--round", "99"),
        ("prove", record, "--round", "99"),
        ("export", record, "--all", "--out", tmp_path / "case.zip"),
    ):
        audit(*words)
        told = capsys.readouterr()
        assert "not here" not in told.out + told.err


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("show", "--round", "1"), f"{GONE}, and nothing was found in the others"),
        (("show", "--kind", "opened"), f"{GONE}, and nothing was found in the others"),
        (("prove", "--round", "1"), f"{GONE}, and nothing of round 1 in the others; put them back"),
        (("export", "--format", "csv", "--round", "1"), f"{GONE}, and nothing of round 1 in"),
        (("export", "--round", "1", "--out", "CASE"), f"{GONE}, and nothing of round 1 in the"),
    ],
    ids=lambda one: one[0] if isinstance(one, tuple) else "",
)
def test_a_search_reports_missing_segments(
    words: tuple[str, ...], what: str, cut: Path, capsys: Out, tmp_path: Path
) -> None:
    name, *rest = (str(tmp_path / "case.zip") if one == "CASE" else one for one in words)
    assert what in printed(capsys, 1, name, cut, *rest).err


def test_existing_records_are_shown_with_a_warning(cut: Path, capsys: Out) -> None:
    for words in (("show", "--round", "5"), ("show", "--kind", "note"), ("prove", "--round", "5")):
        told = printed(capsys, 0, words[0], cut, *words[1:])
        assert told.out
        assert GONE in told.err
    told = printed(capsys, 0, "export", cut, "--format", "csv", "--day", of_round(cut, 5)[0].day)
    assert len(list(csv.reader(io.StringIO(told.out)))) > 2
    assert GONE in told.err


def test_a_case_names_missing_segments(cut: Path, capsys: Out, tmp_path: Path) -> None:
    case = tmp_path / "case"
    told = printed(capsys, 0, "export", cut, "--all", "--out", case)
    assert "all that is here of holecard/mega-1/" in told.out
    assert GONE in told.err
    assert json.loads((case / "manifest.json").read_bytes())["remarks"] == [GONE]
    assert audit("check-case", case) == 0
