"""Pairing against the simulated device, in simulated time: two sides, each written alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.device import ServiceSwitch, create_identity
from firmware_protocol.host import (
    DeviceIntroduced,
    HostPairing,
    Introduction,
    PairingAlert,
    PairingDone,
    PairingEvent,
    PairingFailed,
    PairingFailure,
)
from firmware_protocol.messages import (
    AlertCode,
    DeviceClass,
    DeviceState,
    Event,
    Paired,
    Tamper,
    TamperSource,
)
from firmware_protocol.tablelink import EventRecord, decode_plaintext, fingerprint, label_psk
from hil.devices import SimulatedStation
from hil.faults import faulty_device

OWN = X25519PrivateKey.from_private_bytes(bytes(range(32)))
OWN_KEY = OWN.public_key().public_bytes_raw()
WRONG = label_psk(bytes(16))


def event_of(record: bytes) -> Event:
    read = decode_plaintext(record, sender="device")
    assert isinstance(read, EventRecord)
    return read.event


class Bench:
    """A device, a clock, and a cable between the device and the host."""

    def __init__(self, place: Path) -> None:
        create_identity(place, DeviceClass.STATION, "ST-7")
        self.now = 1_000_000
        self.device = faulty_device(place, SimulatedStation(), now=self.now, sync=False)

    @property
    def psk(self) -> bytes:
        return label_psk(self.device.identity.label)

    def switch(self, on: bool) -> None:
        self.device.request(ServiceSwitch(on), self.now)

    def run(self, host: Introduction) -> list[PairingEvent]:
        """Until the host is done, however long it takes on its clock."""
        events = host.open(self.now)
        while True:
            while data := host.take():
                self.device.receive(data, self.now)
                events += host.receive(self.device.take(), self.now)
            due = host.due()
            if due is None:
                return events
            self.now = due
            self.device.wake(self.now)
            events += host.receive(self.device.take(), self.now)
            events += host.wake(self.now)

    def recorded(self) -> list[Event]:
        ring = self.device.ring
        records = [ring.record(seq) for seq in range(1, ring.head + 1)]
        return [event_of(record) for record in records]


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path / "station")


def test_a_pairing(bench: Bench) -> None:
    bench.switch(True)
    introduced, done = bench.run(HostPairing(OWN, bench.psk, device_class=DeviceClass.STATION))
    assert isinstance(introduced, DeviceIntroduced)
    assert DeviceState.SERVICE in introduced.answer.state
    assert isinstance(done, PairingDone)
    assert done.device_key == bench.device.identity.public
    assert done.done.pairings == 1
    assert bench.device.host == OWN_KEY
    assert bench.recorded()[-1] == Paired(fingerprint(OWN_KEY), 1)


def test_an_introduction_changes_nothing(bench: Bench) -> None:
    before = bench.recorded()
    (event,) = bench.run(Introduction(bytes(16)))
    assert isinstance(event, DeviceIntroduced)
    assert event.answer.serial == "ST-7"
    assert event.answer.fingerprint == bench.device.identity.fingerprint
    assert DeviceState.SERVICE not in event.answer.state
    assert bench.recorded() == before
    assert bench.device.host is None


def test_wrong_codes_and_the_lock_after_five(bench: Bench) -> None:
    bench.switch(True)
    for _ in range(5):
        _, hint, end = bench.run(HostPairing(OWN, WRONG))
        assert isinstance(hint, PairingAlert)
        assert hint.alert.code is AlertCode.PAIRING_REFUSED
        assert end == PairingFailed(PairingFailure.NO_DONE)
        assert bench.recorded()[-1] == Tamper(TamperSource.PAIRING_CODE, True)
    assert bench.run(HostPairing(OWN, bench.psk))[-1] == PairingFailed(PairingFailure.NO_PAIR2)
    assert bench.device.host is None
    bench.switch(False)
    bench.switch(True)
    assert isinstance(bench.run(HostPairing(OWN, bench.psk))[-1], PairingDone)


def test_another_host_replaces_the_first_and_can_be_replaced_by_it(bench: Bench) -> None:
    bench.switch(True)
    other = X25519PrivateKey.generate()
    for number, own in enumerate((OWN, other, OWN), 1):
        done = bench.run(HostPairing(own, bench.psk))[-1]
        assert isinstance(done, PairingDone)
        assert done.done.pairings == number
        assert bench.device.host == own.public_key().public_bytes_raw()
