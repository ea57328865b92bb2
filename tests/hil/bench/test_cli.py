"""`holecard bench`: contests by turns, sections, output."""

from __future__ import annotations

import json
from functools import partial

import pytest

from controller.commands import dispatch, load, parse
from controller.errors import UsageProblem
from hil.bench import cli, link
from hil.bench.measure import (
    Figure,
    Line,
    NotMeasured,
    Pace,
    Section,
    contest,
    value_of,
)
from hil.bench.record import PAGES, RECORD, REVIEW, VERIFY
from hil.bench.rounds import rounds_of, through_rows, through_transitions

SHORTEST = Pace(slices=1, seconds=0.001)


def run(*arguments: str) -> int:
    return dispatch(["bench", *arguments], cli.register)


def test_contestants_run_by_turns_and_slow_slices_do_not_count() -> None:
    turns: list[str] = []
    worked: list[float] = []

    def works(name: str, a_round: float, rounds: int) -> None:
        busy = name == "fast" and turns.count(name) == 6  # the machine is, for one slice
        turns.append(name)
        worked.append(rounds * a_round * (50 if busy else 1))

    contestants = {"fast": partial(works, "fast", 0.001), "slow": partial(works, "slow", 0.004)}
    rates = contest(contestants, Pace(slices=5, seconds=1), lambda: sum(worked))
    figures = [value_of(formula, rates) for formula in ("fast", "slow", "slow : fast")]
    assert figures == pytest.approx([1000, 250, 0.25])
    assert turns[-10:] == ["fast", "slow"] * 5


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        *(("a min", 1), ("a", 2), ("a p50", 2), ("a p99", 3), ("a max", 3)),
        *(("b / a", 1), ("b / a max", 4 / 3), ("b / a min", 1), ("a : b", 0.5)),
    ],
)
def test_figures_are_computed_from_samples(formula: str, value: float) -> None:
    samples = {"a": [3.0, 1.0, 2.0], "b": [1.0, 2.0, 4.0]}
    assert value_of(formula, samples) == pytest.approx(value)


def test_a_formula_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="no formula"):
        value_of("a * b", {})


@pytest.mark.parametrize(
    ("value", "aims", "missed"),
    [
        (0.39, (0.4, None), True),
        (0.4, (0.4, None), False),
        (None, (0.4, None), False),
        (5.1, (None, 5), True),
        (5.0, (None, 5), False),
    ],
)
def test_a_figure_beyond_its_aim_is_missed(
    value: float | None, aims: tuple[float | None, float | None], *, missed: bool
) -> None:
    assert Line("a", value, "times", *aims).missed is missed


def test_how_much_is_measured() -> None:
    counts = [
        pace.count(2_000, full=10**6, minimum=7) for pace in (Pace(), Pace(full=True), SHORTEST)
    ]
    assert counts == [2_000, 10**6, 7]
    assert SHORTEST.count(200_000, full=10**6) < 200


def _measured(pace: Pace) -> dict[str, list[float]]:
    if pace == SHORTEST:
        raise NotMeasured("there is but one core here")
    return {"speed": [0.00123], "count": [7]}


_SECTION = Section(
    "an example",
    _measured,
    (
        Figure("speed", "with {count[0]}", "ms", "speed", at_most=1, note=str),
        Figure("count", "counted", "of", "count", at_least=1, full=False),
        Figure("most", "counted", "of", "count", full=True),
    ),
)


def test_figures_are_shown_in_their_units_with_their_aims(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = _SECTION.lines(Pace())
    note = "{'speed': [0.00123], 'count': [7]}"
    assert [(line.name, line.value, line.text, line.note) for line in lines] == [
        ("speed", pytest.approx(1.23), "with 7", note),
        ("count", 7, "counted", ""),
    ]
    assert [line.name for line in _SECTION.lines(Pace(full=True))] == ["speed", "most"]
    impossible = Line("count", None, "", note="there is but one core here", text="counted")
    assert _SECTION.lines(SHORTEST) == [impossible]

    monkeypatch.setattr(cli, "SECTIONS", {"example": ""})
    monkeypatch.setattr(cli, "load", lambda name, target: _SECTION)
    assert run() == 0
    assert run("--check") == 1
    shown = capsys.readouterr().out.splitlines()[:3]
    assert shown == [
        "example: an example",
        f"  {'with 7':<44}      1.23 ms        at most 1: missed {note}",
        f"  {'counted':<44}      7.00 of        at least 1: met",
    ]


@pytest.mark.parametrize(
    ("section", "names"),
    [
        ("wire", {"encode", "decode", "seal", "open", "seal_ratio", "open_ratio"}),
        ("event", {"echo_p50", "echo_p99", "event_p50", "event_p99", "ratio", "ratio_p99"}),
        ("devices", {"idle", "busy", "rate", "back", "back_most"}),
        ("rows", {"maxtime", "sf21x", "classic", "mega"}),
    ],
)
def test_the_wire_and_the_rows_are_measured(
    section: str,
    names: set[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(link, "DEVICES_OF_TABLE", ("shoe", "shuffler", "station"))
    assert run("--section", section, "--quick", "--json") == 0
    lines = json.loads(capsys.readouterr().out)["sections"][section]
    assert {line["name"] for line in lines} == names
    assert all(line["value"] > 0 for line in lines)
    assert set(lines[0]) == {"name", "value", "unit", "at_least", "at_most", "note"}


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
        (
            REVIEW,
            {"rounds"}
            | {f"{page}{part}" for page in PAGES for part in ("", "_longest", "_sql", "_ratio")},
        ),
    ],
)
def test_the_record_is_measured(section: Section, names: set[str]) -> None:
    lines = section.lines(SHORTEST)
    assert {line.name for line in lines} == names
    measured = {line.name: line.value for line in lines}
    # A difference of two rates, and so below zero where they are measured as shortly as here.
    assert measured.pop("computed", 0.0) is not None
    assert all(value is not None and value > 0 for value in measured.values())


def test_every_contestant_plays() -> None:
    rounds_of("mega", through_rows)(50)
    rounds_of("maxtime", through_transitions)(20)


def test_the_peer_plays(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("blackjack21")
    assert run("--section", "peer", "--quick") == 0
    assert "holecard beside blackjack21" in capsys.readouterr().out


def test_sections_exist() -> None:
    for name, target in cli.SECTIONS.items():
        assert isinstance(load(name, target), Section)


def test_an_unknown_section_is_refused() -> None:
    with pytest.raises(UsageProblem, match="there is no speed"):
        run("--section", "speed")


def test_it_is_short_or_full_and_not_both(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(["bench", "--quick", "--full"], cli.register)
    assert ended.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
