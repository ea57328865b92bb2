"""A bench with a station on it, a directory of keys, and somebody who types."""

import getpass
import io
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from controller import terminal
from drivers.keys import KeyStore
from drivers.ports import usb_discovery
from firmware_protocol.device import ServiceSwitch
from firmware_protocol.host import pairing
from tests.support.devices.standing import Standing, Typed, standing


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Standing]:
    with standing(tmp_path) as made:
        made.request(ServiceSwitch(True))
        yield made


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KeyStore:
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "keys"))
    return KeyStore.create(tmp_path / "keys")


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No terminal, and the simulated bus announced as if it were installed."""
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    point = EntryPoint("sim", "hil.ports.usb_backend:backend", usb_discovery.GROUP)
    monkeypatch.setattr(usb_discovery, "entry_points", lambda group: [point])


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests in which nobody will answer: less patience with silence."""
    monkeypatch.setattr(pairing, "PAIR_WAIT_MS", 1000)
    monkeypatch.setattr(pairing, "HELLO_WAIT_MS", 100)


@pytest.fixture
def typed(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """Somebody sits at a terminal and types this."""

    def sit(*lines: str, codes: tuple[str, ...] = ()) -> None:
        left = list(codes)
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr(terminal, "at_terminal", lambda: True)
        monkeypatch.setattr(getpass, "getpass", lambda prompt: left.pop(0))

    return sit
