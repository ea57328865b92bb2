"""Peers that are no device, or a mad one: every item ends with a finding, none with a trace."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import Peer
from firmware_protocol.messages import PAYLOAD_SIZES, Alert, FrameKind
from firmware_protocol.tablelink import Deframer, Frame
from hil.conform.tester.operators import Operator
from tests.support.hil.conform.conform_rig import ITEMS, PROFILES, Rig, of


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
        number = 0 if kind is FrameKind.ALERT else session
        counter = self._random.randrange(5) if kind is FrameKind.DATA else 0
        payload = self._random.randbytes(size)
        if kind is FrameKind.ALERT:
            payload = Alert(self._random.randrange(1, 8), 0).encode()  # type: ignore[arg-type]
        return Frame(kind, number, counter, payload).encode()


class _Scrambler:
    """A device, and a line that changes a part of what it says, always with a right CRC."""

    def __init__(self, peer: Peer, share: float = 0.08) -> None:
        self._peer = peer
        self._random = Random(7)
        self._share = share
        self._deframer = Deframer()
        self.receive, self.wake, self.due = peer.receive, peer.wake, peer.due

    def take(self) -> bytes:
        out = b""
        for frame in self._deframer.feed(self._peer.take()):
            assert isinstance(frame, Frame)
            payload = frame.payload
            if self._random.random() < self._share:
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
    for one in outcomes:
        if one.result == "FAIL":
            assert one.sent
            assert one.expected
            assert one.came
    assert outcomes[0].result == "FAIL"


@pytest.mark.parametrize("profile", PROFILES)
def test_a_device_with_corrupt_frames_fails_most_items(profile: Profile, tmp_path: Path) -> None:
    rig = Rig(tmp_path, profile, behind=_Scrambler)
    outcomes = rig.run([item.id for item in of(profile)])
    results = [one.result for one in outcomes]
    assert results.count("FAIL") > len(results) // 2


def test_silence_is_a_finding_with_texts(tmp_path: Path) -> None:
    outcome = Rig(tmp_path, "shoe", behind=_Still).attempt("FR-1")
    assert outcome.result == "FAIL"
    assert outcome.sent.startswith("HELLO, session 0x")
    assert outcome.expected.startswith("HELLO_RSP under session 0x")
    assert outcome.came == "nothing"
    assert outcome.item == ITEMS["FR-1"]
