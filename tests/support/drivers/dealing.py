"""A shoe that deals at a supervised table, and whether each of its records came exactly once."""

from __future__ import annotations

import errno

from drivers.devices import DeviceEvent, Shoe
from firmware_protocol.device.control import Load
from tests.support.drivers.simulated import Plugged, Watched

FULL_DISK = OSError(errno.ENOSPC, "no space left on the disk")


def acknowledged(device: Plugged) -> int:
    return device.stand.device.records.room.acked


def head(device: Plugged) -> int:
    return device.stand.device.ring.head


def same(watched: Watched, device: Plugged, events: list[DeviceEvent]) -> None:
    """What was kept is what the ring says; what was handed out is what was kept, in order."""
    records = watched.keeper.records
    assert watched.keeper.seqs == list(range(1, head(device) + 1))
    assert [one.origin.seq for one in events] == watched.keeper.seqs
    ring = device.stand.device.ring
    for record in records[-64:]:
        assert ring.record(record.seq) == record.encode()


async def dealing(device: Plugged, watched: Watched, decks: int = 6) -> Shoe:
    shoe = Shoe(watched.supervisor)
    await watched.ready()
    device.hand(Load(decks=decks))
    await shoe.open_gate()
    return shoe
