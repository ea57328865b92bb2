"""What `holecard audit show` finds with an index, and how it writes amounts."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from controller.audit.identity import game_from, terms_of
from controller.audit.recorded_rounds import record_par
from controller.audit.segments import segment_file
from controller.procedure.terms import Currency
from controller.sim.games import unburned_game
from tests.audit.audit_command import Runs, rounds
from tests.audit.dealing import keyring


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
    for currency in (Currency("\u20ac", 2), None, Currency("kr", 0)):
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
