"""The bad cable that the tester puts between itself and a device, and its end."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from firmware_protocol.conformance import Profile
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.line_noise import NoisyCable
from tests.support.hil.conform.conform_rig import PROFILES, Rig


class Cutting(NoisyCable):
    """Each frame loses its end, and grows together with the next one."""

    def _hit(self, frame: bytes) -> bytes:
        self.hits += 1
        return self._splice(frame)


async def after_noise(bench: ConformBench) -> int:
    """A handshake right after such a cable: frames that were hit."""
    await bench.session()
    bench.noise = noise = Cutting(bench.rng)
    await bench.pause(1200)  # heartbeats, either way
    hits = noise.hits
    await bench.fresh()
    await bench.shake()
    assert bench.damage == []
    return hits


@pytest.mark.parametrize("profile", PROFILES)
def test_what_a_bad_cable_has_cut_off_ends_with_it(profile: Profile, tmp_path: Path) -> None:
    assert asyncio.run(after_noise(Rig(tmp_path, profile).bench)) > 1


def test_a_frame_that_is_half_there_when_the_cable_is_mended_comes_whole(tmp_path: Path) -> None:
    """Its first half is handed over, not thrown away."""
    bench = Rig(tmp_path, "shoe").bench

    async def mended() -> bytes:
        await bench.session()
        bench.noise = noise = NoisyCable(bench.rng, 0.0)
        assert noise.back(b"\x03\x01") == b""
        assert bench.mend_line() is noise
        return noise.begun()

    assert asyncio.run(mended()) == b""
    bench._take(b"\x02\x00", 0)
    (damaged,) = bench.damage
    assert damaged.size == 3
