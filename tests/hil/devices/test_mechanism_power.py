"""Mechanisms behind the real core: power goes in the middle of a commit, the ring fills up."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firmware_protocol.device import identity
from firmware_protocol.device.control import Describe, Draw, Load, Moment, RingMemory
from firmware_protocol.device.core import PowerCut
from firmware_protocol.device.interfaces import Mechanism
from firmware_protocol.messages import CardRead, DeviceState, Event, Lock, LockState, ReadFail
from firmware_protocol.tablelink.plaintext import EventRecord, decode
from hil.devices import SimulatedShoe
from hil.faults import faulty_device
from tests.support.hil.conform.tapped import Table

MOMENTS = ("before_commit", "in_commit", "after_commit")
SECOND = 1_000_000


class Alone:
    """A device without a host, in simulated time; made anew whenever its power goes."""

    def __init__(self, folder: Path, make: Callable[[], Mechanism]) -> None:
        self.now = 0
        self.make = make
        self.place = folder / "device"
        self.cuts = 0
        self.breaks: set[str] = set()
        identity.create(self.place, make().device_class, "XX-1")
        self.start()

    def start(self) -> None:
        self.device = faulty_device(
            self.place, self.make(), now=self.now, sync=False, breaks=self.breaks
        )

    def do(self, act: Callable[[], Any]) -> None:
        try:
            act()
        except PowerCut:
            self.cuts += 1
            self.now += SECOND
            self.start()

    def run(self) -> None:
        while (due := self.device.due()) is not None:
            self.now = max(self.now, due)
            self.do(lambda: self.device.wake(self.now))

    def hand(self, hand: Any) -> None:
        self.do(lambda: self.device.request(hand, self.now))

    def look(self) -> dict[str, Any]:
        found = self.device.request(Describe(), self.now)["mechanism"]
        assert isinstance(found, dict)
        return found

    def events(self, *kinds: type[Event]) -> list[Event]:
        ring = self.device.ring
        out = []
        for seq in range(ring.oldest, ring.head + 1):
            record = decode(ring.record(seq), sender="device")
            assert isinstance(record, EventRecord)
            if isinstance(record.event, kinds):
                out.append(record.event)
        return out


@pytest.mark.parametrize("gate", [True, False])
@pytest.mark.parametrize("moment", MOMENTS)
def test_a_card_is_recorded_once_if_its_commit_is_cut(
    tmp_path: Path, moment: Moment, gate: bool
) -> None:
    alone = Alone(tmp_path, lambda: SimulatedShoe(gate=gate))
    alone.hand(Load(decks=1))
    for double in (False, True):
        alone.device.cut_at(moment)
        alone.hand(Draw(force=True, double=double))
        alone.run()
    alone.hand(Draw(count=3, force=True))
    alone.run()
    assert alone.cuts == 2
    told = [event.pos for event in alone.events(CardRead, ReadFail)]  # type: ignore[attr-defined]
    assert len(alone.look()["out"]) == 6
    # Without a gate a card is out before: a record may be lost, and its position shows it.
    assert told == list(range(1, 7)) if gate else len(told) < 6
    assert told == sorted(set(told))


def test_a_full_ring_locks_and_the_gate_holds_until_the_host_has_caught_up(
    tmp_path: Path,
) -> None:
    table = Table(tmp_path, keeps=False)
    table.request(Load(decks=1))
    table.call(Lock(LockState.OPEN))
    table.request(RingMemory("fill"))
    table.run(500)
    full = DeviceState.FULL | DeviceState.LOCKED
    assert table.stand.firmware.state() & full == full
    table.request(Draw(force=True))
    table.run(1000)
    look = table.request(Describe())["mechanism"]
    assert (look["held"], look["out"]) == (["Ac"], [])
    table.keeps = True
    table.keep_up()
    table.run(10_000)
    look = table.request(Describe())["mechanism"]
    assert (look["held"], look["out"], look["lock"]) == ([], ["Ac"], "locked")
    assert [one.event.card for one in table.records if isinstance(one.event, CardRead)] == [0]
    assert table.stand.firmware.state() & full == DeviceState.LOCKED
