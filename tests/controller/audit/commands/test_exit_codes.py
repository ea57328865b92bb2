"""Exit codes of `holecard audit`: what each command's help says of them is what it does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from controller import cli
from controller.audit.format.segments import segment_file
from controller.audit.keys import ROLES, create_key
from controller.audit.read.reader import read_segment
from tests.support.audit.record.scripted import read_rounds
from tests.support.audit.tools.audit_command import LEFT_OPEN
from tests.support.paths import ROOT
from tests.support.sim.a_round import ROUND

COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": ("record", "--no-replay"),
    "show": ("record", "--seq", "1-9"),
    "tail": ("record",),
    "open": ("record", "--round", "1", "--keys", "keys"),
    "accept-tail": ("spoilt", "--keys", "keys", "--by", "Ann", "--second", "Bo", "--yes"),
    "sql": ("record", "SELECT 1"),
    "rebuild-index": ("record",),
    "export": ("record", "--format", "jsonl"),
    "check-case": ("case",),
    "prove": ("record", "--seq", "3"),
    "check-proof": ("proof.json", "--table-key", "keys/table.pub"),
    "cosign": ("record", "--keys", "keys", "--archive", "archive"),
    "witnessed": ("record", "a.note", "--witness-key", "keys/witness.pub"),
    "retire": (
        *("record", "--before", "2026-01-01", "--out", "old.zip", "--keys", "keys"),
        *("--by", "Ann", "--and", "Bo"),
    ),
}
ALONE = ("check-case", "check-proof")
"""They are about no record that is here."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """All that the commands are about."""
    folder = tmp_path_factory.mktemp("codes")
    for role in ROLES:
        create_key(folder / "keys", role, "floor/1" if role == "witness" else None)
    read_rounds(folder, LEFT_OPEN, ROUND)
    record, keys = str(folder / "record"), str(folder / "keys")
    script = ["script", "run", str(folder / "rounds.json"), "--record", record, "--keys", keys]
    archive = ["--keys", keys, "--archive", str(folder / "archive")]
    for words in (
        script,
        ["audit", "export", record, "--all", "--out", str(folder / "case")],
        ["audit", "prove", record, "--seq", "3", "--out", str(folder / "proof.json")],
        ["audit", "cosign", record, *archive, "--out", str(folder / "a.note")],
    ):
        assert cli.main(words) in (0, 1)  # of the rounds one does not come out as it is expected to
    spoilt = shutil.copytree(record, folder / "spoilt")
    data = bytearray(read_segment(spoilt, 1).buffer)
    data[-9:] = b"scribbled"
    segment_file(spoilt, 1).write_bytes(data)
    return folder


def called(name: str, *words: str) -> int:
    return cli.main(["audit", name, *words])


def writing_to(stdout: int, name: str, *words: str) -> int:
    """By itself, its output going there."""
    command = [sys.executable, "-m", "controller.cli", "audit", name, *words]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    ran = subprocess.run(
        command, env=env, stdout=stdout, stderr=subprocess.DEVNULL, timeout=100, check=False
    )
    return ran.returncode


def nobody_reads(name: str, *words: str) -> int:
    reads, writes = os.pipe()
    os.close(reads)
    try:
        return writing_to(writes, name, *words)
    finally:
        os.close(writes)


def no_room(name: str, *words: str) -> int:
    with Path("/dev/full").open("wb") as full:
        return writing_to(full.fileno(), name, *words)


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = shutil.copytree(made, tmp_path / "made")
    monkeypatch.chdir(folder)
    return folder


def said(name: str, capsys: pytest.CaptureFixture[str]) -> set[int]:
    """The codes in a command's help."""
    capsys.readouterr()
    assert called(name, "--help") == 0
    words = " ".join(capsys.readouterr().out.partition("Exit codes:")[2].split())
    return {int(code) for code in re.findall(r"(?:^|; )\s*(\d+) ", words)}


@pytest.mark.parametrize("name", COMMANDS)
def test_what_its_help_says_of_exit_codes_is_what_a_command_does(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = COMMANDS[name]
    assert {0, 1, 2, 74, 141} <= said(name, capsys)
    assert called(name, *words, "--no-such-option") == 2
    assert called(name, "nowhere", *words[1:]) == 2
    capsys.readouterr()
    if name == "accept-tail":
        assert called(name, *words) == 0
        assert called(name, *words) == 1  # nothing is left to be accepted
        return
    if name == "retire":
        assert called(name, *words) == 1  # nothing is so old
        return
    assert no_room(name, *words) == 74
    assert nobody_reads(name, *words) == 141
    assert called(name, *words) == 0
    if name not in ALONE:
        segment = segment_file(folder / "record", 1)
        data = bytearray(segment.read_bytes())
        data[60] ^= 1
        segment.write_bytes(data)
        assert called(name, *words) == 1
