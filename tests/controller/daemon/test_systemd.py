"""What a service manager is told: whole words, to whichever kind of name, and never in the way."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from controller.daemon.watchdog import NO_MANAGER, Notify, status


@pytest.mark.parametrize("abstract", [False, True], ids=["a path", "an abstract name"])
def test_it_is_told_in_one_datagram(abstract: bool, tmp_path: Path) -> None:
    name = f"holecard-notify-{os.getpid()}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(f"\0{name}" if abstract else name)
        manager.settimeout(5)
        notify = Notify({"NOTIFY_SOCKET": f"@{name}" if abstract else name})
        notify.tell("READY=1", "STATUS=wagering")
        assert manager.recv(4096) == b"READY=1\nSTATUS=wagering"


def test_nobody_is_told_where_nobody_asked(tmp_path: Path) -> None:
    NO_MANAGER.tell("READY=1")
    assert NO_MANAGER.watchdog is None
    Notify({"NOTIFY_SOCKET": ""}).tell("READY=1")


def test_a_manager_that_is_gone_or_does_not_listen_holds_nobody_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    name = str(tmp_path / "n")
    notify = Notify({"NOTIFY_SOCKET": name})
    notify.tell("READY=1")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(name)
        for _ in range(10_000):
            notify.tell("WATCHDOG=1")
        manager.settimeout(5)
        assert manager.recv(4096) == b"WATCHDOG=1"
    assert capsys.readouterr().out.count("does not listen") == 2  # once each time


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({}, None),
        ({"WATCHDOG_USEC": "20000000"}, 20.0),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": str(os.getpid())}, 0.5),
        ({"WATCHDOG_USEC": "500000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "-5"}, None),
        ({"WATCHDOG_USEC": "²"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
    ],
)
def test_how_soon_the_watchdog_wants_a_word(environ: dict[str, str], seconds: float | None) -> None:
    assert Notify(environ).watchdog == seconds


def test_a_status_is_one_line() -> None:
    assert status("held:\n no room\tleft ") == "STATUS=held: no room left"
