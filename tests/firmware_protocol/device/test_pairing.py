"""Pairing: the switch, the label's code, the lock after five wrong ones, the host that follows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from firmware_protocol.device import Load, Moment
from firmware_protocol.host import (
    AlertReceived,
    FrameRejected,
    HandshakeFailed,
    LinkSessionStarted,
)
from firmware_protocol.messages import (
    Alert,
    AlertCode,
    DeviceState,
    Event,
    FrameKind,
    HandshakeNotAuthentic,
    HelloRsp,
    NotAuthentic,
    PairDone,
    Paired,
    ProtocolError,
    Replayed,
    TamperSource,
    Verdict,
    WrongDevice,
)
from firmware_protocol.tablelink import Deframer, Frame, Handshake, fingerprint
from hil.devices import SimulatedShoe
from tests.support.hil.devices.meeting import Meeting
from tests.support.hil.devices.plain_device import WRONG, Bench, new_host, pair, switch, tampers


def half_paired(bench: Bench) -> Handshake:
    """The host has said HELLO and PAIR1."""
    bench.say(bench.host.hello())
    shake = bench.host.xx(bench.identity.label)
    bench.say(bench.host.pair1(shake))
    return shake


def test_the_switch_is_a_state_and_stays_while_the_power_is_off(bench: Bench) -> None:
    switch(bench, False)
    switch(bench, True)
    switch(bench, True)
    assert tampers(bench, TamperSource.SERVICE_SWITCH) == [True]
    bench.power_on()
    bench.say(bench.host.hello())
    assert DeviceState.SERVICE in bench.host.hello_rsp().state


def test_pairings_are_counted(bench: Bench) -> None:
    switch(bench, True)
    for number in (1, 2, 3):
        assert pair(bench)
        assert bench.host.last(PairDone).pairings == number
        bench.power_on()


def test_after_five_wrong_codes_pairing_is_locked_until_the_switch_was_off(bench: Bench) -> None:
    new_host(bench)
    switch(bench, True)
    for _ in range(4):
        assert not pair(bench, WRONG)
    assert pair(bench)  # four are not too many
    assert not pair(bench, WRONG)
    assert tampers(bench, TamperSource.PAIRING_CODE) == [True] * 5
    assert not pair(bench)
    assert not pair(bench, WRONG)
    assert tampers(bench, TamperSource.PAIRING_CODE) == [True] * 5
    bench.run(1_000, beats=False)
    assert not pair(bench)
    assert bench.host.last(Alert).code is AlertCode.PAIRING_OFF
    bench.power_on()
    assert not pair(bench)  # nor does a restart help
    switch(bench, True)
    assert not pair(bench)
    switch(bench, False)
    switch(bench, True)
    assert pair(bench)


def test_a_damaged_pair1_and_a_pair3_out_of_turn_are_no_wrong_codes(bench: Bench) -> None:
    host = new_host(bench)
    switch(bench, True)
    bench.say(host.hello())
    pair1 = host.pair1(host.xx(bench.identity.label))
    bench.say(flipped(pair1, 40), pair1)
    assert not host.frames(FrameKind.PAIR2)
    bench.say(Frame(FrameKind.PAIR3, pair1.session, 0, bytes(64), 1))
    assert (tampers(bench, TamperSource.PAIRING_CODE), bench.device.channel.refused) == ([], 3)


def test_a_pair1_without_hello_and_hello_after_pair1(bench: Bench) -> None:
    host = new_host(bench)
    switch(bench, True)
    bench.say(Frame(FrameKind.PAIR1, 7, 0, bytes(48), 1))
    pair3 = host.pair3(half_paired(bench))
    bench.say(host.hello(), pair3)
    assert (host.pair_done(), tampers(bench, TamperSource.PAIRING_CODE)) == ([], [])


def test_an_unfinished_pairing_is_forgotten(bench: Bench) -> None:
    host = new_host(bench)
    switch(bench, True)
    for wait in (19_999.9, 20_000):  # the first is paired in time, the second is not
        shake = half_paired(bench)
        bench.run(wait, beats=False)
        bench.say(host.pair3(shake))
        assert len(host.pair_done()) == 1


def test_pairing_works_though_the_ring_is_full(bench: Bench) -> None:
    """PAIRED may have a spare slot; without even one it is dropped, and the pairing is done."""
    bench.happen(500)
    print_of = fingerprint(new_host(bench).public)
    switch(bench, True)
    assert pair(bench)
    assert bench.events()[-1] == Paired(print_of, 1)
    while bench.device.records.room.free:
        switch(bench, not bench.device.pairing.service)
    switch(bench, True)
    assert pair(bench)
    assert bench.host.last(PairDone).pairings == 2
    assert [one for one in bench.events() if isinstance(one, Paired)] == [Paired(print_of, 1)]
    bench.connect()
    assert bench.resume() is Verdict.OK


@pytest.mark.parametrize("moment", ["before_commit", "in_commit", "after_commit"])
def test_when_power_goes_at_paired_the_former_host_is_still_the_one(
    bench: Bench, moment: Moment
) -> None:
    former, host = bench.host, new_host(bench)
    switch(bench, True)
    pair3 = host.pair3(half_paired(bench))
    bench.device.cut_at(moment)
    bench.cut([pair3])
    bench.power_on()
    assert not host.pair_done()
    paired = [one for one in bench.events() if isinstance(one, Paired)]
    assert paired == ([Paired(fingerprint(host.public), 1)] if moment == "after_commit" else [])
    bench.host = former
    bench.connect()
    # No number is used twice, even after a failed pairing.
    bench.host = host
    assert pair(bench)
    assert host.last(PairDone).pairings == 2


@pytest.mark.usefixtures("records_flow")
def test_pairing_ends_the_session_before_anything_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[int, bytes | None]] = []
    device, plain = bench.device, bench.plain
    plain.made_safe.clear()
    record = device.record

    def looks(event: Event, now: int) -> bool:
        assert (plain.made_safe, device.sessions.running) == ([now], None)
        seen.append((device.ring.head, device.host))
        return record(event, now)

    former = bench.host.public
    switch(bench, True)
    bench.collect()
    new_host(bench)
    monkeypatch.setattr(device, "record", looks)
    assert pair(bench)
    assert seen == [(2, former)]


Touch = Callable[[Frame], Frame | None]
"""Changes a frame; None drops it."""


class Between(Meeting):
    """Passes frames through the attacker, who may replay former ones."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, SimulatedShoe)
        self.to_device: Touch = lambda frame: frame
        self.to_host: Touch = lambda frame: frame
        self.seen: list[Frame] = []
        self._host, self._device = Deframer(), Deframer()

    def settle(self) -> None:
        while True:
            out, back = self.link.take(), self.stand.take()
            if not out and not back:
                return
            self.stand.receive(self._through(self._host, out, self.to_device), self.now)
            self._hear(self.link.receive(self._through(self._device, back, self.to_host), self.now))

    def _through(self, cutter: Deframer, data: bytes, touch: Touch) -> bytes:
        out = b""
        for frame in cutter.feed(data):
            assert isinstance(frame, Frame)
            self.seen.append(frame)
            touched = touch(frame)
            out += b"" if touched is None else touched.encode()
        return out

    def last_seen(self, kind: FrameKind) -> Frame:
        return [frame for frame in self.seen if frame.kind is kind][-1]

    def errors(self) -> list[type[ProtocolError]]:
        return [type(away.error) for away in self.all(HandshakeFailed)]

    def alerts(self) -> list[AlertCode]:
        return [one.alert.code for one in self.all(AlertReceived)]

    def honest(self) -> None:
        """Stop the attack, and check that a session starts."""
        before = len(self.all(LinkSessionStarted))
        self.to_device = self.to_host = lambda frame: frame
        self.run(10_000)
        assert len(self.all(LinkSessionStarted)) > before
        assert self.link.resumed


def flipped(frame: Frame, at: int = 3) -> Frame:
    payload = bytearray(frame.payload)
    payload[at] ^= 0x10
    return replace(frame, payload=bytes(payload))


def only(kind: FrameKind, change: Callable[[Frame], Frame | None]) -> Touch:
    return lambda frame: change(frame) if frame.kind is kind else frame


@pytest.fixture
def between(tmp_path: Path) -> Between:
    return Between(tmp_path)


def cloned(frame: Frame) -> Frame:
    """The answer of a device with the same serial number and another key."""
    answer = replace(HelloRsp.decode(frame.payload), fingerprint=bytes(16))
    return replace(frame, payload=answer.encode())


@pytest.mark.parametrize(
    ("touch", "error"),
    [
        (only(FrameKind.HS2, lambda frame: flipped(frame, 40)), HandshakeNotAuthentic),
        (only(FrameKind.HELLO_RSP, cloned), WrongDevice),
    ],
    ids=["a changed HS2", "another key behind the same serial number"],
)
def test_a_changed_answer_starts_no_session(
    between: Between, touch: Touch, error: type[ProtocolError]
) -> None:
    between.to_host = touch
    between.open()
    between.run(100)
    assert between.errors() == [error]
    between.honest()


def test_an_old_hs2_is_not_authentic(between: Between) -> None:
    between.open()
    between.run(300)
    old = between.last_seen(FrameKind.HS2)
    between.to_host = only(FrameKind.HS2, lambda frame: replace(old, session=frame.session))
    between.replug()
    between.run(100)
    assert between.errors() == [HandshakeNotAuthentic]
    between.honest()


def test_replayed_and_forged_data_is_suspicious_and_changes_nothing(between: Between) -> None:
    between.open()
    between.run(300)
    between.request(Load(decks=1))
    between.run(300)
    records = list(between.records)
    data = between.last_seen(FrameKind.DATA)
    for forged in (data, flipped(data), replace(data, counter=10_000)):
        between._hear(between.link.receive(forged.encode(), between.now))
    named = [type(one.error) for one in between.all(FrameRejected)]
    assert (set(named), len(named)) == ({Replayed, NotAuthentic}, 3)
    between.run(2_000)
    assert (between.records, between.link.resumed) == (records, True)
