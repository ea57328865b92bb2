"""In which folders a device is made."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from firmware_protocol.device import load_identity
from firmware_protocol.messages import DeviceClass
from hil.devices import CLASSES
from hil.simulator import DeviceSetup, cli


@pytest.mark.parametrize(
    "left",
    [
        (),
        ("in-use", "host", "ring", "ring.saved", "ring.new", "kept", "mechanism"),
        ("identity.toml.4711.new", "control", ".control.12", "port", "port-2", ".port-2.12"),
    ],
)
def test_a_device_is_made_in_an_empty_folder_and_where_one_was(
    tmp_path: Path, left: tuple[str, ...]
) -> None:
    for name in left:
        (tmp_path / name).touch()
    parsed = argparse.Namespace(device=CLASSES["shoe"], serial=None, create=True, paired_with=None)
    setup = DeviceSetup(device_class=DeviceClass.SHOE, place=tmp_path, control=tmp_path / "control")
    cli.create_device(parsed, setup)
    assert load_identity(tmp_path).serial == "SH-0001"
    # Whoever has made it there may keep other things beside it.
    (tmp_path / "notes").touch()
    cli.create_device(parsed, setup)
