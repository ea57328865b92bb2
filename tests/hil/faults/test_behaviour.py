"""Every break of the core shows, and only when it is switched on.

One small trial for each: it holds for an honest device and fails with the break.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from firmware_protocol.device.control import ServiceSwitch
from firmware_protocol.messages.common import Info, InfoReply
from firmware_protocol.messages.enums import DeviceClass, Verdict
from firmware_protocol.messages.frames import Alert
from firmware_protocol.messages.shoe import CardRead
from hil.faults import BREAKS
from tests.support.hil.conform.device_trials_run import TRIALS, Trial
from tests.support.hil.devices.plain_device import MS, Bench
from tests.support.hil.devices.raw_host import ack

CORE: Final = tuple(broken.name for broken in BREAKS if not broken.profiles)
NAMED: Final = pytest.mark.parametrize(
    ("name", "trial"), TRIALS, ids=[f"{name}{trial.__name__}" for name, trial in TRIALS]
)


def test_every_break_of_the_core_has_its_trial() -> None:
    assert {name for name, _ in TRIALS} == set(CORE)


@NAMED
def test_an_honest_device_stands_the_trial(tmp_path: Path, name: str, trial: Trial) -> None:
    trial(Bench(tmp_path))


@NAMED
def test_a_break_shows(tmp_path: Path, name: str, trial: Trial) -> None:
    with pytest.raises(AssertionError):
        trial(Bench(tmp_path, name))


def test_a_break_that_is_late_is_only_late(tmp_path: Path) -> None:
    bench = Bench(tmp_path, "late-replies")
    bench.connect()
    began = bench.now
    bench.run(800)
    assert [now - began for now, _ in bench.host.timed(InfoReply)] == [700 * MS]


def test_a_card_in_clear_is_an_alert(tmp_path: Path) -> None:
    card = CardRead(1, 1, 37, 99, 0xFE, 0, 40, 1, bytes(11))  # type: ignore[arg-type]
    honest = Bench(tmp_path / "honest", device_class=DeviceClass.SHOE)
    broken = Bench(tmp_path / "broken", "card-in-clear", device_class=DeviceClass.SHOE)
    for bench in (honest, broken):
        bench.flowing()
        bench.device.record(card, bench.now)
        bench.collect()
    assert not honest.host.all(Alert)
    assert broken.host.last(Alert).arg == 37


def test_a_broken_device_still_acknowledges_what_it_must(tmp_path: Path) -> None:
    """Each break is one mistake: an ordinary round works with nearly all of them."""
    spoil = {"info-first", "late-replies", "chain-wrong", "adopt-refused", "schema-wrong"}
    for name in set(CORE) - spoil:
        bench = Bench(tmp_path / name, name)
        assert bench.shake(), name
        bench.say(bench.host.call(Info()))
        assert bench.resume() is Verdict.OK, name
        bench.happen(2)
        assert {1, 2, 3} <= set(bench.host.seqs()), name
        bench.say(bench.host.seal(ack(bench.device.ring.epoch, 3)))
        bench.device.hand(ServiceSwitch(True), bench.now)
