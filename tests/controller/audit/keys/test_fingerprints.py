"""A changed hole key or surveillance key is reported and recorded."""

import shutil
from pathlib import Path

import msgspec
import pytest

from controller import cli
from controller.audit.format.records import OpenedData
from controller.audit.keys import Role, changed_keys, create_key, with_previous_keys
from controller.audit.keys.store import find_key
from controller.audit.log import RecordOpening
from controller.audit.read.reader import records
from controller.audit.simulate import RecorderKeys
from controller.config import load_table
from controller.procedure.engine import Procedure
from controller.table.loop import load_keys, parts_of
from controller.table.restart import open_record
from tests.support.audit.record.table import IDENTITY, begun
from tests.support.audit.tools.audit_command import Runs, rounds
from tests.support.audit.verifying import right
from tests.support.daemon.rig import furnished

Out = pytest.CaptureFixture[str]


def opened(record: Path) -> list[OpenedData]:
    every = [one for _, one in records(record) if one.kind == "opened"]
    return [msgspec.json.decode(one.data, type=OpenedData) for one in every]


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
    said = capsys.readouterr().err
    assert f"holecard: {told}: {now}, it was {former}; " in said
    assert cli.main(again) == 0
    assert told not in capsys.readouterr().err
    assert [getattr(one, field) for one in opened(runs.record)] == [former, former, now, now]
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
    assert [one.sealed_to for one in opened(tmp_path / "record")] == [former, former, now, now]
    right(tmp_path / "record", replay=True)


def test_a_record_without_fingerprints_is_continued(tmp_path: Path) -> None:
    """Records without fingerprints are continued; a boot without keys adds none."""
    begun(tmp_path / "record").close()
    (found,) = opened(tmp_path / "record")
    assert (found.hole, found.sealed_to) == (msgspec.UNSET, msgspec.UNSET)
    assert with_previous_keys(IDENTITY, found) == IDENTITY
    keys: RecorderKeys = load_keys(_made(tmp_path / "keys"))
    opening = RecordOpening.at(tmp_path / "record", table=IDENTITY.table)
    assert list(changed_keys(opening.opened(), keys.hole, keys.surveillance)) == []
    opening.close()


def _made(place: Path) -> Path:
    roles: tuple[Role, ...] = ("table", "hole", "surveillance")
    for role in roles:
        create_key(place, role)
    return place


def test_approving_a_tail_keeps_the_previous_fingerprints(tmp_path: Path, capsys: Out) -> None:
    runs = Runs(tmp_path, capsys, *rounds(1))
    (found,) = opened(runs.record)
    kept = with_previous_keys(IDENTITY, found)
    assert (kept.hole, kept.sealed_to) == (found.hole, found.sealed_to)
    assert kept.sealed_to == shown(runs.keys, "surveillance")
