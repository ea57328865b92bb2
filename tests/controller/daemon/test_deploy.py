"""The unit and the page that a table is installed with: what they say is so."""

import marshal
import py_compile
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.api.http import ConnectionLimits
from controller.api.http.listener import HANDSHAKE_TIMEOUT
from controller.api.http.server import BODY_TIMEOUT, HEAD_TIMEOUT, IDLE_TIMEOUT, SEND_TIMEOUT
from controller.cli import find, main
from controller.commands import load_handler, parse
from controller.config import ScreensPlace, load_table
from controller.daemon.cli import STOP_WITHIN
from controller.daemon.serve import CONTROL_LIMITS, METRICS_LIMITS, PAGE_LIMITS
from controller.daemon.watchdog import FEEDS_PER_TIMEOUT
from controller.errors import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_NO, EXIT_OUTPUT, EXIT_USAGE
from controller.screens.common.server import LIMITS
from tests.conftest import require
from tests.support.daemon.rig import DEPLOY, PAGE, UNIT, UNIT_ENVIRONMENT, blocks, exposed
from tests.support.paths import ROOT

PLACE = "/var/lib/holecard/blackjack-1"
TABLE = "/etc/holecard/blackjack-1.toml"


def settings(unit: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line in unit.splitlines():
        name, separator, value = line.partition("=")
        if separator and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


SET = settings(UNIT)


def test_the_unit_and_the_daemon_agree() -> None:
    assert SET["Type"] == ["notify"]
    assert float(SET["TimeoutStopSec"][0]) > STOP_WITHIN
    assert float(SET["WatchdogSec"][0]) / FEEDS_PER_TIMEOUT > 1  # fed more often than that
    assert SET["RestartPreventExitStatus"] == ["1 2"]
    assert shlex.split(SET["ExecStart"][0])[1:] == ["serve", "/etc/holecard/%i.toml"]
    assert SET["LimitCORE"] == ["0"]
    environment = " ".join(SET["Environment"]).split()
    assert dict(one.split("=") for one in environment) == UNIT_ENVIRONMENT
    assert "adjtimex" in SET["SystemCallFilter"][0]
    assert "ProtectClock" not in SET  # it would keep us from asking, too


def test_the_unit_runs_no_cached_bytecode(tmp_path: Path) -> None:
    """Not even one that names the time and the size of the source."""
    source = tmp_path / "imported.py"
    source.write_text("print('source')\n")
    cached = Path(py_compile.compile(str(source), doraise=True) or "")
    forged = compile("print('forged')\n", str(source), "exec")
    cached.write_bytes(cached.read_bytes()[:16] + marshal.dumps(forged))
    for environment, ran in (({}, "forged\n"), (UNIT_ENVIRONMENT, "source\n")):
        command = [sys.executable, "-c", "import imported"]
        printed = subprocess.run(
            command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
        )
        assert printed.stdout == ran


def test_systemd_takes_the_unit(tmp_path: Path) -> None:
    require(shutil.which("systemd-analyze"), "systemd-analyze")
    unit = tmp_path / "holecard@blackjack-1.service"
    unit.write_text(UNIT.replace("/opt/holecard/bin/holecard", shutil.which("true") or ""))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")


# --- the page ---------------------------------------------------------------------------------


def commands() -> Iterator[list[str]]:
    """The lines of the page that call us, whoever runs them."""
    for line in "".join(blocks("sh")).splitlines():
        words = shlex.split(line)
        if words[:4] == ["runuser", "-u", "holecard", "--"]:
            words = words[4:]
        if words[:1] == ["holecard"]:
            yield words[1:]
    for line in "".join(blocks("cron")).splitlines():
        minute, *every, _, program = shlex.split(line)[:7]
        assert (minute.isdecimal(), every, program) == (True, ["*"] * 4, "holecard")
        yield shlex.split(line)[7:]


def test_the_page_installs_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command of ours that needs no device and no service, in the order of the page."""
    home, table = tmp_path / "var", tmp_path / "blackjack-1.toml"
    home.mkdir(mode=0o700)
    example = (DEPLOY / "../tables/blackjack-1.toml").read_text(encoding="utf-8")
    changed, elsewhere = blocks("toml")
    head = example[: example.index("# Directories start from")]
    table.write_text(head + changed)
    ran = []
    with (tmp_path / "pin").open("w+") as pin:
        pin.write("402931\n")
        for words in commands():
            if words[0] in ("serve", "audit", "doctor") or words[:2] == ["devices", "pair"]:
                continue
            given = [one.replace(PLACE, str(home)).replace(TABLE, str(table)) for one in words]
            if words[:2] == ["people", "add"]:
                pin.seek(0)
                given += ["--by", "Ann", "--and", "Cy", "--pin-fd", str(pin.fileno())]
            assert main(given) == 0, (words, capsys.readouterr().err)
            ran.append(" ".join(words[:2]))
    assert ran == [
        "devices ports",
        "config check",
        "devices init",
        "keys new",
        "keys new",
        "keys show",
        "devices list",
        "people init",
        "people add",
    ]
    capsys.readouterr()
    found = load_table(table).equipment
    assert (found.keys, found.people) == (Path(PLACE) / "keys", Path(PLACE) / "people.json")
    assert found.screens == ScreensPlace(8031)
    table.write_text((head + changed).partition("[screens]")[0] + elsewhere)
    screens = load_table(table).equipment.screens
    assert screens is not None
    assert (screens.listen, screens.certificate) == ("10.0.0.7", Path("/etc/holecard/tls.pem"))


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_each_command_of_the_page_is_one(words: list[str]) -> None:
    """Its options are looked at, and it is not run."""
    register = find(words[0]).load()
    assert callable(load_handler(parse(words, register)))
    with pytest.raises(SystemExit):
        parse([*words, "--none-of-ours"], register)


def test_the_page_says_which_names_nobody_proves() -> None:
    """Commands that take two names take them from whoever types."""
    (sentence,) = re.findall(r"`people`[^:]*without badge or PIN:", PAGE)
    assert set(re.findall(r"`([^`]+)`", sentence)) == {
        "people",
        "devices pair",
        "serve --believe-clock",
    }


def test_the_page_knows_every_figure() -> None:
    said = {word.partition("{")[0] for word in re.findall(r"`(holecard_[a-z_]+)", PAGE)}
    assert said == {name for name in exposed() if name.startswith("holecard_")}


def test_the_page_knows_the_limits_of_connections() -> None:
    said = re.findall(r"^\| (\w+) \| (\d+) \| (\d+) \|$", PAGE, re.MULTILINE)
    assert {name: ConnectionLimits(int(total), int(each)) for name, total, each in said} == {
        "pages": PAGE_LIMITS,
        "control": CONTROL_LIMITS,
        "metrics": METRICS_LIMITS,
    }
    assert f"`holecard review` has limits of {LIMITS.total} and {LIMITS.per_address}" in PAGE
    assert f"head of a request have {HEAD_TIMEOUT:g} s each, its body {BODY_TIMEOUT:g} s" in PAGE
    assert HANDSHAKE_TIMEOUT == HEAD_TIMEOUT
    assert (
        f"does not read {SEND_TIMEOUT:g} s, the time between two\nrequests {IDLE_TIMEOUT:g} s"
        in PAGE
    )


def test_the_page_knows_every_code() -> None:
    codes = {int(code) for code in re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE)}
    assert codes == {0, EXIT_NO, EXIT_USAGE, EXIT_BROKEN, EXIT_OUTPUT, EXIT_INTERRUPTED}


def test_they_are_in_the_wheel() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = project["tool"]["setuptools"]["package-data"]["*"]
    for one in DEPLOY.iterdir():
        assert f"**/*{one.suffix}" in patterns, one.name
