"""Breaks of the core that a conformance item cannot separate: each changes one rule only.

That each break is found is tested in tests/hil/conform/test_items.py.
"""

from __future__ import annotations

from pathlib import Path

from firmware_protocol.device import ServiceSwitch
from firmware_protocol.messages import Info, InfoReply, Verdict
from hil.faults import BREAKS
from tests.support.hil.devices.plain_device import MS, Bench, ack


def test_a_break_that_is_late_is_only_late(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "late-replies")
    bench.connect()
    began = bench.now
    bench.run(800)
    assert [now - began for now, _ in bench.host.timed(InfoReply)] == [700 * MS]


def test_a_broken_device_still_acknowledges_what_it_must(tmp_path: Path) -> None:
    """Each break is one mistake: an ordinary round works with nearly all of them."""
    spoil = {"info-first", "late-replies", "chain-wrong", "adopt-refused", "schema-wrong"}
    for name in {broken.name for broken in BREAKS if not broken.profiles} - spoil:
        bench = Bench(tmp_path / name, name)
        assert bench.shake(), name
        bench.say(bench.host.call(Info()))
        assert bench.resume() is Verdict.OK, name
        bench.happen(2)
        assert {1, 2, 3} <= set(bench.host.seqs()), name
        bench.say(bench.host.seal(ack(bench.device.ring.epoch, 3)))
        bench.device.request(ServiceSwitch(True), bench.now)
