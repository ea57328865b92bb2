"""The whole conformance run of each profile, in real time, at a serial port and on the USB bus; and
every break against every item."""

from __future__ import annotations

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from drivers.ports import usb_discovery
from firmware_protocol.conformance import Profile
from hil.faults import BREAKS
from hil.faults.catalogue import BreakDefinition
from hil.simulator import device_process
from tests.support.hil.commands import conform
from tests.support.hil.conform.conform_rig import PROFILES, Rig, of


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("usb", [False, True], ids=["serial", "usb"])
def test_a_whole_run(
    profile: Profile,
    usb: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    point = EntryPoint("sim", "hil.ports.usb_backend:backend", usb_discovery.GROUP)
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: [point])
    place, bus = tmp_path / profile, tmp_path / "bus"
    bus.mkdir()
    with device_process(profile, place, usb=bus if usb else None) as sim:
        port = f"usb+sim={bus}:{sim.serial}" if usb else str(sim.port)
        arguments = ["--profile", profile, "--port", port, "--control", str(place / "control")]
        code = conform(*arguments, "--json")
    found = json.loads(capsys.readouterr().out)
    assert code == 0, [one for one in found["items"] if one["result"] != "PASS"]
    assert found["passed"] == len(of(profile))
    assert found["skipped"] == found["not_tried"] == 0
    remarks = {one["id"]: one.get("remark", "") for one in found["items"]}
    assert profile != "shoe" or remarks["TAP-1"].startswith("lengths only, not timing")


@pytest.mark.parametrize("broken", BREAKS, ids=lambda broken: broken.name)
def test_no_break_upsets_the_run(broken: BreakDefinition, tmp_path: Path) -> None:
    """Whatever is broken, each item ends with what it found."""
    for profile in broken.profiles or PROFILES:
        rig = Rig(tmp_path / profile, profile, breaks={broken.name})
        outcomes = rig.run([item.id for item in of(profile)])
        failed = [one.item.id for one in outcomes if one.result == "FAIL"]
        assert broken.items[0] in failed
        assert all(one.came for one in outcomes if one.result == "FAIL")
