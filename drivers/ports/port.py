"""Interface of a port, and its address as people and table files write it.

Serial, USB and simulated ports have the same interface. A port carries bytes and does not depend
on frames. All calls and all of `PortListener` happen on the event loop's thread. Addresses:

    serial:/dev/serial/by-id/...   a serial port by its path; /dev/... alone means the same
    adapter:FT4NUM9K               the serial port whose USB adapter has this serial number
    usb:SH-0042                    a USB device by its serial number
    usb+NAME=ARGUMENT:SH-0042      the same through another pyusb backend

A path such as /dev/ttyUSB0 depends on the order of plugging in. The other forms are stable.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from enum import Enum
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

WRITE_BOUND: Final = 64 * 1024
"""Limit of bytes that wait for a port. A device that does not accept them is treated as lost."""


class PortLost(Exception):
    """The port has ended: unplugged, hung up, broken, or it accepts no more bytes."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PortRefused(Exception):
    """The port cannot be opened. `absent`: it does not exist, and may be plugged in later."""

    def __init__(self, reason: str, *, absent: bool = False) -> None:
        super().__init__(reason, absent)
        self.reason = reason
        self.absent = absent

    def __str__(self) -> str:
        return self.reason


def no_thread(name: str, problem: RuntimeError) -> PortRefused:
    """Error if no thread can be started now; a retry may succeed."""
    return PortRefused(f"{name}: the machine is short of threads ({problem})")


def monotonic_us() -> int:
    """Whole microseconds of the clock that event loops use."""
    return time.monotonic_ns() // 1000


class PortListener(Protocol):
    """Receives the bytes of a port."""

    def received(self, data: bytes) -> None:
        """These bytes were received, in order. Never empty."""

    def lost(self, why: PortLost) -> None:
        """The port has ended. The last call, made once, and never after close()."""


class Port(Protocol):
    """An open port."""

    @property
    def name(self) -> str:
        """Its path or USB serial number."""

    def write(self, data: bytes) -> None:
        """Queue these bytes. Never blocks or raises; ignored on a port that has ended. If the queue
        exceeds WRITE_BOUND, the port ends and `lost` is called soon after."""

    async def close(self) -> None:
        """Close the port. Queued bytes are dropped, and no byte is delivered afterwards."""


# --- addresses ---------------------------------------------------------------------------------

OWN_BACKEND: Final = "libusb1"
ALLOWED: Final = (
    "serial:PATH or /dev/..., adapter:SERIAL, usb:SERIAL or usb+BACKEND=ARGUMENT:SERIAL"
)
_SERIAL: Final = re.compile(r"[A-Za-z0-9._-]{1,20}")
"""As long as the field of HELLO_RSP."""
_ADAPTER: Final = re.compile(r"[!-~]{1,126}")
_BACKEND: Final = re.compile(r"[a-z0-9_]+(=.+)?")
_PLACED: Final = re.compile(
    r"(?P<port>usb.*) \(bus (?P<bus>[0-9]{1,3}) address (?P<address>[0-9]{1,3})\)"
)
"""As printed by Address.where_exactly."""
SERIAL_ALLOWED: Final = "1 to 20 letters, digits, dots, dashes and underscores"


class AddressProblem(Exception):
    """A text is not a valid address: why, and what is allowed."""

    def __init__(self, what: str, allowed: str = ALLOWED) -> None:
        super().__init__(what, allowed)
        self.what = what
        self.allowed = allowed

    def __str__(self) -> str:
        return f"{self.what}; allowed: {self.allowed}"


class Transport(Enum):
    """Kind of a port, and what `where` contains."""

    SERIAL = "serial"
    """`where` is the path of a serial port."""
    ADAPTER = "adapter"
    """`where` is the serial number of a serial port's USB adapter."""
    USB = "usb"
    """`where` is the serial number of a USB device."""


class UsbPlace(Struct, frozen=True, order=True):
    """Current place of a device on a USB bus."""

    bus: int
    address: int

    def __str__(self) -> str:
        return f"bus {self.bus} address {self.address}"


class Address(Struct, frozen=True):
    transport: Transport
    where: str
    backend: str = OWN_BACKEND
    """USB only: pyusb's backend, "name" or "name=argument"."""
    place: UsbPlace | None = None
    """USB only, not in table files: selects one of several with the same number."""

    def __str__(self) -> str:
        also = "" if self.backend == OWN_BACKEND else f"+{self.backend}"
        return f"{self.transport.value}{also}:{self.where}{self.where_exactly}"

    @property
    def where_exactly(self) -> str:
        """Text after the number; empty if the number is enough."""
        return "" if self.place is None else f" ({self.place})"


def is_serial(text: str) -> bool:
    """Whether a device can have this serial number."""
    return _SERIAL.fullmatch(text) is not None


def is_adapter(text: str) -> bool:
    """Whether this can name an adapter by its serial number."""
    return _ADAPTER.fullmatch(text) is not None


def parse(text: str) -> Address:
    """Parse an address. Raises AddressProblem."""
    if "/" in text.partition(":")[0] and not text.startswith(f"{Transport.USB.value}+"):
        return _serial(text)
    head, colon, where = text.partition(":")
    name, plus, _ = head.partition("+")
    if plus and name == Transport.USB.value:
        return _foreign(text.partition("+")[2])
    read = _READ.get(head)
    if not colon or read is None:
        raise AddressProblem(f"{text!r} is no address of a port")
    return read(where)


def parse_placed(text: str) -> Address:
    """As parse(), but accepts also the place of one of several with the same number."""
    placed = _PLACED.fullmatch(text)
    if placed is None:
        return parse(text)
    place = UsbPlace(int(placed["bus"]), int(placed["address"]))
    return replace(parse(placed["port"]), place=place)


def _serial(where: str) -> Address:
    if "/" not in where or "\0" in where or where.endswith("/"):
        raise AddressProblem(f"{where!r} is no path of a serial port", "serial:/dev/...")
    return Address(Transport.SERIAL, where)


def _adapter(where: str) -> Address:
    if not is_adapter(where):
        raise AddressProblem(f"{where!r} is no serial number of an adapter", "adapter:SERIAL")
    return Address(Transport.ADAPTER, where)


def _usb(where: str, backend: str = OWN_BACKEND) -> Address:
    if not is_serial(where):
        raise AddressProblem(f"{where!r} is no serial number of a device", SERIAL_ALLOWED)
    return Address(Transport.USB, where, backend)


def _foreign(text: str) -> Address:
    # A serial number has no colon, a backend's argument may have.
    backend, colon, where = text.rpartition(":")
    if not colon or not _BACKEND.fullmatch(backend):
        raise AddressProblem(
            f"'usb+{text}' names no backend and serial number", "usb+BACKEND=ARGUMENT:SERIAL"
        )
    return _usb(where, backend)


_READ: Final[dict[str, Callable[[str], Address]]] = {
    "serial": _serial,
    "adapter": _adapter,
    "usb": _usb,
}
