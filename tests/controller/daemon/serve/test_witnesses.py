"""A served table and its witness: what the screens and the record say of one that comes, and of one
that does not."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from datetime import timedelta
from importlib.resources import files
from pathlib import Path

import pytest

from controller import cli
from controller.api.contract.view import RecordShown
from controller.audit.read.reader import records
from controller.config import load_table
from controller.daemon.serve import serve_parts
from controller.table.loop import QueueFull
from controller.table.running import RunningTable, witness_monitor
from hil.table.robots import Api, Screen
from tests.support.asynchronous import asynchronous
from tests.support.daemon.rig import PATIENCE, furnished, right, served, start_and_end, until, whats
from tests.support.table.simulated.house import PINS


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness_monitor, "CHECK_INTERVAL", 0.05)


async def shown(screen: Screen, witnessed: bool) -> RecordShown:
    """Once it is so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            record = (await screen.table()).record
            if bool(record.witnessed) is witnessed and bool(record.unwitnessed) is not witnessed:
                return record
            await asyncio.sleep(0.02)


def cosign(folder: Path) -> None:
    """As the page says, by hand or by cron."""
    record, keys, note = folder / "record", folder / "witness", folder / "seen.note"
    if not keys.exists():
        new = ["keys", "new", "witness", "--name", "archive.example/a", "--dir", str(keys)]
        assert cli.main(new) == 0
    way = ["--keys", str(keys), "--archive", str(folder / "archive"), "--out", str(note)]
    assert cli.main(["audit", "cosign", str(record), *way]) == 0
    key = ["--witness-key", str(keys / "witness.pub")]
    assert cli.main(["audit", "witnessed", str(record), str(note), *key]) == 0


def _last_signed(folder: Path) -> bool:
    """Nothing but a checkpoint stands behind what the table has said of its witnesses."""
    return [one.kind for _, one in records(folder / "record")][-1] == "checkpoint"


@asynchronous
async def test_it_is_unwitnessed_until_one_comes_and_says_each_once(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    since: list[int] = []

    async with served(config) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        never = await shown(screen, False)
        since.append(never.unwitnessed)
        await until(lambda: bool(whats(tmp_path, "unwitnessed")))  # it is shown first
        await until(lambda: _last_signed(tmp_path))
        await asyncio.to_thread(cosign, tmp_path)
        seen = await shown(screen, True)
        assert seen.seq > seen.witnessed > 0
        # Whoever may deal deals, whatever a witness does.
        await screen.sign_in("D-17", PINS["D-17"])
        assert await here.end() == 0
    await start_and_end(tmp_path / "table.toml")
    assert [data["since"] for data in whats(tmp_path, "unwitnessed")] == since
    assert len(whats(tmp_path, "witnessed")) == 1
    right(tmp_path)
    page = str(files("controller.audit").joinpath("verify_record.py"))
    command = [sys.executable, "-I", page, str(tmp_path / "record")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout


@asynchronous
async def test_a_table_that_cannot_record_it_now_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_table(furnished(tmp_path))
    record, tried = RunningTable.record, []

    async def full(table: RunningTable, entry):  # type: ignore[no-untyped-def]
        if entry.kind == "unwitnessed":
            tried.append(entry)
            raise QueueFull("64 things wait at the table")
        return await record(table, entry)

    monkeypatch.setattr(RunningTable, "record", full)

    async with served(config) as here, Api(tmp_path / "s") as api:
        await shown(await api.open("dealer"), False)
        async with asyncio.timeout(PATIENCE):
            while len(tried) < 2:
                await asyncio.sleep(0.02)
        assert await here.end() == 0
    right(tmp_path)


def test_the_time_is_the_table_files(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    assert serve_parts(load_table(file)).unwitnessed == timedelta(hours=24)
    file.write_text(file.read_text().replace("segment_mib = 1\n", "unwitnessed_hours = 9\n"))
    assert serve_parts(load_table(file)).unwitnessed == timedelta(hours=9)
