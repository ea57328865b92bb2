"""A run that was broken off, and the next one on the same device: it finds nothing wrong."""

from __future__ import annotations

import argparse
import asyncio
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drivers.ports import parse
from firmware_protocol.conformance import Profile
from firmware_protocol.device import (
    Answer,
    ControlRequest,
    CutPower,
    Describe,
    Draw,
    InjectDefect,
    Load,
    MoveCover,
    MoveDoor,
    Peer,
    Press,
    ServiceSwitch,
    SetJam,
)
from hil.conform.runs.run import Keyring, RunPlan, run_plan
from hil.conform.runs.runner import ItemOutcome, run_items
from hil.conform.tester import stimuli
from hil.conform.tester.bench import ConformBench
from hil.conform.tester.findings import ItemSkipped
from hil.conform.tester.operators import Operator
from hil.conform.tester.wire import ReceivedBytes
from tests.support.hil.conform.conform_rig import (
    ITEMS,
    OWN,
    PROFILES,
    InProcessOperator,
    Rig,
    SimulatedWire,
    of,
    unlike_a_pass,
)

AFTER: dict[Profile, tuple[str, ...]] = {
    "shoe": ("PA-1", "PA-3", "EV-2", "EV-8", "EV-11", "CO-1", "CO-6", "SH-1", "SH-2"),
    "shuffler": ("PA-1", "PA-3", "EV-2", "EV-8", "EV-11", "CO-1", "CO-6", "SF-1", "SF-4"),
    "station": ("PA-1", "PA-3", "EV-2", "EV-8", "EV-11", "CO-1", "CO-6", "ST-2", "ST-4"),
}
"""What needs hands, a device that is well, or the switch as it should be."""


class _Killed(Exception):
    """The tester's process is no more."""


class _Mortal(SimulatedWire):
    """The wire of a tester that is killed at this time: from then on it does nothing at all."""

    def __init__(self, peer: Peer, now: int, end: int) -> None:
        super().__init__(peer, now)
        self._end = end

    def alive(self) -> None:
        if self.now() >= self._end:
            raise _Killed

    def send(self, data: bytes) -> None:
        self.alive()
        super().send(data)

    async def receive(self, until: int) -> ReceivedBytes | None:
        self.alive()
        return await super().receive(min(until, self._end))


@cache
def duration(profile: Profile, name: str, *, by_hand: bool) -> int:
    """How long the item takes, in microseconds."""
    with TemporaryDirectory() as folder:
        rig = Rig(Path(folder), profile, operator=None if by_hand else Operator())
        return int(rig.attempt(name).wire_seconds * 1e6)


def broken_off(rig: Rig, name: str, share: float, *, by_hand: bool = True) -> None:
    """Try the item, and be killed when it is done to this share."""
    after = int(duration(rig.bench.profile, name, by_hand=by_hand) * share)
    wire = _Mortal(rig.peer, rig.wire.now(), rig.wire.now() + after)

    def hand(one: ControlRequest) -> Answer:
        wire.alive()
        now = wire.now()
        try:
            return rig.stand.request(one, now)
        finally:
            rig.peer.wake(now)

    rig.bench.wire = rig.wire = wire
    rig.bench.operator = InProcessOperator(hand) if by_hand else Operator()
    with suppress(_Killed):
        rig.attempt(name)


def next_run(rig: Rig, folder: Path, *names: str, by_hand: bool = True) -> list[ItemOutcome]:
    """All of a run but the port, by a tester that knows the device's key and nothing else."""
    rig.wire = SimulatedWire(rig.peer, rig.wire.now())
    bench = ConformBench(
        rig.wire,
        rig.bench.profile,
        InProcessOperator(rig.request) if by_hand else Operator(),
        own=OWN,
        device_key=rig.bench.device_key,
        seed=2,
    )
    file = folder / "host"
    file.write_text(OWN.private_bytes_raw().hex())
    file.chmod(0o600)
    keys = argparse.Namespace(
        keys=None, control=None, host_key=file, device_key=rig.bench.device_key.hex()
    )
    items = tuple(ITEMS[name] for name in names)
    plan = RunPlan(bench.profile, "memory", parse("/dev/memory"), Keyring(keys), items, 2)
    return list(asyncio.run(run_plan(bench, plan, [], None)).outcomes)


# --- broken off -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "name", "share", "after", "by_hand"),
    [
        ("shoe", "EV-2", 0.2, "SH-2", True),  # cards are still being drawn
        ("shoe", "EV-8", 0.97, "EV-2", True),  # power goes at the next such moment
        ("shoe", "SH-5", 0.7, "EV-2", True),
        ("shoe", "CO-1", 0.3, "SH-1", True),  # the reader is broken
        ("shoe", "EV-11", 0.5, "SH-2", True),  # the ring is full, and records wait
        ("shuffler", "SF-1", 0.3, "EV-2", True),  # a shuffle runs, and bars the door
        ("shuffler", "EV-8", 0.1, "EV-2", True),
        ("shuffler", "CO-2", 0.2, "CO-1", True),  # a self-test is under way
        ("station", "ST-4", 0.5, "ST-2", True),  # a button is held
        ("station", "EV-8", 0.97, "CO-1", True),
        # the cable alone
        ("shoe", "CO-2", 0.2, "CO-6", False),  # a self-test is under way
        ("station", "CO-7", 0.5, "CO-6", False),
        ("shuffler", "SF-1", 0.05, "EV-9", False),  # a shuffle runs
        ("shuffler", "SF-1", 0.3, "CO-1", False),
    ],
)
def test_an_interrupted_run_is_no_fault_of_the_device(
    profile: Profile, name: str, share: float, after: str, by_hand: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, profile, operator=None if by_hand else Operator())
    broken_off(rig, name, share, by_hand=by_hand)
    assert not unlike_a_pass(next_run(rig, tmp_path, after, by_hand=by_hand))


@pytest.mark.parametrize("share", [0.35, 0.5, 0.65, 0.8])
@pytest.mark.parametrize("name", ["PA-2", "PA-3"])
def test_a_device_that_was_left_in_the_middle_of_pairing_is_paired_again(
    name: str, share: float, tmp_path: Path
) -> None:
    """Its switch is on, five wrong codes have locked it, or it is another host's."""
    rig = Rig(tmp_path, "station")
    broken_off(rig, name, share)
    rig.bench.device_key = bytes(range(1, 33))  # nor does the next tester know its key
    assert not unlike_a_pass(next_run(rig, tmp_path, "HS-1", "PA-1", "PA-2", "PA-3"))


@settings(max_examples=40)
@given(st.data())
def test_broken_off_anywhere(data: st.DataObject) -> None:
    profile = data.draw(st.sampled_from(PROFILES))
    name = data.draw(st.sampled_from([item.id for item in of(profile)]))
    share = data.draw(st.floats(0, 1))
    after = data.draw(st.lists(st.sampled_from(AFTER[profile]), min_size=1, max_size=2))
    with TemporaryDirectory() as folder:
        rig = Rig(Path(folder), profile)
        broken_off(rig, name, share)
        assert not unlike_a_pass(next_run(rig, Path(folder), *after))


# --- what cannot be undone --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("profile", "hand", "name", "why"),
    [
        ("shoe", SetJam(code="stuck"), "EV-2", "'load' was denied: cards are stuck"),
        ("shuffler", SetJam(code="stuck"), "SF-1", "'put' was denied: cards are stuck"),
    ],
)
def test_an_obstacle_is_reported_and_is_no_failure(
    profile: Profile, hand: ControlRequest, name: str, why: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, profile)
    rig.request(hand)
    began = rig.wire.now()
    outcomes = next_run(rig, tmp_path, "FR-1", name, "HE-1")
    assert [one.result for one in outcomes] == ["PASS", "UNTRIED", "PASS"]
    assert why in outcomes[1].remark
    assert rig.wire.now() - began < 3 * stimuli.DRAIN_MS * 1000


class _Unpowered(InProcessOperator):
    """Hands of a maker's own simulator, which cannot cut the power."""

    async def do(self, hand: ControlRequest) -> Answer:
        if isinstance(hand, CutPower):
            raise ItemSkipped("a device that knows 'power'")
        return await super().do(hand)


def test_cards_that_are_being_drawn_are_waited_for(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "shoe")
    rig.request(Load(decks=6))
    rig.request(Draw(count=100, force=True))
    rig.bench.operator = _Unpowered(rig.request)
    began = rig.wire.now()
    asyncio.run(stimuli.recover(rig.bench))
    assert 10_000_000 < rig.wire.now() - began < stimuli.DRAIN_MS * 1000
    assert rig.attempt("SH-1").result == "PASS"


@pytest.mark.parametrize(
    ("profile", "hand", "name"),
    [
        ("station", Press(seat=1, button="hit", held_ms=None), "ST-2"),
        ("shoe", MoveCover(open=True), "EV-2"),
        ("shoe", InjectDefect(code="reader"), "SH-1"),
        ("shuffler", MoveDoor(open=True), "SF-4"),
        ("shuffler", ServiceSwitch(on=True), "HE-1"),
    ],
)
def test_recovery_undoes_requests(
    profile: Profile, hand: ControlRequest, name: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, profile)
    rig.request(hand)
    assert _differs(rig)
    rig.bench.operator = _Unpowered(rig.request)
    asyncio.run(stimuli.recover(rig.bench))
    assert not _differs(rig)
    assert rig.attempt(name).result == "PASS"


def _differs(rig: Rig) -> list[object]:
    """What is not as at a device that nobody has touched."""
    asyncio.run(rig.bench.pause(50))  # contacts settle
    seen = rig.request(Describe())
    inside = seen["mechanism"]
    return [
        *(inside["seats"]["1"]["down"] if "seats" in inside else []),
        *(name for name in ("cover", "door") if inside.get(name) == "open"),
        *(name for name in seen["state"] if name == "SERVICE"),
        *seen["defects"],
    ]


def test_a_failed_item_does_not_affect_the_next_one(tmp_path: Path) -> None:
    """CO-1 breaks the reader, finds a fault, and does not come to mend it."""
    rig = Rig(tmp_path, "shoe", breaks={"busy-with-itself"})
    done = asyncio.run(run_items(rig.bench, [ITEMS["CO-1"], ITEMS["SH-1"]]))
    assert [one.result for one in done.outcomes] == ["FAIL", "PASS"]
