"""A host in a process of its own, to be killed:

    python -m tests.support.drivers.host_process KEYS SERIAL PORT JOURNAL

Says on a line of its own: `ready`, and `event SEQ` for each event."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

from drivers import logging as log_lines
from drivers.devices import DeviceEvent
from drivers.journal import Journal
from drivers.keys import KeyStore
from drivers.ports import parse
from drivers.session import AnyHappening, Held, Supervisor, Wanted
from firmware_protocol.tablelink.fingerprints import fingerprint

READY_WAIT = 20.0


async def main(keys: Path, serial: str, port: str, path: Path) -> None:
    store = KeyStore(keys)
    paired = store.find(serial)
    assert paired is not None
    journal = Journal.open(path, serial=serial, fingerprint=fingerprint(paired.key))
    events: asyncio.Queue[DeviceEvent] = asyncio.Queue(100)
    held = asyncio.Event()

    def tell(happening: AnyHappening) -> None:
        if isinstance(happening, Held):
            held.set()

    supervisor = Supervisor(
        Wanted(paired.device_class, serial, paired.key, parse(port)),
        journal,
        own=store.standing_own,
        events=events,
        tell=tell,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.run())
        group.create_task(_say(events))
        group.create_task(_adopt(supervisor, held, paired.by))
        async with asyncio.timeout(READY_WAIT):
            await supervisor.ready()
        print("ready", flush=True)


async def _adopt(supervisor: Supervisor, held: asyncio.Event, by: tuple[str, str]) -> None:
    while True:
        await held.wait()
        held.clear()
        await supervisor.adopt(by)


async def _say(events: asyncio.Queue[DeviceEvent]) -> None:
    while True:
        print("event", (await events.get()).origin.seq, flush=True)


if __name__ == "__main__":
    log_lines.to_stderr(logging.ERROR)
    _, keys_, serial_, port_, journal_ = sys.argv
    asyncio.run(main(Path(keys_), serial_, port_, Path(journal_)))
