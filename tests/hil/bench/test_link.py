"""The bench's host: a new device is adopted automatically, and stdout stays data."""

from __future__ import annotations

from pathlib import Path

import pytest
import structlog

from drivers.devices import LinkState
from drivers.session import WantedDevice
from firmware_protocol.device import Load, Plug, create_identity, pair_directly
from firmware_protocol.messages import DeviceClass
from hil.bench.link import PUBLIC, hosted
from hil.simulator import DeviceSetup, running_device
from tests.support.asynchronous import asynchronous


@asynchronous
async def test_a_new_device_is_adopted_and_nothing_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place, bus = tmp_path / "shoe", tmp_path / "bus"
    bus.mkdir()
    own = create_identity(place, DeviceClass.SHOE, "SH-1")
    pair_directly(place, PUBLIC)
    setup = DeviceSetup(
        device_class=DeviceClass.SHOE,
        place=place,
        control=tmp_path / "control",
        usb=bus,
        sync=False,
    )
    wanted = WantedDevice(DeviceClass.SHOE, "SH-1", own.public, backend=f"sim={bus}")
    async with running_device(setup) as live:
        async with hosted(wanted) as host:
            await host.ready()
            live.request(Load(decks=1))
            live.request(Plug(connected=False))
            await host.until(lambda one: one.state is not LinkState.READY)
            live.request(Plug(connected=True))
            await host.ready()
            structlog.get_logger("drivers").error("a bug")
        assert host.supervisor.state is not LinkState.READY
    out, err = capsys.readouterr()
    assert out == ""
    assert [line for line in err.splitlines() if "a bug" in line]
