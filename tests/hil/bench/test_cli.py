"""`holecard bench`: contests by turns, sections, output."""

import json

import pytest

from controller.commands import dispatch, load
from hil.bench import cli
from hil.bench.measure import Line, Pace, Section, contest, ratio
from hil.bench.record import RECORD
from hil.bench.reference import peer
from hil.bench.rows import rounds_of, through_rows, through_transitions
from hil.bench.verify import VERIFY


def run(*arguments: str) -> int:
    return dispatch(["bench", *arguments], cli.register)


class _Clock:
    """A clock that only the contestants advance."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_contestants_run_by_turns_and_slow_slices_do_not_count() -> None:
    clock = _Clock()
    turns: list[str] = []

    def works(name: str, a_round: float) -> None:
        turns.append(name)
        clock.now += a_round

    def fast(rounds: int) -> None:
        slow = 50 if turns.count("fast") == 6 else 1  # the machine is busy for one slice
        works("fast", rounds * 0.001 * slow)

    def slow(rounds: int) -> None:
        works("slow", rounds * 0.004)

    rates = contest({"fast": fast, "slow": slow}, Pace(slices=5, seconds=1), clock)
    assert rates.median("fast") == pytest.approx(1000)
    assert rates.median("slow") == pytest.approx(250)
    assert rates.ratio("slow", "fast") == pytest.approx(0.25)
    assert turns[-10:] == ["fast", "slow"] * 5


def test_a_ratio_below_its_aim_is_missed() -> None:
    assert ratio("a", "a", 0.39, 0.4).missed
    assert not ratio("a", "a", 0.4, 0.4).missed
    assert not Line("a", "a", None, "", 0.4, "not installed").missed


def test_a_ratio_above_its_aim_is_missed() -> None:
    line = Line("a", "a", 5.1, "times", at_most=5)
    assert line.missed
    assert line.verdict == "at most 5: missed "
    assert not Line("a", "a", 5.0, "times", at_most=5).missed


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("wire", {"encode", "decode", "seal", "open", "seal_ratio", "open_ratio"}),
        ("event", {"echo_p50", "echo_p99", "event_p50", "event_p99", "ratio", "ratio_p99"}),
        ("devices", {"idle", "busy", "rate", "back", "back_most"}),
    ],
)
def test_the_wire_is_measured(
    section: str, names: set[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--section", section, "--quick", "--json") == 0
    lines = json.loads(capsys.readouterr().out)["sections"][section]
    assert {line["name"] for line in lines} == names
    assert all(line["value"] > 0 for line in lines)


@pytest.mark.parametrize(
    ("section", "names"),
    [
        (
            RECORD,
            {"raw", "raw_p50", "raw_p99", "log_rate", "log_p50", "log_p99", "book_p50", "book_p99"}
            | {"book_rate", "group", "together", "computed", "signed"},
        ),
        (
            VERIFY,
            {"records", "bytes", "verify", "verify_ratio", "memory", "memory_ratio"}
            | {"replay", "replay_ratio", "open", "open_full", "open_ratio"}
            | {"index", "index_ratio"},
        ),
    ],
)
def test_the_record_is_measured(section: Section, names: set[str]) -> None:
    lines = section.measure(Pace(slices=1, seconds=0.001))
    assert {line.name for line in lines} == names
    measured = {line.name: line.value for line in lines}
    # A difference of two rates, and so below zero where they are measured as shortly as here.
    assert measured.pop("computed", 0.0) is not None
    assert all(value is not None and value > 0 for value in measured.values())


def test_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--section", "rows", "--quick", "--json") == 0
    found = json.loads(capsys.readouterr().out)
    rows = found["sections"]["rows"]
    assert [line["name"] for line in rows] == ["maxtime", "sf21x", "classic", "mega"]
    assert all(line["value"] > 100 for line in rows)


def test_every_contestant_plays() -> None:
    rounds_of("mega", through_rows)(50)
    rounds_of("maxtime", through_transitions)(20)


def test_the_peer_plays(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("blackjack21")
    peer()(200)
    assert run("--section", "peer", "--quick") == 0
    assert "holecard beside blackjack21" in capsys.readouterr().out


def test_sections_have_the_names_of_the_command_line() -> None:
    assert [load(name, target).name for name, target in cli.SECTIONS.items()] == list(cli.SECTIONS)


def test_an_unknown_section_is_refused() -> None:
    from controller.errors import UsageProblem

    with pytest.raises(UsageProblem, match="there is no speed"):
        run("--section", "speed")
