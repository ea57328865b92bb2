"""A USB bus in memory, announced as a backend that is installed would be."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import EntryPoint

import pytest

from drivers.ports import usb_discovery
from tests.support.drivers.fake_usb import FakeDevice, plugged


@pytest.fixture
def announced(monkeypatch: pytest.MonkeyPatch) -> None:
    points = [
        EntryPoint("fake", "tests.support.drivers.fake_usb:backend", usb_discovery.GROUP),
        EntryPoint("broken", "tests.support.drivers.fake_usb:no_such", usb_discovery.GROUP),
    ]
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: points)


@pytest.fixture
def device(announced: None) -> Iterator[FakeDevice]:
    """On the bus between one with another number and one of another class."""
    made = FakeDevice("SH-1")
    with plugged("bus", FakeDevice("SH-0"), made, FakeDevice("SH-2", kind=(3, 0, 0))):
        yield made
