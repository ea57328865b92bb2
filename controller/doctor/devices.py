"""Checks of the devices: paired with this host, plugged in, accessible, not used by others.

No port is opened, since that could affect the device, and the table may be in service.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from controller.config import DevicePlace, DevicePlaces
from controller.doctor.check import (
    CheckFindings,
    DoctorCase,
    DoctorProblem,
    found,
    line,
    name_of_user,
    warning,
    wrong,
)
from controller.doctor.host import Process, install_rules, locking, opening
from controller.doctor.record import serving
from drivers.keys import KeyProblem, KeyStore
from drivers.ports import BY_ID, OWN_BACKEND, Address, AddressProblem, PortRefused, Transport, parse
from drivers.ports import FoundPort as Plugged
from firmware_protocol.messages import DeviceClass

_USE: Final = os.R_OK | os.W_OK
_SHARED: Final = 0o060
_MAX_LISTED: Final = 5
_READY: Final = "turn its service switch on, and have its label and a second person ready"
LIBRARY: Final = "libusb-1.0-0"
_LATE: Final = 1
"""Maximum latency timer of an FTDI adapter in milliseconds."""


class ExpectedDevice(NamedTuple):
    """A device of the table file."""

    part: str
    kind: DeviceClass
    place: DevicePlace

    @property
    def serial(self) -> str:
        return self.place.serial

    def __str__(self) -> str:
        return f"{self.kind.name.lower()} {self.serial}"


def expected_devices(devices: DevicePlaces) -> list[ExpectedDevice]:
    every = [ExpectedDevice("shoe", DeviceClass.SHOE, devices.shoe)]
    if devices.shuffler is not None:
        every.append(ExpectedDevice("shuffler", DeviceClass.SHUFFLER, devices.shuffler))
    for at, station in enumerate(devices.stations):
        every.append(ExpectedDevice(f"stations[{at}]", DeviceClass.STATION, station))
    return every


# --- pairing ----------------------------------------------------------------------------------


def paired(case: DoctorCase) -> CheckFindings:
    """Each device is paired with this host, with the class that the file expects."""
    devices, keys = case.devices, case.keys
    store = KeyStore(keys)
    every = expected_devices(devices)
    problems = [found_ for one in every for found_ in _unpaired(case, store, one)]
    return found(", ".join(map(str, every)), problems)


def _unpaired(case: DoctorCase, store: KeyStore, one: ExpectedDevice) -> Iterator[DoctorProblem]:
    try:
        known = store.find(one.serial)
    except KeyProblem as problem:
        file = Path(problem.where)
        yield wrong(
            f"{one}: {problem.where}: {problem.what}",
            line("mv", file, file.with_suffix(".damaged")),
            _pair(case, store, one),
            mend=f"put the file back from its backup, or pair the device again: {_READY}",
        )
        return
    if known is None:
        yield wrong(
            f"{one} is not paired with this host",
            _pair(case, store, one),
            mend=_READY,
        )
    elif known.device_class is not one.kind:
        what = f"{one.serial} was paired as a {known.device_class.name.lower()}, not as a "
        yield wrong(
            f"{what}{one.kind.name.lower()}",
            mend=f"name another serial number in {case.file} at [devices], {one.part}",
        )


def _pair(case: DoctorCase, store: KeyStore, one: ExpectedDevice) -> str:
    port = one.place.port
    if not port:
        same = [plugged for plugged in case.machine.serial_ports() if plugged.serial == one.serial]
        port = str(same[0].address) if same else f"{Transport.USB.value}:{one.serial}"
    return case.ours("devices", "pair", port, "--keys", store.directory)


# --- ports ------------------------------------------------------------------------------------


class PortNode(NamedTuple):
    """The current port of a device."""

    address: Address
    path: Path | None
    """None for a port of a different backend."""


class _Absent(Exception):
    """The device is missing or ambiguous."""

    def __init__(self, what: str, *commands: str, mend: str = "") -> None:
        super().__init__(what)
        self.problem = wrong(what, *commands, mend=mend)


def ports(case: DoctorCase) -> CheckFindings:
    """Each device is plugged in, accessible for this user, and not used by another process."""
    devices = case.devices
    at_work = {one.pid for one in serving(case)}
    seen = _Ports(case)
    notes, problems = [], []
    taken: dict[str, ExpectedDevice] = {}
    for one in expected_devices(devices):
        try:
            node = seen.find(one)
        except _Absent as absent:
            problems.append(absent.problem)
            continue
        notes.append(f"{one.serial} at {node.path or node.address}")
        real = os.path.realpath(node.path) if node.path is not None else str(node.address)
        if real in taken:
            problems.append(_one_port(case, one, taken[real], real))
        taken[real] = one
        problems += _usable(case, one, node, at_work)
    # A problem of all devices is reported once.
    return found("; ".join(notes), dict.fromkeys(problems))


def _one_port(
    case: DoctorCase, one: ExpectedDevice, other: ExpectedDevice, real: str
) -> DoctorProblem:
    return wrong(
        f"{one}: its port is also that of {other}: {real}",
        mend=f"name its own in {case.file} at [devices], {one.part}",
    )


class _Ports:
    """The devices that are plugged in: searched on first use, then cached."""

    def __init__(self, case: DoctorCase) -> None:
        self._case = case
        self._serial: list[Plugged] | None = None
        self._usb: dict[str, list[Plugged] | PortRefused] = {}

    def find(self, one: ExpectedDevice) -> PortNode:
        """The port of a device. Raises _Absent."""
        if not one.place.port:
            return self._by_number(one)
        try:
            address = parse(one.place.port)
        except AddressProblem as problem:
            mend = f"in {self._case.file} at [devices], {one.part}: {problem.allowed}"
            raise _Absent(f"{one}: {problem.what}", mend=mend) from None
        match address.transport:
            case Transport.SERIAL:
                return self._by_path(one, address)
            case Transport.ADAPTER:
                every = [port for port in self.serial() if port.serial == address.where]
                return self._only(one, every, str(address))
            case Transport.USB:
                if address.where != one.serial:
                    what = f"{one}: its port {address} is that of {address.where}"
                    mend = f"name its own in {self._case.file} at [devices], {one.part}"
                    raise _Absent(what, mend=mend)
                return self._only(
                    one, self._numbered(one, address.backend), str(address), address.backend
                )

    def serial(self) -> list[Plugged]:
        if self._serial is None:
            self._serial = self._case.machine.serial_ports()
        return self._serial

    def usb(self, backend: str) -> list[Plugged] | PortRefused:
        if backend not in self._usb:
            try:
                self._usb[backend] = self._case.machine.usb_devices(backend)
            except PortRefused as problem:
                self._usb[backend] = problem
        return self._usb[backend]

    def _by_path(self, one: ExpectedDevice, address: Address) -> PortNode:
        path = Path(address.where)
        try:
            mode = path.stat().st_mode
        except OSError as problem:
            raise self._absent(one, f"{path}: {(problem.strerror or '').lower()}") from None
        if not stat.S_ISCHR(mode):
            raise _Absent(
                f"{one}: {path} is not a serial port",
                mend=f"name its port in {self._case.file} at [devices], {one.part}",
            )
        return PortNode(address, path)

    def _by_number(self, one: ExpectedDevice) -> PortNode:
        every = [port for port in self.serial() if port.serial == one.serial]
        if every:
            return self._only(one, every, one.serial)
        return self._only(one, self._numbered(one, OWN_BACKEND), one.serial)

    def _numbered(self, one: ExpectedDevice, backend: str) -> list[Plugged]:
        """Returns the USB devices with this serial number, including those that this user may not
        open."""
        every = self.usb(backend)
        if isinstance(every, PortRefused):
            raise self._no_library(one, every, backend)
        same = [port for port in every if port.serial == one.serial]
        if same or backend != OWN_BACKEND:
            return same
        return [_closed(one.serial) for _ in _usb_nodes(self._case, one.serial)]

    def _no_library(self, one: ExpectedDevice, problem: PortRefused, backend: str) -> _Absent:
        if backend != OWN_BACKEND:
            return _Absent(
                f"{one}: {problem}",
                mend=f"name its port in {self._case.file} at [devices], {one.part}",
            )
        return _Absent(
            f"USB devices cannot be searched: {problem}",
            self._case.admin("apt-get", "install", LIBRARY),
        )

    def _only(
        self, one: ExpectedDevice, every: list[Plugged], where: str, backend: str = OWN_BACKEND
    ) -> PortNode:
        if not every:
            raise self._absent(one, f"no device that is plugged in is {where}", backend)
        if len(every) > 1:
            listed = ", ".join(port.path or str(port.address) for port in every)
            raise _Absent(
                f"{one}: {len(every)} devices are {where}: {listed}",
                mend=f"unplug all but one, or name its path below {BY_ID} in {self._case.file}",
            )
        port = every[0]
        if port.path is not None:
            return PortNode(port.address, Path(port.path))
        nodes = _usb_nodes(self._case, one.serial) if port.address.backend == OWN_BACKEND else []
        return PortNode(port.address, nodes[0] if nodes else None)

    def _absent(self, one: ExpectedDevice, why: str, backend: str = OWN_BACKEND) -> _Absent:
        every = chain(self.serial(), *self._known())
        listed = ", ".join(sorted({str(port.address) for port in every})[:_MAX_LISTED])
        there = f"; there are {listed}" if listed else "; no device is plugged in"
        mend = (
            f"plug it in and switch it on{there}; its port is set in {self._case.file} at "
            f"[devices], {one.part}, as listed by"
        )
        other = ("--usb", backend) if backend != OWN_BACKEND else ()
        return _Absent(
            f"{one} is missing: {why}", self._case.ours("devices", "ports", *other), mend=mend
        )

    def _known(self) -> list[list[Plugged]]:
        return [every for every in self._usb.values() if not isinstance(every, PortRefused)]


def _closed(serial: str) -> Plugged:
    return Plugged(Address(Transport.USB, serial), None, serial, None, None)


def _usb_nodes(case: DoctorCase, serial: str) -> list[Path]:
    """Returns the device nodes of USB devices with this serial number."""
    nodes = []
    for folder in sorted(case.machine.at("/sys/bus/usb/devices").glob("*")):
        about = {name: _line(folder / name) for name in ("serial", "busnum", "devnum")}
        if about["serial"] == serial and about["busnum"].isdigit() and about["devnum"].isdigit():
            number = f"{int(about['busnum']):03d}/{int(about['devnum']):03d}"
            nodes.append(case.machine.at(f"/dev/bus/usb/{number}"))
    return nodes


def _line(file: Path) -> str:
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


# --- access -----------------------------------------------------------------------------------


def _usable(
    case: DoctorCase, one: ExpectedDevice, node: PortNode, at_work: set[int]
) -> Iterator[DoctorProblem]:
    if node.path is None:
        return
    if not case.machine.may(node.path, _USE):
        yield _forbidden(case, one, node.path)
    holders = {*locking(case.machine, node.path), *opening(case.machine, node.path)}
    others = sorted(holder for holder in holders if holder.pid not in at_work)
    if others:
        yield _held(case, one, node.path, others)
    yield from _late(case, one, node.path)
    yield from _unsteady(case, one, node)


def _forbidden(case: DoctorCase, one: ExpectedDevice, path: Path) -> DoctorProblem:
    about, user = path.stat(), case.machine.user
    group = next((g for g in case.machine.every_group() if g.gr_gid == about.st_gid), None)
    what = f"{one}: {user} may not read and write {path} (mode {stat.S_IMODE(about.st_mode):o})"
    if group is None or about.st_gid == 0 or about.st_mode & _SHARED != _SHARED:
        mend = f"only {name_of_user(about.st_uid)} may use it, as without the udev rules"
        return wrong(what, *install_rules(case), mend=mend)
    if user in group.gr_mem:
        mend = (
            f"{user} is in the group {group.gr_name} only after the next login: log in again, or "
        )
        return wrong(what, line("newgrp", group.gr_name), mend=f"{mend}here")
    return wrong(
        what,
        case.admin("usermod", "-aG", group.gr_name, user),
        mend="then log in again, so that it takes effect",
    )


def _held(
    case: DoctorCase, one: ExpectedDevice, path: Path, others: list[Process]
) -> DoctorProblem:
    who = ", ".join(map(str, others))
    tables = [holder for holder in others if holder.table]
    what = f"{one}: {path} is in use by {who}"
    if tables:
        return wrong(
            what, mend="another table uses it: stop that one, or name a different device here"
        )
    pids = [str(holder.pid) for holder in others]
    return wrong(what, line("kill", *pids), mend="end it")


def _late(case: DoctorCase, one: ExpectedDevice, path: Path) -> Iterator[DoctorProblem]:
    name = Path(os.path.realpath(path)).name
    timer = f"/sys/bus/usb-serial/devices/{name}/latency_timer"
    found_ = case.machine.text(timer)
    if found_ is not None and found_.isdigit() and int(found_) > _LATE:
        yield warning(
            f"{one}: the adapter at {path} buffers data for up to {found_} ms",
            f"echo {_LATE} | {case.admin('tee', case.machine.at(timer))}",
            mend="the udev rules set that when it is plugged in; to set it now",
        )


def _unsteady(case: DoctorCase, one: ExpectedDevice, node: PortNode) -> Iterator[DoctorProblem]:
    """A path such as /dev/ttyUSB0 depends on the order of plugging in."""
    if node.address.transport is not Transport.SERIAL or node.path is None:
        return
    for port in case.machine.serial_ports():
        if port.path == node.address.where and str(port.address) != str(node.address):
            yield warning(
                f"{one}: {node.path} depends on the order of plugging in",
                mend=f'in {case.file} at [devices], {one.part}: port = "{port.address}"',
            )
