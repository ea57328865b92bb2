"""Validation of people's names, and whether two names are of one person.

Used for dual control: pairing, and the adoption of a ring. A valid name fits every file that
stores it.
"""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_NAME_LENGTH: Final = 64
"""Characters of a name."""
MAX_NAME_BYTES: Final = 108
"""Bytes of a name in UTF-8."""
_CONTROLS: Final = ("Cc", "Zl", "Zp")
"""Controls, and ends of lines or paragraphs: neither printable nor accepted as blanks."""
ALLOWED: Final = (
    f"1 to {MAX_NAME_LENGTH} printable characters, of up to {MAX_NAME_BYTES} bytes in UTF-8"
)


class BadName(ValueError):
    """The text is not a valid name."""

    def __init__(self, text: str) -> None:
        super().__init__(f"{text!r} is no name; allowed: {ALLOWED}")
        self.text = text


class TwoPeopleNeeded(ValueError):
    """An act needs the names of two different people."""


def name_of(text: str) -> str:
    """The name with single blanks between its words. Raises BadName, also for tabs and ends of
    lines."""
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
    """Whether two names differ only in case, blanks and Unicode form."""
    return _folded(first) == _folded(second)


def two_people(by: tuple[str, str]) -> tuple[str, str]:
    """The normalized names. Raises TwoPeopleNeeded."""
    try:
        first, second = (name_of(text) for text in by)
    except BadName as problem:
        raise TwoPeopleNeeded(str(problem)) from None
    if same_person(first, second):
        raise TwoPeopleNeeded(f"{first!r} and {second!r} are one person; two are needed")
    return first, second


def _size(name: str) -> int:
    # After isprintable() there are no lone surrogates, which cannot be encoded.
    return len(name.encode())


def _folded(name: str) -> str:
    # Case folding may undo NFKC, so NFKC comes last.
    folded = unicodedata.normalize("NFKC", name).casefold()
    return " ".join(unicodedata.normalize("NFKC", folded).split())
