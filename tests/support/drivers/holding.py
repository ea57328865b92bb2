"""A ring that waits for two people, a device that plays, and a supervisor that ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from drivers.devices import LinkState, NotReady, ShoeDriver
from firmware_protocol.device import Draw, Load
from firmware_protocol.messages import Info, Reply, ResumeReply
from tests.support.drivers.simulated import Plugged, Watched, until

BY = ("Ann", "Bob")


def mute_on_resume(_: object, reply: Reply, *, first: bool) -> int | None:
    """`Behaviour.reply_after` of a device that answers all commands at once but RESUME."""
    return None if isinstance(reply, ResumeReply) else 0


async def held(watched: Watched) -> Any:
    await until(lambda: watched.supervisor.held is not None)
    assert watched.state is LinkState.RESUMING
    return watched.supervisor.held


async def plays(device: Plugged, watched: Watched, cards: int = 5) -> None:
    shoe: ShoeDriver = watched.driver
    await watched.ready()
    device.request(Load(decks=8))
    await shoe.open_gate()
    await draws(device, watched, cards)


async def draws(device: Plugged, watched: Watched, cards: int) -> None:
    device.request(Draw(count=cards, force=True))
    await asyncio.sleep(cards * 0.12 + 1)
    if watched.state is LinkState.READY:
        assert watched.store.cursor().seq == device.stand.firmware.ring.head


@asynccontextmanager
async def ending(watched: Watched, device: Plugged) -> AsyncIterator[list[BaseException]]:
    """It runs in here, and by the end of this it has ended by itself and left nothing."""
    causes: list[BaseException] = []
    task = asyncio.create_task(watched.supervisor.run())
    try:
        yield causes
        with pytest.raises(ExceptionGroup) as ended:
            await asyncio.wait_for(task, 20)
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    causes += ended.value.exceptions
    assert (watched.state, device.listener) == (LinkState.ABSENT, None)
    with pytest.raises(NotReady):
        await watched.supervisor.call(Info())
