"""Search for USB devices with TableLink: backend, device, interface, endpoints.

Blocks, as all of pyusb does: for the owner thread of a port, and for commands.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final, NamedTuple

import usb.backend.libusb1
import usb.core
import usb.util

from drivers.ports.port import OWN_BACKEND, Address, PortRefused, UsbPlace, is_serial

GROUP: Final = "holecard.usb_backends"
OUR_INTERFACE: Final = (0xFF, 0x54, 0x01)
"""Class, subclass and protocol."""
_PACKET_MASK: Final = 0x7FF
"""The bits of wMaxPacketSize that are a size."""

DEVICE_ERRORS: Final = (OSError, TypeError, ValueError, LookupError)
"""Errors of pyusb for a device that is unplugged during the search or has invalid descriptors. Such
a device does not hide others."""

NO_LIBRARY: Final = (
    "USB needs the library libusb 1.0, which is not installed (Debian, Ubuntu: libusb-1.0-0)"
)
NO_PERMISSION: Final = "no permission to open it, which a udev rule must give to this user"


class Present(NamedTuple):
    """Texts of a device that is plugged in."""

    serial: str
    maker: str | None
    model: str | None
    place: UsbPlace


class Unit(NamedTuple):
    """The TableLink interface of a device, and its endpoints."""

    device: Any
    configuration: int
    interface: int
    alternate: int
    out: int
    into: int
    packet: int
    """Bytes of a packet to the device."""
    in_packet: int


def load_backend(name: str) -> Any:
    """A new pyusb backend of this name, "name" or "name=argument". Raises PortRefused.

    A new one each time: without udevd, libusb does not see later plug-ins otherwise.
    """
    kind, _, argument = name.partition("=")
    if kind == OWN_BACKEND:
        backend = usb.backend.libusb1.get_backend()
        if backend is None:
            raise PortRefused(NO_LIBRARY)
        return backend
    points = {point.name: point for point in entry_points(group=GROUP)}
    if kind not in points:
        known = ", ".join(sorted({OWN_BACKEND, *points}))
        raise PortRefused(f"there is no USB backend {kind}; installed: {known}")
    return _load(points[kind], argument)


def _load(point: EntryPoint, argument: str) -> Any:
    try:
        return point.load()(argument)
    except (ImportError, AttributeError, *DEVICE_ERRORS) as problem:
        cause = f"{type(problem).__name__}: {problem}"
        raise PortRefused(f"the USB backend {point.name} cannot be loaded ({cause})") from None


def present(backend: Any) -> list[Present]:
    """All devices with our interface and a valid serial number that can be read."""
    found = []
    for unit in _units(backend):
        device = unit.device
        with _disposed(device), contextlib.suppress(*DEVICE_ERRORS):
            serial = device.serial_number
            if serial and is_serial(serial):
                found.append(Present(serial, device.manufacturer, device.product, _place(device)))
    return found


def find(where: Address, backend: Any) -> Unit:
    """The unit with this serial number, with its device open. With a place the one there, else the
    only one. Raises PortRefused, also if there are several."""
    hidden: list[str] = []
    matching: list[Unit] = []
    for unit in _units(backend):
        try:
            matches = unit.device.serial_number == where.where
        except DEVICE_ERRORS as problem:
            matches = False
            if _forbidden(problem):
                hidden.append(str(_place(unit.device)))
        if matches and where.place in (None, _place(unit.device)):
            matching.append(unit)
        else:
            release(unit.device)
    if len(matching) == 1:
        return matching[0]
    for unit in matching:
        release(unit.device)
    if matching:
        places = ", ".join(str(_place(unit.device)) for unit in matching)
        raise PortRefused(
            f"{where}: {len(matching)} devices have this serial number ({places}); "
            "all but one have to be unplugged"
        )
    if hidden:
        raise PortRefused(
            f"{where}: not among the devices that can be read; {NO_PERMISSION}: "
            + ", ".join(hidden)
        )
    raise PortRefused(f"{where}: no such device is plugged in", absent=True)


def claim(unit: Unit, name: str) -> None:
    """Claim the unit exclusively. Raises PortRefused; the device stays open in both cases."""
    try:
        _configure(unit)
        with contextlib.suppress(usb.core.USBError, NotImplementedError):
            # Not all systems have kernel drivers, and most have none for our interface.
            if unit.device.is_kernel_driver_active(unit.interface):
                unit.device.detach_kernel_driver(unit.interface)
        usb.util.claim_interface(unit.device, unit.interface)
        if unit.alternate:
            unit.device.set_interface_altsetting(unit.interface, unit.alternate)
    except DEVICE_ERRORS as problem:
        raise refused(name, problem) from None


def refused(name: str, problem: Exception) -> PortRefused:
    if not isinstance(problem, OSError):
        return PortRefused(f"{name}: it cannot be opened: {problem}")
    gone = ("it has just been unplugged", True)
    reasons = {
        errno.EBUSY: ("it is in use by another program", False),
        errno.EACCES: (NO_PERMISSION, False),
        errno.EPERM: (NO_PERMISSION, False),
        errno.ENODEV: gone,
        errno.ENOENT: gone,
        errno.EIO: gone,
    }
    other = (f"it cannot be opened: {problem.strerror or problem}", False)
    reason, absent = reasons.get(problem.errno or 0, other)
    return PortRefused(f"{name}: {reason}", absent=absent)


def _configure(unit: Unit) -> None:
    # Setting the active configuration again would reset the device.
    try:
        active = unit.device.get_active_configuration().bConfigurationValue
    except usb.core.USBError as problem:
        if problem.errno is not None:
            raise
        active = None  # pyusb's own error: none is set yet
    if active != unit.configuration:
        unit.device.set_configuration(unit.configuration)


def release(device: Any) -> None:
    """Release what was claimed of it."""
    with contextlib.suppress(*DEVICE_ERRORS):  # it may be unplugged
        usb.util.dispose_resources(device)


@contextlib.contextmanager
def _disposed(device: Any) -> Iterator[None]:
    try:
        yield
    finally:
        release(device)


def _forbidden(problem: BaseException) -> bool:
    """Whether a text cannot be read for lack of permission."""
    if isinstance(problem, OSError):
        return problem.errno == errno.EACCES
    # pyusb raises ValueError if it may not read any text of the device.
    return isinstance(problem, ValueError) and not isinstance(problem, UnicodeError)


def _place(device: Any) -> UsbPlace:
    return UsbPlace(device.bus or 0, device.address or 0)


def _units(backend: Any) -> Iterator[Unit]:
    # Not usb.core.find(): if one device is unplugged during its search, it finds no others.
    try:
        names = list(backend.enumerate_devices())
    except OSError as problem:
        what = problem.strerror or problem
        raise PortRefused(f"the USB bus cannot be looked at: {what}") from None
    for name in names:
        unit = None
        with contextlib.suppress(*DEVICE_ERRORS):
            unit = _unit(usb.core.Device(name, backend))
        if unit is not None:
            yield unit


def _unit(device: Any) -> Unit | None:
    for configuration in device:
        for interface in configuration:
            kind = (
                interface.bInterfaceClass,
                interface.bInterfaceSubClass,
                interface.bInterfaceProtocol,
            )
            ends = _ends(interface) if kind == OUR_INTERFACE else None
            if ends is not None:
                into, out = ends
                return Unit(
                    device,
                    configuration.bConfigurationValue,
                    interface.bInterfaceNumber,
                    interface.bAlternateSetting,
                    out.bEndpointAddress,
                    into.bEndpointAddress,
                    out.wMaxPacketSize & _PACKET_MASK,
                    into.wMaxPacketSize & _PACKET_MASK,
                )
    return None


def _ends(interface: Any) -> tuple[Any, Any] | None:
    """The bulk endpoints in and out, if the interface has both."""
    ends: dict[int, Any] = {}
    for end in interface:
        if usb.util.endpoint_type(end.bmAttributes) == usb.util.ENDPOINT_TYPE_BULK:
            ends.setdefault(usb.util.endpoint_direction(end.bEndpointAddress), end)
    into, out = ends.get(usb.util.ENDPOINT_IN), ends.get(usb.util.ENDPOINT_OUT)
    return None if into is None or out is None else (into, out)
