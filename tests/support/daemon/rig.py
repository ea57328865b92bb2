"""A table that can be served: its file, keys, people and devices, and a daemon in a process of its
own with somebody who listens to what it tells a service manager."""

import asyncio
import os
import re
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

import msgspec
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from controller.audit.errors import DiskFull, LogFailed
from controller.audit.format.records import ChainPosition, RecordEntry
from controller.audit.keys import create_key
from controller.audit.log import Log, LogWriter
from controller.audit.read.reader import records
from controller.audit.verify import verify
from controller.config import TableConfig, load_table
from controller.daemon.metrics import Metrics
from controller.daemon.serve import ReadyNotice, ServeCallbacks, serve
from controller.people import People
from controller.people.person import key_bytes, people_bytes
from controller.table.loop import REAL_ENVIRONMENT, TableEnvironment
from drivers.keys import KeyStore, PairedDevice
from firmware_protocol.device import create_identity, pair_directly
from firmware_protocol.messages import DeviceClass
from tests.support.paths import ROOT
from tests.support.table.simulated.house import KEY, everybody, put
from tests.support.table.simulated.serving import run, serving

PATIENCE: Final = 60.0
"""Seconds for anything, however busy the machine is."""
UNIT_ENVIRONMENT: Final = {
    "PYTHONFAULTHANDLER": "1",
    "PYTHONUNBUFFERED": "1",
    "PYTHONPYCACHEPREFIX": "/dev/null",
}
"""As the unit of configs/deploy gives it."""
AT: Final = "2026-01-01T00:00:00Z"
DEVICES: Final = (
    ("shoe", DeviceClass.SHOE, "SH-1"),
    ("shuffler", DeviceClass.SHUFFLER, "SF-1"),
    ("station", DeviceClass.STATION, "ST-1"),
)
FILE: Final = """
schema = 1
[table]
name = "real-1"
game = "mega"
[options]
decks = 6
money.unit = 50
[devices.shoe]
serial = "SH-1"
port = "serial:{folder}/shoe/port"
[devices.shuffler]
serial = "SF-1"
port = "serial:{folder}/shuffler/port"
[[devices.stations]]
serial = "ST-1"
port = "serial:{folder}/station/port"
seats = [1, 2]
[record]
directory = "record"
segment_mib = 1
[keys]
directory = "keys"
[people]
file = "people.json"
[control]
socket = "s"
"""


def furnished(folder: Path, *more: str) -> Path:
    """A table's file; `more` goes on in [control]."""
    store = KeyStore.create(folder / "keys")
    for role in ("table", "hole", "surveillance"):
        create_key(folder / "keys", role)
    own = store.existing_own().public_key().public_bytes_raw()
    for name, kind, serial in DEVICES:
        made = create_identity(folder / name, kind, serial)
        pair_directly(folder / name, own)
        store.add(PairedDevice(kind, serial, "maker", "model", made.public, AT, ("Flo", "Bob")))
    put(folder / "keys" / "people.key", key_bytes(KEY))
    put(folder / "people.json", people_bytes(People(KEY, everybody())))
    file = folder / "table.toml"
    file.write_text(FILE.format(folder=folder) + "".join(f"{line}\n" for line in more))
    return file


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


# --- in this process --------------------------------------------------------------------------


class Here:
    """A table that is served in this loop."""

    def __init__(self, ready: ReadyNotice, stop: asyncio.Event, task: asyncio.Task[int]) -> None:
        self.ready = ready
        self.stop = stop
        self.task = task

    async def end(self) -> int:
        self.stop.set()
        return await self.task


@asynccontextmanager
async def served(
    config: TableConfig,
    world: TableEnvironment = REAL_ENVIRONMENT,
    tells: ServeCallbacks | None = None,
) -> AsyncIterator[Here]:
    """Until it is left, if it has not ended by then. Its record is verified afterwards."""
    stop, ready = asyncio.Event(), asyncio.get_running_loop().create_future()
    told = msgspec.structs.replace(tells or ServeCallbacks(), ready=ready.set_result)
    task = asyncio.create_task(serve(config, stop, callbacks=told, world=world))
    await asyncio.wait((task, ready), return_when=asyncio.FIRST_COMPLETED)
    if not ready.done():
        await task
    here = Here(ready.result(), stop, task)
    try:
        yield here
    finally:
        stop.set()
        await asyncio.wait((task,))
    if not task.cancelled() and task.exception() is None:
        task.result()
        right(Path(config.file).parent)


async def start_and_end(file: Path, world: TableEnvironment = REAL_ENVIRONMENT) -> None:
    """A start and an end. What is raised goes on."""
    async with served(load_table(file), world) as here:
        assert await here.end() == 0


def run_once(file: Path, world: TableEnvironment = REAL_ENVIRONMENT) -> None:
    asyncio.run(start_and_end(file, world))


# --- in a process of its own ------------------------------------------------------------------


class Child:
    """`holecard serve` as somebody else runs it."""

    def __init__(self, process: subprocess.Popen[bytes], manager: socket.socket) -> None:
        self.process = process
        self._manager = manager
        self.told: list[str] = []
        """What the service manager was told, word by word."""

    def until_told(self, word: str, within: float = PATIENCE) -> None:
        """Such as READY=1; also where it was told before."""
        deadline = time.monotonic() + within
        while word not in self.told:
            left = deadline - time.monotonic()
            assert left > 0, (word, self.told)
            assert self.process.poll() is None, self.rest()
            readable, _, _ = select.select([self._manager], [], [], min(left, 0.1))
            if readable:
                self.told += self._manager.recv(4096).decode().split("\n")

    def hear(self) -> None:
        """All that was told and not heard yet."""
        while select.select([self._manager], [], [], 0)[0]:
            self.told += self._manager.recv(4096).decode().split("\n")

    def tells(self, within: float) -> bool:
        """Whether anything is told so soon."""
        readable, _, _ = select.select([self._manager], [], [], within)
        self.hear()
        return bool(readable)

    def forget(self) -> None:
        """What was told until now."""
        self.told.clear()

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def code(self) -> int:
        """Once it has ended."""
        return self.process.wait(PATIENCE)

    def ends(self, number: signal.Signals = signal.SIGTERM) -> int:
        """The code with which it ends when it is sent this."""
        self.send(number)
        return self.code()

    def rest(self) -> tuple[str, str]:
        """What it printed to both."""
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        return self.process.stdout.read().decode(), self.process.stderr.read().decode()


COMMAND: Final = (sys.executable, "-m", "controller.cli", "serve", "--allow-root")


@contextmanager
def child(
    file: Path,
    *options: str,
    env: Mapping[str, str] | None = None,
    command: tuple[str, ...] = COMMAND,
    told: str = "",
) -> Iterator[Child]:
    """Once it has told this. Killed where it has not ended by itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        name = f"holecard-test-{os.getpid()}-{time.monotonic_ns()}"
        manager.bind(f"\0{name}")
        process = subprocess.Popen(
            [*command, str(file), *options],
            cwd=ROOT,
            env={**os.environ, "NOTIFY_SOCKET": f"@{name}", **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            made = Child(process, manager)
            if told:
                made.until_told(told)
            yield made
        finally:
            if process.poll() is None:
                process.kill()
            process.wait(PATIENCE)
            for pipe in (process.stdout, process.stderr):
                assert pipe is not None
                pipe.close()


# --- what it comes to -------------------------------------------------------------------------


def whats(folder: Path, kind: str, what: str = "") -> list[dict[str, Any]]:
    """The data of all records of this kind; `what`: of this only."""
    found = [record for _, record in records(folder / "record")]
    every = [msgspec.json.decode(record.data) for record in found if record.kind == kind]
    return [data for data in every if not what or data["what"] == what]


def right(folder: Path) -> None:
    """The record stands by itself."""
    assert [finding.what for finding in verify(folder / "record").findings] == []


async def until(condition: Callable[[], bool], within: float = PATIENCE) -> None:
    """TimeoutError."""
    async with asyncio.timeout(within):
        while not condition():
            await asyncio.sleep(0.01)


class Bad(LogWriter):
    """A record whose disk can be full."""

    def __init__(self, log: Log, failed: Callable[[LogFailed], None]) -> None:
        self.full = False
        super().__init__(log, failed)

    async def append(self, *entries: RecordEntry) -> tuple[ChainPosition, ...]:
        if self.full:
            raise DiskFull("record", "the disk is full", "make room")
        return await super().append(*entries)


def world() -> tuple[TableEnvironment, list[Bad]]:
    made: list[Bad] = []

    def write(log: Log, failed: Callable[[LogFailed], None]) -> Bad:
        made.append(Bad(log, failed))
        return made[0]

    return TableEnvironment(write=write), made


def exposition(metrics: Metrics) -> str:
    return generate_latest(metrics.registry).decode()


def exposed() -> set[str]:
    """The names of all figures of a table."""
    found: set[str] = set()

    async def main() -> None:
        with tempfile.TemporaryDirectory() as folder:
            async with serving(Path(folder)) as one:
                metrics = Metrics("bj-1")
                metrics.follow(one.table)
                for family in text_string_to_metric_families(exposition(metrics)):
                    total = "_total" if family.type == "counter" else ""
                    found.add(f"{family.name}{total}")

    run(main())
    return {name for name in found if not name.endswith("_created")}


DEPLOY = Path(str(files("configs"))) / "deploy"
UNIT = (DEPLOY / "holecard@.service").read_text(encoding="utf-8")
PAGE = (DEPLOY / "INSTALL.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", PAGE, re.DOTALL)
