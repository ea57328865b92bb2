"""Every item is tried: a device that keeps the page passes them all, each break is found."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from firmware_protocol.conformance import Profile
from firmware_protocol.device import Answer, ControlRequest, Describe, Mechanism, Peer
from firmware_protocol.messages import Capabilities
from hil.conform.items import TRIALS
from hil.conform.runs.runner import ItemOutcome
from hil.conform.tester import bench
from hil.conform.tester.operators import Operator, TerminalOperator, instruction
from hil.devices import SimulatedShoe, SimulatedShuffler, SimulatedStation
from hil.faults import BREAKS
from hil.faults.catalogue import BreakDefinition
from tests.support.hil.conform.conform_rig import ITEMS, PROFILES, Paced, Rig, of, unlike_a_pass


def failed(outcomes: list[ItemOutcome]) -> list[tuple[str, str, str, str]]:
    return [
        (one.item.id, one.sent, one.expected, one.came) for one in outcomes if one.result == "FAIL"
    ]


def skipped(outcomes: list[ItemOutcome]) -> dict[str, str]:
    return {one.item.id: one.remark for one in outcomes if one.result == "SKIP"}


def test_every_item_has_a_function_with_its_rule() -> None:
    assert set(TRIALS) == set(ITEMS)
    for name, trial in TRIALS.items():
        assert " ".join((inspect.getdoc(trial) or "").split()) == ITEMS[name].text


@pytest.mark.parametrize("profile", PROFILES)
def test_each_item_passes_alone(profile: Profile, tmp_path: Path) -> None:
    outcomes = [Rig(tmp_path / item.id, profile).attempt(item.id) for item in of(profile)]
    assert not unlike_a_pass(outcomes)


@pytest.mark.parametrize("profile", PROFILES)
def test_all_items_pass_on_one_device_in_any_order(profile: Profile, tmp_path: Path) -> None:
    names = [item.id for item in of(profile)]
    Random(1).shuffle(names)
    assert not unlike_a_pass(Rig(tmp_path, profile).run(names)), names


@pytest.mark.parametrize("profile", PROFILES)
def test_the_cable_alone(profile: Profile, tmp_path: Path) -> None:
    """What needs a hand is skipped and says so; the rest passes."""
    rig = Rig(tmp_path, profile, operator=Operator())
    outcomes = rig.run([item.id for item in of(profile)])
    assert not failed(outcomes)
    by_hand = skipped(outcomes)
    assert {one.item.id for one in outcomes if one.item.needs} <= set(by_hand)
    assert by_hand.items() >= {
        ("EV-2", "needs activity: --control or --ask"),
        ("EV-8", "needs activity: --control or --ask; power: --control or --ask"),
        ("EV-10", "needs ring: --control"),
    }
    assert all("--control" in remark for remark in by_hand.values())


@pytest.mark.parametrize("profile", PROFILES)
def test_a_slow_line_passes(profile: Profile, tmp_path: Path) -> None:
    """115200 baud, and ports that hold bytes back: judged as on a real port."""

    rig = Rig(tmp_path, profile, behind=lambda peer: Paced(peer, jitter_us=30_000))
    rig.wire.simulated = False
    rig.bench.late_ms = 150
    assert not failed(rig.run([item.id for item in of(profile)]))


class _Someone(TerminalOperator):
    """A person, who does what is asked at once: no more than a person can, and not exactly."""

    def __init__(self) -> None:
        super().__init__(0)
        self.rig: Rig | None = None

    async def do(self, hand: ControlRequest) -> Answer:
        assert self.rig is not None
        instruction(hand)
        self.rig.request(hand)
        return {}

    async def label(self) -> str:
        assert self.rig is not None
        return str(self.rig.request(Describe())["label"])

    async def confirm(self, question: str) -> bool:
        assert self.rig is not None
        return bool(self.rig.request(Describe())["mechanism"]["seats"]["1"]["lamps"]["lit"])


@pytest.mark.parametrize("profile", PROFILES)
def test_a_person_at_the_device(profile: Profile, tmp_path: Path) -> None:
    someone = _Someone()
    someone.rig = Rig(tmp_path, profile, operator=someone)
    outcomes = someone.rig.run([item.id for item in of(profile)])
    assert not failed(outcomes)
    too_exact = {
        "EV-10": "needs ring: --control",
        "EV-11": "needs ring: --control",
        "SH-5": "needs to count the cards that are out: --control",
        "SH-6": "needs two cards pulled together: --control",
        "SH-8": "needs a dirty reader: --control",
        "TAP-1": "needs two known orders of cards, drawn with the same timing: --control",
    }
    assert skipped(outcomes) == {
        name: why for name, why in too_exact.items() if ITEMS[name].concerns(profile)
    }


class _Mute(Peer):
    """A device that sends no ALERT."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self.receive, self.wake, self.due = peer.receive, peer.wake, peer.due  # type: ignore[method-assign]

    def take(self) -> bytes:
        frames = self._peer.take().split(b"\0")
        return b"".join(frame + b"\0" for frame in frames if len(frame) > 30)


PLAIN: dict[Profile, Callable[[], Mechanism]] = {
    "shoe": lambda: SimulatedShoe(
        gate=False, lock=False, backs=False, orientation=False, orders_doubles=False
    ),
    "shuffler": lambda: SimulatedShuffler(deck_check=False, eject=False, card_sensor=False),
    "station": lambda: SimulatedStation(seats=(3, 7), colour=False, buzzer=False, lamp_check=False),
}


@pytest.mark.parametrize("profile", PROFILES)
def test_a_simple_model_passes(profile: Profile, tmp_path: Path) -> None:
    """Without any of the capabilities that a model may have, and without an ALERT."""
    rig = Rig(tmp_path, profile, mechanism=PLAIN[profile], behind=_Mute)
    outcomes = rig.run([item.id for item in of(profile)])
    assert rig.bench.hello_rsp is not None
    assert rig.bench.hello_rsp.capabilities == Capabilities(0)
    assert not failed(outcomes)
    expected = {
        "shoe": {"SH-5": "needs GATE, which this shoe does not have"},
        "shuffler": {"SF-5": "needs CARD_SENSOR, which this shuffler does not have"},
        "station": {},
    }
    assert skipped(outcomes) == expected[profile]


def test_an_adapter_passes_and_the_run_says_what_it_is(tmp_path: Path) -> None:
    rig = Rig(tmp_path, "shuffler", mechanism=lambda: SimulatedShuffler(gateway=True))
    assert rig.attempt("HE-5").result == "PASS"
    assert rig.bench.has(Capabilities.GATEWAY)


def test_the_tester_is_no_user_of_the_hosts_link() -> None:
    """It is written from the page a second time: a mistake of one is not hidden by the other."""
    for file in Path(bench.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert not str(node.module).startswith("firmware_protocol.host.link"), file


CASES = [(broken, profile) for broken in BREAKS for profile in broken.profiles or PROFILES]


@pytest.mark.parametrize(
    ("broken", "profile"), CASES, ids=[f"{broken.name}-{profile}" for broken, profile in CASES]
)
def test_a_break_is_found(broken: BreakDefinition, profile: Profile, tmp_path: Path) -> None:
    first = Rig(tmp_path, profile, breaks={broken.name}).attempt(broken.items[0])
    assert first.result == "FAIL", broken.text
    assert all((first.sent, first.expected, first.came)), first


@pytest.mark.parametrize("broken", [one for one in BREAKS if len(one.items) > 1])
def test_a_break_shows_in_its_other_items_too(broken: BreakDefinition, tmp_path: Path) -> None:
    profile = (broken.profiles or PROFILES)[0]
    for name in broken.items[1:]:
        outcome = Rig(tmp_path / name, profile, breaks={broken.name}).attempt(name)
        assert outcome.result == "FAIL", name


def test_every_item_finds_a_break() -> None:
    """An item that no break is caught by may be an item that cannot fail."""
    found = {name for broken in BREAKS for name in broken.items}
    assert set(ITEMS) - found == {"FR-1", "FR-5", "CO-6"} - found
