"""The bad cable that the tester puts between itself and a device, and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import Peer
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.wire import NoisyCable
from tests.support.hil.conform.conform_rig import PROFILES, Rig


class Cutting(NoisyCable):
    """Each frame loses its end, and grows together with the next one."""

    def distort(self, frame: bytes) -> bytes:
        self.hits += 1
        return self.splice(frame)


async def after_noise(bench: ConformBench) -> int:
    """A handshake right after such a cable: frames that were hit."""
    await bench.session()
    bench.noise = noise = Cutting(bench.rng)
    await bench.pause(1200)  # heartbeats, either way
    hits = noise.hits
    await bench.reset()
    await bench.shake()
    assert bench.damage == []
    return hits


@pytest.mark.parametrize("profile", PROFILES)
def test_noise_leaves_no_partial_frame_behind(profile: Profile, tmp_path: Path) -> None:
    assert asyncio.run(after_noise(Rig(tmp_path, profile).bench)) > 1


class _Extra:
    """A device, and bytes that arrive in addition to its own."""

    def __init__(self, peer: Peer) -> None:
        self.receive, self.wake, self.due = peer.receive, peer.wake, peer.due
        self._peer = peer
        self.bytes = b""

    def take(self) -> bytes:
        extra, self.bytes = self.bytes, b""
        return self._peer.take() + extra


def test_a_frame_that_is_incomplete_when_the_noise_ends_is_passed_on(tmp_path: Path) -> None:
    """Its first part is passed on to the tester, where it merges with the rest."""
    rig = Rig(tmp_path, "shoe", behind=_Extra)

    async def without_noise() -> None:
        await rig.bench.session()
        rig.bench.noise = noise = NoisyCable(rig.bench.rng, 0.0)
        assert noise.to_tester(b"\x03\x01") == b""
        assert rig.bench.mend_line() is noise
        assert noise.take_partial() == b""

    asyncio.run(without_noise())
    assert isinstance(rig.peer, _Extra)
    rig.peer.bytes = b"\x02\x00"
    asyncio.run(rig.bench.pause(1))
    (damaged,) = rig.bench.damage
    assert damaged.size == 3
