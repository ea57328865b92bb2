"""The memory of the daemon is closed to its own user, and it does not run as root unasked."""

import json
import os
import pwd
import subprocess
import sys
from pathlib import Path

import pytest

from controller.audit.keys import load_table_private
from controller.cli import main
from controller.daemon.process_memory import tracer
from tests.conftest import require
from tests.support.audit.verifying import read_independently
from tests.support.daemon.rig import COMMAND, PATIENCE, child, furnished, right, whats
from tests.support.paths import ROOT

ATTACK = r"""
import ctypes, json, os, re, signal, subprocess, sys
secret, command = bytes.fromhex(sys.argv[1]), sys.argv[2:]
daemon = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
assert daemon.stdout.readline().startswith(b"ready: "), daemon.wait()
libc = ctypes.CDLL(None, use_errno=True)
attached = libc.ptrace(16, daemon.pid, None, None) == 0  # PTRACE_ATTACH
if attached:
    os.waitpid(daemon.pid, 0)
    libc.ptrace(17, daemon.pid, None, None)  # PTRACE_DETACH
refused, found = [], False
for name in ("mem", "environ", "fd/0"):
    try:
        open(f"/proc/{daemon.pid}/{name}", "rb", 0).close()
    except PermissionError:
        refused.append(name)
if "mem" not in refused:
    with open(f"/proc/{daemon.pid}/maps") as maps, open(f"/proc/{daemon.pid}/mem", "rb", 0) as mem:
        for area in maps:
            first, last, mode = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+)", area).groups()
            if mode.startswith("rw"):
                mem.seek(int(first, 16))
                found = found or secret in mem.read(int(last, 16) - int(first, 16))
daemon.send_signal(signal.SIGTERM)
print(json.dumps({"attached": attached, "refused": refused, "found": found, "code": daemon.wait()}))
"""
"""Starts the daemon as the same user without capabilities, and tries to read its memory.

As its parent, so that a kernel that only lets parents debug (Yama) changes nothing."""
NO_CAPABILITIES = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")


def attack(folder: Path, *options: str) -> dict[str, object]:
    file = furnished(folder)
    secret = load_table_private(folder / "keys").private_bytes_raw()
    as_user = NO_CAPABILITIES if os.geteuid() == 0 else ()
    ran = subprocess.run(
        [*as_user, sys.executable, "-c", ATTACK, secret.hex(), *COMMAND, str(file), *options],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    right(folder)
    found = json.loads(ran.stdout)
    assert isinstance(found, dict)
    return found


def test_its_user_cannot_read_its_memory(tmp_path: Path) -> None:
    assert attack(tmp_path) == {
        "attached": False,
        "refused": ["mem", "environ", "fd/0"],
        "found": False,
        "code": 0,
    }
    assert all("debuggable" not in data for data in whats(tmp_path, "opened"))


def test_debuggable_opens_it_and_is_recorded(tmp_path: Path) -> None:
    assert attack(tmp_path, "--debuggable") == {
        "attached": True,
        "refused": [],
        "found": True,
        "code": 0,
    }
    assert [data["debuggable"] for data in whats(tmp_path, "opened")] == [True]
    assert read_independently(tmp_path / "record")["wrong"] is None


def test_a_debugger_that_is_attached_already_is_found(tmp_path: Path) -> None:
    require("strace" if Path("/usr/bin/strace").exists() else None, "strace")
    file = furnished(tmp_path)
    traced = ("strace", "-f", "-o", str(tmp_path / "calls"), "-e", "trace=none", *COMMAND)
    with child(file, command=traced) as daemon:
        assert daemon.code() == 2
        err = daemon.rest()[1]
    assert "can read its keys and cards; allowed: a start without debugger or strace" in err
    assert not (tmp_path / "record").exists()


@pytest.mark.parametrize(("line", "pid"), [("TracerPid:\t0", 0), ("TracerPid:\t4711", 4711)])
def test_the_debugger_in_a_status(line: str, pid: int) -> None:
    assert tracer(f"Name:\tpython\n{line}\nUid:\t0\n") == pid


# --- root -------------------------------------------------------------------------------------


def test_root_is_told_what_to_run_instead(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    file = furnished(tmp_path)
    owner = pwd.getpwuid(os.getuid()).pw_name
    if owner == "root":
        os.chown(tmp_path / "keys", pwd.getpwnam("nobody").pw_uid, -1)
        owner = "nobody"
    assert main(["serve", str(file)]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert "holecard: serve: runs as root" in err
    assert f"allowed: runuser -u {owner} -- holecard serve {file}; in a container" in err
    assert not (tmp_path / "record").exists()
