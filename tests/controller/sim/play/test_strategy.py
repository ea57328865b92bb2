"""The strategy files, what is refused in one, and the lookup."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controller.errors import UsageProblem
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER
from controller.sim.play import POLICIES, Strategy, basic, load, strategy
from controller.sim.play.strategy import parse

GAMES = ("maxtime", "sf21x", "classic", "mega")
FILES = Path(strategy.__file__).with_name("strategies")
TEN, ACE = 10, 1
ALL = HIT | STAND | DOUBLE | SPLIT | SURRENDER
TWO_BETS = HIT | STAND | DOUBLE
AFTER_DOUBLE = STAND | DOUBLE | SURRENDER
UPS = (2, 3, 4, 5, 6, 7, 8, 9, TEN, ACE)

STRATEGIES = {**POLICIES, **{game: basic(game) for game in GAMES}}


def play(  # noqa: PLR0913 - a hand, spelled out
    policy: Strategy,
    total: int,
    up: int,
    *,
    soft: bool = False,
    count: int = 2,
    pair: int = 0,
    doubles: int = 0,
    split: bool = False,
    legal: int = ALL,
) -> int:
    return policy.choose(total, soft, count, pair, doubles, split, up, legal)


def row(game: str, total: int, legal: int, *, soft: bool = False, pair: int = 0) -> str:
    """What is played against 2 3 4 5 6 7 8 9 T A, in letters."""
    letters = {HIT: "H", STAND: "S", DOUBLE: "D", SPLIT: "P", SURRENDER: "R"}
    policy = STRATEGIES[game]
    return "".join(
        letters[play(policy, total, up, soft=soft, pair=pair, legal=legal)] for up in UPS
    )


# --- the files ------------------------------------------------------------------------------


@pytest.mark.parametrize("game", GAMES)
def test_each_file_loads_and_says_what_it_is(game: str) -> None:
    text = (FILES / f"{game}.toml").read_text(encoding="utf-8")
    policy = load(FILES / f"{game}.toml")
    assert (policy, policy.name) == (STRATEGIES[game], "basic")
    assert "not proven optimal" in policy.note
    assert [policy.insurance, policy.even_money] == [False, False]
    head = text[: text.index("name =")]
    assert "deck" in head
    assert "not proven optimal" in " ".join(head.replace("#", " ").split())
    assert max(map(len, text.splitlines())) <= 100


def cells(game: str) -> Iterator[tuple[str, str]]:
    section = ""
    for line in (FILES / f"{game}.toml").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif section and "=" in line and not line.startswith("#"):
            for cell in line.split('"')[1].split():
                yield section, cell


@pytest.mark.parametrize("game", GAMES)
def test_the_letters_of_every_cell_fit_the_game(game: str) -> None:
    found = set(cells(game))
    letters = {letter for _, cell in found for letter in cell.upper()}
    if game in ("classic", "mega"):
        assert letters == set("HSDP-")
        assert {section for section, _ in found} == {"hard", "soft", "pairs"}
    else:
        assert letters == set("HSDPR-")
    for section, cell in found:
        if section.startswith("doubled"):
            assert set(cell.upper()) <= set("SDR")
        if section != "pairs":
            assert not set(cell) & set("Pp-")


# --- cells that are known -------------------------------------------------------------------


def test_classic_is_the_well_known_chart_for_hard_totals() -> None:
    two = HIT | STAND | DOUBLE
    expected = {
        17: "SSSSSSSSSS",
        16: "SSSSSHHHHH",
        15: "SSSSSHHHHH",
        14: "SSSSSHHHHH",
        13: "SSSSSHHHHH",
        12: "HHSSSHHHHH",
        11: "DDDDDDDDDD",
        10: "DDDDDDDDHH",
        9: "HDDDDHHHHH",
        8: "HHHHHHHHHH",
        5: "HHHHHHHHHH",
    }
    assert {total: row("classic", total, two) for total in expected} == expected


def test_classic_is_the_well_known_chart_for_soft_totals_and_pairs() -> None:
    two = HIT | STAND | DOUBLE
    soft = {
        20: "SSSSSSSSSS",
        19: "SSSSDSSSSS",
        18: "DDDDDSSHHH",
        17: "HDDDDHHHHH",
        16: "HHDDDHHHHH",
        15: "HHDDDHHHHH",
        14: "HHHDDHHHHH",
        13: "HHHDDHHHHH",
    }
    assert {total: row("classic", total, two, soft=True) for total in soft} == soft
    pairs = {
        ACE: "PPPPPPPPPP",
        TEN: "SSSSSSSSSS",
        9: "PPPPPSPPSS",
        8: "PPPPPPPPPP",
        7: "PPPPPPHHHH",
        6: "PPPPPHHHHH",
        5: "DDDDDDDDHH",
        4: "HHHPPHHHHH",
        3: "PPPPPPHHHH",
        2: "PPPPPPHHHH",
    }
    found = {
        value: row("classic", 12 if value == ACE else 2 * value, two | SPLIT, pair=value)
        for value in pairs
    }
    assert found == pairs


# Policy, total, up card, what else there is to know of the hand, and what is played.
RESCUE = STAND | SURRENDER
KNOWN: tuple[tuple[str, int, int, dict[str, Any], int], ...] = (
    # classic hits or stands when it may not double
    ("classic", 11, 6, {"count": 3, "legal": HIT | STAND}, HIT),
    ("classic", 18, 3, {"soft": True, "count": 3, "legal": HIT | STAND}, STAND),
    ("classic", 17, 3, {"soft": True, "count": 3, "legal": HIT | STAND}, HIT),
    # a pair that may not be split again is played as its total
    ("classic", 16, 6, {"pair": 8, "split": True, "legal": TWO_BETS}, STAND),
    ("classic", 16, 7, {"pair": 8, "split": True, "legal": TWO_BETS}, HIT),
    *(
        (game, *case)
        for game in ("maxtime", "sf21x")
        for case in (
            # nearly paid hands are hit: with five cards any that does not bust is paid at once
            (20, 6, {"soft": True, "count": 5}, HIT),
            (20, 6, {"soft": True, "count": 2}, STAND),
            (14, 6, {"count": 5}, HIT),
            (14, 6, {"count": 2}, STAND),
            (17, TEN, {"count": 5}, HIT),
            (12, 5, {"count": 4}, HIT),
            (12, 5, {"count": 2}, STAND),
            # surrender on two cards and after a double
            (16, TEN, {}, SURRENDER),
            (17, ACE, {}, SURRENDER),
            (16, TEN, {"legal": HIT | STAND}, HIT),
            (17, ACE, {"legal": HIT | STAND}, STAND),
            (12, TEN, {"count": 3, "doubles": 1, "legal": RESCUE}, SURRENDER),
            (12, 6, {"count": 3, "doubles": 1, "legal": RESCUE}, STAND),
            (18, TEN, {"count": 3, "doubles": 1, "legal": RESCUE}, STAND),
        )
    ),
    # sf21x doubles again while it may
    ("sf21x", 11, 6, {"count": 3, "doubles": 1, "legal": AFTER_DOUBLE}, DOUBLE),
    ("sf21x", 21, 6, {"count": 3, "doubles": 1, "legal": AFTER_DOUBLE}, STAND),
    ("sf21x", 11, 6, {"count": 3, "doubles": 2, "legal": AFTER_DOUBLE}, DOUBLE),
    ("sf21x", 21, 6, {"count": 3, "doubles": 2, "legal": AFTER_DOUBLE}, STAND),
    ("sf21x", 11, 6, {"count": 5, "doubles": 3, "legal": RESCUE}, STAND),
    ("sf21x", 11, TEN, {"count": 5, "doubles": 3, "legal": RESCUE}, SURRENDER),
    # a split ace and ten is not doubled as eleven
    *(
        ("maxtime", 21, up, {"soft": True, "split": True, "legal": AFTER_DOUBLE}, STAND)
        for up in UPS
    ),
    # stand stands, and mimic draws like a dealer
    *(("stand", 16, up, {"pair": pair}, STAND) for up in UPS for pair in (0, 8)),
    *(("mimic", 16, up, {"pair": pair}, HIT) for up in UPS for pair in (0, 8)),
    *(("mimic", 12, up, {"soft": True, "pair": ACE}, HIT) for up in UPS),
    *(("mimic", 17, up, {"count": 4}, STAND) for up in UPS),
    *(("mimic", 17, up, {"soft": True, "count": 4}, HIT) for up in UPS),
    *(("mimic", 18, up, {"soft": True}, STAND) for up in UPS),
    *(("mimic", 16, up, {"legal": STAND | SPLIT}, STAND) for up in UPS),
)


@pytest.mark.parametrize(("name", "total", "up", "more", "played"), KNOWN)
def test_what_is_played(name: str, total: int, up: int, more: dict[str, Any], played: int) -> None:
    assert play(STRATEGIES[name], total, up, **more) == played


def test_mega_hits_where_a_dealer_bust_would_only_push() -> None:
    assert row("mega", 17, TWO_BETS) == "SSSSSSSSSH"
    assert row("mega", 12, TWO_BETS) == "HHHHHHHHHH"


def test_policies_without_a_file_insure_nothing() -> None:
    assert not [name for name, one in POLICIES.items() if one.insurance or one.even_money]


# --- every input ----------------------------------------------------------------------------


@given(
    name=st.sampled_from(sorted(STRATEGIES)),
    total=st.integers(0, 31),
    soft=st.booleans(),
    count=st.integers(0, 31),
    pair=st.integers(0, 10),
    doubles=st.integers(0, 7),
    split=st.booleans(),
    up=st.integers(1, 10),
    legal=st.integers(1, ALL),
)
def test_the_choice_is_one_legal_bit(  # noqa: PLR0913, PLR0917 - all that choose() takes
    name: str,
    total: int,
    soft: bool,
    count: int,
    pair: int,
    doubles: int,
    split: bool,
    up: int,
    legal: int,
) -> None:
    choice = STRATEGIES[name].choose(total, soft, count, pair, doubles, split, up, legal)
    assert choice & legal == choice
    assert choice.bit_count() == 1


# --- how a file is read ---------------------------------------------------------------------

HITS = "H H H H H H H H H H"
STANDS = "S S S S S S S S S S"
SMALL = f"""
name = "small"
note = "for a test"
insurance = "always"
even_money = "never"
[hard]
4-16 = "{HITS}"
17-21 = "{STANDS}"
[soft]
12-21 = "{STANDS}"
[pairs]
2 = "P P P P P P P P P Rp"
3 = "- - - - - - - - - -"
4 = "- - - - - - - - - -"
5 = "- - - - - - - - - -"
6 = "- - - - - - - - - -"
7 = "- - - - - - - - - -"
8 = "- - - - - - - - - -"
9 = "- - - - - - - - - -"
T = "- - - - - - - - - -"
A = "P P P P P P P P P P"
"""


def test_a_cell_is_an_ordered_preference() -> None:
    small = parse(SMALL, "small.toml")
    assert (small.name, small.insurance, small.even_money) == ("small", True, False)
    pair = {
        legal: play(small, 4, ACE, pair=2, legal=legal)
        for legal in (ALL, HIT | STAND | SPLIT, HIT | STAND, STAND | DOUBLE, DOUBLE, 0)
    }
    assert list(pair.values()) == [SURRENDER, SPLIT, HIT, STAND, DOUBLE, 0]
    assert play(small, 12, ACE, doubles=1, legal=STAND | SURRENDER) == STAND


def test_narrower_charts_outrank_wider_ones_row_by_row() -> None:
    doubled = "Rs Rs Rs Rs Rs Rs Rs Rs Rs Rs"
    small = parse(
        f"""{SMALL}
[hard-3]
12 = "{STANDS}"
[split-hard]
12 = "D D D D D D D D D D"
[doubled-hard]
12-13 = "{doubled}"
[doubled-hard-2]
12 = "{STANDS}"
""",
        "small.toml",
    )
    cases: tuple[tuple[int, dict[str, Any], int], ...] = (
        (12, {}, HIT),
        (12, {"count": 3}, STAND),
        (13, {"count": 3}, HIT),
        (12, {"count": 3, "split": True}, DOUBLE),
        (12, {"pair": 6, "split": True}, DOUBLE),
        (12, {"doubles": 1}, SURRENDER),
        (12, {"doubles": 2}, STAND),
        (13, {"doubles": 2}, SURRENDER),
        (14, {"doubles": 2}, STAND),
    )
    for total, more, played in cases:
        assert play(small, total, 5, **more) == played, (total, more)


@pytest.mark.parametrize(
    ("old", "new", "where", "what", "allowed"),
    [
        ("[hard]", "[hard", "", "not TOML", None),
        ('name = "small"', "", "name", "missing", "text"),
        ('note = "for a test"', "note = 3", "note", "not a text", "text"),
        ('insurance = "always"', "", "insurance", "None", "never, always"),
        ('even_money = "never"', "even_money = false", "even_money", "False", "never, always"),
        ('"always"', '"sometimes"', "insurance", "sometimes", "never, always"),
        ("[hard]", "[stiff]", "stiff", "unknown key", "hard, soft, pairs"),
        ("[hard]", "[hard-1]", "hard-1", "unknown key", "hard-2 to hard-9"),
        ('name = "small"', 'name = "x"\ngame = "x"', "game", "unknown key", "name, note"),
        ("[soft]\n12-21", "[soft-3]\n12-21", "soft", "missing chart", "[soft]"),
        ("[soft]\n12-21", "[soft]\n12-20", "soft.21", "missing row", "12, 13"),
        ("4-16 =", "5-16 =", "hard.4", "missing row", "4, 5"),
        ('T = "- - - - - - - - - -"', "", "pairs.T", "missing row", "A"),
        ("17-21 =", "16-21 =", "hard.16-21", "16 has a row already", "one row"),
        ("17-21 =", "17-22 =", "hard.17-22", "unknown row", "4 to 21"),
        ("12-21 =", "11-21 =", "soft.11-21", "unknown row", "12 to 21"),
        ("4-16 =", "16-4 =", "hard.16-4", "unknown row", "4 to 21"),
        ("4-16 =", "low =", "hard.low", "unknown row", "4 to 21"),
        ("T =", "K =", "pairs.K", "unknown row", "T, A"),
        (f'"{HITS}"', '"H H H"', "hard.4-16", "row of 3 cells", "ten cells"),
        (f'"{HITS}"', "7", "hard.4-16", "not a row", "ten cells"),
        ("H H H", "X H H", "hard.4-16", "'X'", "H, S, D, R"),
        ("H H H", "h H H", "hard.4-16", "'h'", "H, S, D, R"),
        ("H H H", "HS H H", "hard.4-16", "'HS'", "small"),
        ("H H H", "Hh H H", "hard.4-16", "'Hh'", "none twice"),
        ("H H H", "P H H", "hard.4-16", "'P'", "H, S, D, R"),
        ("H H H", "- H H", "hard.4-16", "'-'", "H, S, D, R"),
        ("Rp", "Rx", "pairs.2", "'Rx'", "H, S, D, P, R"),
        ("[hard]", f'[doubled-soft]\n17 = "{HITS}"\n[hard]', "doubled-soft.17", "'H'", "S, D, R"),
        ("[hard]", "soft-4 = 1\n[hard]", "soft-4", "not a chart", "[soft-4]"),
    ],
)
def test_a_bad_file_is_refused_with_file_and_key(
    old: str, new: str, where: str, what: str, allowed: str | None
) -> None:
    assert SMALL.count(old) >= 1
    with pytest.raises(UsageProblem) as caught:
        parse(SMALL.replace(old, new, 1), "bad.toml")
    problem = caught.value
    assert problem.where == (f"bad.toml: {where}" if where else "bad.toml")
    assert what in problem.what
    assert (problem.allowed is None) == (allowed is None)
    assert (allowed or "") in (problem.allowed or "")


def test_a_file_that_cannot_be_read_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "odd.toml").write_bytes(b"\xff\xfe")
    for name in ("absent", "odd"):
        with pytest.raises(UsageProblem, match=rf"{name}\.toml.*cannot be read"):
            load(tmp_path / f"{name}.toml")
    good = tmp_path / "good.toml"
    good.write_text(SMALL, encoding="utf-8")
    assert load(good).name == "small"
