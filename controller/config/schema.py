"""Schemas of the tables of a file that are not options: their keys and allowed values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec

from controller.config.files import SCHEMA, Document
from controller.config.option_paths import nearest
from controller.config.values import InvalidValue, ValueCheck, choice
from controller.errors import UsageProblem, printable, shown

T = TypeVar("T")


class TableKey(NamedTuple):
    check: ValueCheck[Any]
    required: bool = False


_SCHEMA: Final = TableKey(choice((SCHEMA,)), required=True)


def read_table(
    raw: object,
    shape: type[T],
    keys: Mapping[str, TableKey],
    where: str,
    problems: list[UsageProblem],
) -> T | None:
    """Parse `raw` into `shape`, with its defaults. Returns None if there are errors."""
    if not isinstance(raw, Mapping):
        problems.append(UsageProblem(where, f"{shown(raw)} is not a table", ", ".join(keys)))
        return None
    before = len(problems)
    prefix = where if where.endswith(": ") else f"{where}."
    refuse_unknown(raw, keys, prefix, problems)
    values: dict[str, object] = {}
    for name, key in keys.items():
        if name in raw:
            try:
                values[name] = key.check.read(raw[name])
            except InvalidValue as wrong:
                problems.append(UsageProblem(prefix + name, str(wrong), key.check.allowed))
        elif key.required:
            problems.append(UsageProblem(prefix + name, "is missing", key.check.allowed))
    return msgspec.convert(values, shape) if len(problems) == before else None


def refuse_unknown(
    raw: Mapping[str, object],
    known: Mapping[str, object] | tuple[str, ...],
    prefix: str,
    problems: list[UsageProblem],
) -> None:
    names = tuple(known)
    problems.extend(
        UsageProblem(
            prefix + printable(key),
            "is no key of this table",
            f"{nearest(str(key), names)}{', '.join(names)}",
        )
        for key in raw
        if key not in names
    )


def open_document(
    document: Document, tables: tuple[str, ...], problems: list[UsageProblem]
) -> dict[str, Mapping[str, object]]:
    """Validate schema and top-level keys. Returns the file's tables; missing ones are empty."""
    prefix = f"{document.source}: "
    content = document.content
    refuse_unknown(content, ("schema", *tables), prefix, problems)
    if "schema" not in content:
        problems.append(UsageProblem(f"{prefix}schema", "is missing", f"schema = {SCHEMA}"))
    else:
        try:
            _SCHEMA.check.read(content["schema"])
        except InvalidValue as wrong:
            problems.append(UsageProblem(f"{prefix}schema", str(wrong), f"schema = {SCHEMA}"))
    found: dict[str, Mapping[str, object]] = {}
    for name in tables:
        table = content.get(name, {})
        if isinstance(table, Mapping):
            found[name] = table
        else:
            found[name] = {}
            what = f"{shown(table)} is not a table"
            problems.append(UsageProblem(prefix + name, what, f"[{name}]"))
    return found
