"""How a run begins and ends: whose hands, who is paired, a cable that is pulled, Ctrl-C."""

from __future__ import annotations

import asyncio
import json
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any
from xml.etree import ElementTree

import pytest

from controller.errors import UsageProblem
from firmware_protocol.conformance import Profile
from firmware_protocol.device import Answer, ControlRequest, CutPower, Describe, Peer, Plug
from firmware_protocol.tablelink import Deframer, Frame
from hil.conform.items import WITHOUT_SESSION
from hil.conform.runs import runner
from hil.conform.runs.runner import run_items
from hil.conform.tester import pairing
from hil.conform.tester.operators import Operator
from hil.conform.tester.wire import ReceivedBytes, WireLost
from hil.simulator import DeviceProcess, device_process
from tests.support.hil.commands import conform
from tests.support.hil.conform.conform_rig import (
    ITEMS,
    PROFILES,
    InProcessOperator,
    Rig,
    SimulatedWire,
    of,
)


def run(sim: DeviceProcess, *arguments: str | Path, profile: str = "shoe") -> int:
    return conform("--profile", profile, "--port", str(sim.port), *arguments)


@pytest.fixture
def shoe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DeviceProcess]:
    monkeypatch.setenv("HOLECARD_KEYS", str(tmp_path / "no-keys"))
    with device_process("shoe", tmp_path / "shoe") as sim:
        yield sim


# --- who is at the port, and whose hands they are ---------------------------------------------


def test_a_device_of_another_class_is_the_wrong_profile(
    shoe: DeviceProcess, tmp_path: Path
) -> None:
    with pytest.raises(UsageProblem, match="SH-0001 reports that it is a shoe") as problem:
        run(shoe, "--control", tmp_path / "shoe" / "control", profile="station")
    assert problem.value.where == "--profile"
    assert shoe.control.do(Describe())["boot"] == shoe.described["boot"]


@pytest.mark.parametrize("options", [("--serial", "SH-0002"), ()], ids=["another", "same number"])
def test_the_hands_of_another_device_are_not_used(
    shoe: DeviceProcess,
    tmp_path: Path,
    options: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Two simulated shoes have the same serial number, if nobody gave them others."""
    with device_process("shoe", tmp_path / "other", *options) as other:
        with pytest.raises(UsageProblem) as problem:
            run(shoe, "--control", tmp_path / "other" / "control")
        for sim in (shoe, other):
            now = sim.control.do(Describe())
            assert (now["boot"], now["head"], now["host"]) == (1, sim.described["head"], None)
    assert problem.value.where == "--control"
    assert "it is the socket of a device with " in str(problem.value)
    assert capsys.readouterr().out == ""


def test_the_hands_of_a_device_that_hangs_are_not_those_of_one_that_answers(
    shoe: DeviceProcess, tmp_path: Path
) -> None:
    with device_process("shoe", tmp_path / "other") as other:
        other.control.do(CutPower(off_ms=3_600_000))
        with pytest.raises(UsageProblem, match="of a device that does not run"):
            run(shoe, "--control", tmp_path / "other" / "control")


@contextmanager
def answering(path: Path, answer: Callable[[bytes], dict[str, Any]]) -> Iterator[None]:
    """A control socket of somebody else's, for one client."""
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()

    def serve() -> None:
        with server.accept()[0] as client, client.makefile("rb") as lines:
            for line in lines:
                client.sendall(json.dumps(answer(line.strip())).encode() + b"\n")

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield
    finally:
        thread.join()
        server.close()


def test_a_control_socket_without_identity_is_accepted_with_a_notice(
    shoe: DeviceProcess, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A maker's own simulator need not tell more than hil/CONTROL.md says that conform reads."""

    def answer(line: bytes) -> dict[str, Any]:
        verb = json.loads(line)["do"]
        if verb not in ("describe", "service", "load", "draw"):
            return {"ok": False, "error": f"no verb {verb}", "where": "do", "allowed": "others"}
        told = shoe.control.ask(line)
        return {"ok": True, "answer": {"label": told["label"]} if verb == "describe" else told}

    with answering(tmp_path / "terse", answer):
        code = run(shoe, "--control", tmp_path / "terse", "--only", "FR-1", "EV-2")
    said = capsys.readouterr()
    assert code == 0, said.out
    assert "does not identify its device: assumed to be SH-0001's" in said.err


# --- not paired -------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("by_hand", [False, True])
def test_items_without_session_are_run_before_pairing(
    profile: Profile, by_hand: bool, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, profile, operator=None if by_hand else Operator())
    rig.bench.device_key, rig.bench.unpaired = bytes(32), "not paired"
    done = asyncio.run(run_items(rig.bench, of(profile)))
    passed = {one.item.id for one in done.outcomes if one.result == "PASS"}
    assert passed == WITHOUT_SESSION - {"HE-3"}
    assert {one.result for one in done.outcomes} == {"PASS", "UNTRIED"}
    assert runner.exit_code(done) == 3


class _Choosy:
    """Answers no HELLO of versions that it does not speak."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._deframer = Deframer()
        self.wake, self.due, self.take = peer.wake, peer.due, peer.take

    def receive(self, data: bytes, now: int) -> None:
        for frame in self._deframer.feed(data):
            assert isinstance(frame, Frame)
            if frame.payload[0] <= 1:
                self._peer.receive(frame.encode(), now)


@pytest.mark.parametrize(
    ("behind", "result"), [(lambda peer: peer, "UNTRIED"), (_Choosy, "FAIL")], ids=["well", "wrong"]
)
def test_he_3_is_tried_up_to_where_it_would_need_keys(
    behind: Callable[[Peer], Peer], result: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, "shoe", behind=behind)
    rig.bench.unpaired = "not paired"
    assert rig.attempt("HE-3").result == result


def test_a_device_that_cannot_be_paired_is_tried_as_far_as_that_goes(
    shoe: DeviceProcess,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Hands are there, and pairing does not work yet."""
    monkeypatch.setattr(pairing, "PAIR_WAIT_MS", 500)

    def answer(line: bytes) -> dict[str, Any]:
        broken = json.loads(line)["do"] == "service"
        return {"ok": True, "answer": {} if broken else shoe.control.ask(line)}

    with answering(tmp_path / "stiff", answer):
        code = run(shoe, "--control", tmp_path / "stiff", "--only", "FR-1", "HE-1", "HS-1")
    said = capsys.readouterr()
    assert code == 3
    assert "HE-1   PASS" in said.out
    assert "HS-1   UNTRIED  not paired, and it cannot be paired here" in said.out
    assert "PAIR2 within 500 ms" in said.err


# --- broken off -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("does", "code", "why"),
    [
        (
            lambda sim, _: sim.control.do(Plug(connected=False)),
            3,
            "the port has ended: it was unplugged or hung up",
        ),
        (lambda _, process: process.send_signal(signal.SIGINT), 130, "interrupted"),
    ],
    ids=["cable", "ctrl-c"],
)
def test_a_run_that_ends_reports_the_outcomes_so_far(
    shoe: DeviceProcess,
    tmp_path: Path,
    does: Callable[[DeviceProcess, Popen[str]], object],
    code: int,
    why: str,
) -> None:
    """It is ended during the second item, which takes 13 s."""
    junit = tmp_path / "report.xml"
    command = [sys.executable, "-m", "hil.conform", "--profile", "shoe", "--port", str(shoe.port)]
    command += ["--control", str(tmp_path / "shoe" / "control"), "--junit", str(junit)]
    command += ["--only", "FR-1", "HS-7", "EV-2", "CO-3"]
    with Popen(command, stdout=PIPE, stderr=PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "FR-1   PASS\n"
        does(shoe, process)
        rest, complaints = process.communicate(timeout=60)
    assert (process.returncode, rest.splitlines()[:3]) == (
        code,
        [
            f"HS-7   UNTRIED  broken off in the middle: {why}",
            f"EV-2   UNTRIED  {why}",
            f"CO-3   UNTRIED  {why}",
        ],
    )
    assert complaints == f"holecard: the run was broken off: {why}\n"
    (suite,) = ElementTree.fromstring(junit.read_bytes()).iter("testsuite")
    counted = ("tests", "failures", "errors")
    assert [suite.attrib[name] for name in counted] == ["4", "0", "3"]


class _Leaves(SimulatedWire):
    """A wire that ends once, and is there again or not."""

    def __init__(self, rig: Rig, *, back: bool) -> None:
        super().__init__(rig.peer, rig.wire.now())
        self._ends = self.now() + 500_000
        self._back = back

    async def receive(self, until: int) -> ReceivedBytes | None:
        if self.now() >= self._ends:
            raise WireLost("the port has ended: it was unplugged")
        return await super().receive(min(until, self._ends))

    async def reopen(self, until: int) -> None:
        if not self._back:
            raise WireLost("the port did not come back: there is no such port")
        self._ends = 1 << 62


@pytest.mark.parametrize(
    ("back", "results", "expected", "broken_off"),
    [
        (True, ["PASS", "FAIL", "PASS"], "that the device stays at its port", ""),
        (False, ["PASS", "UNTRIED", "UNTRIED"], "", "the port has ended: it was unplugged"),
    ],
)
def test_a_device_that_leaves_its_port_fails_that_item_or_aborts_the_run(
    back: bool, results: list[str], expected: str, broken_off: str, tmp_path: Path
) -> None:
    rig = Rig(tmp_path, "shoe")
    rig.bench.wire = rig.wire = _Leaves(rig, back=back)
    done = asyncio.run(run_items(rig.bench, [ITEMS[name] for name in ("FR-1", "HS-7", "HS-1")]))
    assert [one.result for one in done.outcomes] == results
    assert (done.outcomes[1].expected, done.broken_off) == (expected, broken_off)


def test_a_lost_operator_aborts_the_run(tmp_path: Path) -> None:
    class Goes(InProcessOperator):
        async def do(self, hand: ControlRequest) -> Answer:
            raise UsageProblem("--control", "the simulated device has gone", "one that runs")

    rig = Rig(tmp_path, "shoe")
    rig.bench.operator = Goes(rig.request)
    done = asyncio.run(run_items(rig.bench, [ITEMS[name] for name in ("FR-1", "EV-2", "HS-1")]))
    assert [one.result for one in done.outcomes] == ["PASS", "UNTRIED", "UNTRIED"]
    assert "--control: the simulated device has gone" in done.broken_off


# --- the tap at a real port -------------------------------------------------------------------


def test_tap_1_reports_that_a_port_shows_lengths_and_not_timing(tmp_path: Path) -> None:
    """A leak of 3 ms, which simulated time shows, goes through at a port: it must be said."""
    rig = Rig(tmp_path, "shoe", breaks={"pictures-slow"})
    rig.wire.simulated = False
    outcome = rig.attempt("TAP-1")
    assert outcome.result == "PASS"
    assert runner.lines(outcome)[0].startswith("TAP-1  PASS  lengths only, not timing: ")
