"""A simulated device that runs beside the test, on a pty and on a USB bus."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from controller.cli import main
from drivers.keys import KeyStore
from firmware_protocol.device import Answer, ControlRequest, Describe, create_identity
from firmware_protocol.messages import DeviceClass
from firmware_protocol.tablelink import fingerprint_of, fingerprint_text, label_text
from hil.devices import SimulatedStation
from hil.ports import PtyPort, UsbDevice
from hil.simulator import LiveDevice, SimulatedDevice, run
from hil.simulator.run import PtyAdapter, UsbAdapter

PATIENCE = 10.0
TWO = ["--by", "Ann Lee", "--and", "Bo Chan"]
WRONG = label_text(bytes(16))
"""A label code as good as any, and no device's."""

Typed = Callable[..., None]
"""What the fixture `typed` is: typed("yes", "Ann", "Bo", codes=(label,))."""


def pair(*arguments: str) -> int:
    """`holecard devices pair`, and its exit code."""
    return main(["devices", "pair", *arguments])


def own_fingerprint(store: KeyStore) -> str:
    return fingerprint_text(fingerprint_of(store.own()))


class Standing:
    """Its device, and its two ports. Hands are those of the control socket."""

    def __init__(self, place: Path, serial: str) -> None:
        self.identity = create_identity(place / serial, DeviceClass.STATION, serial)
        self.port = place / "port"
        self.bus = place / "bus"
        self.bus.mkdir()
        self._place = place / serial
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._live: LiveDevice | None = None
        self._thread = threading.Thread(target=self._run, name=f"bench {serial}")

    @property
    def usb(self) -> str:
        return f"usb+sim={self.bus}:{self.identity.serial}"

    @property
    def label(self) -> str:
        return self.identity.label_text

    def request(self, request: ControlRequest) -> Answer:
        async def do() -> Answer:
            assert self._live is not None
            return self._live.request(request)

        return asyncio.run_coroutine_threadsafe(do(), self._loop).result(PATIENCE)

    @property
    def host(self) -> str | None:
        """Fingerprint of the host that the device is paired with."""
        host: str | None = self.request(Describe())["host"]
        return host

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(PATIENCE)

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        self._loop.run_until_complete(self._plug())
        self._ready.set()
        self._loop.run_forever()
        assert self._live is not None
        self._live.close()
        self._loop.close()

    async def _plug(self) -> None:
        stand = SimulatedDevice(self._place, SimulatedStation, now=run.now(), sync=False)
        self._live = LiveDevice(stand)
        self._live.attach(PtyAdapter(PtyPort(self.port, self._live.receive)))
        names = (self.identity.maker, self.identity.model, self.identity.serial)
        usb = UsbDevice(self.bus, names, self._live.receive, reading=lambda: stand.reading)
        self._live.attach(UsbAdapter(usb))


@contextmanager
def standing(place: Path, serial: str = "ST-7") -> Iterator[Standing]:
    made = Standing(place, serial)
    made.start()
    try:
        yield made
    finally:
        made.stop()
