"""The verifier as a command: what it says, what it needs, where it runs."""

import ast
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from controller.audit import verify_record
from controller.audit.verify_record import main
from tests.support.audit.tools.by_page import (
    TABLE,
    WITNESS,
    b64,
    closed,
    commitment,
    opening,
    sha,
    started,
)
from tests.support.audit.verifying import read
from tests.support.terminal import terminal

SCRIPT = Path(verify_record.__file__)


def test_without_cryptography_it_says_loudly_that_signatures_were_not_checked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = closed().save(tmp_path)
    monkeypatch.setattr(verify_record, "ED25519", None)
    assert main([str(folder)]) == 3
    out = capsys.readouterr().out
    assert "SIGNATURES WERE NOT CHECKED" in out
    assert out.endswith("RIGHT AS FAR AS IT COULD BE CHECKED\n")


def test_it_runs_by_itself_where_nothing_is_installed(tmp_path: Path) -> None:
    alone = tmp_path / "verify_record.py"
    alone.write_bytes(SCRIPT.read_bytes())
    folder = closed().save(tmp_path / "record")
    for first, code in ((1, 3), (9, 1)):
        if first == 9:
            (folder / "segments" / "00000001.seg").write_bytes(bytes(16384))
        run = subprocess.run(
            [sys.executable, "-I", "-S", str(alone), str(folder)],
            capture_output=True,
            timeout=60,
            check=False,
        )
        assert (run.returncode, run.stderr) == (code, b"")
        assert b"SIGNATURES WERE NOT CHECKED" in run.stdout


def test_it_is_written_for_python_3_9_and_needs_only_what_that_has() -> None:
    tree = ast.parse(SCRIPT.read_text("utf-8"), feature_version=(3, 9))
    names = {
        name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in ([node.module or ""] if isinstance(node, ast.ImportFrom) else [])
        + [alias.name for alias in node.names if isinstance(node, ast.Import)]
    }
    assert names - {"cryptography"} <= sys.stdlib_module_names
    assert not {"controller", "drivers"} & names


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--witness-key", WITNESS.vkey()], "--checkpoint and --witness-key go together"),
        (["--checkpoint", "x"], "--checkpoint and --witness-key go together"),
        (["--checkpoint", "no such", "--witness-key", WITNESS.vkey()], "no such is no file"),
        (["--table-key", "name+0+AAAA"], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "a b" + WITNESS.vkey()], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "\udcff" + WITNESS.vkey()], "a verifier key is NAME+KEY ID+BASE64"),
        (["--table-key", "other." + WITNESS.vkey()], "the id of the key of other.witness"),
        (["--table-key", WITNESS.vkey(4)], "a verifier key is NAME+KEY ID+BASE64"),
    ],
)
def test_mistakes_in_the_command_are_said(
    more: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(closed().save(tmp_path)), *more])
    assert left.value.code == 2
    assert words in capsys.readouterr().err


def test_a_folder_without_segments_is_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([str(tmp_path)])
    assert left.value.code == 2
    assert "no record, for it has no folder segments" in capsys.readouterr().err


def test_progress_goes_to_a_terminal_only(tmp_path: Path) -> None:
    folder = closed(4096).save(tmp_path)
    with terminal() as at:
        run = subprocess.run(
            [sys.executable, str(SCRIPT), str(folder)],
            stdout=subprocess.PIPE,
            stderr=at.far,
            timeout=60,
            check=True,
        )
        shown = at.shown()
    assert "segment 2 of " in shown
    assert b"segment 2 of " not in run.stdout


def test_what_a_record_says_cannot_command_a_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pen = started()
    pen.write("\x1b[31mred\u202e", {})
    main([str(pen.save(tmp_path))])
    out = capsys.readouterr().out
    assert "the page knows no kind \\x1b[31mred\\x202e" in out


def test_memory_stays_flat(tmp_path: Path) -> None:
    def peak(rounds: int) -> int:
        pen = started(1 << 20)
        for _ in range(rounds):
            pen.write("note", {"text": "x" * 60_000})
        folder = pen.save(tmp_path / str(rounds))
        tracemalloc.start()
        found = read(folder)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (found["exit"], found["segments"]) == (0, -(-rounds // 17))
        return most

    few, many = peak(20), peak(120)
    assert many < few + (1 << 19)


def test_the_commitment_is_the_one_of_the_page() -> None:
    cursor = {"device": "SHOE-1", "epoch": 3, "seq": 0x01020304}
    opened = opening(51)
    text = b"holecard-v1\0" + TABLE.encode() + b"\0SHOE-1\0\x03\0\0\0\x04\x03\x02\x01" + opened
    assert commitment(cursor, opened) == sha(text).hex()
    assert len(b64(opened)) == 76
