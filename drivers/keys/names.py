"""Who says so: the names of people, and when two names are one person's.

What takes two people takes them from here: pairing, and the adoption of a ring. A name that is
allowed fits wherever it is to be kept.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_NAME_LENGTH: Final = 64
"""Characters of a name."""
MAX_NAME_BYTES: Final = 108
"""Bytes of a name in UTF-8, which is what files have room for."""
_CONTROLS: Final = ("Cc", "Zl", "Zp")
"""Controls, and what ends a line or a paragraph: not printable, and no blanks either."""
ALLOWED: Final = (
    f"1 to {MAX_NAME_LENGTH} printable characters, of up to {MAX_NAME_BYTES} bytes in UTF-8"
)


class BadName(ValueError):
    """Nobody is called that."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no name; allowed: {ALLOWED}")
        self.text = text


class TwoPeopleNeeded(ValueError):
    """One person, or nobody, wants what takes two."""


def name_of(text: str) -> str:
    """The name, with single blanks between its words, or BadName. Other blanks than those that
    people type are none of a name: a line's end, or a tab."""
    name = " ".join(text.split())
    if any(unicodedata.category(one) in _CONTROLS for one in text):
        raise BadName(text)
    if (
        not 1 <= len(name) <= MAX_NAME_LENGTH
        or not name.isprintable()
        or _size(name) > MAX_NAME_BYTES
    ):
        raise BadName(text)
    return name


def same_person(first: str, second: str) -> bool:
    """Whether two names are told apart by no more than case, blanks and ways of writing."""
    return _folded(first) == _folded(second)


def two_people(by: tuple[str, str]) -> tuple[str, str]:
    """Their names, or TwoPeopleNeeded."""
    try:
        first, second = (name_of(text) for text in by)
    except BadName as problem:
        raise TwoPeopleNeeded(str(problem)) from None
    if same_person(first, second):
        raise TwoPeopleNeeded(f"{first!r} and {second!r} are one person; two are needed")
    return first, second


def _size(name: str) -> int:
    # isprintable() has seen to it that there are no lone surrogates, which have no bytes.
    return len(name.encode())


def _folded(name: str) -> str:
    # Folding the case may undo what NFKC has done, so that comes last.
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())
