"""Times and durations as text."""

from __future__ import annotations

from datetime import UTC, datetime


def format_time(utc: int) -> str:
    return stamp(utc, "%Y-%m-%d %H:%M:%S", " UTC") or f"{utc} us"


def stamp(utc: int, form: str = "%Y-%m-%dT%H:%M:%S", zone: str = "Z") -> str:
    """2027-01-15T08:00:00.123456Z; empty if it is out of the calendar's range."""
    try:
        moment = datetime.fromtimestamp(utc // 1_000_000, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:{form}}.{utc % 1_000_000:06d}{zone}"


def format_day(utc: int) -> str:
    return format_time(utc)[:10]


def format_clock(utc: int) -> str:
    """The time of day alone, in milliseconds."""
    whole = format_time(utc)
    return whole.partition(" ")[2][:12] if whole.endswith("UTC") else whole


def minutes_words(minutes: int) -> str:
    """An estimate of minutes, in steps of ten: about 2 h 30 min."""
    hours, rest = divmod(minutes - minutes % 10, 60)
    if not hours and not rest:
        return "less than 10 min"
    parts = [f"{hours} h" if hours else "", f"{rest} min" if rest else ""]
    return f"about {' '.join(filter(None, parts))}"
