"""Finds and parses configuration files, and the tables in them by their keys and checks.

Installed files are found by name, those of a house by path.

Every error of a file raises UsageProblem.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias, TypeVar

import msgspec

from controller.config.options import nearest
from controller.config.values import InvalidValue, ValueCheck, choice
from controller.errors import UsageProblem, UsageProblems, printable, shown

Kind: TypeAlias = Literal["game", "table", "jurisdiction"]

FOLDERS: Final[dict[Kind, str]] = {
    "game": "games",
    "table": "tables",
    "jurisdiction": "jurisdictions",
}
SCHEMA: Final = 1
MAX_BYTES: Final = 1 << 20
_AT_LINE: Final = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


class Document(NamedTuple):
    """A parsed file, its name for messages, and the folder that its paths are relative to."""

    source: str
    content: dict[str, object]
    folder: Path | None


@cache
def installed(kind: Kind) -> dict[str, Traversable]:
    """Returns the installed files of this kind, by name."""
    folder = resources.files("configs").joinpath(FOLDERS[kind])
    found = folder.iterdir() if folder.is_dir() else ()
    files = {file.name.removesuffix(".toml"): file for file in found if file.name.endswith(".toml")}
    return dict(sorted(files.items()))


def read_named(kind: Kind, name: str | Path, where: str, beside: Path | None = None) -> Document:
    """Parse the installed file of this name, or the file at this path."""
    text = str(name)
    if isinstance(name, str) and name in installed(kind):
        return read_installed(kind, name)
    path = (beside or Path()) / text
    if "/" in text or "\\" in text or text.endswith(".toml") or _exists(path):
        return read_path(path)
    raise UsageProblem(
        where,
        f"there is no {kind} '{printable(text)}'",
        nearest(text, installed(kind)) + ", ".join([*installed(kind), "the path of a file"]),
    )


@cache
def read_installed(kind: Kind, name: str) -> Document:
    source = f"configs/{FOLDERS[kind]}/{name}.toml"
    return Document(source, _parse(source, installed(kind)[name].read_bytes()), None)


@contextmanager
def named_by(where: str) -> Iterator[None]:
    """Errors of a file that another file names are raised with the place that names it."""
    try:
        yield
    except UsageProblem as problem:
        if isinstance(problem, UsageProblems) or problem.where.startswith(where):
            raise
        raise UsageProblem(f"{where}: {problem.where}", problem.what, problem.allowed) from None


def read_path(path: Path) -> Document:
    source = printable(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise UsageProblem(source, "is not a file", "a TOML file")
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
        raise UsageProblem(source, f"cannot be read: {reason}", "a TOML file") from None
    except ValueError:  # a path with a NUL character
        raise UsageProblem(source, "is no path", "a TOML file") from None
    return Document(source, _parse(source, data), path.parent)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _parse(source: str, data: bytes) -> dict[str, object]:
    if len(data) > MAX_BYTES:
        raise UsageProblem(source, "is too large", f"a TOML file of at most {MAX_BYTES} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageProblem(f"{source}:{line}", "is not text in UTF-8", "a TOML file") from None
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax(source, text, str(error)) from None
    except (ValueError, RecursionError):  # a number or a nesting beyond Python's limits
        raise UsageProblem(source, "has a value that is too long or too deep", "TOML") from None


def _syntax(source: str, text: str, message: str) -> UsageProblem:
    found = _AT_LINE.search(message)
    if found is None:
        return UsageProblem(source, printable(message), "TOML")
    line = found[1] or str(text.count("\n") + 1)
    what = printable(message[: found.start()])
    return UsageProblem(f"{source}:{line}", what[:1].lower() + what[1:], "TOML")


def kind_of(document: Document) -> Kind:
    """Returns the kind of a file, by its first table. Raises UsageProblem."""
    kinds: list[Kind] = [kind for kind in FOLDERS if kind in document.content]
    if len(kinds) == 1:
        return kinds[0]
    raise UsageProblem(
        document.source,
        "has the head of more than one kind of file" if kinds else "does not say what it is",
        "one of [game], [table] and [jurisdiction]",
    )


def expect(document: Document, kind: Kind) -> None:
    """Raises UsageProblem if the file is of another kind."""
    found = kind_of(document)
    if found != kind:
        raise UsageProblem(document.source, f"is the file of a {found}", f"the file of a {kind}")


T = TypeVar("T")


class TableKey(NamedTuple):
    check: ValueCheck[Any]
    required: bool = False


_SCHEMA: Final = {
    "schema": TableKey(ValueCheck(f"schema = {SCHEMA}", choice((SCHEMA,)).read), required=True)
}


def read_value(
    check: ValueCheck[T], raw: object, where: str, problems: list[UsageProblem], allowed: str = ""
) -> T | None:
    """Parse one value. Returns None if it is invalid."""
    try:
        return check.read(raw)
    except InvalidValue as wrong:
        problems.append(UsageProblem(where, str(wrong), allowed or check.allowed))
        return None


def _read_keys(
    raw: Mapping[str, object],
    keys: Mapping[str, TableKey],
    prefix: str,
    problems: list[UsageProblem],
) -> dict[str, object]:
    values: dict[str, object] = {}
    for name, key in keys.items():
        if name in raw:
            values[name] = read_value(key.check, raw[name], prefix + name, problems)
        elif key.required:
            problems.append(UsageProblem(prefix + name, "is missing", key.check.allowed))
    return values


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
    values = _read_keys(raw, keys, prefix, problems)
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
    _read_keys(content, _SCHEMA, prefix, problems)
    found: dict[str, Mapping[str, object]] = {}
    for name in tables:
        table = content.get(name, {})
        if not isinstance(table, Mapping):
            what = f"{shown(table)} is not a table"
            problems.append(UsageProblem(prefix + name, what, f"[{name}]"))
            table = {}
        found[name] = table
    return found
