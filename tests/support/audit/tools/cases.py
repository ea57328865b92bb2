"""Cases, and who checks them with nothing of ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from controller.audit.export import SealedCase
from controller.audit.read.reader import segments
from controller.audit.simulate import record_par
from controller.games import unburned_game
from tests.support.audit.record.dealing import keyring

Json: TypeAlias = dict[str, Any]
VERIFIER = "verify_record.py"


@pytest.fixture(scope="module")
def dealt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Real rounds, with hole cards."""
    place = tmp_path_factory.mktemp("dealt") / "par"
    game = unburned_game("classic", {}, "a test")
    record_par(place, game, 24, keyring, seed=4, size=64 * 1024)
    return place


@pytest.fixture
def record(whole: Path, tmp_path: Path) -> Path:
    return shutil.copytree(whole, tmp_path / "mega-1")


def unpack(case: Path, place: Path) -> Path:
    with zipfile.ZipFile(case) as packed:
        packed.extractall(place)
    return place


def verified_by_others(case: Path, *more: str) -> tuple[int, Json]:
    """As somebody does who has the case and Python, and nothing of ours."""
    command = [sys.executable, "-I", VERIFIER, "record", "--json", *more]
    ran = subprocess.run(
        command, cwd=case, capture_output=True, text=True, timeout=100, check=False
    )
    assert ran.stderr == ""
    return ran.returncode, json.loads(ran.stdout)


def wanted(case: SealedCase) -> list[str]:
    return [one.path for one in case.manifest.files]


def end_after(record: Path, seq: int) -> None:
    """Remove all records after `seq`."""
    for segment in list(segments(record)):
        if segment.before.seq >= seq:
            segment.file.unlink()
            continue
        end = max(frame.end for frame in segment.frames if frame.seq <= seq)
        with segment.file.open("r+b") as file:
            file.seek(end)
            file.write(bytes(segment.end - end))
