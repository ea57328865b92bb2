"""The catalogue: messages.toml read and checked, as the generator and the tests use it.

What can be wrong with a single value is refused while reading; what only shows between entries
(an id given twice, a reply to nothing, a body too long) is collected, so that one run names all.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

import msgspec

from firmware_protocol.generate import checks
from firmware_protocol.generate.schema import Catalogue

FILE: Final = "messages.toml"


class CatalogueError(Exception):
    """messages.toml contradicts itself; one line for each thing that is wrong."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(f"{FILE}: {problem}" for problem in problems))
        self.problems = problems


def parse_catalogue(text: str) -> Catalogue:
    """The catalogue that this text is; CatalogueError says what is wrong with it."""
    try:
        catalogue = msgspec.toml.decode(text.encode(), type=Catalogue)
    except msgspec.DecodeError as problem:
        raise CatalogueError((str(problem),)) from None
    problems = tuple(checks.problems(catalogue))
    if problems:
        raise CatalogueError(problems)
    return catalogue


def load_catalogue() -> Catalogue:
    """The catalogue of this package."""
    text = resources.files("firmware_protocol").joinpath(FILE).read_text(encoding="utf-8")
    return parse_catalogue(text)
