"""Names of people: which are allowed, and which two are one person's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drivers.keys import MAX_NAME_BYTES, BadName, TwoPeopleNeeded, name_of, same_person, two_people
from drivers.keys.names import MAX_NAME_LENGTH


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (" Ann  Lee ", "Ann Lee"),
        ("Ann  Lee", "Ann Lee"),
        ("Ann\N{NO-BREAK SPACE}Lee", "Ann Lee"),
        ("Ñandú", "Ñandú"),
        ("x" * MAX_NAME_LENGTH, "x" * MAX_NAME_LENGTH),
        ("Ж" * 54, "Ж" * 54),
        ("  " + "x" * MAX_NAME_LENGTH + "  ", "x" * MAX_NAME_LENGTH),
    ],
)
def test_blanks_do_not_matter(text: str, name: str) -> None:
    assert name_of(text) == name


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "\t\n",
        "x" * 65,
        "Ж" * 55,
        "A\0B",
        "A\nB",
        "A\tB",
        "Ann\n",
        "A\x85B",
        "A\N{LINE SEPARATOR}B",
        "A\x1b[1m",
        "A\N{ZERO WIDTH SPACE}B",
        "\ud800",
    ],
    ids=ascii,
)
def test_what_is_no_name_is_refused(text: str) -> None:
    with pytest.raises(BadName, match="is no name; allowed: 1 to 64 printable characters"):
        name_of(text)
    for pair in ((text, "Bob"), ("Bob", text)):
        with pytest.raises(TwoPeopleNeeded, match="is no name"):
            two_people(pair)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Ann", "ANN"),
        ("Ann Lee", "Ann  Lee"),
        ("Ann Lee", " ann  lee "),
        ("A Lee", "\uff21 Lee"),
        ("Strauß", "STRAUSS"),
        ("Zoë", "Zoe\u0308"),
        ("ﬁnn", "FINN"),
    ],
)
def test_one_person_is_not_two(first: str, second: str) -> None:
    assert same_person(first, second)
    with pytest.raises(TwoPeopleNeeded, match="are one person; two are needed"):
        two_people((first, second))


def test_two_people_are_two() -> None:
    assert two_people((" Ann  Lee", "Ann Li ")) == ("Ann Lee", "Ann Li")


@given(st.text(max_size=70))
def test_every_allowed_name_fits_where_it_is_stored(text: str) -> None:
    try:
        name = name_of(text)
    except BadName:
        return
    assert len(name.encode()) <= MAX_NAME_BYTES
    assert name_of(name) == name
