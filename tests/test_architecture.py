"""ARCHITECTURE.md names files and functions that exist."""

import ast
import re
from pathlib import Path

import pytest

from tests.support.paths import ROOT

PAGES = ("ARCHITECTURE.md", "CONTRIBUTING.md", "README.md", "SECURITY.md")
TEXT = {page: (ROOT / page).read_text("utf-8") for page in PAGES if (ROOT / page).is_file()}
PREFIXES = ("configs/", "controller/", "drivers/", "firmware_protocol/", "hil/", "tests/")
REFERENCES = sorted(
    {
        (page, name)
        for page, text in TEXT.items()
        for name in re.findall(r"`([\w./*-]+(?::\w+)?)`", text)
        if name.startswith(PREFIXES)
    }
)
LINKS = sorted(
    {
        (page, target)
        for page, text in TEXT.items()
        for target in re.findall(r"\]\(([^)#:]+)\)", text)
    }
)


def names_of(file: Path) -> set[str]:
    """The top-level names of a module."""
    found: set[str] = set()
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


@pytest.mark.parametrize(("page", "name"), REFERENCES)
def test_a_file_that_is_named_exists(page: str, name: str) -> None:
    path, _, member = name.partition(":")
    assert list(ROOT.glob(path)), f"{page}: {path}"
    if member:
        assert member in names_of(ROOT / path), f"{page}: {name}"


@pytest.mark.parametrize(("page", "target"), LINKS)
def test_a_link_leads_to_a_file(page: str, target: str) -> None:
    assert (ROOT / page).parent.joinpath(target).exists(), f"{page}: {target}"


def test_pages_are_short() -> None:
    assert len(TEXT["ARCHITECTURE.md"].splitlines()) < 250
    assert len(TEXT["README.md"].splitlines()) < 200
