"""All words of the pages stand in one file, and a house may have its own."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path

import pytest

from controller.errors import UsageProblem
from controller.screens.common.texts import load
from tests.support.paths import ROOT

ROOM = ROOT / "controller" / "screens"
WORDED = ROOT / "controller" / "procedure" / "prompts"
_USED = re.compile(r"""\b(?:t|texts)\(\s*['"]([a-z_.]+)['"]""")
_TURNED = re.compile(r"""text = "(turned\.[a-z_]+)\"""")
_MADE = re.compile(r"""\bt\('([a-z_]+\.[a-z_.]*)' ~|\bt\.under\('([a-z_.]+)'\)""")
"""A name of which a part is made by the page, or a whole section that it takes."""
_MADE_HERE = re.compile(r"""\btexts\(\s*f"([a-z_]+\.[a-z_.]*)\{""")
"""The same, in a module."""

_SECTION = re.compile(r"""": "(console\.[a-z_]+)",""")
"""Of which a module takes whatever it is asked for."""


def sources() -> tuple[Path, ...]:
    return (*ROOM.rglob("*.py"), *WORDED.rglob("*.py"))


def made() -> tuple[str, ...]:
    """How names begin of which a part is made."""
    pages = [a or b for file in ROOM.rglob("*.html") for a, b in _MADE.findall(file.read_text())]
    modules = [one for file in sources() for one in _MADE_HERE.findall(file.read_text())]
    sections = [one for file in sources() for one in _SECTION.findall(file.read_text())]
    return (*pages, *modules, *(f"{one}." for one in sections))


def used() -> set[str]:
    found = set()
    for file in (*ROOM.rglob("*.html"), *sources()):
        text = file.read_text()
        found |= {*_USED.findall(text), *_TURNED.findall(text)}
        found |= set(re.findall(r'"((?:problem|doors)\.[a-z_]+)"', text))
    return found


def test_every_text_that_is_used_is_there() -> None:
    texts = load()
    begins = made()
    assert begins
    assert not {name for name in used() if not texts.has(name) and name not in begins}


def test_every_text_that_is_there_is_used() -> None:
    begins = made()
    assert not ({name for name in load().names if not name.startswith(begins)} - used())


def test_templates_have_no_words_of_their_own() -> None:
    for file in ROOM.rglob("*.html"):
        text = re.sub(r"\{% block here %\}\w+", "", file.read_text())
        text = re.sub(r"\{#.*?#\}|\{%.*?%\}|\{\{.*?\}\}", "", text, flags=re.DOTALL)
        text = re.sub(r"<[^>]*>", " ", text)
        words = re.findall(r"[A-Za-z]{2,}", re.sub(r"&#?\w+;", "", text))
        assert not words, file


def test_a_house_has_its_own_words(tmp_path: Path) -> None:
    file = tmp_path / "de.toml"
    file.write_text('[rounds]\ntitle = "Runden"\nspan = "Runden {first} bis {last}"\n')
    texts = load(file)
    assert texts("rounds.title") == "Runden"
    assert texts("rounds.span", first=1, last=2) == "Runden 1 bis 2"
    assert texts("nav.rounds") == load()("nav.rounds")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('[rounds]\nnothing = "x"\n', "there is no text"),
        ('[rounds]\nspan = "Runden {first}"\n', "other {fields}"),
        ('[rounds]\ntitle = "{x}"\n', "other {fields}"),
        ('[rounds]\ntitle = "{"\n', "braces"),
        ("[rounds]\ntitle = 3\n", "is no text"),
        ("[rounds\n", "is no TOML"),
        ("\udcff", "is no TOML"),
    ],
)
def test_a_wrong_file_is_refused_in_words(tmp_path: Path, content: str, words: str) -> None:
    file = tmp_path / "texts.toml"
    file.write_bytes(content.encode("utf-8", "surrogateescape"))
    with pytest.raises(UsageProblem, match=re.escape(words)):
        load(file)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    for file in (tmp_path / "missing.toml", tmp_path):
        with pytest.raises(UsageProblem, match="a file of texts"):
            load(file)


def test_the_files_of_the_pages_go_with_the_package() -> None:
    """Their kinds are packed, as pyproject says."""
    pyproject = (ROOM.parent.parent / "pyproject.toml").read_text()
    kinds = {file.suffix for file in ROOM.rglob("*") if file.is_file()} - {".py", ".pyc"}
    assert kinds == {".html", ".css", ".js", ".png", ".svg", ".toml"}
    for kind in kinds:
        assert f'"**/*{kind}"' in pyproject
    assert files("controller.screens.common").joinpath("texts.toml").is_file()
