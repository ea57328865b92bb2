"""What goes on for hours without news is told once."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from pathlib import Path

from drivers import events as told
from drivers.devices import LinkState
from drivers.session import PortSearch, WantedDevice
from drivers.session.reports import MAX_KNOWN, Reports
from firmware_protocol.device import Freeze, Plug, create_identity
from firmware_protocol.host import events as said
from firmware_protocol.messages import DeviceBeat, DeviceClass, DeviceState
from tests.support.asynchronous import simulated
from tests.support.drivers.simulated import Desk, Plugged, Watched, running, when_ready

S = LinkState
HOUR = 3600.0
SECOND = 1_000_000


def follows(changes: list[told.StateChanged]) -> None:
    for before, after in pairwise(changes):
        assert before.state is after.former


def reports() -> tuple[Reports, list[told.AnyHappening]]:
    out: list[told.AnyHappening] = []
    return Reports(WantedDevice(DeviceClass.SHOE, "SH-1", bytes(32)), out.append), out


# --- in the life of a device ----------------------------------------------------------------------


@when_ready
async def test_a_device_without_power_behind_its_adapter(device: Plugged, watched: Watched) -> None:
    device.request(Freeze(on=True))
    await watched.until(S.LOST, S.OPENING, S.IDENTIFYING)
    watched.happenings.clear()
    await asyncio.sleep(HOUR)
    assert device.opened > 100
    assert len(watched.happenings) < 12, watched.happenings
    device.request(Freeze(on=False))
    await watched.ready()
    changes = watched.of(told.StateChanged)
    assert changes[-1].state is S.READY
    follows(changes)
    assert watched.of(told.SessionBegan)
    # And once more the same: that is news again.
    watched.happenings.clear()
    device.request(Freeze(on=True))
    await asyncio.sleep(60)
    assert watched.of(told.PortOpened)
    assert S.LOST in watched.states


@simulated
async def test_a_wrong_device_in_the_port(tmp_path: Path) -> None:
    desk = Desk()
    wanted = create_identity(tmp_path / "wanted", DeviceClass.SHOE, "SH-0001")
    device = desk.plug(Plugged(tmp_path / "device", DeviceClass.SHOE, "SH-0002"))
    watched = Watched(
        desk,
        WantedDevice(DeviceClass.SHOE, "SH-0001", wanted.public, device.address),
        find=PortSearch(),
    )
    async with running(watched):
        await asyncio.sleep(HOUR)
        assert device.opened > 500
        assert len(watched.happenings) < 12, watched.happenings
        assert len(watched.of(told.Swapped)) == len(watched.of(told.Introduced)) == 1
        follows(watched.of(told.StateChanged))
    device.switch_off()


@when_ready
async def test_a_cable_that_comes_and_goes(device: Plugged, watched: Watched) -> None:
    device.request(Freeze(on=True))
    for _ in range(500):
        device.request(Plug(connected=False))
        await asyncio.sleep(1)
        device.request(Plug(connected=True))
        await asyncio.sleep(1)
    assert len(watched.happenings) < 40, watched.happenings
    follows(watched.of(told.StateChanged))


# --- one by one -----------------------------------------------------------------------------------


def beat(state: DeviceState) -> said.BeatReceived:
    return said.BeatReceived(DeviceBeat(1, 1, 1, 0, 0, state, 0, 0))


def test_flags_that_alternate_are_reported_once_a_second() -> None:
    made, out = reports()
    now = SECOND
    for number in range(1000):
        flags = (DeviceState.PAIRED, DeviceState.PAIRED | DeviceState.OPEN)[number % 2]
        made.report(beat(flags), now)
        made.wake(now)
        now += 1000
    assert 1 <= len(out) <= 3
    made.wake(now + SECOND)
    stands = [one for one in out if isinstance(one, told.DeviceStands)]
    assert (stands[-1].state, made.due()) == (DeviceState.PAIRED | DeviceState.OPEN, None)


def test_what_is_known_is_bounded_and_a_new_reason_is_news() -> None:
    made, out = reports()
    for number in range(10 * MAX_KNOWN):
        made.changed(number, S.OPENING, S.LOST, f"reason {number}")
        made.changed(number, S.LOST, S.OPENING, "looked for")
    reasons = [one.why for one in out if isinstance(one, told.StateChanged)]
    assert len({why for why in reasons if why.startswith("reason")}) == 10 * MAX_KNOWN
    follows([one for one in out if isinstance(one, told.StateChanged)])
    count = len(out)
    for number in range(10):
        made.changed(number, S.OPENING, S.LOST, f"reason {10 * MAX_KNOWN - 1}")
        made.changed(number, S.LOST, S.OPENING, "looked for")
    assert len(out) == count
    forgotten = f"reason {9 * MAX_KNOWN - 1}"  # so many others have come since
    made.changed(0, S.OPENING, S.LOST, forgotten)
    assert out[-1] == told.StateChanged("SH-1", 0, S.OPENING, S.LOST, forgotten)


def test_a_cycle_that_leads_elsewhere_is_reported_without_a_gap() -> None:
    made, out = reports()
    for _ in range(5):
        made.changed(0, S.OPENING, S.IDENTIFYING, "open")
        made.changed(0, S.IDENTIFYING, S.LOST, "silent")
        made.changed(0, S.LOST, S.OPENING, "looked for")
    made.changed(0, S.OPENING, S.IDENTIFYING, "open")
    made.changed(0, S.IDENTIFYING, S.HANDSHAKING, "it is there")
    seen = [(one.former, one.state, one.why) for one in out if isinstance(one, told.StateChanged)]
    assert seen == [
        (S.OPENING, S.IDENTIFYING, "open"),
        (S.IDENTIFYING, S.LOST, "silent"),
        (S.LOST, S.OPENING, "looked for"),
        (S.OPENING, S.IDENTIFYING, "open"),
        (S.IDENTIFYING, S.HANDSHAKING, "it is there"),
    ]
