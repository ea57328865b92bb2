"""Times and amounts as people type them who look for something in a record."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Final

from controller.errors import UsageProblem
from controller.errors_problems import printable
from controller.procedure.prompts.terms import Currency, Speaks

_TIME: Final = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,6}))?)?)?Z?", re.ASCII
)
_AMOUNT: Final = re.compile(r"-?(?:\d{1,15}|\d{1,3}(?:,\d{3}){1,4})(?:\.(\d{1,6}))?", re.ASCII)
_FROM_TO: Final = re.compile(r"(-?[^-]+)(?:(-)(-?[^-]+)?)?")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHOWN: Final = 60


def _shown(text: str) -> str:
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f'"{printable(short)}"'


def time_of(name: str, text: str, *, end: bool = False) -> int:
    """Microseconds since 1970. `end`: the last moment of what was said, be it a day or a second."""
    found = _TIME.fullmatch(text)
    try:
        if found is None:
            raise ValueError(text)
        year, month, day, hour, minute, second = (int(one or 0) for one in found.groups()[:6])
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        allowed = "a time in UTC, such as 2027-01-15 or 2027-01-15T08:30:00"
        raise UsageProblem(name, f"{_shown(text)} is no time", allowed) from None
    part = found[7]
    utc: int = (moment - _EPOCH) // timedelta(microseconds=1) + int((part or "").ljust(6, "0"))
    if not end:
        return utc
    if part is not None:
        return utc + int("9" * (6 - len(part)) or 0)
    step = 1 if found[6] else 60 if found[5] else 86_400
    return utc + step * 1_000_000 - 1


def amount_of(name: str, text: str, money: Speaks) -> int:
    """As the table writes amounts, with its sign or without: 25, $12.50, 1,250."""
    digits, bare = 0, text
    if isinstance(money, Currency):
        digits, bare = money.minor_digits, text.replace(money.symbol, "", 1).replace(" ", "")
    found = _AMOUNT.fullmatch(bare)
    if found is None or len(found[1] or "") > digits:
        allowed = f"an amount such as {money.amount(25 * 10**digits)}"
        raise UsageProblem(name, f"{_shown(text)} is no amount", allowed)
    whole, _, rest = bare.replace(",", "").partition(".")
    size = int(whole.lstrip("-") + rest.ljust(digits, "0"))
    return -size if whole.startswith("-") else size


def amounts_of(name: str, text: str, money: Speaks) -> tuple[int, int | None]:
    """The least and the most of it: 25, 25-100, or 25- for 25 and more."""
    found = _FROM_TO.fullmatch(text)
    if found is None:
        raise UsageProblem(name, f"{_shown(text)} is no amount", "N, N-M, or N- for N and more")
    least = amount_of(name, found[1], money)
    if found[2] is None:
        return least, least
    most = None if found[3] is None else amount_of(name, found[3], money)
    if most is not None and most < least:
        raise UsageProblem(name, f"{_shown(text)} ends before it begins", "N-M with M not less")
    return least, most
