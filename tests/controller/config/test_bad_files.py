"""Whatever a file holds: the file, the key and what is allowed, and never a traceback."""

import contextlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from controller.config import files, load_game, load_jurisdiction, load_table, loader
from controller.config.loader import load
from controller.errors import UsageProblem, UsageProblems, each

SHEET = """
schema = 1
[game]
name = "mine"
title = "My game"
decks_allowed = [6, 8]
[options]
decks = 6
blackjack.pays = "3:2"
[because]
decks = ["mine.1"]
[clauses]
"mine.1" = "Dealt from a shoe."
"""
TABLE = """
schema = 1
[table]
name = "one"
game = "mega"
[options]
money.unit = 100
chips = [{ name = "white", value = 100 }, { name = "red", value = 500 }]
"""
JURISDICTION = """
schema = 1
[jurisdiction]
name = "here"
title = "Here"
[options]
burn.on_shuffle = 2
[ways.error_card]
way = "burn"
[ways.misdeal]
way = "floor_decides"
options = ["void"]
"""
WHOLE = {"game": SHEET, "table": TABLE, "jurisdiction": JURISDICTION}


def refused(path: Path) -> tuple[UsageProblem, ...]:
    with pytest.raises(UsageProblem) as caught:
        load(str(path))
    problems = each(caught.value)
    for problem in problems:
        assert problem.allowed, problem
        assert str(problem).isprintable()
    return problems


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str | bytes], Path]:
    def write(content: str | bytes) -> Path:
        path = tmp_path / "file.toml"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize("kind", list(WHOLE))
def test_the_unharmed_files_load(kind: str, write: Callable[[str | bytes], Path]) -> None:
    load(str(write(WHOLE[kind])))


@pytest.mark.parametrize(
    ("content", "line", "what"),
    [
        (b"", "", "does not say what it is"),
        (b"\xff\xfe\x00\x01", ":1", "is not text in UTF-8"),
        (b"schema = 1\n\xc3(\n", ":2", "is not text in UTF-8"),
        (b"\x7fELF\x02\x01\x01\x00", ":1", "invalid statement"),
        (b"schema = 1\n\n[game\n", ":3", "expected ']'"),
        (b'schema = 1\ntitle = "x', ":2", "unterminated string"),
        (b"a = 1\na = 2\n", ":2", "cannot overwrite a value"),
        (b"a = " + b"[" * 50_000, "", "has a value that is too long or too deep"),
        (b"a = " + b"9" * 10_000, "", "has a value that is too long or too deep"),
        (b"#" * (files.MAX_BYTES + 1), "", "is too large"),
        (b"[game]\n[table]\n", "", "has the head of more than one kind of file"),
        (b"decks = 6\n", "", "does not say what it is"),
    ],
)
def test_a_file_that_is_no_configuration(
    write: Callable[[str | bytes], Path], content: bytes, line: str, what: str
) -> None:
    path = write(content)
    (problem,) = refused(path)
    assert (problem.where, problem.what[: len(what)]) == (f"{path}{line}", what)


def test_a_byte_order_mark_is_no_mistake(write: Callable[[str | bytes], Path]) -> None:
    load(str(write(b"\xef\xbb\xbf" + SHEET.encode())))


def test_what_is_no_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    for name, what in {
        "": "is not a file",
        "fifo.toml": "is not a file",
        "missing.toml": "cannot be read: no such file or directory",
        "loop.toml": "cannot be read: too many levels of symbolic links",
        "x\0y.toml": "is no path",
        f"{'x' * 300}.toml": "cannot be read: file name too long",
    }.items():
        (problem,) = refused(tmp_path / name)
        assert problem.what == what


def test_a_file_that_may_not_be_read(
    write: Callable[[str | bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(SHEET)

    def denied(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", denied)
    (problem,) = refused(path)
    assert problem.what == "cannot be read: permission denied"


def test_an_unknown_name() -> None:
    for load_it, words in (
        (load_game, "there is no game 'x'; allowed: classic, maxtime, mega"),
        (load_table, "there is no table 'x'; allowed: blackjack-1, "),
        (load_jurisdiction, "there is no jurisdiction 'x'; allowed: default, "),
    ):
        with pytest.raises(UsageProblem, match=words):
            load_it("x")
    with pytest.raises(UsageProblem, match="there is no game 'megaa'; allowed: mega"):
        load_game("megaa")


def test_the_wrong_kind_of_file(write: Callable[[str | bytes], Path]) -> None:
    for load_it, content, words in (
        (load_game, TABLE, "is the file of a table; allowed: the file of a game"),
        (load_table, SHEET, "is the file of a game; allowed: the file of a table"),
        (load_jurisdiction, TABLE, "is the file of a table"),
    ):
        with pytest.raises(UsageProblem, match=words):
            load_it(write(content))


# old text, new text, the key that is named, what is wrong with it
CHANGES = [
    ("game", "schema = 1", "", "schema", "is missing"),
    ("game", "schema = 1", "schema = 2", "schema", "2 is not valid here"),
    ("game", "schema = 1", "schema = true", "schema", "true is not valid here"),
    ("game", "schema = 1", "schema = 1\nfoo = 1", "foo", "is no key of this table"),
    ("game", 'name = "mine"', "", "game.name", "is missing"),
    ("game", 'name = "mine"', 'name = "Mine!"', "game.name", "'Mine!' is not valid here"),
    ("game", 'title = "My game"', 'title = ""', "game.title", "'' is not valid here"),
    ("game", 'title = "My game"', 'titel = "x"', "game.titel", "is no key of this table"),
    ("game", 'title = "My game"', 'title = "a\\nb"', "game.title", "'a\\nb' has characters"),
    ("game", "[6, 8]", "[]", "game.decks_allowed", "it has 0 entries"),
    ("game", "[6, 8]", "[6, 6]", "game.decks_allowed", "6 is in it twice"),
    ("game", "[6, 8]", "[6, true]", "game.decks_allowed", "true is not valid here"),
    ("game", "[6, 8]", "[3]", "game.decks_allowed", "3 is not valid here"),
    ("game", "decks = 6", "decks = 4", "decks", "the game is not dealt from 4"),
    ("game", "decks = 6", "decks = 6.0", "decks", "6.0 is not valid here"),
    ("game", "decks = 6", "decks = true", "decks", "true is not valid here"),
    ("game", "decks = 6", 'decks = "6"', "decks", "'6' is not valid here"),
    ("game", "decks = 6", "decks = 0x" + "f" * 9000, "decks", "a number of over 19 digits"),
    ("game", "decks = 6", "decks = 2024-01-01", "decks", "2024-01-01 is not valid here"),
    ("game", "decks = 6", 'decks = "none"', "decks", "it cannot be taken away"),
    ("game", "decks = 6\n", "", "decks", "is missing"),
    ("game", '"3:2"', '"3-2"', "blackjack.pays", "'3-2' is not valid here"),
    ("game", '"3:2"', '"3:0"', "blackjack.pays", "'3:0' is not valid here"),
    ("game", '"3:2"', "1.5", "blackjack.pays", "1.5 is not valid here"),
    ("game", '"3:2"', '"3:2"\nblackjack.pay = 1', "blackjack.pay", "is no option"),
    ("game", '"3:2"', '"3:2"\nsurender.when = "never"', "surender", "is no option"),
    ("game", '"3:2"', '"3:2"\nsplit = 3', "split", "3 is not a table"),
    ("game", '"3:2"', '"3:2"\n"blackjack.pays" = "2:1"', "blackjack.pays", "is set twice"),
    ("game", '"3:2"', '"3:2"\nwins.pays_21 = "none"', "wins.pays_21", "it cannot be taken away"),
    ("game", '"3:2"', '"3:2"\ntoke.allowed = 1', "toke.allowed", "1 is not valid here"),
    ("game", '"3:2"', '"3:2"\ntoke.allowed = {}', "toke.allowed", "a table is not valid here"),
    ("game", '"3:2"', '"3:2"\n"\\u0000" = 1', "\\x00", "is no option"),
    ("game", '"3:2"', '"3:2"\nburn.on_shuffle = -1', "burn.on_shuffle", "-1 is not valid here"),
    ("game", '"3:2"', '"3:2"\ndealer.peek = "A"', "dealer.peek", "'A' is not valid here"),
    ("game", '"3:2"', '"3:2"\ndealer.peek = ["K"]', "dealer.peek", "'K' is not valid here"),
    (
        "game",
        '"3:2"',
        '"3:2"\nbonus.buster.pays = { 4 = 0 }',
        "bonus.buster.pays",
        "4: 0 is not valid here",
    ),
    (
        "game",
        '"3:2"',
        '"3:2"\nbonus.buster.pays = { four = 1 }',
        "bonus.buster.pays",
        "four: 'four' is not valid here",
    ),
    ("game", 'decks = ["mine.1"]', 'deks = ["mine.1"]', "because.deks", "is no option"),
    ("game", 'decks = ["mine.1"]', 'decks = "mine.1"', "because.decks", "'mine.1' is not valid"),
    ("game", 'decks = ["mine.1"]', 'decks = ["mine.2"]', "because.decks", "mine.2 is no clause"),
    ("game", '"Dealt from a shoe."', "1", "clauses.mine.1", "1 is not valid here"),
    ("game", "[clauses]", "[clauses.x]", "clauses.x", "a table is not valid here"),
    ("game", "[because]\ndecks = [", "because = [", "because", ""),
    ("table", 'game = "mega"', "", "table.game", "is missing"),
    ("table", 'game = "mega"', 'game = "maga"', "table.game", "there is no game 'maga'"),
    ("table", 'game = "mega"', 'game = "mega"\nseats = 0', "table.seats", "0 is not valid here"),
    ("table", 'game = "mega"', 'game = "mega"\nseats = 8', "table.seats", "8 is not valid here"),
    ("table", 'game = "mega"', 'game = "mega"\nshoe = "x"', "table.shoe", "is no key"),
    (
        "table",
        'game = "mega"',
        'game = "mega"\njurisdiction = "x"',
        "table.jurisdiction",
        "there is no jurisdiction 'x'",
    ),
    (
        "table",
        "[options]",
        "[currency]\ncode = 'usd'\n[options]",
        "currency.code",
        "'usd' is not valid",
    ),
    ("table", "[options]", "[option]", "option", "is no key of this table"),
    ("table", "[options]", "[clauses]\n[options]", "clauses", "is no key of this table"),
    ("table", "money.unit = 100", "money.unit = 0", "money.unit", "0 is not valid here"),
    ("table", "money.unit = 100", "money.unit = 50", "chips", "the smallest is worth 100"),
    ("table", "money.unit = 100", "money.unit = 200", "chips", "white is worth 100"),
    ("table", "money.unit = 100", "limits.main.min = -5", "limits.main.min", "-5 is not valid"),
    ("table", "money.unit = 100", "limits = 5", "limits", "5 is not a table"),
    ("table", "money.unit = 100", "decks = 1", "decks", "the game is not dealt from 1"),
    ("table", "money.unit = 100", "decks = 7", "decks", "7 is not valid here"),
    ("table", '"white"', '"red"', "chips", "two chips have one name"),
    ("table", "value = 500", "value = 100", "chips", "two chips have one value"),
    ("table", "value = 500", "value = 100.0", "chips", "100.0 is not valid here"),
    ("table", "value = 500", "value = true", "chips", "true is not valid here"),
    ("table", "value = 500", "worth = 500", "chips", "a table is not a chip"),
    ("table", '"white"', '""', "chips", "'' is not valid here"),
    ("table", "{ name", "[{ name", "chips", ""),
    ("jurisdiction", 'title = "Here"', "", "jurisdiction.title", "is missing"),
    (
        "jurisdiction",
        "title",
        "two_people = ['x']\ntitle",
        "jurisdiction.two_people",
        "'x' is not valid",
    ),
    ("jurisdiction", "title", "two_people = []\ntitle", "jurisdiction.two_people", "it is without"),
    ("jurisdiction", "burn.on_shuffle", "burn.on_shufle", "burn.on_shufle", "is no option"),
    ("jurisdiction", "= 2", '= 2\ndealer.soft_17 = "hit"', "dealer.soft_17", "is not a juris"),
    ("jurisdiction", "= 2", "= 2\nlimits.main.min = 1", "limits.main.min", "is not a juris"),
    ("jurisdiction", "error_card", "eror_card", "ways.eror_card", "is no key of this table"),
    ("jurisdiction", '"burn"', '"discard"', "ways.error_card.way", "'discard' is not valid"),
    ("jurisdiction", 'way = "burn"', "", "ways.error_card.way", "is missing"),
    ("jurisdiction", '"burn"', '"burn"\nfoo = 1', "ways.error_card.foo", "is no key"),
    (
        "jurisdiction",
        '"burn"',
        '"burn"\ntwo_people = 1',
        "ways.error_card.two_people",
        "1 is not valid",
    ),
    ("jurisdiction", '"burn"', '"burn"\noptions = ["void"]', "ways.error_card.options", "the way"),
    ("jurisdiction", '["void"]', '["burn"]', "ways.misdeal.options", "'burn' is not valid"),
    ("jurisdiction", '["void"]', '["void", "void"]', "ways.misdeal.options", "'void' is in it"),
    ("jurisdiction", '["void"]', "[]", "ways.misdeal.options", "it has 0 entries"),
    ("jurisdiction", "[ways.misdeal]", "[[ways.misdeal]]", "ways.misdeal", "a list is not a table"),
]


@pytest.mark.parametrize(("kind", "old", "new", "key", "what"), CHANGES)
def test_one_mistake_in_a_file(
    write: Callable[[str | bytes], Path], kind: str, old: str, new: str, key: str, what: str
) -> None:
    assert old in WHOLE[kind]
    path = write(WHOLE[kind].replace(old, new, 1))
    problems = refused(path)
    if not what:  # mistakes that TOML itself or several keys stumble over
        return
    assert (problems[0].where, problems[0].what[: len(what)]) == (f"{path}: {key}", what)


def test_the_nearest_key_and_the_keys_of_its_table(write: Callable[[str | bytes], Path]) -> None:
    (problem,) = refused(write(SHEET.replace("blackjack.pays", "blackjack.payz")))
    assert problem.allowed == (
        "blackjack.pays? in blackjack: pays, pays_diamonds, tie, ten_up, paid"
    )
    assert refused(write(SHEET.replace("title", "titel")))[0].allowed == (
        "title? name, title, source, decks_allowed, blackjack_pays"
    )


def test_the_sheet_lists_what_blackjack_may_pay() -> None:
    with pytest.raises(UsageProblem) as refusal:
        load_game("sf21x", {"blackjack.pays": "3:2"})
    assert str(refusal.value) == (
        "overrides: blackjack.pays: 3:2 is none of the odds that the sheet lists; "
        "allowed: 5:2, 12:5, 2:1"
    )


def test_what_is_allowed_is_the_games_own(write: Callable[[str | bytes], Path]) -> None:
    (problem,) = refused(write(SHEET.replace("decks = 6", "decks = 7")))
    assert problem.allowed == "6 or 8 (How many decks of 52 cards are in the shoe)"


def test_all_mistakes_at_once(write: Callable[[str | bytes], Path]) -> None:
    path = write(
        SHEET.replace('title = "My game"', "title = 1").replace("decks = 6", "decks = 6.5\nx = 1")
    )
    problems = refused(path)
    assert [problem.where.removeprefix(f"{path}: ") for problem in problems] == [
        "game.title",
        "decks",
        "x",
    ]
    with pytest.raises(UsageProblems) as caught:
        load_game(path)
    assert str(caught.value).count("\n") == 2
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_paths_in_a_table_start_where_the_table_lies(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    (tmp_path / "games" / "mine.toml").write_text(SHEET)
    (tmp_path / "here.toml").write_text(JURISDICTION)
    table = tmp_path / "table.toml"
    table.write_text(
        TABLE.replace('"mega"', '"games/mine.toml"\njurisdiction = "here.toml"\nseats = 5')
    )
    found = load_table(table)
    assert (found.sheet.name, found.seats, found.title) == ("mine", 5, "one")
    assert found.sheet.options.burn.on_shuffle == 2
    assert found.sheet.origin["burn.on_shuffle"].source == str(tmp_path / "here.toml")
    assert isinstance(loader.load(str(table)), loader.TableConfig)


GARBAGE = st.recursive(
    st.one_of(
        st.integers(),
        st.booleans(),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.sampled_from(['"none"', '"3:2"', '"hit"', '"x"', "[]", "{}", "1979-05-27"]),
    ),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=6,
).map(lambda value: str(value).lower().replace("'", ""))


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_garbage_in_any_line_is_refused_or_read(
    write: Callable[[str | bytes], Path], data: st.DataObject
) -> None:
    lines = WHOLE[data.draw(st.sampled_from(list(WHOLE)))].splitlines()
    place = data.draw(st.integers(0, len(lines) - 1))
    key = lines[place].partition("=")[0]
    lines[place] = data.draw(
        st.one_of(
            GARBAGE.map(lambda value: f"{key} = {value}"),
            st.text(max_size=20),
            st.just(lines[place][: data.draw(st.integers(0, 20))]),
        )
    )
    path = write("\n".join(lines).encode("utf-8", "surrogatepass"))
    with contextlib.suppress(UsageProblem):
        load(str(path))
        return
    refused(path)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200))
def test_any_bytes_are_refused(write: Callable[[str | bytes], Path], content: bytes) -> None:
    refused(write(content))
