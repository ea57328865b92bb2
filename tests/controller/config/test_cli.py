"""`holecard config check` and `config show`."""

import json
from pathlib import Path

import pytest

from controller.cli import main
from controller.config.options import LEAVES
from tests.support.commands import Says
from tests.support.paths import ROOT

HERE = ROOT / "configs"


def test_check_says_ok_of_each_file(said: Says) -> None:
    ours = [str(path) for path in sorted(HERE.rglob("*.toml"))]
    ours = [path for path in ours if "/deploy/" not in path]
    answer = said(main(["config", "check", "mega", *ours]))
    lines = answer.out.splitlines()
    assert answer.done()
    assert lines[0] == "ok: mega: game mega, Mega Blackjack with Buster Blackjack"
    assert [line.split(": ")[1] for line in lines[1:]] == ours
    assert any(": jurisdiction strict, Strict house" in line for line in lines)
    assert any(": table mega-1, Mega 1, dealing Mega Blackjack" in line for line in lines)


def test_check_tells_all_problems_and_exits_2(tmp_path: Path, said: Says) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text('schema = 1\n[table]\nname = "x"\ngame = "mega"\n[options]\nx = 1\ndecks = 0\n')
    code, out, err = said(main(["config", "check", "maxtime", str(bad), str(tmp_path)]))
    assert (code, out) == (2, "ok: maxtime: game maxtime, MaxTime 21\n")
    lines = err.splitlines()
    assert lines[0].startswith(f"{bad}: x: is no option; allowed: decks, blackjack, ")
    assert lines[1].startswith(f"{bad}: decks: 0 is not valid here; allowed: 6 or 8 (")
    assert lines[2] == f"{tmp_path}: is not a file; allowed: a TOML file"
    answer = said(main(["config", "check", str(bad), "--json"]))
    found = json.loads(answer.out)["files"][0]
    assert (answer.code, found["file"], found["ok"]) == (2, str(bad), False)
    assert [problem["where"] for problem in found["problems"]] == [f"{bad}: x", f"{bad}: decks"]


def test_show_lists_every_option_with_its_origin(said: Says) -> None:
    settings = ["--set", "blackjack.tie=push", "--set", "decks=2", "--set", "surrender.when=never"]
    title, *lines = said(main(["config", "show", "sf21x", *settings])).out.splitlines()
    assert title == "game sf21x, Super Fun 21 Extreme (configs/games/sf21x.toml)"
    rows = {line.split()[0]: line.split()[1:] for line in lines}
    assert list(rows) == list(LEAVES)
    expected = {
        "decks": ["2", "--set"],
        "blackjack.tie": ["push", "--set"],
        "blackjack.pays": ["5:2", "configs/games/sf21x.toml", "sf21x.6"],
        "double.natural": ["false", "configs/games/sf21x.toml", "sf21x.4"],
        "surrender.of_doubled": ["none", "left", "out:"],
    }
    assert {path: rows[path][:3] for path in expected} == expected


def test_show_explains(said: Says) -> None:
    assert said(main(["config", "show", "mega", "--explain"])).told(
        "    What the dealer does with a soft 17. Allowed: hit or stand.\n",
        "    mega.1: Dealer hits on soft 17.\n",
        "    How many decks of 52 cards are in the shoe. Allowed: 6 or 8.\n",
    )


def test_show_as_json_can_be_laid_over_again(said: Says) -> None:
    shown = said(main(["config", "show", "mega", "--json"])).json
    assert shown["kind"] == "game"
    option = shown["options"]["bonus.buster.pays"]
    assert (option["value"], option["clauses"]) == (
        {"4": 6, "5": 10, "6": 15, "7": 50, "8": 250},
        ["mega.intro3", "mega.buster1", "mega.buster2"],
    )
    settings = [f"{path}={json.dumps(row['value'])}" for path, row in shown["options"].items()]
    settings = [setting for setting in settings if not setting.endswith("=null")]
    arguments = [word for setting in settings for word in ("--set", setting)]
    again = said(main(["config", "show", "mega", "--json", *arguments])).json
    values = [
        {path: row["value"] for path, row in one["options"].items()} for one in (shown, again)
    ]
    assert values[0] == values[1]


@pytest.mark.parametrize("table", sorted(path.stem for path in (HERE / "tables").glob("*.toml")))
def test_show_a_table(table: str, said: Says) -> None:
    path = str(HERE / "tables" / f"{table}.toml")
    assert said(main(["config", "show", path])).told(
        "jurisdiction default, House default, after South Dakota\n7 seats; USD",
        "half 50, white 100, red 500",
    )
    shown = said(main(["config", "show", path, "--json"])).json
    assert shown["kind"] == "table"
    assert shown["currency"] == {"symbol": "$", "code": "USD", "minor_digits": 2}
    assert shown["game"]["options"]["chips"]["value"][0] == {"name": "half", "value": 50}
    assert shown["game"]["options"]["decks"]["layer"] == "table"


def test_show_a_jurisdiction(said: Says) -> None:
    path = str(HERE / "jurisdictions" / "strict.toml")
    assert said(main(["config", "show", path])).told(
        "payments declared first: true\n",
        "floor_decides: use_next, burn, void\n",
        "decks_out; two people\n",
    )
    shown = said(main(["config", "show", path, "--json"])).json
    assert shown["ways"]["error_card"]["options"] == ["use_next", "burn", "void"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nope"], "nope: there is no game 'nope'; allowed: classic, maxtime, mega, sf21x, "),
        (["mega", "--set", "decks"], "--set: 'decks' sets nothing; allowed: PATH=VALUE"),
        (["mega", "--set", "decks=6", "--set", "decks=8"], "--set: decks: is set twice"),
        (["mega", "--set", "decks=1"], "--set: decks: the game is not dealt from 1"),
        (["mega", "--set", "decks=NaN"], "--set: decks: nan is not valid here"),
        (["mega", "--set", "decks=" + "9" * 5000], "--set: decks: '999"),
        (["mega", "--set", "chips=" + "[" * 100_000], "--set: chips: '[[["),
        (["mega", "--set", 'chips=[{"name":"\\ud800","value":1}]'], "--set: chips: '\\ud800' has"),
        (["mega", "--set", "\udcff=1"], "--set: \\udcff: is no option"),
        (["\udcff"], "\\udcff: there is no game '\\udcff'"),
    ],
)
def test_what_show_refuses(arguments: list[str], words: str, said: Says) -> None:
    assert said(main(["config", "show", *arguments])).refused(words)


def test_a_jurisdiction_has_no_options_to_set(said: Says) -> None:
    path = str(HERE / "jurisdictions" / "strict.toml")
    assert said(main(["config", "show", path, "--set", "decks=6"])).refused(
        "a jurisdiction has no game to set options of"
    )
