"""All words of the pages, from one file: `texts.toml` beside this module, or a house's own.

    texts = load()
    texts("rounds.title")
    texts("common.round", round=31)

A house's file has the same sections and names; what it leaves out stays as it is here.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any, Final

from controller.errors import UsageProblem, printable

NAME: Final = "texts.toml"
_MOST_BYTES: Final = 1 << 20


class Texts:
    """Every text by its name, "section.name"."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __call__(self, name: str, /, **values: object) -> str:
        """LookupError for a name that there is not."""
        text = self._texts[name]
        return text.format(**values) if values else text

    def has(self, name: str) -> bool:
        return name in self._texts

    def under(self, section: str) -> dict[str, str]:
        """The texts of a section, by their names in it."""
        head = f"{section}."
        return {
            name.removeprefix(head): text
            for name, text in self._texts.items()
            if name.startswith(head)
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._texts)


def load(file: Path | None = None) -> Texts:
    """Ours, with those of a house's file in their place. UsageProblem."""
    texts = _flat(tomllib.loads(files(__package__).joinpath(NAME).read_text("utf-8")), NAME)
    if file is None:
        return Texts(texts)
    where = printable(file)
    for name, text in _read(file, where).items():
        if name not in texts:
            what = f"there is no text {printable(name)!a}"
            raise UsageProblem(where, what, f"the names of {NAME}")
        if _fields(text, f"{where}: {name}") != _fields(texts[name], NAME):
            said = ", ".join(sorted(_fields(texts[name], NAME))) or "none"
            raise UsageProblem(f"{where}: {name}", "has other {fields} than ours", said)
        texts[name] = text
    return Texts(texts)


def _read(file: Path, where: str) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageProblem(where, "is too large", f"up to {_MOST_BYTES:,} bytes")
        return _flat(tomllib.loads(data.decode()), where)
    except OSError as problem:
        reason = (problem.strerror or str(problem)).lower()
        raise UsageProblem(where, reason, "a file of texts") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as problem:
        raise UsageProblem(where, f"is no TOML: {printable(problem)}", "a file of texts") from None


def _flat(tree: dict[str, Any], where: str) -> dict[str, str]:
    return dict(_leaves(tree, "", where))


def _leaves(tree: dict[str, Any], head: str, where: str) -> Iterator[tuple[str, str]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _leaves(value, f"{head}{name}.", where)
        elif isinstance(value, str):
            yield f"{head}{name}", value
        else:
            raise UsageProblem(f"{where}: {printable(head + name)}", "is no text", '"words"')


def _fields(text: str, where: str) -> frozenset[str]:
    """What a text has in braces."""
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
    except ValueError as problem:
        raise UsageProblem(where, f"has wrong braces: {problem}", "{field}") from None
