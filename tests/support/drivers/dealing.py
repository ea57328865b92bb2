"""A shoe that deals at a supervised table, and whether each of its records came exactly once."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from functools import partial
from typing import Any

from drivers.devices import DeviceEvent, LinkState, ShoeDriver
from firmware_protocol.device import Load, MoveCover
from tests.support.drivers.simulated import Plugged, Watched, supervised

FULL_DISK = OSError(errno.ENOSPC, "no space left on the disk")


def raises(problem: Exception) -> Callable[[], Any]:
    """What a store says, or who gives the keys, where nothing but a problem comes."""

    def say() -> Any:
        raise problem

    return say


def acknowledged(device: Plugged) -> int:
    return device.stand.firmware.records.room.acked


def head(device: Plugged) -> int:
    return device.stand.firmware.ring.head


def same(watched: Watched, device: Plugged, events: list[DeviceEvent]) -> None:
    """What was stored is what is in the ring; its events are in the same order."""
    ring = device.stand.firmware.ring
    assert watched.store.seqs == list(range(1, ring.head + 1))
    assert [one.origin.seq for one in events] == watched.store.seqs
    for record in watched.store.records[-64:]:
        assert ring.record(record.seq) == record.encode()


async def store_fails(device: Plugged, watched: Watched, problem: OSError = FULL_DISK) -> None:
    """The next record is not stored; then the store could store again."""
    watched.store.failing = problem
    device.request(MoveCover(open=True))
    device.request(MoveCover(open=False))
    await watched.until(LinkState.UNKEPT)
    watched.store.failing = None


async def mended(device: Plugged, watched: Watched) -> None:
    """People say that the store works again: all that it has missed comes."""
    watched.supervisor.recovered()
    await watched.until(LinkState.READY)
    await asyncio.sleep(1)
    same(watched, device, watched.events())


async def dealing(device: Plugged, watched: Watched, decks: int = 6) -> ShoeDriver:
    """Cards are in the shoe and its gate is open; all that it has told is stored."""
    shoe: ShoeDriver = watched.driver
    await watched.ready()
    device.request(Load(decks=decks))
    await shoe.open_gate()
    await asyncio.sleep(1)
    return shoe


when_dealing = partial(supervised, first=dealing)
"""As `supervised`; the test begins with a shoe that deals."""
