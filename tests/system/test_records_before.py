"""Records of an earlier version are still read, verified, exported and proven, byte for byte."""

import hashlib
import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from controller.cli import main
from tests.support.audit.tools.outside import bytes_of
from tests.support.paths import ROOT

SCRIPT = ROOT / "controller" / "audit" / "verify_record.py"
BEFORE = ROOT / "tests" / "long" / "fixtures_before"
EXPECTED: dict[str, dict[str, Any]] = json.loads((BEFORE / "expected.json").read_text("utf-8"))
GAMES = sorted(EXPECTED)
OF_THE_CODE = ("again", "unread", "unchecked", "exit")
"""What depends on whether the code that verifies is the code that recorded."""
PAGES = ("FORMAT.md", "verify_record.py")
"""Files of a case about the format: they may be reworded, and find more."""


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


@pytest.fixture(scope="module", params=GAMES)
def record(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("before")
    with tarfile.open(BEFORE / "records.tar.xz") as packed:
        for member in packed:
            data = packed.extractfile(member)
            if data is not None:
                file = place / member.name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data.read())
    found: Path = place / request.param
    return found


def printed(capfdbinary: pytest.CaptureFixture[bytes], *arguments: object) -> bytes:
    assert main(["audit", *map(str, arguments)]) in (0, 3)
    return capfdbinary.readouterr().out


def test_it_verifies(record: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    found = json.loads(printed(capfdbinary, "verify", record, "--json"))
    verdict = {name: value for name, value in found.items() if name not in OF_THE_CODE}
    assert verdict == EXPECTED[record.name]["verify"]
    ran = subprocess.run([sys.executable, SCRIPT, record], check=False, timeout=60)
    assert ran.returncode == 0


@pytest.mark.parametrize("form", ["jsonl", "csv"])
def test_rows_are_the_same(
    record: Path, form: str, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    rows = printed(capfdbinary, "export", record, "--format", form, "--by", "Eve")
    assert digest(rows) == EXPECTED[record.name][form]


def test_a_proof_is_the_same(record: Path, tmp_path: Path) -> None:
    out = tmp_path / "proof.json"
    assert main(["audit", "prove", str(record), "--round=31", f"--out={out}", "--by=Eve"]) == 0
    assert digest(out.read_bytes()) == EXPECTED[record.name]["proof"]


def test_a_case_is_the_same(record: Path, tmp_path: Path) -> None:
    out = tmp_path / "case.zip"
    command = ["audit", "export", str(record), "--round=31", f"--out={out}", "--by=Eve"]
    assert main([*command, "--reason=x"]) == 0
    with zipfile.ZipFile(out) as case:
        found = {name: digest(case.read(name)) for name in case.namelist()}
        manifest = json.loads(case.read("manifest.json"))
    expected = EXPECTED[record.name]["case"]
    assert found.keys() == expected.keys()
    assert {name for name in found if found[name] != expected[name]} <= {*PAGES, "manifest.json"}
    assert manifest["origin"] == EXPECTED[record.name]["verify"]["origin"]


def test_the_index_is_the_same(record: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    rows = printed(capfdbinary, "sql", record, "select * from rounds", "--json")
    assert digest(rows) == EXPECTED[record.name]["index"]


@pytest.mark.parametrize("name", ["continued", "version_2"])
def test_it_is_continued(
    name: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A boot of this version continues a record of an earlier one, with its keys."""
    with tarfile.open(BEFORE / f"{name}.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    place = tmp_path / "mega"
    (place / "keys").chmod(0o700)
    before = json.loads(printed(capfdbinary, "verify", place, "--json"))
    script = ROOT / "tests" / "scripts" / "examples.json"
    assert main(["script", "run", str(script), "--record", str(place)]) == 0
    capfdbinary.readouterr()
    found = json.loads(printed(capfdbinary, "verify", place, "--json"))
    assert found["findings"] == []
    assert found["records"] > before["records"] + 100
    assert found["opened"] > before["opened"] == 2
    sizes = [len(data) for data in bytes_of(place)[before["records"] :]]
    assert sum(sizes) / len(sizes) <= 560
    ran = subprocess.run([sys.executable, SCRIPT, place], check=False, timeout=60)
    assert ran.returncode == 0
    case = tmp_path / "case"
    rounds = [f"--out={case}", "--round=1-7", "--by=Eve", "--reason=x"]
    assert main(["audit", "export", str(place), *rounds]) == 0
    assert main(["audit", "check-case", str(case)]) == 0
    capfdbinary.readouterr()
    shown = printed(capfdbinary, "tail", place, "--lines", found["last"]).decode()
    assert shown.count("the controller starts") == found["boots"]
