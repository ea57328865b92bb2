"""Pairing: the switch, the label's code, the lock after five wrong ones, the host that follows."""

from __future__ import annotations

from pathlib import Path

import pytest

from firmware_protocol.device import Moment
from firmware_protocol.messages import (
    Alert,
    AlertCode,
    DeviceState,
    Event,
    FrameKind,
    PairDone,
    Paired,
    TamperSource,
    Verdict,
)
from firmware_protocol.tablelink import Frame, fingerprint
from tests.support.hil.devices.device_talk import WRONG, new_host, pair, switch, tampers
from tests.support.hil.devices.plain_device import Bench


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


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
    shake = host.xx(bench.identity.label)
    pair1 = host.pair1(shake)
    bad = bytearray(pair1.payload)
    bad[40] ^= 1
    bench.say(Frame(FrameKind.PAIR1, pair1.session, 0, bytes(bad), 1), pair1)
    assert not host.frames(FrameKind.PAIR2)
    bench.say(Frame(FrameKind.PAIR3, pair1.session, 0, bytes(64), 1))
    assert tampers(bench, TamperSource.PAIRING_CODE) == []
    assert bench.device.channel.refused == 3


def test_a_pair1_without_hello_and_hello_after_pair1(bench: Bench) -> None:
    host = new_host(bench)
    switch(bench, True)
    bench.say(Frame(FrameKind.PAIR1, 7, 0, bytes(48), 1))
    bench.say(host.hello())
    shake = host.xx(bench.identity.label)
    bench.say(host.pair1(shake))
    pair3 = host.pair3(shake)
    bench.say(host.hello(), pair3)
    assert not host.pair_done()
    assert tampers(bench, TamperSource.PAIRING_CODE) == []


def test_an_unfinished_pairing_is_forgotten(bench: Bench) -> None:
    host = new_host(bench)
    switch(bench, True)
    for wait, done in ((9_999.9, 1), (10_000, 1)):
        bench.say(host.hello())
        shake = host.xx(bench.identity.label)
        bench.say(host.pair1(shake))
        bench.run(wait, beats=False)
        bench.say(host.pair3(shake))
        assert len(host.pair_done()) == done


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
    bench.say(host.hello())
    shake = host.xx(bench.identity.label)
    bench.say(host.pair1(shake))
    pair3 = host.pair3(shake)
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


def test_pairing_ends_the_session_before_anything_else(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench.flowing()
    seen: list[tuple[int, bytes | None]] = []
    device, plain = bench.device, bench.plain
    plain.made_safe.clear()
    record = device.record

    def looks(event: Event, now: int) -> bool:
        assert plain.made_safe == [now]
        assert device.sessions.running is None
        seen.append((device.ring.head, device.host))
        return record(event, now)

    former = bench.host.public
    switch(bench, True)
    bench.collect()
    new_host(bench)
    monkeypatch.setattr(device, "record", looks)
    assert pair(bench)
    assert seen == [(2, former)]
