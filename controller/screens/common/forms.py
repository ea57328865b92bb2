"""Parsing of queries and forms: few and short fields, no duplicates, no unknown ones."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from controller.errors import UsageProblem, printable

MAX_BYTES: Final = 16 * 1024
MAX_FIELDS: Final = 40
MAX_VALUE: Final = 500
_SHOWN: Final = 60
_FORM: Final = "application/x-www-form-urlencoded"


class FormTooLarge(UsageProblem):
    """A query or form exceeds a limit."""


def fields_of(query: str) -> dict[str, str]:
    """Parse a query; empty fields are left out. Raises UsageProblem."""
    if len(query) > MAX_BYTES:
        raise FormTooLarge("address", "is too long", f"up to {MAX_BYTES} characters")
    return _read(query)


async def form_of(request: Request) -> dict[str, str]:
    """Parse the form of a request. Raises UsageProblem."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise UsageProblem("form", "is none", _FORM)
    data = b""
    async for piece in request.stream():
        data += piece
        if len(data) > MAX_BYTES:
            raise FormTooLarge("form", "is too long", f"up to {MAX_BYTES} bytes")
    try:
        return _read(data.decode("ascii"))
    except UnicodeDecodeError:
        raise UsageProblem("form", "is not written as a form is", _FORM) from None


def only(fields: Mapping[str, str], names: Collection[str]) -> None:
    """Raises UsageProblem if there is a field that is not among `names`."""
    for name in fields:
        if name not in names:
            raise UsageProblem(
                "address", f"there is no {shown(name)}", ", ".join(names) or "nothing"
            )


def shown(text: str) -> str:
    """Return a value as an error text quotes it."""
    short = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    return f'"{printable(short)}"'


def _read(text: str) -> dict[str, str]:
    try:
        pairs = parse_qsl(text, errors="strict", max_num_fields=MAX_FIELDS)
    except UnicodeDecodeError:
        raise UsageProblem("address", "has letters that are not UTF-8", "UTF-8") from None
    except ValueError:
        raise FormTooLarge("address", "has too many fields", f"up to {MAX_FIELDS}") from None
    return dict(_checked(pairs))


def _checked(pairs: Iterable[tuple[str, str]]) -> Iterable[tuple[str, str]]:
    seen = set()
    for name, value in pairs:
        if name in seen:
            raise UsageProblem(shown(name), "is there twice", "once")
        seen.add(name)
        if len(name) > _SHOWN or len(value) > MAX_VALUE:
            raise FormTooLarge(shown(name), "is too long", f"up to {MAX_VALUE} characters")
        if not value.isprintable():
            raise UsageProblem(shown(name), "has letters that cannot be shown", "plain text")
        if value.strip():
            yield name, value.strip()
