"""A table that is served in this process: what it begins with, what ends it, and who is told."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from unittest.mock import patch

import pytest

from controller.audit.errors import InUse, LogFailed, OtherTable, RecordProblem
from controller.audit.files import Disk
from controller.audit.log import Log, LogWriter
from controller.config import load_table
from controller.daemon.command import leaves, reportable
from controller.daemon.metrics import Metrics
from controller.daemon.people_watch import PeopleWatch
from controller.daemon.serve import ServeCallbacks, serve, watched_environment
from controller.errors import UsageProblem
from controller.table.devices import StoreRetry
from controller.table.loop import TableEnvironment, parts_of
from controller.table.running import RunningTable
from hil.table.robots import Api, api_client
from tests.support.asynchronous import asynchronous
from tests.support.audit.record.dealing import boot
from tests.support.daemon.full_disk import world
from tests.support.daemon.rig import (
    free_port,
    furnished,
    right,
    run_once,
    served,
    start_and_end,
    whats,
)
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.house import PINS


def kinds(folder: Path) -> list[object]:
    return [data["what"] for data in whats(folder, "person")]


# --- beginning and ending ---------------------------------------------------------------------


@asynchronous
async def test_it_answers_before_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    port = free_port()
    file = furnished(tmp_path, f"port = {port}")

    async with served(load_table(file)) as here:
        assert str(here.ready) == f"ready: real-1 at {tmp_path}/s, http://127.0.0.1:{port}"
        for where in (tmp_path / "s", f"http://127.0.0.1:{port}"):
            async with Api(where) as api:
                health = await api.health()
                assert health.table == "real-1"
                assert not health.ready  # no device is there
        assert await here.end() == 0
    assert not (tmp_path / "s").exists()
    right(tmp_path)
    assert len(whats(tmp_path, "closed")) == 1


def test_one_that_is_told_to_stop_at_once(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    told: list[object] = []

    async def main() -> int:
        stop = asyncio.Event()
        stop.set()
        tells = ServeCallbacks(ready=told.append, ending=lambda: told.append("ending"))
        return await serve(load_table(file), stop, callbacks=tells)

    assert asyncio.run(main()) == 0
    assert [str(one) for one in told] == [f"ready: real-1 at {tmp_path}/s", "ending"]
    right(tmp_path)


@asynchronous
async def test_streams_end_and_a_request_that_hangs_holds_nobody_up(tmp_path: Path) -> None:
    file = furnished(tmp_path)

    async with served(load_table(file)) as here, Api(tmp_path / "s") as api:
        screen = await api.open("watch")
        seen: list[object] = []
        began = asyncio.Event()

        async def watch() -> None:
            async with aclosing(api.views(screen.token)) as views:
                async for view in views:
                    seen.append(view)
                    began.set()

        watching = asyncio.create_task(watch())
        await began.wait()
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        writer.write(
            b"POST /api/v1/screens HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{"
        )
        await writer.drain()
        loop = asyncio.get_running_loop()
        at = loop.time()
        async with asyncio.timeout(30):
            assert await here.end() == 0
        assert loop.time() - at < 15
        await asyncio.wait((watching,), timeout=30)
        assert watching.done()
        assert watching.exception() is None  # ended, and not cut off
        assert len(seen) >= 1
        await reader.read()
        writer.close()
    right(tmp_path)


@asynchronous
async def test_cancelled_it_closes_its_record_too(tmp_path: Path) -> None:
    file = furnished(tmp_path)

    async with served(load_table(file)) as here:
        here.task.cancel()
        await asyncio.wait((here.task,))
        assert here.task.cancelled()
    assert not (tmp_path / "s").exists()
    right(tmp_path)


# --- what it cannot be served with ------------------------------------------------------------


def without(section: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "table.toml"
        head, _, rest = file.read_text().partition(f"[{section}]")
        _, more, rest = rest.partition("\n[")
        file.write_text(head + (f"[{rest}" if more else ""))

    return change


def replaced(old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        file = folder / "table.toml"
        assert old in file.read_text()
        file.write_text(file.read_text().replace(old, new))

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without("people"), "people: is missing: the table cannot be served without it; allowed: "),
        (without("control"), "control: is missing"),
        (without("keys"), "keys: is missing"),
        (without("record"), "record: is missing"),
        (
            replaced('"SF-1"', '"SF-9"'),
            "devices.shuffler.serial: SF-9 is not paired with this host",
        ),
        (lambda folder: (folder / "people.json").chmod(0o666), "others may touch it (mode 666)"),
        (lambda folder: (folder / "people.json").unlink(), "people.json: there is no such file"),
        (lambda folder: (folder / "keys/people.key").unlink(), "people.key: is missing"),
        (lambda folder: folder.chmod(0o777), "folder"),
        (lambda folder: (folder / "keys/hole.key").unlink(), "hole.key"),
        (replaced('socket = "s"', 'socket = "none/s"'), "control.socket: there is no directory"),
    ],
)
def test_what_is_wrong_is_named_and_nothing_is_begun(
    change: Callable[[Path], None], words: str, tmp_path: Path
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o700)
    furnished(folder)
    change(folder)
    with pytest.raises(UsageProblem) as caught:
        run_once(folder / "table.toml")
    assert words in str(caught.value)
    assert not (folder / "record").exists()
    assert not (folder / "s").exists()


def test_a_record_of_another_table(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    run_once(file)
    before = sorted((one, one.stat().st_mtime_ns) for one in (tmp_path / "record").rglob("*.seg"))
    replaced('"real-1"', '"real-2"')(tmp_path)
    with pytest.raises(OtherTable, match="is the record of table real-1, not of real-2"):
        run_once(file)
    assert not (tmp_path / "s").exists()
    assert before == sorted(
        (one, one.stat().st_mtime_ns) for one in (tmp_path / "record").rglob("*.seg")
    )


@asynchronous
async def test_a_record_that_somebody_else_writes(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))

    async with RunningTable(parts_of(config)):
        with pytest.raises(InUse):
            await serve(config, asyncio.Event())
    assert not (tmp_path / "s").exists()


@asynchronous
async def test_a_second_controller_is_told_of_the_first(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    async with served(config) as here:
        with pytest.raises(UsageProblem, match="another process listens at"):
            await serve(config, asyncio.Event())
        async with Api(tmp_path / "s") as api:
            await api.health()
        assert await here.end() == 0


@asynchronous
async def test_one_that_came_in_between_is_left_alone(tmp_path: Path) -> None:
    """Another one took the socket's place while our record was being opened."""
    config = load_table(furnished(tmp_path))
    place = tmp_path / "s"

    def write(log: Log, failed: Callable[[LogFailed], None]) -> LogWriter:
        place.rename(tmp_path / "ours")
        place.symlink_to("theirs")
        return LogWriter(log, failed)

    with pytest.raises(UsageProblem, match="was replaced by another process"):
        await serve(config, world=TableEnvironment(write=write))
    assert place.is_symlink()


# --- a record that fails ----------------------------------------------------------------------


@asynchronous
async def test_a_disk_that_fails_ends_it_with_the_first_cause(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    broken = OSError(errno.EIO, os.strerror(errno.EIO))

    async with served(config) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        with patch.object(Disk, "sync", side_effect=broken):
            with pytest.raises(api_client.ApiProblem):
                await screen.sign_in("D-17", PINS["D-17"])
            with pytest.raises(LogFailed, match="Input/output error"):
                await here.task
    assert not (tmp_path / "s").exists()
    await start_and_end(tmp_path / "table.toml")
    right(tmp_path)


@asynchronous
async def test_a_record_that_fails_after_the_loop_has_ended_is_told_to_who_writes_it(
    tmp_path: Path,
) -> None:
    """Nobody waits for it any more, and nobody is in its way."""
    told: list[LogFailed] = []
    heard: list[Callable[[LogFailed], None]] = []

    def write(log: Log, failed: Callable[[LogFailed], None]) -> LogWriter:
        heard.append(failed)
        return LogWriter(log, failed)

    world = watched_environment(TableEnvironment(write=write), Metrics("real-1"), asyncio.Event())
    log = boot(tmp_path / "record", game_with("classic", {}))
    await world.write(log, told.append).close()
    problem = LogFailed(tmp_path, OSError(errno.EIO, "the disk has failed"))
    heard[0](problem)
    assert told == [problem]


@asynchronous
async def test_a_disk_without_room_holds_the_table_until_there_is_some(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    given, made = world()

    async with served(config, given) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        made[0].full = True
        with pytest.raises(api_client.Stopped):
            await screen.sign_in("D-17", PINS["D-17"])
        assert "the disk is full; make room" in (await api.health()).stopped
        made[0].full = False
        async with asyncio.timeout(30):
            while (await api.health()).stopped:
                await asyncio.sleep(0.05)
        assert (await screen.sign_in("D-17", PINS["D-17"])).name == "Ann Lee"
        assert not here.task.done()
        assert await here.end() == 0
    assert kinds(tmp_path) == ["signed in", "signed out"]
    right(tmp_path)


# --- faults of ours ---------------------------------------------------------------------------


class Broken(Exception):
    """Something of ours."""


@pytest.mark.parametrize("where", [StoreRetry, PeopleWatch])
@asynchronous
async def test_a_fault_of_ours_ends_all_of_it(
    where: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = load_table(furnished(tmp_path))

    async def broken(self: object) -> None:
        await asyncio.sleep(0.05)
        raise Broken("a defect")

    monkeypatch.setattr(where, "run", broken)

    ending = asyncio.Event()
    with pytest.raises(ExceptionGroup) as caught:
        await serve(config, asyncio.Event(), callbacks=ServeCallbacks(ending=ending.set))
    assert [type(one) for one in leaves(caught.value)] == [Broken]
    assert reportable(caught.value) is None
    assert ending.is_set()  # it has so long for it, and no longer
    assert not (tmp_path / "s").exists()
    right(tmp_path)


def test_what_has_words_for_people_is_known_and_a_fault_beside_it_comes_first() -> None:
    usage = UsageProblem("here", "is wrong")
    record = RecordProblem("there", "is damaged", "mend it")
    group = ExceptionGroup("all", [ExceptionGroup("one", [usage]), record])
    assert reportable(group) is usage
    assert reportable(ExceptionGroup("all", [record])) is record
    assert reportable(ExceptionGroup("all", [usage, Broken()])) is None
    assert leaves(usage) == [usage]
