"""Ports that go, floods, and a label that nobody shall read over a shoulder."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import threading
import tty
from collections.abc import Iterator
from pathlib import Path

import pytest

from controller.errors import UsageProblem
from drivers.ports import parse
from firmware_protocol.device import Peer
from firmware_protocol.messages import Alert, AlertCode, FrameKind
from firmware_protocol.tablelink import Deframer, Frame
from hil.conform.tester import bench, wire
from hil.conform.tester.operators import TerminalOperator
from hil.conform.tester.wire import PortWire, WireLost
from tests.support.hil.commands import conform
from tests.support.hil.conform.conform_rig import Rig


class Goes:
    """A serial port that is hung up when the host has sent so many frames."""

    def __init__(self, after: int) -> None:
        self.master, slave = pty.openpty()
        tty.setraw(slave)
        self.path = os.ttyname(slave)
        self._slave = slave
        self._after = after
        self._thread = threading.Thread(target=self._run, name="a port that goes")
        self._thread.start()

    def _run(self) -> None:
        frames, deframer = 0, Deframer()
        while frames < self._after:
            frames += len(deframer.feed(os.read(self.master, 4096)))
        os.close(self._slave)
        os.close(self.master)

    def over(self) -> None:
        self._thread.join()


@pytest.mark.parametrize("after", [1, 2])
def test_a_port_that_closes_before_the_first_item_is_a_usage_error(
    tmp_path: Path, after: int
) -> None:
    (tmp_path / "host").write_text(bytes(range(32)).hex())
    (tmp_path / "host").chmod(0o600)
    port = Goes(after)
    given = ("--host-key", tmp_path / "host", "--device-key", bytes(range(32)).hex())
    with pytest.raises(UsageProblem, match="the port has ended: it was unplugged") as caught:
        conform("--profile", "shoe", "--port", port.path, *given)
    assert caught.value.where == "--port"
    port.over()


# --- floods ---------------------------------------------------------------------------------------


def test_the_receive_buffer_of_a_port_is_limited() -> None:
    async def run() -> None:
        listener, device = pty.openpty()
        tty.setraw(device)
        port = PortWire(parse(os.ttyname(device)))
        await port.open()
        for _ in range(1000):
            port.received(bytes(64 * 1024))
        received = 0
        while received + 64 * 1024 <= wire.MAX_WAITING:
            piece = await port.receive(port.now())
            assert piece is not None
            received += len(piece.data)
        with pytest.raises(WireLost, match="more bytes than"):
            await port.receive(port.now())
        await port.close()
        os.close(device)
        os.close(listener)

    asyncio.run(run())


class _Flood:
    """Says nothing but hints and damage, without end."""

    def __init__(self, _: Peer, data: bytes) -> None:
        self._data = data
        self._now = 0

    def receive(self, data: bytes, now: int) -> None:
        pass

    def wake(self, now: int) -> None:
        self._now = now

    def due(self) -> int | None:
        return self._now + 1000

    def take(self) -> bytes:
        return self._data if self._now % 2000 == 0 else b""


@pytest.mark.parametrize(
    "data",
    [Frame(FrameKind.ALERT, 0, 0, Alert(AlertCode.DEFECT, 0).encode()).encode(), b"\x01\0"],
    ids=["hints", "damage"],
)
def test_a_flood_is_a_finding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(bench, "MAX_FRAMES_PER_ITEM", 1000)
    rig = Rig(tmp_path, "shoe", behind=lambda peer: _Flood(peer, 10 * data))
    outcome = rig.attempt("HS-7")
    assert outcome.result == "FAIL"
    assert "1000" in outcome.expected
    assert len(rig.bench.log) + len(rig.bench.damage) <= 1001


# --- the label ------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


def test_the_code_of_the_label_is_not_shown(
    terminal: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    master, slave = terminal
    person = TerminalOperator(slave)

    async def typed(text: bytes) -> None:
        await asyncio.sleep(0)  # now the question is asked
        os.write(master, text)

    async def run() -> None:
        label, _ = await asyncio.gather(person.label(), typed(b"9C0F-5A11\n"))
        assert label == "9C0F-5A11"
        await asyncio.gather(person.confirm("Is it lit?"), typed(b"y\n"))

    asyncio.run(run())
    shown = b""
    while b"y" not in shown:  # the echo is on again after the label
        assert select.select([master], [], [], 5)[0]
        shown += os.read(master, 1000)
    assert b"9C0F" not in shown
    assert "not shown" in capsys.readouterr().err
