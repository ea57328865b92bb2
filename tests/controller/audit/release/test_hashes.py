"""Hashes of the installed software."""

import os
import re
import shutil
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from controller.audit.release import (
    PROCEDURE,
    SOFTWARE,
    InstalledSoftware,
    code_form,
    files_hash,
    installed_software,
    release_hashes,
    source_hash,
)
from controller.audit.replay import identity_of
from tests.support.audit.tools.installed import install_all, installed
from tests.support.paths import ROOT
from tests.support.procedure.random_games import game_as_it_is

# Source


def test_the_source_hash_covers_names_and_bytes_in_order() -> None:
    """Computed again from the module's docstring."""
    found = {}
    for package in SOFTWARE:
        for folder, _, files in os.walk(ROOT / package):
            for file in files:
                path = Path(folder, file)
                if path.suffix in {".css", ".html", ".js", ".py", ".svg", ".toml"}:
                    found[path.relative_to(ROOT).as_posix()] = path.read_bytes()
    whole = b""
    for name, content in sorted(found.items()):
        whole += len(name).to_bytes(8, "little") + name.encode()
        whole += len(content).to_bytes(8, "little") + content
    assert "controller/sim/play/strategies/mega.toml" in found
    assert source_hash.__wrapped__(*SOFTWARE) == sha256(whole).hexdigest()


def test_any_source_change_changes_the_hash(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "some_source"
    shutil.copytree(ROOT / "controller/rules", package)
    monkeypatch.syspath_prepend(tmp_path)

    def now() -> str:
        found: str = source_hash.__wrapped__("some_source")
        return found

    first = now()
    (package / "__pycache__").mkdir(exist_ok=True)
    (package / "__pycache__" / "cards.cpython-311.pyc").write_bytes(b"compiled")
    (package / "notes.txt").write_text("of nobody's interest")
    assert now() == first
    hashes = {first}
    (package / "cards.py").write_bytes((package / "cards.py").read_bytes() + b"\n")
    hashes.add(now())
    (package / "deep").mkdir()
    (package / "deep" / "more.py").write_text("x = 1\n")
    hashes.add(now())
    (package / "deep" / "more.py").rename(package / "deep" / "most.py")
    hashes.add(now())
    (package / "money.py").unlink()
    hashes.add(now())
    assert len(hashes) == 5


def test_the_procedure_hash_covers_all_imports() -> None:
    hashed = [ROOT / name.replace(".", "/") for name in PROCEDURE]
    sources = [file for place in hashed for file in place.rglob("*.py")]
    sources += [file for place in hashed if (file := place.with_suffix(".py")).is_file()]
    imported = {
        name
        for file in sources
        for name in re.findall(r"^ *(?:from|import) +([a-z_.]+)", file.read_text(), re.MULTILINE)
        if name.partition(".")[0] in {"controller", "drivers", "firmware_protocol"}
    }
    assert {one for one in imported if not one.startswith(PROCEDURE)} == set()
    assert "controller.errors" in imported
    assert source_hash(*PROCEDURE) != source_hash(*SOFTWARE)
    assert identity_of("bj", game_as_it_is("classic")).code == source_hash(*PROCEDURE)


def test_a_modules_hash_covers_its_file() -> None:
    content = (ROOT / "controller/errors.py").read_bytes()
    name = b"controller.errors.py"
    whole = b"".join(len(part).to_bytes(8, "little") + part for part in (name, content))
    assert source_hash("controller.errors") == sha256(whole).hexdigest()


# All files


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """The folder of packages: ours, what it needs, what that needs, and what nothing needs."""
    place = tmp_path / "site"
    install_all(place)
    installed(place, "unneeded", {"unneeded.py": ""})
    return place


def hashes(found: InstalledSoftware) -> tuple[str, str]:
    needed = (file for package in found.dependencies for file in package.files)
    return files_hash(found.own.files), files_hash(needed)


def paths(found: InstalledSoftware) -> set[str]:
    every = (found.own, *found.dependencies)
    return {file.path for package in every for file in package.files}


def test_all_files_of_the_software_and_of_what_it_needs_are_listed(site: Path) -> None:
    found = installed_software(site)
    assert [file.path for file in found.own.files] == [
        "controller/__init__.py",
        "controller/cli.py",
        "hil/__init__.py",
        "holecard-1.0.dist-info/METADATA",
        "holecard-1.0.dist-info/entry_points.txt",
    ]
    assert [(one.name, len(one.files)) for one in found.dependencies] == [
        ("deeper", 2),
        ("needed-one", 3),
        ("(started by Python)", 0),
    ]


def test_sha256sum_finds_every_listed_file(site: Path) -> None:
    (site / "controller" / "back\\slash\nline.py").write_text("odd")
    found = installed_software(site)
    listing = "".join(file.line() for file in found.own.files)
    assert sha256(listing.encode()).hexdigest() == files_hash(found.own.files)
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", "-"],
        input=listing,
        text=True,
        cwd=site,
        check=False,
    )
    assert checked.returncode == 0


@pytest.mark.parametrize(
    ("path", "changed"),
    [
        ("controller/cli.py", (True, False)),
        ("controller/added.so", (True, False)),
        ("hil/deep/data.bin", (True, False)),
        ("holecard-1.0.dist-info/entry_points.txt", (True, False)),
        ("needed/added.py", (False, True)),
        ("_needed.so", (False, True)),
        ("deeper-1.0.dist-info/METADATA", (False, True)),
        ("started.pth", (False, True)),
        ("sitecustomize.py", (False, True)),
        ("usercustomize/__init__.py", (False, True)),
        ("holecard-1.0.dist-info/INSTALLER", (False, False)),
        ("controller/__pycache__/cli.cpython-311.pyc", (False, False)),
        ("unneeded.py", (False, False)),
    ],
)
def test_a_changed_or_added_file_changes_the_hash(
    site: Path, path: str, changed: tuple[bool, bool]
) -> None:
    before = hashes(installed_software(site))
    (site / path).parent.mkdir(parents=True, exist_ok=True)
    with (site / path).open("ab") as file:
        file.write(b"\n")
    after = hashes(installed_software(site))
    assert tuple(one != other for one, other in zip(before, after, strict=True)) == changed


def test_a_removed_file_changes_the_hash(site: Path) -> None:
    before = hashes(installed_software(site))
    (site / "deeper.py").unlink()
    assert hashes(installed_software(site))[1] != before[1]


def test_links_and_pipes_end_no_listing(site: Path) -> None:
    folder = site / "controller"
    (folder / "loop").symlink_to("loop")
    (folder / "up").symlink_to("..")
    os.mkfifo(folder / "pipe")
    (folder / os.fsdecode(b"\xff.py")).write_text("odd")
    found = installed_software(site)
    assert {"controller/loop", "controller/up", "controller/pipe"} < paths(found)
    assert hashes(found) != ("", "")


def test_the_running_software_is_hashed_once() -> None:
    found = hashes(installed_software())
    assert (release_hashes().software, release_hashes().dependencies) == found
    assert release_hashes() is release_hashes()


def test_code_without_a_source_file_is_compiled_code(tmp_path: Path) -> None:
    assert code_form() == "source"
    room = tmp_path / "hil"
    room.mkdir()
    (room / "__init__.py").write_text("")
    (room / "only.py").write_text("")
    script = (
        "import compileall, importlib, os, sys, hil.only\n"
        "compileall.compile_dir(hil.__path__[0], legacy=True, quiet=1)\n"
        "os.unlink(hil.only.__file__)\n"
        "del sys.modules['hil.only']\n"
        "importlib.invalidate_caches()\n"
        "import hil.only\n"
        f"sys.path.append({str(ROOT)!r})\n"
        "from controller.audit.release import code_form\n"
        "print(code_form())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines()[-1] == "compiled"
