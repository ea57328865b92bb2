"""`holecard par`: what it prints and refuses, and whether its figures are right.

A sharp smoke of `make certify`: fewer rounds, the same figures; `stand` enumerated.
"""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any

import pytest

from controller import cli
from controller.procedure.engine import Procedure
from controller.procedure.model.events import Event, Hit, Stand
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from controller.sim.par import ParPlan, exact, report, simulation
from controller.sim.par.exact import blackjack_dealt, enumerate_stand
from controller.sim.par.report import OUTCOMES, ParReport
from controller.sim.par.simulation import RoundCounter, game_for, run
from controller.sim.play import POLICIES, Play, PlaySetup, RoundStuck, stakes_for
from tests.long.certify import published
from tests.support.commands import Says

GAMES = ("maxtime", "sf21x", "classic", "mega")


def found(said: Says, *arguments: str) -> Any:
    answer = said(cli.main(["par", *arguments, "--json"]))
    assert answer.done()
    return answer.json


@pytest.mark.parametrize("game", GAMES)
def test_json(game: str, said: Says) -> None:
    answer = found(said, game, "--policy", "mimic", "--rounds", "300", "--seed", "3")
    assert list(answer) == ["game", "policy", "decks", "rounds", "seed", "main", "side"]
    assert [answer[key] for key in ("game", "policy", "rounds", "seed")] == [game, "mimic", 300, 3]
    main = answer["main"]
    assert (list(main), main["house_edge"]) == (["ev", "se", "house_edge", "outcomes"], -main["ev"])
    assert 0.03 < main["se"] < 0.12
    assert list(main["outcomes"]) == list(OUTCOMES)
    assert sum(main["outcomes"].values()) == pytest.approx(1)
    assert answer["side"]["blackjack_dealt"]["exact"] == pytest.approx(0.0475, abs=0.001)
    assert ("buster" in answer["side"]) == (game == "mega")
    assert ("diamond" in answer["side"]) == (game in {"maxtime", "sf21x"})


@pytest.mark.parametrize("game", GAMES)
def test_basic_says_that_it_is_not_proven_optimal(game: str, said: Says) -> None:
    answer = said(cli.main(["par", game, "--rounds", "300"]))
    assert answer.told("policy basic", "not proven optimal", "house edge")
    assert "32/663" in answer.out or "192/4043" in answer.out


def test_text_of_other_policies_does_not_say_so(said: Says) -> None:
    answer = said(cli.main(["par", "mega", "--policy", "stand", "--rounds", "50", "--no-side"]))
    assert answer.told("50 rounds, seed 1, a fresh shuffle every round")
    assert "not proven" not in answer.out


def test_a_seed_gives_the_same_answer_on_any_number_of_jobs(
    said: Says,
) -> None:
    arguments = ("classic", "--policy", "stand", "--no-side", "--rounds", "10100", "--seed", "9")
    one = found(said, *arguments, "--jobs", "1")
    assert found(said, *arguments, "--jobs", "2") == one
    assert found(said, *arguments[:-3], "2000", "--seed", "10")["main"] != one["main"]


def test_a_shoe_to_the_cut_card_keeps_its_seed_too(said: Says) -> None:
    arguments = ("classic", "--policy", "mimic", "--rounds", "600", "--seats", "5", "--cut")
    one = found(said, *arguments)
    assert found(said, *arguments) == one
    assert one["main"]["se"] > 0
    # Exact figures are those of a fresh shuffle.
    assert one["side"]["blackjack_dealt"]["exact"] is None
    assert "dealer_bust" not in one["side"]


def test_side_bets_change_nothing_of_the_main_wager(said: Says) -> None:
    arguments = ("sf21x", "--policy", "mimic", "--rounds", "2000")
    with_side = found(said, *arguments)
    without = found(said, *arguments, "--no-side")
    assert with_side["main"] == without["main"]
    assert with_side["side"]["diamond"]["ev"] is not None
    alone = without["side"]["diamond"]
    assert (alone["ev"], alone["exact"]) == (None, pytest.approx(-1031 / 4043))


def test_options_and_decks(said: Says) -> None:
    arguments = ("sf21x", "--policy", "stand", "--rounds", "2000")
    answer = found(said, *arguments, "--decks", "8", "--set", "blackjack.pays=2:1")
    assert answer["decks"] == 8
    assert answer["main"]["ev"] < found(said, *arguments)["main"]["ev"]


def test_a_strategy_file(tmp_path: Path, said: Says) -> None:
    file = tmp_path / "mine.toml"
    cells = " ".join("S" * 10)
    pairs = "".join(f'{key} = "{" ".join("-" * 10)}"\n' for key in "23456789TA")
    file.write_text(
        'name = "mine"\nnote = "my own"\ninsurance = "never"\neven_money = "never"\n'
        f'[hard]\n4-21 = "{cells}"\n[soft]\n12-21 = "{cells}"\n[pairs]\n{pairs}'
    )
    mine = found(said, "classic", "--policy", str(file), "--rounds", "500")
    assert mine["policy"] == str(file)
    assert mine["main"] == found(said, "classic", "--policy", "stand", "--rounds", "500")["main"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["poker"], "there is no game 'poker'"),
        (["classic", "--policy", "lucky"], "--policy: 'lucky' is no policy and no file"),
        (["classic", "--policy", "{folder}"], "is no policy and no file"),
        (["classic", "--policy", "{broken}"], "not TOML"),
        (["classic", "--set", "split.hands=9"], "--set: split.hands: is no option"),
        (["classic", "--set", "split"], "--set: 'split' sets nothing"),
        (["classic", "--set", "split.max_hands=9"], "--set: split.max_hands"),
        (["classic", "--decks", "3"], "decks"),
        (["maxtime", "--decks", "6"], "decks"),
        (["classic", "--decks", "6", "--set", "decks=6"], "--decks: conflicts with --set decks"),
        (["classic", "--seats", "0"], "--seats: 0 seats; allowed: 1 to 7"),
        (["classic", "--seats", "8"], "--seats: 8 seats; allowed: 1 to 7"),
        (["classic", "--rounds", "0"], "--rounds: 0 rounds; allowed: 1 or more"),
        (["classic", "--jobs", "0"], "--jobs: 0 jobs; allowed: 1 or more"),
        (["classic", "--exact", "--policy", "mimic"], "--exact does not enumerate 'mimic'"),
        (["classic", "--exact", "--cut"], "--cut: does not go with --exact"),
        (["classic", "--exact", "--seats", "2"], "--seats: does not go with --exact"),
        (
            ["classic", "--policy", "stand", "--set", "limits.main.max=1"],
            "limits.main: no wager from 1 to 1",
        ),
    ],
)
def test_mistakes(arguments: list[str], words: str, tmp_path: Path, said: Says) -> None:
    broken = tmp_path / "broken.toml"
    broken.write_text("name = ")
    filled = [each.format(folder=tmp_path, broken=broken) for each in arguments]
    assert said(cli.main(["par", *filled])).mistaken(words)


@pytest.mark.parametrize("flag", ["--rounds", "--seats", "--jobs", "--seed", "--decks"])
def test_no_numbers(flag: str, said: Says) -> None:
    assert said(cli.main(["par", "classic", flag, "many"])).refused("invalid int value: 'many'")


def test_blocks_do_not_share_their_cards() -> None:
    assert (
        len({simulation.seed_of(seed, block) for seed in range(20) for block in range(20)}) == 400
    )


@pytest.mark.parametrize(
    ("to_group", "number", "code"), [(True, signal.SIGINT, 130), (False, signal.SIGKILL, -9)]
)
def test_no_process_outlives_an_interrupt_or_its_parent(
    to_group: bool, number: signal.Signals, code: int
) -> None:
    command = [sys.executable, "-m", "controller.cli", "par", "classic", "--policy", "mimic"]
    process = subprocess.Popen(
        [*command, "--rounds", "50000000", "--jobs", "2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    children: list[str] = []
    try:
        children = _wait_for_children(process.pid, 2)
        (os.killpg if to_group else os.kill)(process.pid, number)
        out, err = process.communicate(timeout=30)
        # The tracker of what they share ends when it notices that its parent has.
        deadline = time.monotonic() + 10
        while any(map(_runs, children)) and time.monotonic() < deadline:
            time.sleep(0.02)
        assert not list(filter(_runs, children))
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    assert (process.returncode, out) == (code, "")
    assert err == "" or number is signal.SIGKILL


def _runs(pid: str) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def _wait_for_children(pid: int, wanted: int) -> list[str]:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        tasks = Path(f"/proc/{pid}/task").glob("*/children")
        children = [child for task in tasks for child in task.read_text().split()]
        if len(children) > wanted:  # with them runs the tracker of what they share
            return children
        time.sleep(0.02)
    raise AssertionError("no processes were started")


ROUNDS = 15_000


def played(name: str, policy: str = "stand", rounds: int = ROUNDS) -> ParReport:
    game = game_for(name, {})
    plan = ParPlan(name, {}, game.options, POLICIES[policy], 1, rounds, 1, cut=False, side=True)
    return report.of_rounds(game, PlaySetup(1, stakes_for(game, side=True)), run(plan, 1))


@pytest.mark.parametrize("name", published.STAND)
def test_a_player_who_stands(name: str) -> None:
    found = played(name)
    assert published.agrees(found.main, published.STAND[name])
    assert found.main.error is not None
    assert found.main.error < 0.012
    for key in ("blackjack_dealt", "diamonds_dealt", "diamond", "insurance", "buster"):
        figure = found.side.get(key)
        if isinstance(figure, report.Figure):
            assert figure.exact is not None
            assert published.agrees(figure, float(figure.exact)), key


def test_the_dealer_under_a_live_buster_bet() -> None:
    busts = played("mega", "mimic", 10_000).side["dealer_bust"]
    assert isinstance(busts, dict)
    for cards in ("3", "4", "5", "total_22"):
        assert published.agrees(busts[cards], published.BUSTS[6][cards]), cards
        assert float(busts[cards].exact or 0) == pytest.approx(published.BUSTS[6][cards], abs=1e-9)


def test_no_dealer_is_told_of_who_does_not_always_complete() -> None:
    busts = played("classic", rounds=100).side["dealer_bust"]
    assert isinstance(busts, dict)
    assert all(figure.value is None for figure in busts.values())


def test_outcomes_of_a_player_who_stands_are_all_there_is() -> None:
    found = played("sf21x", rounds=2_000)
    assert sum(figure.value or 0 for figure in found.outcomes.values()) == pytest.approx(1)


def test_every_seat_has_the_same_figures() -> None:
    """Seven seats share a dealer: the mean is theirs all, the error is that of rounds."""
    game = game_for("classic", {})
    setup = PlaySetup(7, stakes_for(game, side=False))
    play = Play(Procedure(game), POLICIES["stand"], setup, Random(5).random)
    watch = RoundCounter(game, completes=False)
    for _ in range(2_000):
        watch.note(play.round(), play.record, play.hole)
    found = report.of_rounds(game, setup, watch.tally)
    assert published.agrees(found.main, published.STAND["classic"])
    assert (found.main.of, found.outcomes["blackjack"].of) == (2_000, 14_000)


@pytest.mark.parametrize("decks", [1, 2, 6, 8])
def test_closed_forms(decks: int) -> None:
    assert exact.blackjack_dealt(decks) == published.BLACKJACK_DEALT[decks]
    assert exact.diamonds_dealt(decks) == published.DIAMONDS_DEALT[decks]
    pays = game_for("classic", {}).options.insurance.pays
    assert pays is not None
    assert exact.insurance_return(decks, pays) == published.INSURANCE_RETURN[decks]


@pytest.mark.parametrize(("name", "decks"), [("mega", 6), ("maxtime", 1)])
def test_dealer_enumerated(name: str, decks: int) -> None:
    ends = exact.dealer_ends(decks, game_for(name, {}).options)
    assert sum(ends.values()) == 1
    busts = exact.dealer_busts(ends)
    for cards in range(3, 8):
        assert float(busts[cards]) == pytest.approx(published.BUSTS[decks][str(cards)], abs=1e-9)
    assert float(exact.dealer_total(ends, 22)) == pytest.approx(
        published.BUSTS[decks]["total_22"], abs=1e-9
    )


def test_diamond_bets() -> None:
    for (decks, pays), returns in published.DIAMOND_RETURN.items():
        assert exact.diamond_return(decks, pays) == returns


def test_standing_enumerated() -> None:
    """One deck, and diamonds pay apart: the game in which the cards tell most."""
    exact = enumerate_stand(Procedure(game_for("maxtime", {})))
    assert float(exact.ev) == pytest.approx(published.STAND["maxtime"], abs=1e-9)
    assert sum(exact.outcomes.values()) == 1
    assert exact.outcomes["blackjack"] == blackjack_dealt(1)
    net = exact.outcomes["win"] - exact.outcomes["lose"] + exact.outcomes["blackjack"]
    # A blackjack in diamonds pays 2:1, one more than the others.
    assert exact.ev == net + Fraction(2, 663)


class _Refusing(Procedure):
    """Rows that take no decision."""

    def step(self, s: State, e: Event, /) -> Decision | Refused:
        decides = isinstance(e, Stand | Hit)
        return Refused("no", "not today") if decides else super().step(s, e)


def test_rows_that_refuse_to_be_enumerated_are_told() -> None:
    with pytest.raises(RoundStuck, match="Stand at turn: not today"):
        enumerate_stand(_Refusing(game_for("classic", {})))
