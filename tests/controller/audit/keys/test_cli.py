"""`holecard keys`: output and errors; and that a changed key is reported and recorded."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from controller import cli
from controller.audit.format.hole_cards import commit, opened_card
from controller.audit.keys import (
    Role,
    changed_keys,
    create_key,
    load_hole_key,
    load_surveillance_public,
    with_previous_keys,
)
from controller.audit.keys.store import find_key, load_surveillance_private, load_witness_public
from controller.audit.log import RecordOpening
from controller.audit.simulate import RecorderKeys
from controller.config import load_table
from controller.procedure.engine import Procedure
from controller.table.loop import load_keys, parts_of
from controller.table.restart import open_record
from tests.support.audit.record.scripted import boots_of
from tests.support.audit.record.sealed_card import CARD, CURSOR, READ, TABLE
from tests.support.audit.record.table import IDENTITY, begun
from tests.support.audit.tools.audit_command import Runs, rounds, table_keys
from tests.support.audit.tools.key_places import (
    CHANGED,
    FOREIGN,
    NAMES,
    WITNESS,
    contents,
    filled,
    mode,
    secrets_of,
)
from tests.support.audit.tools.outside import Printed
from tests.support.audit.verifying import right
from tests.support.daemon.rig import furnished
from tests.support.paths import ROOT


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("made") / "keys")


@pytest.fixture
def place(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The default directory of the command."""
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "keys"))
    return shutil.copytree(made, tmp_path / "keys")


def keys(*arguments: str) -> int:
    return cli.main(["keys", *arguments])


def printed(capsys: pytest.CaptureFixture[str], code: int, *arguments: str) -> Printed:
    """What the command prints before it ends with this exit code."""
    assert keys(*arguments) == code
    return Printed(*capsys.readouterr())


def new(role: str) -> list[str]:
    name = NAMES[role]  # type: ignore[index] # any text will do
    return ["new", role, *(("--name", name) if name else ())]


@pytest.mark.parametrize("role", NAMES)
def test_new_prints_what_it_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], role: str
) -> None:
    place = tmp_path / "keys"
    out, err = printed(capsys, 0, *new(role), "--dir", str(place))
    *lines, fingerprint = out.splitlines()
    assert lines == [f"made {place / name} (mode 600)" for name in sorted(contents(place))]
    assert fingerprint.startswith("fingerprint ")
    assert mode(place) == 0o700
    if role in ("surveillance", "witness"):
        assert f"{role}.key stays on this machine; bring only {role}.pub to the table." in err
    else:
        assert f"Keep a backup of {role}.key" in err
    assert not [secret for secret in secrets_of(place) if secret in out + err]
    assert fingerprint in printed(capsys, 0, "show", "--dir", str(place)).out


def test_new_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    place = tmp_path / "keys"
    told = json.loads(printed(capsys, 0, *new("witness"), "--dir", str(place), "--json").out)
    assert told == {
        "directory": str(place),
        "kind": "witness",
        "files": [
            {"file": "witness.key", "mode": "600"},
            {"file": "witness.pub", "mode": "600"},
        ],
        "fingerprint": told["fingerprint"],
        "public": (place / "witness.pub").read_text().strip(),
        "name": WITNESS,
        "problem": None,
    }
    assert str(load_witness_public(place)) == told["public"]


def test_the_directory_of_the_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "named"))
    assert keys("new", "hole") == 0
    assert (tmp_path / "named/hole.key").exists()
    monkeypatch.setenv("HOLECARD_KEYS", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert keys("new", "hole") == 0
    assert (tmp_path / "config/holecard/keys/hole.key").exists()
    for command in (["new", "hole"], ["show"]):
        capsys.readouterr()
        assert keys(*command, "--dir", "") == 2
        assert capsys.readouterr().err == "holecard: --dir: is empty; allowed: a directory\n"


def test_show(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, err = printed(capsys, 0, "show")
    first, *lines = out.splitlines()
    assert first == f"{place} (mode 700)"
    assert [line.split()[0] for line in lines] == ["table", "hole", "surveillance", "witness"]
    assert lines[0].endswith("  table.key (600), table.pub (600)")
    assert lines[1].endswith("  hole.key (600)")
    assert f"  {WITNESS}  " in lines[3]
    assert err.splitlines()[0] == (
        "surveillance.key lies beside table.key; it belongs on a machine of its own, and only "
        "surveillance.pub at the table"
    )
    assert not [secret for secret in secrets_of(place) if secret in out + err]


def test_show_as_json(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = printed(capsys, 0, "show", "--json").out
    told = json.loads(out)
    assert (told["directory"], told["mode"]) == (str(place), "700")
    by_kind = {one["kind"]: one for one in told["keys"]}
    assert by_kind["hole"]["public"] is None
    assert by_kind["table"]["public"] == (place / "table.pub").read_text().splitlines()[1]
    assert by_kind["witness"]["name"] == WITNESS
    assert not [secret for secret in secrets_of(place) if secret in out]


def test_show_with_the_public_key_of_surveillance(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("surveillance.key", "witness.key"):
        (place / name).unlink()
    out, err = printed(capsys, 0, "show")
    assert out.splitlines()[3].endswith("  surveillance.pub (600)")
    assert err == ""
    assert isinstance(load_surveillance_public(place), X25519PublicKey)


def test_show_without_keys(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "keys").mkdir(mode=0o700)
    assert keys("show", "--dir", str(tmp_path / "keys")) == 0
    assert capsys.readouterr().out.splitlines()[1] == "no key of the record is there"
    assert printed(capsys, 2, "show", "--dir", str(tmp_path / "none")).err == (
        f"holecard: {tmp_path}/none: there is no such directory; "
        "allowed: `holecard keys new` makes one\n"
    )


# --- mistakes: one line, exit 2 ---------------------------------------------------------------


def _one_line(capsys: pytest.CaptureFixture[str], place: Path) -> str:
    out, err = capsys.readouterr()
    assert not [secret for secret in secrets_of(place) if secret in out + err]
    lines = [line for line in err.splitlines() if line.startswith("holecard: ")]
    assert len(lines) == 1
    assert err.endswith(f"{lines[0]}\n")
    return lines[0]


@pytest.mark.parametrize(
    ("arguments", "what"),
    [
        (
            ["new", "tabel"],
            "KIND: there is no key 'tabel'; allowed: table, hole, surveillance, wit",
        ),
        (["new", ""], "KIND: there is no key ''; allowed: table, hole"),
        (["new", "witness"], "--name: is missing: a witness signs with its name; allowed: the wit"),
        (["new", "witness", "--name", ""], "--name: '' is no name of a key; allowed: the witness"),
        (["new", "witness", "--name", "a b"], "--name: 'a b' is no name of a key; allowed: the"),
        (["new", "hole", "--name", "x"], "--name: no hole has one when its key is made"),
    ],
)
def test_wrong_arguments(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], what: str
) -> None:
    place = tmp_path / "keys"
    assert keys(*arguments, "--dir", str(place)) == 2
    assert _one_line(capsys, place).startswith(f"holecard: {what}")
    assert not place.exists()


@pytest.mark.parametrize("arguments", [[], ["new"], ["shew"], ["show", "more"], ["new", "a", "b"]])
def test_an_unknown_command(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert "usage: holecard keys" in printed(capsys, 2, *arguments).err


def test_a_foreign_file(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, what = FOREIGN["words"]
    (place / "table.key").write_bytes(data)
    out, err = printed(capsys, 2, "show", "--json")
    by_kind = {one["kind"]: one for one in json.loads(out)["keys"]}
    assert by_kind["table"]["problem"].startswith(f"{place}/table.key: {what}; allowed: ")
    assert by_kind["table"]["fingerprint"] is None
    assert all(by_kind[role]["fingerprint"] for role in ("hole", "surveillance", "witness"))
    assert err.splitlines()[-1] == f"holecard: {by_kind['table']['problem']}"


@pytest.mark.parametrize("change", CHANGED)
def test_a_corrupt_file(place: Path, capsys: pytest.CaptureFixture[str], change: str) -> None:
    name, changed, what = CHANGED[change]
    hidden = secrets_of(place)
    (place / name).write_bytes(changed(contents(place)))
    out, err = printed(capsys, 2, "show")
    assert what in err.splitlines()[-1]
    role = name.partition(".")[0]
    line = next(line for line in out.splitlines() if line.startswith(f"{role} "))
    assert f"cannot be used: {role}." in line
    assert not [secret for secret in hidden if secret in out + err]


def test_a_directory_that_cannot_be_created(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    for place, what in (
        ("/proc/holecard/keys", "/proc/holecard: cannot be made: "),
        (str(tmp_path / "file"), "file: is no directory; allowed: a directory for keys alone"),
        (str(tmp_path / "file/keys"), "file: cannot be made: file exists"),
        (str(tmp_path / ("x" * 300)), "cannot be made: file name too long"),
    ):
        assert keys("new", "hole", "--dir", place) == 2
        assert what in _one_line(capsys, tmp_path)


def test_a_directory_without_write_permission(tmp_path: Path) -> None:
    """Runs as an unprivileged user: root may write anywhere."""
    place = tmp_path / "keys"
    place.mkdir()
    code = (
        "import os, shutil, sys\n"  # argparse imports shutil later: not readable for that user
        "from controller.cli import main\n"
        "import controller.audit.keys.cli\n"
        "os.chmod(sys.argv[1], 0o500)\n"
        "os.chdir(sys.argv[1])\n"
        "if os.geteuid() == 0:\n"
        "    os.chown(sys.argv[1], 65534, 65534)\n"
        "    os.setgroups([])\n"
        "    os.setgid(65534)\n"
        "    os.setuid(65534)\n"
        "sys.exit(main(['keys', 'new', 'hole', '--dir', '.']))\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, str(place)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    place.chmod(0o700)
    assert ran.stderr == (
        "holecard: lock: cannot be opened: permission denied; "
        "allowed: a directory that this user may use\n"
    )
    assert (ran.returncode, list(place.iterdir())) == (2, [])


def test_help_has_examples(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments in (["--help"], ["new", "--help"], ["show", "--help"]):
        out = printed(capsys, 0, *arguments).out
        assert "examples:\n  holecard keys " in out
        assert "$HOLECARD_KEYS" in out
        assert "Exit codes: 0 done; 2 wrong arguments" in out


def test_surveillances_key_decrypts_what_the_table_encrypted(tmp_path: Path) -> None:
    """Only the .pub file is copied between the machines."""
    theirs, ours = tmp_path / "surveillance", tmp_path / "table"
    assert keys("new", "surveillance", "--dir", str(theirs)) == 0
    assert keys("new", "hole", "--dir", str(ours)) == 0
    shutil.copy(theirs / "surveillance.pub", ours)
    assert keys("show", "--dir", str(ours)) == 0
    made = commit(TABLE, CURSOR, READ, load_hole_key(ours), load_surveillance_public(ours))
    private = load_surveillance_private(theirs)
    assert opened_card(CURSOR, TABLE, made.commitment_hex, made.sealed_b64, private) == CARD


# --- a changed hole key or surveillance key is reported and recorded --------------------------


Out = pytest.CaptureFixture[str]


def shown(keys: Path, role: Role) -> str:
    return str(find_key(keys, role).fingerprint)


def other(keys: Path, role: Role, elsewhere: Path) -> None:
    """Replace a key."""
    create_key(elsewhere, role)
    for suffix in ("key", "pub"):
        file = elsewhere / f"{role}.{suffix}"
        if file.exists():
            shutil.copy2(file, keys / file.name)


@pytest.mark.parametrize(
    ("role", "field", "told"),
    [
        ("surveillance", "sealed_to", "surveillance's key is another one than before"),
        ("hole", "hole", "the hole key is another one than before"),
    ],
)
def test_a_script_run_reports_a_changed_key(
    role: Role, field: str, told: str, tmp_path: Path, capsys: Out
) -> None:
    runs = Runs(tmp_path, capsys, *rounds(1))
    former = shown(runs.keys, role)
    words = ["script", "run", str(tmp_path / "rounds.json"), "--record", str(runs.record)]
    again = [*words, "--keys", str(runs.keys)]
    assert cli.main(again) == 0
    assert told not in capsys.readouterr().err
    other(runs.keys, role, tmp_path / "elsewhere")
    now = shown(runs.keys, role)
    assert now != former
    assert cli.main(again) == 0
    assert f"holecard: {told}: {now}, it was {former}; " in capsys.readouterr().err
    assert cli.main(again) == 0
    assert told not in capsys.readouterr().err
    assert [getattr(one, field) for one in boots_of(runs.record)] == [former, former, now, now]
    right(runs.record, replay=True)
    ran = runs("show", "--kind", "opened")
    assert f"sealed to surveillance's key {shown(runs.keys, 'surveillance')}" in ran.out


def test_a_served_table_reports_a_changed_key(tmp_path: Path, capsys: Out) -> None:
    file = furnished(tmp_path)
    keys = tmp_path / "keys"

    def start() -> str:
        parts = parts_of(load_table(file))
        log, _ = open_record(parts, Procedure(parts.game))
        log.close()
        told = capsys.readouterr()
        return told.out + told.err

    assert "another key" not in start() + start()
    former = shown(keys, "surveillance")
    other(keys, "surveillance", tmp_path / "elsewhere")
    now = shown(keys, "surveillance")
    assert f"surveillance's key is another one than before: {now}, it was {former}" in start()
    assert "another key" not in start()
    assert [one.sealed_to for one in boots_of(tmp_path / "record")] == [former, former, now, now]
    right(tmp_path / "record", replay=True)


def test_a_record_without_fingerprints_is_continued(tmp_path: Path) -> None:
    """Records without fingerprints are continued; a boot without keys adds none."""
    begun(tmp_path / "record").close()
    (found,) = boots_of(tmp_path / "record")
    assert (found.hole, found.sealed_to) == (msgspec.UNSET, msgspec.UNSET)
    assert with_previous_keys(IDENTITY, found) == IDENTITY
    keys: RecorderKeys = load_keys(table_keys(tmp_path / "keys"))
    with closing(RecordOpening.at(tmp_path / "record", table=IDENTITY.table)) as opening:
        assert list(changed_keys(opening.opened(), keys.hole, keys.surveillance)) == []


def test_approving_a_tail_keeps_the_previous_fingerprints(tmp_path: Path, capsys: Out) -> None:
    runs = Runs(tmp_path, capsys, *rounds(1))
    (found,) = boots_of(runs.record)
    kept = with_previous_keys(IDENTITY, found)
    assert (kept.hole, kept.sealed_to) == (found.hole, found.sealed_to)
    assert kept.sealed_to == shown(runs.keys, "surveillance")
