"""Parses and validates messages.toml for the generator and the tests.

An invalid value is rejected while parsing. Errors between entries (duplicate ids, a reply without
a command, a body too long) are collected, so that one run reports all of them.
"""

from __future__ import annotations

from importlib import resources
from typing import Final

import msgspec

from firmware_protocol.generate import checks
from firmware_protocol.generate.schema import Catalogue

FILE: Final = "messages.toml"


class CatalogueError(Exception):
    """messages.toml is inconsistent; the text has one line per error."""

    def __init__(self, problems: tuple[str, ...]) -> None:
        super().__init__("\n".join(f"{FILE}: {problem}" for problem in problems))
        self.problems = problems


def parse_catalogue(text: str) -> Catalogue:
    """Parse and validate the catalogue. Raises CatalogueError."""
    try:
        catalogue = msgspec.toml.decode(text.encode(), type=Catalogue)
    except msgspec.DecodeError as problem:
        raise CatalogueError((str(problem),)) from None
    problems = tuple(checks.problems(catalogue))
    if problems:
        raise CatalogueError(problems)
    return catalogue


def load_catalogue() -> Catalogue:
    """Returns the catalogue of this package."""
    text = resources.files("firmware_protocol").joinpath(FILE).read_text(encoding="utf-8")
    return parse_catalogue(text)
