"""A table that is served in this process: what it begins with, what ends it, and who is told."""

import asyncio
import errno
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from datetime import timedelta
from importlib.resources import files
from pathlib import Path
from unittest.mock import patch

import httpx
import pytest

from controller import cli
from controller.api.contract.view import RecordShown
from controller.audit.errors import InUse, LogFailed, OtherTable, RecordProblem
from controller.audit.files import Disk
from controller.audit.log import Log, LogWriter
from controller.audit.read.reader import records
from controller.config import load_table
from controller.daemon.command import leaves, reportable
from controller.daemon.metrics import Metrics
from controller.daemon.people_watch import PeopleWatch
from controller.daemon.serve import ServeCallbacks, serve, serve_parts, watched_environment
from controller.daemon.watchdog import Notify
from controller.errors import UsageProblem
from controller.table.devices import StoreRetry
from controller.table.loop import QueueFull, TableEnvironment, parts_of
from controller.table.running import RunningTable, space_monitor, witness_monitor
from drivers.devices import LinkState
from firmware_protocol.device import Plug
from hil.simulator import LiveDevice
from hil.simulator.run import device_in_loop
from hil.table.robots import Api, Screen, Unreachable, api_client
from hil.table.robots.api_client import Pin
from tests.support.asynchronous import asynchronous, raised
from tests.support.audit.record.dealing import boot
from tests.support.daemon.rig import (
    PATIENCE,
    Child,
    child,
    free_port,
    furnished,
    right,
    run_once,
    served,
    start_and_end,
    until,
    whats,
    world,
)
from tests.support.procedure.random_games import game_with
from tests.support.table.simulated.house import PINS

# --- beginning and ending ---------------------------------------------------------------------


@asynchronous
async def test_it_answers_before_it_says_so_and_leaves_nothing(tmp_path: Path) -> None:
    port = free_port()

    async with served(load_table(furnished(tmp_path, f"port = {port}"))) as here:
        assert str(here.ready) == f"ready: real-1 at {tmp_path}/s, http://127.0.0.1:{port}"
        for where in (tmp_path / "s", f"http://127.0.0.1:{port}"):
            async with Api(where) as api:
                health = await api.health()
                assert (health.table, health.ready) == ("real-1", False)  # no device is there
        assert await here.end() == 0
    assert not (tmp_path / "s").exists()
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

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        screen = await api.open("watch")
        began = asyncio.Event()

        async def watch() -> None:
            async with aclosing(api.views(screen.token)) as views:
                async for _ in views:
                    began.set()

        watching = asyncio.create_task(watch())
        await began.wait()
        reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
        writer.write(
            b"POST /api/v1/screens HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n{"
        )
        await writer.drain()
        async with asyncio.timeout(15):
            assert await here.end() == 0
        await asyncio.wait((watching,), timeout=30)
        assert watching.exception() is None  # ended, and not cut off
        await reader.read()
        writer.close()


@asynchronous
async def test_cancelled_it_closes_its_record_too(tmp_path: Path) -> None:

    async with served(load_table(furnished(tmp_path))) as here:
        here.task.cancel()
        await asyncio.wait((here.task,))
        assert here.task.cancelled()
    assert not (tmp_path / "s").exists()


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
    with pytest.raises(UsageProblem, match=re.escape(words)):
        run_once(folder / "table.toml")
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
        await raised(InUse, serve(config, asyncio.Event()))
    assert not (tmp_path / "s").exists()


@asynchronous
async def test_a_second_controller_is_told_of_the_first(tmp_path: Path) -> None:
    config = load_table(furnished(tmp_path))
    async with served(config) as here:
        await raised(UsageProblem, serve(config, asyncio.Event()), "another process listens at")
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

    await raised(
        UsageProblem,
        serve(config, world=TableEnvironment(write=write)),
        "was replaced by another process",
    )
    assert place.is_symlink()


# --- a record that fails ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "number"),
    [("sync", errno.EIO), ("sync", errno.ENOSPC), ("write", errno.EROFS), ("write", errno.ENOSPC)],
)
@asynchronous
async def test_a_disk_that_fails_ends_it_with_the_first_cause(
    tmp_path: Path, call: str, number: int
) -> None:
    """What was acknowledged is there at the next start."""
    broken = OSError(number, os.strerror(number))

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        await screen.sign_in("D-17", PINS["D-17"])
        with patch.object(Disk, call, side_effect=broken):
            await raised(api_client.ApiProblem, screen.sign_out())
            await raised(LogFailed, here.task, os.strerror(number))
            assert LogFailed(tmp_path, broken).exit_code == 74  # it is started again
    assert not (tmp_path / "s").exists()
    await start_and_end(tmp_path / "table.toml")
    assert whats(tmp_path, "person", "signed in")


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
    given, made = world()

    async with served(load_table(furnished(tmp_path)), given) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        made[0].full = True
        await raised(api_client.Stopped, screen.sign_in("D-17", PINS["D-17"]))
        assert "the disk is full; make room" in (await api.health()).stopped
        made[0].full = False
        async with asyncio.timeout(30):
            while (await api.health()).stopped:
                await asyncio.sleep(0.05)
        assert (await screen.sign_in("D-17", PINS["D-17"])).name == "Ann Lee"
        assert not here.task.done()
        assert await here.end() == 0
    assert [data["what"] for data in whats(tmp_path, "person")] == ["signed in", "signed out"]


class Told(Notify):
    """What a service manager is told."""

    def __init__(self) -> None:
        super().__init__({})
        self.messages: list[str] = []

    def tell(self, *messages: str) -> None:
        self.messages += messages


async def _until_full(api: Api, *, is_full: bool) -> None:
    async with asyncio.timeout(PATIENCE):
        while bool((await api.health()).full) is not is_full:
            await asyncio.sleep(0.01)


@asynchronous
async def test_a_disk_that_fills_up_is_announced_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it is needed: the table goes on, and the announcement ends when there is room."""
    monkeypatch.setattr(space_monitor, "CHECK_INTERVAL", 0.02)
    create, room = Disk.create, asyncio.Event()
    spares = iter([True])  # room for one

    def full(disk: Disk, file: Path) -> int:
        if file.name == "spare.seg" and not (next(spares, False) or room.is_set()):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return create(disk, file)

    monkeypatch.setattr(Disk, "create", full)
    port, told = free_port(), Told()
    file = furnished(tmp_path, f"metrics_port = {port}")
    async with (
        served(load_table(file), tells=ServeCallbacks(notify=told)) as here,
        Api(tmp_path / "s") as api,
        httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}") as metrics,
    ):
        screen = await api.open("dealer")
        await _until_full(api, is_full=True)
        async with asyncio.timeout(PATIENCE):
            while not any("disk full: No space left on device" in one for one in told.messages):
                await asyncio.sleep(0.01)
        await screen.sign_in("D-17", PINS["D-17"])  # it is not stopped
        health, record = await api.health(), (await screen.table()).record
        assert (health.full, health.stopped) == (os.strerror(errno.ENOSPC), "")
        assert (record.full, record.minutes) == (health.full, health.minutes)
        text = (await metrics.get("/metrics")).text
        assert "holecard_record_full 1.0" in text
        left = re.search(r"^holecard_record_room_bytes (\S+)$", text, re.MULTILINE)
        assert left is not None
        assert 0 < float(left[1]) < 1 << 20
        room.set()
        await _until_full(api, is_full=False)
        assert "holecard_record_full 0.0" in (await metrics.get("/metrics")).text
        assert await here.end() == 0
    recorded = whats(tmp_path, "fault", "disk_full")
    assert [one["detail"]["problem"] for one in recorded] == ["No space left on device"]
    assert {"text": space_monitor.ENDED} in whats(tmp_path, "note")


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
    caught = await raised(
        ExceptionGroup, serve(config, asyncio.Event(), callbacks=ServeCallbacks(ending=ending.set))
    )
    assert [type(one) for one in leaves(caught)] == [Broken]
    assert reportable(caught) is None
    assert ending.is_set()  # it has so long for it, and no longer
    assert not (tmp_path / "s").exists()
    right(tmp_path)


def test_what_has_words_for_people_is_known_and_a_fault_beside_it_comes_first() -> None:
    usage = UsageProblem("here", "is wrong")
    record = RecordProblem("there", "is damaged", "mend it")
    assert reportable(ExceptionGroup("all", [ExceptionGroup("one", [usage]), record])) is usage
    assert reportable(ExceptionGroup("all", [record])) is record
    assert reportable(ExceptionGroup("all", [usage, Broken()])) is None
    assert leaves(usage) == [usage]


BO, GIL = Pin("F-2", PINS["F-2"]), Pin("D-18", PINS["D-18"])
SERIALS = ("SH-1", "SF-1", "ST-1")


@asynccontextmanager
async def plugged(folder: Path) -> AsyncIterator[LiveDevice]:
    """All devices; the shoe in hand."""
    async with (
        device_in_loop("shoe", folder / "shoe", create=True) as shoe,
        device_in_loop("shuffler", folder / "shuffler", create=True),
        device_in_loop("station", folder / "station", seats=(1, 2), create=True),
    ):
        yield shoe


async def told(daemon: Child, word: str) -> None:
    """The devices live in this loop, so it must not stand still."""
    await asyncio.to_thread(daemon.until_told, word)


async def stands(api: Api, serial: str, *states: LinkState) -> None:
    async with asyncio.timeout(60):
        while True:
            links = {link.serial: link.state for link in (await api.health()).links}
            if links[serial] in {state.value for state in states}:
                return
            await asyncio.sleep(0.02)


async def held(figures: int) -> float:
    """How many devices wait for two people."""
    async with httpx.AsyncClient(trust_env=False) as client:
        text = (await client.get(f"http://127.0.0.1:{figures}/metrics")).text
    found = [line for line in text.splitlines() if line.startswith("holecard_link_held{")]
    assert len(found) == len(SERIALS)
    return sum(float(line.rsplit(" ", 1)[1]) for line in found)


@asynchronous
async def test_a_table_with_its_devices_and_people(tmp_path: Path) -> None:
    figures = free_port()
    file = furnished(tmp_path, f"metrics_port = {figures}")

    async def first(daemon: Child, shoe: LiveDevice) -> None:
        await told(daemon, "READY=1")
        async with Api(tmp_path / "s") as api:
            screen = await api.open("dealer")
            async with asyncio.timeout(60):
                while await held(figures) < len(SERIALS):
                    await asyncio.sleep(0.02)
            for serial in SERIALS:
                await screen.adopt(serial, BO, GIL)
                await stands(api, serial, LinkState.READY)
            assert (await api.health()).ready
            assert await held(figures) == 0
            await screen.sign_in("D-17", PINS["D-17"])
            # A cable that is pulled is no reason to begin anew, for as long as it is looked for.
            shoe.request(Plug(connected=False))
            await stands(api, "SH-1", LinkState.ABSENT, LinkState.LOST, LinkState.OPENING)
            for _ in range(2):
                daemon.forget()
                await told(daemon, "WATCHDOG=1")
            shoe.request(Plug(connected=True))
            await stands(api, "SH-1", LinkState.READY)
            assert await asyncio.to_thread(daemon.ends, signal.SIGKILL) == -signal.SIGKILL
            await raised(Unreachable, api.health())

    async def second(daemon: Child) -> None:
        await told(daemon, "READY=1")
        async with Api(tmp_path / "s") as api:
            for serial in SERIALS:  # adopted once, and from then on known
                await stands(api, serial, LinkState.READY)
            dealer = (await (await api.open("dealer")).table()).dealer
            assert dealer is not None
            assert dealer.name == "Ann Lee"
            assert await asyncio.to_thread(daemon.ends) == 0

    async with plugged(tmp_path) as shoe:
        with child(file, env={"WATCHDOG_USEC": "600000"}) as daemon:
            await first(daemon, shoe)
        with child(file) as daemon:
            await second(daemon)
    people = [(data["what"], data.get("name")) for data in whats(tmp_path, "person")]
    for name in ("Bo Chan", "Gil Ode"):
        assert people.count(("authorised", name)) == 3, name
    assert people[-2:] == [("signed in", "Ann Lee"), ("signed out", "Ann Lee")]
    adopted = whats(tmp_path, "link", "adopted")
    assert [data["two"] for data in adopted] == [["Bo Chan", "Gil Ode"]] * 3
    right(tmp_path)


@pytest.fixture
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


@pytest.mark.usefixtures("often")
@asynchronous
async def test_it_is_unwitnessed_until_one_comes_and_says_each_once(tmp_path: Path) -> None:
    since: list[int] = []

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        screen = await api.open("dealer")
        since.append((await shown(screen, False)).unwitnessed)
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
    page = str(files("controller.audit").joinpath("verify_record.py"))
    command = [sys.executable, "-I", page, str(tmp_path / "record")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert ran.returncode == 0, ran.stdout


@pytest.mark.usefixtures("often")
@asynchronous
async def test_a_table_that_cannot_record_it_now_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, tried = RunningTable.record, []

    async def full(table: RunningTable, entry):  # type: ignore[no-untyped-def]
        if entry.kind == "unwitnessed":
            tried.append(entry)
            raise QueueFull("64 things wait at the table")
        return await record(table, entry)

    monkeypatch.setattr(RunningTable, "record", full)

    async with served(load_table(furnished(tmp_path))) as here, Api(tmp_path / "s") as api:
        await shown(await api.open("dealer"), False)
        async with asyncio.timeout(PATIENCE):
            while len(tried) < 2:
                await asyncio.sleep(0.02)
        assert await here.end() == 0


@pytest.mark.usefixtures("often")
def test_the_time_is_the_table_files(tmp_path: Path) -> None:
    file = furnished(tmp_path)
    assert serve_parts(load_table(file)).unwitnessed == timedelta(hours=24)
    file.write_text(file.read_text().replace("segment_mib = 1\n", "unwitnessed_hours = 9\n"))
    assert serve_parts(load_table(file)).unwitnessed == timedelta(hours=9)
