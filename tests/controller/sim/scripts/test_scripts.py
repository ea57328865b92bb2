"""`holecard script run`: what it prints and refuses, how it judges rounds, and --over."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from controller import cli
from controller.procedure.engine import Procedure
from controller.rules.option_constraints import MAX_MONEY
from controller.sim import overs
from controller.sim.scripts import PlaysScript, RoundResult, RoundWatcher, ScriptRound
from controller.sim.scripts.command import OverFailed
from controller.sim.scripts.runner import play_script
from tests.support.commands import Said, Says
from tests.support.paths import SCRIPT_FILES
from tests.support.sim.a_round import ROUND, action, changed, refused
from tests.support.sim.bad_scripts import UNUSABLE

FILES = sorted(SCRIPT_FILES.glob("*.json"))


class Run(NamedTuple):
    """Runs rounds out of one file, or what is in it; the errors have FILE for its name."""

    file: Path
    said: Says

    def __call__(
        self, *rounds: dict[str, Any], raw: bytes | None = None, options: tuple[str, ...] = ()
    ) -> Said:
        document = {"schema": 1, "rounds": rounds}
        self.file.write_bytes(json.dumps(document).encode() if raw is None else raw)
        answer = self.said(cli.main(["script", "run", str(self.file), *options]))
        return answer._replace(err=answer.err.replace(str(self.file), "FILE"))


@pytest.fixture
def run(tmp_path: Path, said: Says) -> Run:
    return Run(tmp_path / "file.json", said)


# --- what it prints ----------------------------------------------------------------------------


@pytest.mark.parametrize("file", FILES, ids=lambda path: str(path.name))
def test_our_rounds_come_out_as_expected(file: Path, said: Says) -> None:
    answer = said(cli.main(["script", "run", str(file)]))
    rounds = len(json.loads(file.read_bytes())["rounds"])
    assert answer.told(f"\n{rounds} rounds: {rounds} as expected, 0 not\n")
    assert answer.out.count("\n") == rounds + 1


def test_a_round_is_a_line_and_a_failure_one_below_it(run: Run) -> None:
    bad = changed(id="R-2", expect={"seat_net": {"1": 5}, "dealer_cards": ["6C", "TS", "5H"]})
    code, out, err = run(ROUND, bad)
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "ok    R-1  Stands on 20",
        "FAIL  R-2  Stands on 20",
        '      dealer_cards[2]: expected "5H", got "5D"',
        "      seat_net.1: expected 5, got -1000",
        "2 rounds: 1 as expected, 1 not",
    ]


def test_the_file_of_a_failure_is_named_when_there_are_several(tmp_path: Path, said: Says) -> None:
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    good.write_text(json.dumps({"schema": 1, "rounds": [ROUND]}))
    bad.write_text(json.dumps({"schema": 1, "rounds": [changed(expect={"seat_net": {"1": 0}})]}))
    # The id stands in both files: it names a round of its file.
    code, out, _ = said(cli.main(["script", "run", str(good), str(bad)]))
    assert code == 1
    assert f"FAIL  R-1  Stands on 20  ({bad})\n" in out


def test_json_has_the_results_and_no_more(run: Run) -> None:
    answer = run(ROUND, options=("--json",))
    assert answer.done()
    assert answer.json == {
        "rounds": [
            {
                "id": "R-1",
                "ok": True,
                "failures": [],
                "dealer_cards": ["6C", "TS", "5D"],
                "hands": [
                    {
                        "seat": 1,
                        "hand": 0,
                        "cards": ["TC", "TD"],
                        "wager": 1000,
                        "outcome": "lose",
                        "odds": None,
                        "returned": 0,
                        "net": -1000,
                        "when": "settle",
                    }
                ],
                "side_bets": [],
                "seat_net": {"1": -1000},
                "rejected_bets": [],
                "rejected_actions": [],
            }
        ]
    }


def test_json_says_what_failed_and_exits_with_1(run: Run) -> None:
    code, out, _ = run(changed(expect={"seat_net": {"1": 0}}), options=("--json",))
    assert code == 1
    assert json.loads(out)["rounds"][0]["failures"] == ["seat_net.1: expected 0, got -1000"]


def test_verbose_says_it_prompt_by_prompt(run: Run) -> None:
    actions = [refused("hit", hand=3), action("stand")]
    code, out, _ = run(changed(actions=actions), options=("--verbose",))
    assert code == 0
    for line in (
        "R-1  Stands on 20:",
        "    Deal the hole card, face down",
        "    Seat 1 - hard 20 - hit, stand, double or split",
        "    refused: seat 1 hand 4 is not in turn: seat 1 hand 1 is",
        "    Dealer has hard 16 - draw the third card",
        "    Seat 1 - 20 loses to the dealer - take $10",
        "    * Round 1 is over, $0 won",
        "ok    R-1  Stands on 20",
    ):
        assert f"{line}\n" in out, line
    before, _, after = out.partition("Turn the hole card over")
    assert "TS" not in before
    assert "TS" in after


def test_verbose_or_json_but_not_both(run: Run) -> None:
    assert run(ROUND, options=("--json", "--verbose")).refused("not allowed with")


def test_no_rounds_are_no_failure(run: Run) -> None:
    assert run() == (0, "0 rounds: nothing was checked\n", "")


def test_text_that_cannot_be_printed_is_told_by_its_number(run: Run) -> None:
    assert run(changed(title="two\nlines \x1b[2J"))[1].splitlines()[0] == (
        "ok    R-1  two\\nlines \\x1b[2J"
    )


# --- files that cannot be used -----------------------------------------------------------------


@pytest.mark.parametrize("bad", [each[1:] for each in UNUSABLE], ids=[each[0] for each in UNUSABLE])
def test_a_file_that_cannot_be_used_says_where_and_why(
    run: Run, bad: tuple[bytes | dict[str, Any], str]
) -> None:
    what, message = bad
    # The first round is good: it is not played either.
    answer = run(raw=what) if isinstance(what, bytes) else run(changed(id="R-0"), what)
    assert answer.refused("holecard: FILE: ")
    assert message in answer.err.replace("round #2", "round #1")
    assert "Traceback" not in answer.err


def test_an_id_stands_once_in_its_file(run: Run) -> None:
    message = "holecard: FILE: round R-1: id: is given twice; allowed: one round an id\n"
    assert run(ROUND, ROUND) == (2, "", message)


@pytest.mark.parametrize(
    ("name", "why"), [("", "cannot be read: Is a directory"), ("*.json", "no such file")]
)
def test_a_directory_or_a_pattern_is_no_file(
    tmp_path: Path, said: Says, name: str, why: str
) -> None:
    assert said(cli.main(["script", "run", str(tmp_path / name)])).refused(why)


def test_a_later_file_that_cannot_be_used_stops_all(tmp_path: Path, said: Says) -> None:
    files = [str(FILES[0]), str(tmp_path / "none.json")]
    assert said(cli.main(["script", "run", *files, "--json"])).refused("no such file")


HERE = __name__
begun: list[list[str]] = []
"""The rounds that each run was told of before it began, by id."""

Announce = Callable[[str], None]


@pytest.fixture
def announce(monkeypatch: pytest.MonkeyPatch) -> Announce:
    """Announces what plays over air, and nothing else."""
    begun.clear()

    def make(target: str) -> None:
        def points(group: str) -> tuple[EntryPoint, ...]:
            return (EntryPoint("air", target, group),) if group == overs.GROUP else ()

        monkeypatch.setattr(overs, "entry_points", points)

    return make


@contextmanager
def over_air(rounds: Sequence[tuple[ScriptRound, Procedure]]) -> Iterator[PlaysScript]:
    begun.append([scripted.script.id for scripted, _ in rounds])

    def play(
        scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        return play_script(scripted, watch, procedure)

    yield play


@contextmanager
def over_ice(rounds: Sequence[tuple[ScriptRound, Procedure]]) -> Iterator[PlaysScript]:
    def play(
        scripted: ScriptRound, watch: RoundWatcher | None, procedure: Procedure
    ) -> RoundResult:
        raise OverFailed("the ice has broken")

    yield play


AIR = ("--over", "air")


@pytest.mark.parametrize("form", [(), ("--json",), ("--verbose",)])
def test_the_answer_is_printed_the_same(
    form: tuple[str, ...], run: Run, announce: Announce
) -> None:
    announce(f"{HERE}:over_air")
    rounds = (ROUND, changed(id="R-2", expect={"seat_net": {"1": 5}}))
    alone = run(*rounds, options=form)
    assert alone[0] == 1
    assert run(*rounds, options=(*form, *AIR)) == alone
    assert begun == [["R-1", "R-2"]]


def test_what_has_failed_is_neither_right_nor_wrong(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_ice")
    assert run(ROUND, options=AIR) == (70, "", "holecard: the ice has broken\n")


def test_nothing_begins_where_a_file_cannot_be_used(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_air")
    assert run(raw=b"no script", options=AIR)[0] == 2
    assert begun == []


def test_over_takes_what_is_announced_and_no_more(run: Run, announce: Announce) -> None:
    announce(f"{HERE}:over_air")
    assert run(ROUND, options=("--over", "engine"))[0] == 0
    assert run(ROUND, options=("--over", "steam")).refused("choose from", "engine", "air")


@pytest.mark.parametrize("target", ["no_such_module:over", f"{HERE}:no_such_name"])
def test_what_cannot_be_loaded_is_named(target: str, run: Run, announce: Announce) -> None:
    announce(target)
    assert run(ROUND, options=AIR).mistaken(
        f"holecard: --over air: {target} cannot be loaded: ", "; allowed: --over engine\n"
    )


def test_what_keeps_a_record_of_its_own_takes_no_other(
    run: Run, announce: Announce, tmp_path: Path
) -> None:
    announce(f"{HERE}:over_air")
    place = tmp_path / "record"
    assert run(ROUND, options=(*AIR, "--record", str(place))).refused(
        "--over air keeps a record of its own; allowed: --over engine"
    )
    assert not place.exists()


def result(run: Run, **changes: Any) -> Any:
    answer = run(changed(**changes), options=("--json",))
    made = json.loads(answer.out)["rounds"][0]
    assert answer.code == (0 if made["ok"] else 1)
    return made


def wagers(seat: int = 1, **bets: int) -> list[dict[str, object]]:
    return [{"seat": seat, "bets": bets}]


BUSTS: dict[str, Any] = {"shoe": ["TC", "6C", "6D", "TS", "KD"], "expect": {}}
ACE_UP: dict[str, Any] = {"shoe": ["TC", "AC", "8D", "7S"], "expect": {}}
BY_THIRD_21: dict[str, Any] = {"shoe": ["TC", "6C", "6D", "TS", "5H", "5D"], "expect": {}}
WAITS_AT_21 = {**BY_THIRD_21, "game": "sf21x", "config": {"dealer.push_22": False}}
"""21 may be doubled there, so it waits."""
UNDEALT: dict[str, Any] = {"shoe": [], "actions": [], "expect": {}}

HOLDS: dict[str, dict[str, Any]] = {
    "a stand is skipped for a hand that stood by itself": {
        **BY_THIRD_21,
        "actions": [action("hit"), action("stand")],
    },
    "what is implicit is skipped for a hand that ended by itself": {
        **BUSTS,
        "actions": [
            action("hit"),
            action("hit", implicit=True),
            action("stand", implicit=True),
        ],
    },
    "a hand at 21 stands when no action is left": {**WAITS_AT_21, "actions": [action("hit")]},
    "a hand at 21 stands when the next action is not for it": {
        **WAITS_AT_21,
        "actions": [action("hit"), refused("hit")],
    },
    "a seat without an insurance action declines": ACE_UP,
    "the burn of a config burns nothing": {"config": {"burn.on_shuffle": 3}},
    "a shoe that is to be shuffled afterwards ends the round all the same": {
        "config": {"shuffle.max_rounds": 1}
    },
    "null odds are expected": {"expect": {"hands": [{"odds": None}]}},
    "absent fields are not judged": {"expect": {"hands": [{}]}},
}


@pytest.mark.parametrize("changes", HOLDS.values(), ids=HOLDS)
def test_what_holds(run: Run, changes: dict[str, Any]) -> None:
    assert result(run, **changes)["failures"] == []


FAILS: dict[str, tuple[dict[str, Any], str]] = {
    "a card left over": ({"shoe": [*ROUND["shoe"], "2C", "3C"]}, "shoe: 2 left over: 2C, 3C"),
    "a card too few, and what for": (
        {"shoe": ROUND["shoe"][:-1], "expect": {}},
        "shoe: one too few: Dealer has hard 16 - draw the third card",
    ),
    "a missing decision": (
        {"shoe": ["TC", "6C", "6D", "TS"], "actions": [], "expect": {}},
        "actions: seat 1 hand 0 waits for a decision with 16; none left",
    ),
    "a decision of somebody who does not play": (
        {"actions": [action("stand", seat=5)], "expect": {}},
        "actions: seat 1 hand 0 waits for a decision with 20; the next, actions[0], is for another",
    ),
    "a refusal without the mark": (
        {"actions": [action("surrender"), action("stand")]},
        "actions[0]: surrender of seat 1 refused: ",
    ),
    "an acceptance with the mark": (
        {"actions": [refused("stand")]},
        "actions[0]: stand of seat 1 was to be refused",
    ),
    "a stand for a hand that ended by a bust": (
        {**BUSTS, "actions": [action("hit"), action("stand")]},
        "actions[1]: stand of seat 1 refused",
    ),
    "a stand for a hand that the script ended": (
        {"actions": [action("stand"), action("stand")]},
        "actions[1]: stand of seat 1 refused",
    ),
    "what is implicit, for a hand that the script ended": (
        {"actions": [action("stand"), action("stand", implicit=True)]},
        "actions[1]: stand of seat 1 refused",
    ),
    # It would prove nothing to have a hit refused because insurance is open.
    "a decision that is to be refused waits for its phase": (
        {**ACE_UP, "actions": [refused("hit"), action("stand")]},
        "actions[0]: hit of seat 1 was to be refused and was accepted",
    ),
    "odds that are expected and were not paid": (
        {"expect": {"hands": [{"odds": "1:1"}]}},
        'hands[0].odds: expected "1:1", got null',
    ),
    "a list of another length": (
        {"expect": {"hands": [], "side_bets": []}},
        "hands: expected 0 of them, got 1: ",
    ),
}


@pytest.mark.parametrize(("changes", "failure"), FAILS.values(), ids=FAILS)
def test_what_fails(run: Run, changes: dict[str, Any], failure: str) -> None:
    assert result(run, **changes)["failures"][0].startswith(failure)


@pytest.mark.parametrize("amount", [0, -5, MAX_MONEY + 1])
def test_a_wager_of_nothing_or_too_much_is_refused(run: Run, amount: int) -> None:
    made = result(run, seats=wagers(main=amount), **UNDEALT | {"expect": {"seat_net": {"1": 0}}})
    assert made["ok"]
    assert (made["rejected_bets"][0]["amount"], made["hands"]) == (amount, [])


def test_the_largest_wager_is_settled_to_the_cent(run: Run) -> None:
    assert result(run, seats=wagers(main=MAX_MONEY), expect={"seat_net": {"1": -MAX_MONEY}})["ok"]


def test_with_no_main_wager_anywhere_no_card_is_dealt(run: Run) -> None:
    seats, play = wagers(2, buster=100, toke_main=100), [refused("hit", seat=2)]
    made = result(run, game="mega", seats=seats, **UNDEALT | {"actions": play})
    assert made["ok"]
    assert [bet["bet"] for bet in made["rejected_bets"]] == ["buster", "toke_main"]
    assert (made["rejected_actions"], made["seat_net"]) == ([0], {"2": 0})


def test_a_decision_is_refused_amid_the_insurance_where_it_is_listed_there(run: Run) -> None:
    actions = [refused("hit"), action("insure", amount=500), action("stand")]
    made = result(run, **ACE_UP, actions=actions)
    assert made["ok"]
    assert (made["rejected_actions"], made["side_bets"][0]["outcome"]) == ([0], "lose")


def test_actions_listed_after_the_round_are_refused_there(run: Run) -> None:
    actions = [action("stand"), refused("split"), refused("insure", amount=5)]
    made = result(run, actions=actions)
    assert made["ok"]
    assert made["rejected_actions"] == [1, 2]
