"""Who is not the wanted device, or cannot prove it, is refused; the right one is taken again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from drivers import events
from drivers.devices import LinkState
from drivers.events import Identity
from drivers.keys import KeyProblem
from drivers.session import PortSearch, WantedDevice
from drivers.session.supervisor import RETRY_REFUSED
from firmware_protocol.device import Break, Plug, create_identity, pair_directly
from firmware_protocol.messages import DeviceClass
from tests.support.drivers.simulated import Desk, Plugged, Watched, running, simulate, table

S = LinkState
STRANGER = X25519PrivateKey.from_private_bytes(bytes(range(2, 34)))


# --- someone else ---------------------------------------------------------------------------------


def test_a_copy_with_another_key_is_refused_until_the_right_one_is_back(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (desk, device, watched), running(watched):
            await watched.ready()
            device.request(Plug(connected=False))
            copy = desk.plug(Plugged(tmp_path / "copy", serial="SH-0001"))
            await watched.until(S.REFUSED)
            assert watched.supervisor.why == "shoe SH-0001 with another key is there"
            (swapped,) = watched.of(events.Swapped)
            right = device.identity
            assert swapped.expected == Identity(DeviceClass.SHOE, "SH-0001", right.fingerprint)
            assert swapped.found == Identity(DeviceClass.SHOE, "SH-0001", copy.identity.fingerprint)
            opened = copy.opened
            await asyncio.sleep(4 * RETRY_REFUSED + 1)
            assert copy.opened == opened + 4
            assert len(watched.of(events.Swapped)) == 1
            copy.request(Plug(connected=False))
            device.request(Plug(connected=True))
            await watched.until(S.READY, within=RETRY_REFUSED + 2)
            assert copy.stand.firmware.ring.head == 1  # nobody talked it into anything

    simulate(main())


@pytest.mark.parametrize(
    ("device_class", "serial"),
    [(DeviceClass.SHOE, "SH-0002"), (DeviceClass.STATION, "SH-0001"), (DeviceClass.STATION, "X")],
)
def test_another_device_on_the_port_is_refused(
    tmp_path: Path, device_class: DeviceClass, serial: str
) -> None:
    async def main() -> None:
        desk = Desk()
        wanted = create_identity(tmp_path / "wanted", DeviceClass.SHOE, "SH-0001")
        device = desk.plug(Plugged(tmp_path / "device", device_class, serial))
        watched = Watched(
            desk,
            WantedDevice(DeviceClass.SHOE, "SH-0001", wanted.public, device.address),
            find=PortSearch(),
        )
        async with running(watched):
            await watched.until(S.REFUSED)
            (swapped,) = watched.of(events.Swapped)
            assert swapped.found == Identity(device_class, serial, device.identity.fingerprint)
            assert watched.of(events.AttemptFailed)[0].error == "wrong-device"
        device.switch_off()

    simulate(main())


def test_one_that_only_knows_the_fingerprint_is_refused(tmp_path: Path) -> None:
    """It claims to be the right one; its HS2 shows that it has not the key."""

    async def main() -> None:
        async with table(tmp_path) as (_, device, watched):
            pair_directly(device.place, STRANGER.public_key().public_bytes_raw())
            device.request(Break(name="stranger-answered"))
            async with running(watched):
                await watched.until(S.REFUSED)
                assert S.RESUMING not in watched.states
                (failed,) = watched.of(events.AttemptFailed)
                assert (failed.error, failed.number) == ("handshake-not-authentic", 403)

    simulate(main())


def test_a_device_of_another_host_is_never_reached(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched):
            pair_directly(device.place, STRANGER.public_key().public_bytes_raw())
            async with running(watched):
                await asyncio.sleep(60)
                assert set(watched.states) == {S.IDENTIFYING, S.HANDSHAKING, S.LOST, S.OPENING}
                (hint,) = {one.counts for one in watched.of(events.Alert)}
                assert hint == (("handshake_refused", 1),)
                assert {one.error for one in watched.of(events.AttemptFailed)} == {
                    "handshake-error"
                }
                assert len(watched.told) < 100

    simulate(main())


def test_a_device_of_another_catalogue_is_refused(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched):
            device.request(Break(name="schema-wrong"))
            async with running(watched):
                await watched.until(S.REFUSED)
                assert watched.of(events.AttemptFailed)[0].error == "schema-differs"
                device.request(Break(name="schema-wrong", on=False))
                await watched.ready(within=RETRY_REFUSED + 2)

    simulate(main())


def test_keys_that_are_not_in_order_are_refused_until_they_are(tmp_path: Path) -> None:
    async def main() -> None:
        async with table(tmp_path) as (_, device, watched):
            good = watched.own

            def loose() -> X25519PrivateKey:
                raise KeyProblem("host.json", "has mode 0644", "mode 0600")

            watched.own = loose
            async with running(watched):
                await watched.until(S.REFUSED)
                assert watched.supervisor.why == "host.json: has mode 0644; allowed: mode 0600"
                await asyncio.sleep(20)
                assert device.opened == 0
                assert watched.states == [S.REFUSED]
                watched.own = good
                await watched.ready(within=RETRY_REFUSED + 2)

    simulate(main())
