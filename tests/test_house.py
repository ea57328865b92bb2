"""Rules of the repository that no linter checks."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest

from tests.conftest import held, leaked, require
from tests.support.import_contracts import has_door
from tests.support.paths import ROOT

ROOMS = ("configs", "controller", "drivers", "firmware_protocol", "hil", "tests")
PRODUCT = ROOMS[:-1]
MAX_LINES = 600
MAX_MODULES = 12
"""Modules in one folder, without its `__init__`."""
MAX_FUNCTION_LINES = 60
# One file on purpose: it is copied into every export, for readers who check it from top to bottom.
LONGER = {"controller/audit/verify_record.py": 3100}

PURE_ROOMS = ("controller/procedure", "controller/rules")
# What a pure package may import besides itself. import-linter names what is forbidden and follows
# chains; this is the other side: a library is looked at before it joins the list.
PURE_IMPORTS = {
    "__future__",
    "abc",
    "bisect",
    "collections",
    "controller",
    "dataclasses",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "hmac",
    "itertools",
    "math",
    "msgspec",
    "operator",
    "re",
    "string",
    "textwrap",
    "transitions",
    "types",
    "typing",
}
IMPURE_CALLS = {"__import__", "breakpoint", "eval", "exec", "input", "open", "print"}

# Written in pieces, so that this page does not break its own law.
REGISTRIES = re.compile(
    "|".join(
        (
            "pypi" + r"\.org",
            "python" + "hosted",
            "index" + "-url",
            "find" + "-links",
            "trusted" + "-host",
            "arti" + "factory",
        )
    ),
    re.IGNORECASE,
)
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(?:" + "|".join(("work", "root", "home")) + r")/\w")
VENDORED_FOLDERS = {"_vendor", "bower_components", "node_modules", "third_party", "vendor"}
VENDORED_FILES = re.compile(r"\.(?:a|dll|dylib|egg|exe|jar|o|pyd|so|tar\.gz|tgz|whl|zip)$|\.min\.")


@cache
def _files() -> tuple[str, ...]:
    """Every file that is tracked or would be with the next `git add`."""
    require(shutil.which("git") and (ROOT / ".git").exists(), "a git clone, to list its files")
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        timeout=60,
        check=True,
    )
    names = listing.stdout.decode().split("\0")
    return tuple(sorted(name for name in names if (ROOT / name).is_file()))


def _modules() -> Iterator[str]:
    for name in _files():
        if name.endswith(".py") and name.startswith(tuple(f"{room}/" for room in ROOMS)):
            yield name


def _texts() -> Iterator[tuple[str, int, str]]:
    """File, line number and text of every line that people wrote."""
    for name in _files():
        try:
            lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        for number, line in enumerate(lines, 1):
            yield name, number, line


class Outline(NamedTuple):
    """What these rules look at in one module; its whole tree is too large to be kept."""

    docstring: str | None
    imports: list[tuple[int, str]]
    names: list[tuple[int, str]]
    functions: list[tuple[int, int, str]]
    """First line, last line, name."""


@cache
def _outline(name: str) -> Outline:
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    return Outline(
        ast.get_docstring(tree),
        list(_imports(nodes)),
        [(node.lineno, node.id) for node in nodes if isinstance(node, ast.Name)],
        [
            (node.lineno, node.end_lineno or node.lineno, node.name)
            for node in nodes
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        ],
    )


def _imports(nodes: list[ast.AST]) -> Iterator[tuple[int, str]]:
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.lineno, node.module or ""


def _outlines(room: str) -> Iterator[tuple[str, Outline]]:
    return ((name, _outline(name)) for name in _modules() if name.startswith(f"{room}/"))


def test_modules_are_short() -> None:
    lengths = {name: len((ROOT / name).read_text("utf-8").splitlines()) for name in _modules()}
    assert not {
        name: lines for name, lines in lengths.items() if lines > LONGER.get(name, MAX_LINES)
    }
    assert LONGER.keys() <= lengths.keys()


def test_folders_are_small() -> None:
    counts = Counter(
        str(Path(name).parent) for name in _modules() if not name.endswith("__init__.py")
    )
    assert not {folder: count for folder, count in counts.items() if count > MAX_MODULES}


def test_functions_are_short() -> None:
    assert not [
        f"{name}:{line} {function}"
        for room in PRODUCT
        for name, outline in _outlines(room)
        for line, end, function in outline.functions
        if end - line + 1 > MAX_FUNCTION_LINES and name not in LONGER
    ]


def test_a_door_imports_all_its_names_and_nothing_else() -> None:
    for name in _modules():
        if name.startswith("tests/") or not name.endswith("/__init__.py"):
            continue
        if not has_door(ROOT / name):
            continue
        package = importlib.import_module(str(Path(name).parent).replace("/", "."))
        assert len(package.__all__) == len(set(package.__all__)), name
        assert not [one for one in package.__all__ if not hasattr(package, one)], name
        assert not [
            one for one in package.__all__ if isinstance(getattr(package, one), ModuleType)
        ], f"{name}: a door exports names, not modules"


def test_no_test_module_is_imported_by_another() -> None:
    assert not [
        f"{name}:{line}: {module}"
        for name, outline in _outlines("tests")
        for line, module in outline.imports
        if module.rpartition(".")[2].startswith("test_") and module.startswith("tests.")
    ]


def test_each_room_is_typed_and_says_what_it_is() -> None:
    for room in ROOMS:
        assert (ROOT / room / "py.typed").is_file(), room
        for name, outline in _outlines(room):
            assert outline.docstring, name


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_pure_rooms_import_only_what_is_pure(room: str) -> None:
    assert not [
        f"{name}:{line}: {module}"
        for name, outline in _outlines(room)
        for line, module in outline.imports
        if module.partition(".")[0] not in PURE_IMPORTS
    ]


@pytest.mark.parametrize("room", PURE_ROOMS)
def test_pure_rooms_call_nothing_that_reads_or_prints(room: str) -> None:
    assert not [
        f"{name}:{line}: {called}"
        for name, outline in _outlines(room)
        for line, called in outline.names
        if called in IMPURE_CALLS
    ]


@pytest.mark.parametrize("pattern", [REGISTRIES, MACHINE_PATHS], ids=["registries", "paths"])
def test_no_file_names_a_registry_or_a_machines_paths(pattern: re.Pattern[str]) -> None:
    assert not [f"{name}:{line}: {text}" for name, line, text in _texts() if pattern.search(text)]


def test_nothing_is_vendored() -> None:
    assert ".gitmodules" not in _files()
    for name in _files():
        assert not VENDORED_FOLDERS.intersection(Path(name).parts), name
        assert not VENDORED_FILES.search(name), name


def test_the_patterns_find_what_they_are_for() -> None:
    assert REGISTRIES.search("--" + "index" + "-url=x")
    assert MACHINE_PATHS.search("cd " + "/" + "home/dealer")
    assert not MACHINE_PATHS.search("frame" + "/" + "work/x and https://example.com/" + "home/x")
    assert VENDORED_FILES.search("screens/chart.min.js")


def test_what_a_test_leaves_behind_is_seen() -> None:
    before = held()
    reading, writing = os.pipe()
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, name="forgotten")
    thread.start()
    child = subprocess.Popen(["sleep", "60"])
    rest = leaked(before, grace=0.05)
    child.kill()
    child.wait()
    stop.set()
    thread.join()
    os.close(reading)
    os.close(writing)
    assert [words for words in rest if words.endswith("forgotten")]
    assert f"child process {child.pid}" in rest
    assert len([words for words in rest if words.startswith("file descriptor")]) == 2
    assert leaked(before) == []


def test_require_skips_here_and_fails_where_all_is_required(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    require(True, "never asked for")
    monkeypatch.delenv("HOLECARD_REQUIRE_ALL", raising=False)
    with pytest.raises(pytest.skip.Exception, match="a card reader"):
        require(False, "a card reader")
    monkeypatch.setenv("HOLECARD_REQUIRE_ALL", "1")
    with pytest.raises(pytest.fail.Exception, match="required here: a card reader"):
        require(None, "a card reader")
