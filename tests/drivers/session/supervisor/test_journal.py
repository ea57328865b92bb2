"""A supervisor on the file journal, in real time: the journal has a thread."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from drivers.devices import State
from drivers.journal import Journal
from drivers.session import NotKept, acknowledge, events
from firmware_protocol.device.control import CoverHand, Load
from tests.support.drivers.simulated import Desk, Plugged, Watched, running, until


def opened(tmp_path: Path, device: Plugged, **options: Any) -> Any:
    return Journal.open(
        tmp_path / "SH-0001.journal",
        serial="SH-0001",
        fingerprint=device.identity.fingerprint,
        **options,
    )


def test_the_journal_keeps_cursors_and_adoptions_over_restarts(tmp_path: Path) -> None:
    async def main() -> None:
        desk = Desk()
        device = desk.plug(Plugged(tmp_path / "device"))
        seqs: list[int] = []

        def all_came(watched: Watched) -> bool:
            seqs.extend(event.origin.seq for event in watched.events())
            return len(seqs) == device.stand.device.ring.head

        for _ in range(3):
            journal = opened(tmp_path, device)
            watched = Watched(desk, device.wanted, journal)
            async with running(watched):
                await watched.ready()
                device.hand(Load(decks=1))
                await until(partial(all_came, watched))
            assert len(journal.adoptions) == 1
            await journal.close()
        device.switch_off()
        assert seqs == list(range(1, device.stand.device.ring.head + 1))

    asyncio.run(main())


def test_a_disk_that_stalls_is_mended_with_the_journal_opened_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the thread wrote after everybody had given up is known only from the file."""
    monkeypatch.setattr(acknowledge, "KEEP_WAIT", 0.2)
    stalls, may_end = threading.Event(), threading.Event()

    def sync(_: int) -> None:
        if stalls.is_set():
            assert may_end.wait(10)

    async def main() -> None:
        desk = Desk()
        device = desk.plug(Plugged(tmp_path / "device"))
        journal = opened(tmp_path, device, sync=sync)
        watched = Watched(desk, device.wanted, journal)
        async with running(watched):
            await watched.ready()
            await until(lambda: journal.cursor().seq == device.stand.device.ring.head)
            stalls.set()
            device.hand(Load(decks=1))
            await watched.until(State.UNKEPT)
            stalls.clear()
            may_end.set()
            # The same journal does not know what it holds: it mends nothing, and says why.
            with pytest.raises(NotKept, match="gave up waiting"):
                watched.supervisor.mended(journal)
            device.hand(CoverHand(open=True))
            await asyncio.sleep(0.2)
            assert watched.state is State.UNKEPT
            assert len(watched.of(events.KeepFailed)) == 1
            await journal.close()
            again = opened(tmp_path, device)
            watched.supervisor.mended(again)
            await watched.until(State.READY)
            device.hand(CoverHand(open=False))
            await until(lambda: again.cursor().seq == device.stand.device.ring.head)
            await watched.until(State.READY)
        await again.close()
        device.switch_off()

    asyncio.run(main())
