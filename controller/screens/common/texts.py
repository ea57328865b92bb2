"""All texts of the pages: `texts.toml`, the procedure's words, and a house's translation of them.

    texts = load()
    texts("rounds.title")
    texts("common.round", round=31)

A house's file has the same sections and names; what it leaves out keeps our text. All of them are
printed by `python -m controller.screens.common.texts`, as a file to be translated.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from string import Formatter
from typing import Any, Final

from controller.errors import UsageProblem, printable
from controller.procedure.engine import REFUSAL_TEXTS
from controller.procedure.prompts import TEXTS, Texts

NAME: Final = "texts.toml"
_MOST_BYTES: Final = 1 << 20


def load(file: Path | None = None) -> Texts:
    """Our texts, replaced by those of a house's file. Raises UsageProblem if the file is wrong."""
    texts = _ours()
    if file is None:
        return Texts(texts)
    where = printable(file)
    for name, text in _read(file, where).items():
        if name not in texts:
            raise UsageProblem(
                where,
                f"there is no text {printable(name)!a}",
                f"names that `python -m {__name__}` prints",
            )
        expected = _fields(texts[name], NAME)
        if _fields(text, f"{where}: {name}") != expected:
            allowed = ", ".join(sorted(expected)) or "none"
            raise UsageProblem(f"{where}: {name}", "has other {fields} than ours", allowed)
        texts[name] = text
    return Texts(texts)


def _ours() -> dict[str, str]:
    own = tomllib.loads(files("controller.screens.common").joinpath(NAME).read_text("utf-8"))
    refusals = {f"console.refuse.{name}": text for name, text in REFUSAL_TEXTS.items()}
    return {**_flat(own, NAME), **TEXTS, **refusals}


def as_toml(texts: Texts) -> str:
    """A file of all texts, as `load` reads it."""
    lines: list[str] = []
    former = ""
    for section, name in sorted((full.rpartition(".")[::2] for full in texts.names), key=_section):
        if section != former:
            lines += ["", f"[{section}]"]
            former = section
        lines.append(f"{name} = {json.dumps(texts(f'{section}.{name}'), ensure_ascii=False)}")
    return "\n".join(lines[1:]) + "\n"


def _section(entry: tuple[str, str]) -> str:
    return entry[0]


def _read(file: Path, where: str) -> dict[str, str]:
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise UsageProblem(where, "is too large", f"up to {_MOST_BYTES:,} bytes")
        return _flat(tomllib.loads(data.decode()), where)
    except OSError as problem:
        raise UsageProblem(
            where, (problem.strerror or str(problem)).lower(), "a file of texts"
        ) from None
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
    """Returns the {fields} of a text."""
    try:
        return frozenset(name for _, name, _, _ in Formatter().parse(text) if name is not None)
    except ValueError as problem:
        raise UsageProblem(where, f"has wrong braces: {problem}", "{field}") from None


if __name__ == "__main__":
    sys.stdout.write(as_toml(load()))
