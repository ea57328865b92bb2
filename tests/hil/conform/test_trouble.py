"""Ports that go, floods, a noisy cable, and peers that are no device: findings, no traces."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import threading
import tty
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from controller.errors import UsageProblem
from drivers.ports import parse
from firmware_protocol.conformance import Profile
from firmware_protocol.device import Peer
from firmware_protocol.messages import PAYLOAD_SIZES, Alert, AlertCode, FrameKind
from firmware_protocol.tablelink import Deframer, Frame
from hil.conform.tester import bench, wire
from hil.conform.tester.operators import Operator, TerminalOperator
from hil.conform.tester.wire import NoisyCable, PortWire, WireLost
from tests.support.asynchronous import asynchronous
from tests.support.hil.commands import conform
from tests.support.hil.conform.conform_rig import ITEMS, PROFILES, Rig, of


@contextmanager
def hung_up(after: int) -> Iterator[str]:
    """A serial port that is hung up when the host has sent so many frames: its path."""
    master, slave = pty.openpty()
    tty.setraw(slave)
    path = os.ttyname(slave)

    def run() -> None:
        frames, deframer = 0, Deframer()
        while frames < after:
            frames += len(deframer.feed(os.read(master, 4096)))
        os.close(slave)
        os.close(master)

    thread = threading.Thread(target=run, name="a port that goes")
    thread.start()
    yield path
    thread.join()


@pytest.mark.parametrize("after", [1, 2])
def test_a_port_that_closes_before_the_first_item_is_a_usage_error(
    tmp_path: Path, after: int
) -> None:
    (tmp_path / "host").write_text(bytes(range(32)).hex())
    (tmp_path / "host").chmod(0o600)
    given = ("--host-key", tmp_path / "host", "--device-key", bytes(range(32)).hex())
    unplugged = pytest.raises(UsageProblem, match="the port has ended: it was unplugged")
    with hung_up(after) as port, unplugged as caught:
        conform("--profile", "shoe", "--port", port, *given)
    assert caught.value.where == "--port"


# --- floods ---------------------------------------------------------------------------------------


@pytest.fixture
def terminal() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(master)
    os.close(slave)


@asynchronous
async def test_the_receive_buffer_of_a_port_is_limited(terminal: tuple[int, int]) -> None:
    tty.setraw(terminal[1])
    port = PortWire(parse(os.ttyname(terminal[1])))
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


@asynchronous
async def test_the_code_of_the_label_is_not_shown(
    terminal: tuple[int, int], capsys: pytest.CaptureFixture[str]
) -> None:
    master, slave = terminal
    person = TerminalOperator(slave)

    async def typed(text: bytes) -> None:
        await asyncio.sleep(0)  # now the question is asked
        os.write(master, text)

    label, _ = await asyncio.gather(person.label(), typed(b"9C0F-5A11\n"))
    assert label == "9C0F-5A11"
    await asyncio.gather(person.confirm("Is it lit?"), typed(b"y\n"))
    shown = b""
    while b"y" not in shown:  # the echo is on again after the label
        assert select.select([master], [], [], 5)[0]
        shown += os.read(master, 1000)
    assert b"9C0F" not in shown
    assert "not shown" in capsys.readouterr().err


class Cutting(NoisyCable):
    """Each frame loses its end, and grows together with the next one."""

    def distort(self, frame: bytes) -> bytes:
        self.hits += 1
        return self.splice(frame)


@pytest.mark.parametrize("profile", PROFILES)
@asynchronous
async def test_noise_leaves_no_partial_frame_behind(profile: Profile, tmp_path: Path) -> None:
    bench = Rig(tmp_path, profile).bench
    await bench.session()
    bench.noise = noise = Cutting(bench.rng)
    await bench.pause(1200)  # heartbeats, either way
    assert noise.hits > 1
    await bench.reset()
    await bench.shake()
    assert bench.damage == []


class _Extra:
    """A device, and bytes that arrive in addition to its own."""

    def __init__(self, peer: Peer) -> None:
        self.receive, self.wake, self.due = peer.receive, peer.wake, peer.due
        self._peer = peer
        self.bytes = b""

    def take(self) -> bytes:
        extra, self.bytes = self.bytes, b""
        return self._peer.take() + extra


@asynchronous
async def test_a_frame_that_is_incomplete_when_the_noise_ends_is_passed_on(tmp_path: Path) -> None:
    """Its first part is passed on to the tester, where it merges with the rest."""
    rig = Rig(tmp_path, "shoe", behind=_Extra)
    await rig.bench.session()
    rig.bench.noise = noise = NoisyCable(rig.bench.rng, 0.0)
    assert noise.to_tester(b"\x03\x01") == b""
    assert rig.bench.mend_line() is noise
    assert noise.take_partial() == b""
    assert isinstance(rig.peer, _Extra)
    rig.peer.bytes = b"\x02\x00"
    await rig.bench.pause(1)
    assert [damaged.size for damaged in rig.bench.damage] == [3]


class _Still:
    """Hears and says nothing."""

    def __init__(self, peer: Peer) -> None:
        self.out = b""

    def receive(self, data: bytes, now: int) -> None:
        pass

    def wake(self, now: int) -> None:
        pass

    def due(self) -> int | None:
        return None

    def take(self) -> bytes:
        out, self.out = self.out, b""
        return out


class _Echo(_Still):
    """A cable whose end is looped back."""

    def receive(self, data: bytes, now: int) -> None:
        self.out += data


class _Babbler(_Still):
    """Answers each frame with whole frames of random kinds and contents under its session id."""

    def __init__(self, peer: Peer) -> None:
        super().__init__(peer)
        self._random = Random(5)
        self._deframer = Deframer()

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._deframer.feed(data):
            if isinstance(frame, Frame):
                for kind, sizes in PAYLOAD_SIZES.items():
                    self.out += self._frame(kind, self._random.choice(sizes), frame.session)

    def _frame(self, kind: FrameKind, size: int, session: int) -> bytes:
        if kind is FrameKind.ALERT:
            alert = Alert(self._random.randrange(1, 8), 0)  # type: ignore[arg-type]
            return Frame(kind, 0, 0, alert.encode()).encode()
        counter = self._random.randrange(5) if kind is FrameKind.DATA else 0
        return Frame(kind, session, counter, self._random.randbytes(size)).encode()


class _Scrambler:
    """A device, and a line that changes a part of what it says, always with a right CRC."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._random = Random(7)
        self._deframer = Deframer()
        self.receive, self.wake, self.due = peer.receive, peer.wake, peer.due

    def take(self) -> bytes:
        out = b""
        for frame in self._deframer.feed(self._peer.take()):
            assert isinstance(frame, Frame)
            payload = frame.payload
            if self._random.random() < 0.08:
                at = self._random.randrange(len(payload))
                payload = payload[:at] + self._random.randbytes(1) + payload[at + 1 :]
            out += Frame(frame.kind, frame.session, frame.counter, payload, frame.version).encode()
        return out


@pytest.mark.parametrize("peer", [_Still, _Echo, _Babbler])
@pytest.mark.parametrize("profile", PROFILES)
def test_a_peer_that_is_no_device_passes_nothing(
    profile: Profile, peer: Callable[[Peer], Peer], tmp_path: Path
) -> None:
    rig = Rig(tmp_path, profile, behind=peer, operator=Operator())
    outcomes = rig.run([item.id for item in of(profile)])
    assert "PASS" not in {one.result for one in outcomes}
    assert outcomes[0].result == "FAIL"
    failed = [one for one in outcomes if one.result == "FAIL"]
    assert not [one for one in failed if not all((one.sent, one.expected, one.came))]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_device_with_corrupt_frames_fails_most_items(profile: Profile, tmp_path: Path) -> None:
    outcomes = Rig(tmp_path, profile, behind=_Scrambler).run([item.id for item in of(profile)])
    assert sum(one.result == "FAIL" for one in outcomes) > len(outcomes) // 2


def test_silence_is_a_finding_with_texts(tmp_path: Path) -> None:
    outcome = Rig(tmp_path, "shoe", behind=_Still).attempt("FR-1")
    assert (outcome.item, outcome.result, outcome.came) == (ITEMS["FR-1"], "FAIL", "nothing")
    assert outcome.sent.startswith("HELLO, session 0x")
    assert outcome.expected.startswith("HELLO_RSP under session 0x")
