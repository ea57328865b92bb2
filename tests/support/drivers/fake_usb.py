"""A USB bus in memory, as pyusb sees one: devices, transfers, and every way to fail."""

from __future__ import annotations

import errno
import threading
from array import array
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import usb.backend
from usb.core import USBError, USBTimeoutError

OUR_CLASS = (0xFF, 0x54, 0x01)
IN, OUT = 0x81, 0x02


def failure(number: int) -> USBError:
    return USBError(errno.errorcode[number], None, number)


class FakeDevice:
    """A device on the bus. What the host does to it is counted in `did`."""

    def __init__(
        self, serial: str, *, kind: tuple[int, int, int] = OUR_CLASS, packet: int = 64
    ) -> None:
        self.texts = {1: "Example Works", 2: "Shoe One", 3: serial}
        self.kind = kind
        self.packet = packet
        self.configured = True
        self.driver = False
        self.alternate = 0
        self.did: Counter[str] = Counter()
        self.raw_texts: dict[int, bytes] = {}
        """Texts that are none, as they stand in the descriptor."""
        self.fails: dict[str, Exception] = {}
        """What is raised instead, by the backend's function."""
        self.taken: list[bytes] = []
        """Transfers from the host, each as it came."""
        self.takes = True
        self.at_most: int | None = None
        """Takes no more than this of a transfer before its time is over."""
        self._to_host: deque[bytes] = deque()
        self.changed = threading.Condition()
        self.reads = 0
        self.goes = False
        """It is pulled out when all that it has sent is read."""

    def send(self, *transfers: bytes) -> None:
        with self.changed:
            self._to_host.extend(transfers)
            self.changed.notify_all()

    def fail(self, number: int, *functions: str) -> None:
        with self.changed:
            self.fails.update(dict.fromkeys(functions, failure(number)))
            self.changed.notify_all()

    def unplug(self, read: int = errno.ENODEV, write: int = errno.ENODEV) -> None:
        self.fail(read, "bulk_read")
        self.fail(write, "bulk_write")
        self.fail(errno.ENODEV, "open_device", "claim_interface", "release_interface")

    def unplug_after_all(self) -> None:
        """Once the host has read all that was sent."""
        with self.changed:
            self.goes = True

    def until_taken(self, size: int, seconds: float = 10.0) -> bytes:
        """Wait until that many bytes came from the host."""
        with self.changed:
            done = self.changed.wait_for(lambda: sum(map(len, self.taken)) >= size, seconds)
            assert done, self.taken
            return b"".join(self.taken)

    # --- what the backend does with it --------------------------------------------------------

    def check(self, function: str) -> None:
        self.did[function] += 1
        if function in self.fails:
            problem = self.fails[function]
            if function == "close_device":  # once: pyusb closes what is left when Python exits
                del self.fails[function]
            raise problem

    def read(self, buffer: array[int], milliseconds: int) -> int:
        with self.changed:
            self.reads += 1
            if self.goes and not self._to_host:
                raise failure(errno.ENODEV)
            ready = self.changed.wait_for(
                lambda: self._to_host or "bulk_read" in self.fails, milliseconds / 1000
            )
            self.check("bulk_read")
            if not ready:
                raise USBTimeoutError("timed out", None, errno.ETIMEDOUT)
            data = self._to_host.popleft()
            assert len(data) <= len(buffer), "overflow"
            buffer[: len(data)] = array("B", data)
            return len(data)

    def write(self, data: bytes, milliseconds: int) -> int:
        with self.changed:
            self.check("bulk_write")
            if not self.takes:
                self.changed.wait_for(
                    lambda: self.takes or "bulk_write" in self.fails, milliseconds / 1000
                )
                self.check("bulk_write")
            if not self.takes:
                raise USBTimeoutError("timed out", None, errno.ETIMEDOUT)
            data = data[: self.at_most]
            self.taken.append(data)
            self.changed.notify_all()
            return len(data)


class FakeBackend(usb.backend.IBackend):  # type: ignore[misc]  # pyusb has no types
    """The names are pyusb's. A device is its own identification and its own handle."""

    def __init__(self, devices: list[FakeDevice]) -> None:
        self.devices = devices

    def enumerate_devices(self) -> Iterator[FakeDevice]:
        return iter(self.devices)

    def get_device_descriptor(self, dev: FakeDevice) -> SimpleNamespace:
        dev.check("get_device_descriptor")
        return SimpleNamespace(
            bLength=18,
            bDescriptorType=1,
            bcdUSB=0x200,
            bDeviceClass=0,
            bDeviceSubClass=0,
            bDeviceProtocol=0,
            bMaxPacketSize0=64,
            idVendor=0x1209,
            idProduct=1,
            bcdDevice=0x100,
            iManufacturer=1,
            iProduct=2,
            iSerialNumber=3,
            bNumConfigurations=1,
            address=1 + self.devices.index(dev),
            bus=1,
            port_number=1,
            port_numbers=(1,),
            speed=2,
        )

    def get_configuration_descriptor(self, dev: FakeDevice, config: int) -> SimpleNamespace:
        dev.check("get_configuration_descriptor")
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=2,
            wTotalLength=32,
            bNumInterfaces=1,
            bConfigurationValue=1,
            iConfiguration=0,
            bmAttributes=0x80,
            bMaxPower=50,
            extra_descriptors=[],
        )

    def get_interface_descriptor(
        self, dev: FakeDevice, intf: int, alt: int, config: int
    ) -> SimpleNamespace:
        if intf or alt:
            raise IndexError
        return SimpleNamespace(
            bLength=9,
            bDescriptorType=4,
            bInterfaceNumber=0,
            bAlternateSetting=dev.alternate,
            bNumEndpoints=2,
            bInterfaceClass=dev.kind[0],
            bInterfaceSubClass=dev.kind[1],
            bInterfaceProtocol=dev.kind[2],
            iInterface=0,
            extra_descriptors=[],
        )

    def get_endpoint_descriptor(
        self, dev: FakeDevice, ep: int, intf: int, alt: int, config: int
    ) -> SimpleNamespace:
        return SimpleNamespace(
            bLength=7,
            bDescriptorType=5,
            bEndpointAddress=(IN, OUT)[ep],
            bmAttributes=2,
            wMaxPacketSize=dev.packet,
            bInterval=0,
            bRefresh=0,
            bSynchAddress=0,
            extra_descriptors=[],
        )

    def open_device(self, dev: FakeDevice) -> FakeDevice:
        dev.check("open_device")
        return dev

    def close_device(self, dev_handle: FakeDevice) -> None:
        dev_handle.check("close_device")

    def get_configuration(self, dev_handle: FakeDevice) -> int:
        return int(dev_handle.configured)

    def set_configuration(self, dev_handle: FakeDevice, config_value: int) -> None:
        dev_handle.check("set_configuration")
        dev_handle.configured = True

    def set_interface_altsetting(self, dev_handle: FakeDevice, intf: int, altsetting: int) -> None:
        dev_handle.check("set_interface_altsetting")

    def claim_interface(self, dev_handle: FakeDevice, intf: int) -> None:
        dev_handle.check("claim_interface")

    def release_interface(self, dev_handle: FakeDevice, intf: int) -> None:
        dev_handle.check("release_interface")

    def is_kernel_driver_active(self, dev_handle: FakeDevice, intf: int) -> bool:
        dev_handle.check("is_kernel_driver_active")
        return dev_handle.driver

    def detach_kernel_driver(self, dev_handle: FakeDevice, intf: int) -> None:
        dev_handle.check("detach_kernel_driver")

    def bulk_write(
        self, dev_handle: FakeDevice, ep: int, intf: int, data: array[int], timeout: int
    ) -> int:
        assert ep == OUT
        return dev_handle.write(data.tobytes(), timeout)

    def bulk_read(
        self, dev_handle: FakeDevice, ep: int, intf: int, buff: array[int], timeout: int
    ) -> int:
        assert ep == IN
        return dev_handle.read(buff, timeout)

    def ctrl_transfer(
        self,
        dev_handle: FakeDevice,
        bmRequestType: int,
        bRequest: int,
        wValue: int,
        wIndex: int,
        data: array[int],
        timeout: int,
    ) -> int:
        dev_handle.check("ctrl_transfer")
        index = wValue & 0xFF
        text = b"\x09\x04" if not index else dev_handle.texts[index].encode("utf-16-le")
        text = dev_handle.raw_texts.get(index, text)
        raw = bytes((2 + len(text), 3)) + text
        raw = raw[: len(data)]
        data[: len(raw)] = array("B", raw)
        return len(raw)


_BUSES: dict[str, list[FakeDevice]] = {}


def backend(argument: str) -> Any:
    """What an entry point names: the bus of this name."""
    if argument not in _BUSES:
        raise NotADirectoryError(f"no bus {argument}")
    return FakeBackend(_BUSES[argument])


@contextmanager
def plugged(name: str, *devices: FakeDevice) -> Iterator[list[FakeDevice]]:
    """A bus with these devices; plug and unplug by changing the list."""
    _BUSES[name] = list(devices)
    try:
        yield _BUSES[name]
    finally:
        del _BUSES[name]
