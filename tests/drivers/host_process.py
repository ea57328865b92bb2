"""A host in a process of its own, to be killed: python -m tests.drivers.host_process KEYS SERIAL
PORT JOURNAL. Says on a line of its own: `ready`, and `event SEQ` for each event."""

from __future__ import annotations

import asyncio
import logging
import sys
from pathlib import Path

import structlog

from drivers.address import parse
from drivers.device_events import DeviceEvent
from drivers.journal import Journal
from drivers.key_store import KeyStore
from drivers.locating import Wanted
from drivers.states import State
from drivers.supervisor import Supervisor
from firmware_protocol.keys import fingerprint


async def main(keys: Path, serial: str, port: str, path: Path) -> None:
    store = KeyStore(keys)
    paired = store.find(serial)
    assert paired is not None
    journal = Journal.open(path, serial=serial, fingerprint=fingerprint(paired.key))
    events: asyncio.Queue[DeviceEvent] = asyncio.Queue(100)
    supervisor = Supervisor(
        Wanted(paired.device_class, serial, paired.key, parse(port)),
        journal,
        own=store.standing_own,
        events=events,
        tell=lambda happening: None,
    )
    async with asyncio.TaskGroup() as group:
        group.create_task(supervisor.run())
        group.create_task(_say(events))
        while supervisor.state is not State.READY:
            await asyncio.sleep(0.005)
            if supervisor.held is not None:
                await supervisor.adopt(paired.by)
        print("ready", flush=True)


async def _say(events: asyncio.Queue[DeviceEvent]) -> None:
    while True:
        print("event", (await events.get()).origin.seq, flush=True)


if __name__ == "__main__":
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    _, keys_, serial_, port_, journal_ = sys.argv
    asyncio.run(main(Path(keys_), serial_, port_, Path(journal_)))
