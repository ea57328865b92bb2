"""A host in a process of its own, to be killed:

    python -m tests.support.drivers.host_process KEYS SERIAL PORT STORE

Prints `ready` on a line of its own."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from drivers import logging as log_lines
from drivers.events import AnyHappening, Held
from drivers.keys import KeyStore
from drivers.ports import parse
from drivers.session import Supervisor, WantedDevice
from tests.support.drivers.file_store import FileStore

READY_WAIT = 20.0


async def main(keys: Path, serial: str, port: str, path: Path) -> None:
    store = KeyStore(keys)
    paired = store.find(serial)
    assert paired is not None
    held = asyncio.Event()

    def on_happening(happening: AnyHappening) -> None:
        if isinstance(happening, Held):
            held.set()

    supervisor = Supervisor(
        WantedDevice(paired.device_class, serial, paired.key, parse(port)),
        FileStore(path),
        own=store.existing_own,
        on_happening=on_happening,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.run())
        group.create_task(_adopt(supervisor, held, paired.by))
        async with asyncio.timeout(READY_WAIT):
            await supervisor.ready()
        print("ready", flush=True)


async def _adopt(supervisor: Supervisor, held: asyncio.Event, by: tuple[str, str]) -> None:
    while True:
        await held.wait()
        held.clear()
        await supervisor.adopt(by)


if __name__ == "__main__":
    log_lines.to_stderr(logging.ERROR)
    _, keys_, serial_, port_, store_ = sys.argv
    asyncio.run(main(Path(keys_), serial_, port_, Path(store_)))
