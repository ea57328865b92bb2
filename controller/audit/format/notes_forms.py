"""The small forms that notes are made of, read strictly: one way to write each, no other taken."""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from typing import Final

MAX_SIZE: Final = 131072
"""Bytes of a note: more than what the page of notes says that everybody must take."""
MAX_LINES: Final = 1000
"""Of a note's text."""
LARGEST: Final = (1 << 63) - 1
"""Of sizes and times, for those who keep them in 64 bits with a sign."""

_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_SHOWN: Final = 64
"""Characters that an error repeats of what somebody else wrote."""


class NoteProblem(Exception):
    """A note, key, checkpoint or certificate that is not as it must be, or not rightly signed."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def shown(text: str) -> str:
    """What was read, for an error: in quotes, and not too much of it."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def check_text(text: str) -> None:
    """Whether a note may say this: any letters in lines, and no tabs or the like."""
    check_characters(text)
    if not text.endswith("\n"):
        raise NoteProblem("a text that does not end with a newline")
    if (lines := text.count("\n")) > MAX_LINES:
        raise NoteProblem(f"a text of {lines} lines; allowed: {MAX_LINES}")


def check_characters(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise NoteProblem("a text that UTF-8 cannot say") from None
    if size > MAX_SIZE:
        raise NoteProblem(f"a note of {size} bytes; allowed: {MAX_SIZE}")
    if found := _CONTROL.search(text):
        raise NoteProblem(f"a note with the character {found[0]!a}; allowed: none but newlines")


def check_name(name: str) -> None:
    """Whether a key may be called this."""
    check_characters(name)
    if not name or "+" in name or any(letter.isspace() for letter in name):
        raise NoteProblem(f"no name of a key: {shown(name)}; allowed: no spaces, no +, not empty")


def parse_number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or (number := int(text)) > LARGEST:
        raise NoteProblem(f"no number: {shown(text)}; allowed: 0 to {LARGEST}, no leading zeros")
    return number


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def parse_base64(text: str, size: int | None = None) -> bytes:
    """Bytes, one or more, or as many as `size` says."""
    try:
        data = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise NoteProblem(f"no base64: {shown(text)}") from None
    # The last character may hold bits that say nothing: base64() leaves them zero.
    if not data or base64(data) != text:
        raise NoteProblem(f"no base64 as it is to be written: {shown(text)}")
    if size is not None and len(data) != size:
        raise NoteProblem(f"base64 of {len(data)} bytes; allowed: {size}")
    return data
