"""`holecard doctor` as it is typed, its checks in order, and beside a table that is served."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from controller.audit.log import SystemClock
from controller.audit.release import Installation, release_text
from controller.audit.replay import identity
from controller.audit.verify import verify
from controller.cli import main
from controller.doctor.check import CheckFindings, DoctorCase, DoctorCheck, Machine, found, wrong
from controller.doctor.command import CHECKS, run_checks
from drivers.keys import KeyProblem
from tests.support.audit.tools.installed import (
    OTHER_KEY,
    RELEASE_KEY,
    installation,
    release_of_site,
)
from tests.support.daemon.doctor_house import House, house, tree
from tests.support.daemon.rig import child
from tests.support.paths import ROOT


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[House]:
    with house(tmp_path) as one:
        monkeypatch.setattr(Machine, "here", lambda: one.machine)
        yield one


def told(capsys: pytest.CaptureFixture[str], made: House, code: int) -> str:
    assert main(["doctor", str(made.file)]) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def as_data(capsys: pytest.CaptureFixture[str], made: House, code: int) -> dict[str, Any]:
    assert main(["doctor", str(made.file), "--json"]) == code
    data: dict[str, Any] = json.loads(capsys.readouterr().out)
    return data


def test_a_table_in_order(made: House, capsys: pytest.CaptureFixture[str]) -> None:
    heads = [line for line in told(capsys, made, 0).splitlines() if not line.startswith(" ")]
    assert len(heads) == len(CHECKS) + 1
    wide = max(len(one.name) for one in CHECKS)
    for check, line in zip(CHECKS, heads, strict=False):
        assert re.match(rf"[+!-] (ok   |warn |skip )  {check.name:<{wide}}  \S", line)
    assert re.fullmatch(
        rf"{len(CHECKS)} checks: \d+ ok, \d warnings, 0 wrong, \d not checked", heads[-1]
    )


def test_a_release(
    made: House, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is installed, and what the table ran, are compared with a signed list."""
    there = installation(made.place)
    monkeypatch.setattr(Installation, "here", lambda: there)
    release = release_of_site(there.site, version("holecard"))
    monkeypatch.setattr(identity, "release_hashes", lambda: release.hashes, raising=False)
    file = made.place / "list.release"
    file.write_text(release_text(release, RELEASE_KEY))
    words = [str(made.file), "--release", str(file), "--release-key", str(RELEASE_KEY.verifier)]

    def lines(code: int) -> str:
        assert main(["doctor", *words]) == code
        return capsys.readouterr().out

    assert re.search(r"\+ ok     release  +holecard .*, commit c0c0c0c0c0c0\n", lines(0))
    made.recorded()
    assert re.search(r"\+ ok     last boots +1 in segment 1\n", lines(0))
    (there.site / "deeper.py").write_text("y = 3\n")
    assert "        deeper.py: is not the file of the release\n" in lines(1)
    file.write_text(release_text(replace(release, sw="5a" * 32), RELEASE_KEY))
    assert re.search(r"  segment 00000001.*: boot .* in no list: sw differs\n", lines(1))
    file.write_text(release_text(release, OTHER_KEY))
    assert "none of the known keys has signed" in lines(1)


def test_what_is_wrong_stands_below_with_its_command(
    made: House, capsys: pytest.CaptureFixture[str]
) -> None:
    made.people.chmod(0o666)
    lines = told(capsys, made, 1).splitlines()
    at = next(at for at, line in enumerate(lines) if line.startswith("x WRONG  people's place  "))
    assert lines[at + 1] == f"        others may access {made.people} (mode 666)"
    assert lines[at + 2] == f"            chmod 600 {made.people}"
    assert " 1 wrong, " in lines[-1]
    made.shell(lines[at + 2].strip())
    told(capsys, made, 0)


def test_as_data(made: House, capsys: pytest.CaptureFixture[str]) -> None:
    data = as_data(capsys, made, 0)
    assert (data["table"], data["file"], data["ok"]) == ("house-1", str(made.file), True)
    assert [one["name"] for one in data["checks"]] == [one.name for one in CHECKS]
    made.keys.chmod(0o755)
    data = as_data(capsys, made, 1)
    assert (data["ok"], data["counts"]["wrong"]) == (False, 1)
    (broken,) = (one for one in data["checks"] if one["verdict"] == "wrong")
    assert broken["name"] == "keys' place"
    assert broken["problems"] == [
        {
            "grade": "wrong",
            "what": f"others may read {made.keys}",
            "mend": "",
            "commands": [f"chmod 700 {made.keys}"],
        }
    ]


def test_a_place_that_a_shell_would_take_apart(
    made: House, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = made.run / "it's $HOME; a key"
    made.keys.rename(odd)
    made.edit('"run/keys"', f'"run/{odd.name}"')
    odd.chmod(0o755)
    data = as_data(capsys, made, 1)
    commands = [c for one in data["checks"] for p in one["problems"] for c in p["commands"]]
    made.shell(next(one for one in commands if "chmod" in one))
    assert as_data(capsys, made, 0)["ok"]


def test_no_name_of_a_file_commands_a_terminal(
    made: House, capsys: pytest.CaptureFixture[str]
) -> None:
    odd = made.place / "\x1b[2J\\0it's $HOME\u00e9\u0301\udcff"
    odd.mkdir()
    made.file = made.file.rename(odd / "table.toml")
    out = told(capsys, made, 1)
    assert all(line.isprintable() for line in out.splitlines())
    made.mend("record's place")
    assert (odd / "run").is_dir()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot be read: no such file or directory"),
        ("schema = ", "invalid value"),
        ("schema = 1\n", "does not say what it is"),
        ('schema = 1\n[game]\nname = "x"\n', "is the file of a game; allowed: the file of a table"),
    ],
)
def test_what_is_no_table_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None, said: str
) -> None:
    file = tmp_path / "table.toml"
    if text is not None:
        file.write_text(text)
    assert main(["doctor", str(file)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert err.count("\n") == 1


def test_wrong_arguments(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 2
    assert main(["doctor", "mega-1", "--repair"]) == 2
    assert "unrecognized arguments: --repair" in capsys.readouterr().err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert "Exit codes: 0 no problem" in out


@pytest.mark.parametrize("name", ["blackjack-1", "maxtime-1", "mega-1", "superfun-1"])
def test_our_examples_can_be_looked_at(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
) -> None:
    """Their places start from where we are; nothing of them is there, and nothing is made."""
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", name, "--json"]) == 1
    data = json.loads(capsys.readouterr().out)
    verdicts = {one["name"]: one["verdict"] for one in data["checks"]}
    assert verdicts["table file"] == verdicts["sections"] == "ok"
    assert verdicts["keys' place"] == "wrong"
    keys = tmp_path / "run" / name / "keys"
    commands = [c for one in data["checks"] for p in one["problems"] for c in p["commands"]]
    assert any(f"devices init --keys {keys}" in one for one in commands)
    assert tree(tmp_path) == {}


def test_a_check_that_fails_stops_no_other(made: House) -> None:
    def failing(case: DoctorCase) -> CheckFindings:
        raise KeyProblem("a place", "cannot be", None)

    def closed(case: DoctorCase) -> CheckFindings:
        raise PermissionError(13, "Permission denied", "a file")

    def bad(case: DoctorCase) -> CheckFindings:
        return found("", [wrong("bad")])

    def fine(case: DoctorCase) -> CheckFindings:
        return found("fine")

    checks = (
        DoctorCheck("one", "", failing),
        DoctorCheck("two", "", closed),
        DoctorCheck("three", "", fine),
        DoctorCheck("four", "", fine, ("three",)),
        DoctorCheck("five", "", fine, ("one", "three")),
        DoctorCheck("six", "", fine, ("five",)),
        DoctorCheck("seven", "", bad),
    )
    results = [one.found for one in run_checks(made.case(), checks)]
    assert [one.verdict for one in results] == [
        "wrong",
        "wrong",
        "ok",
        "ok",
        "skipped",
        "skipped",
        "wrong",
    ]
    assert results[0].problems[0].what == "cannot be checked: a place: cannot be"
    assert "Permission denied" in results[1].problems[0].what
    assert results[4].note == "not checked: first one"


def test_checks_stand_after_those_that_they_need() -> None:
    names = [one.name for one in CHECKS]
    assert len(set(names)) == len(names)
    for at, check in enumerate(CHECKS):
        assert set(check.after) <= set(names[:at]), check.name


# --- at a terminal ----------------------------------------------------------------------------


def shown(made: House, **more: str) -> str:
    """What a terminal is sent."""
    master, slave = os.openpty()
    environment = {key: text for key, text in os.environ.items() if key != "NO_COLOR"}
    parts = []
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "controller.cli", "doctor", str(made.file)],
            stdout=slave,
            stderr=slave,
            env={**environment, "PYTHONPATH": str(ROOT), **more},
        ):
            os.close(slave)
            with suppress(OSError):  # EIO: nobody has the other end any more
                while part := os.read(master, 65536):
                    parts.append(part)
    finally:
        os.close(master)
    return b"".join(parts).decode(errors="replace")  # a former user of the terminal may write


def test_colours_at_a_terminal_only(made: House, capsys: pytest.CaptureFixture[str]) -> None:
    assert "\x1b[" not in told(capsys, made, 0)
    (made.keys / "hole.key").chmod(0o644)
    text = shown(made)
    assert "\x1b[1;31mx WRONG\x1b[0m  keys' place" in text
    assert "\x1b[32m+ ok   \x1b[0m  table file" in text
    # We have both ends of its ports: whoever is at the other end of one takes it from nobody.
    assert "\x1b[32m+ ok   \x1b[0m  ports" in text
    assert "\x1b[" not in shown(made, NO_COLOR="1")


def test_the_reader_may_go(made: House) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "controller.cli", "doctor", str(made.file)],
            stdout=writing,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            timeout=60,
            check=False,
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def wrongs(made: House) -> list[str]:
    return [name for name, found in made.all().items() if found.verdict == "wrong"]


def test_beside_a_table_that_is_served(tmp_path: Path) -> None:
    with house(tmp_path) as made:
        made.machine = replace(made.machine, clock=SystemClock())
        assert wrongs(made) == []
        with child(made.file, told="READY=1") as daemon:
            for _ in range(3):
                every = made.all()
                assert [name for name, one in every.items() if one.verdict == "wrong"] == []
                said = f"the table is being served by process {daemon.process.pid} ("
                assert said in every["record"].note
                for name in ("socket", "control ports"):
                    assert every[name].note.endswith("the table is being served"), name
            assert daemon.ends() == 0
        assert (wrongs(made), made.check("round").note) == ([], "round 0, at closed")
        assert [one.what for one in verify(made.record).findings] == []


def test_a_table_that_a_killed_controller_has_left(tmp_path: Path) -> None:
    with house(tmp_path) as made:
        made.machine = replace(made.machine, clock=SystemClock())
        with child(made.file, told="READY=1") as daemon:
            assert daemon.ends(signal.SIGKILL) == -signal.SIGKILL
        assert wrongs(made) == []
        assert "left from a former start" in made.check("socket").note
