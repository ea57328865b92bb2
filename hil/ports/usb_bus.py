"""A directory as a USB bus, and a device that is plugged into it.

    device = UsbDevice(Path("run/usb"), (maker, model, serial), on_data)
    device.plug()
    device.write(transfer)

Hosts reach it through `hil.ports.usb_backend`. As on a real bus, each plug assigns a new address,
only one handle can claim the interface, and a pending transfer fails when the cable is pulled: with
ENODEV or with EIO, depending on the host controller (`gone`).

A transfer is sent as packets of PACKET bytes and ends with a shorter one, which may be empty. So a
transfer whose size is a multiple of PACKET needs an empty packet at its end, or the receiver waits
for more.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from firmware_protocol.device import naming, read_file, write_atomic
from hil.faults import whole_frames
from hil.ports import unix_sockets
from hil.ports.unix_sockets import Listener
from hil.ports.usb_messages import (
    END_IN,
    END_OUT,
    MAX_MESSAGE_BYTES,
    PACKET,
    SOCKET_PATTERN,
    TOKEN,
    Descriptors,
    Op,
    UsbMessage,
    UsbStatus,
    control_answer,
    decode,
    sets_configuration,
    socket_path,
)

IN_HARDWARE: Final = 2
"""Packets that an endpoint buffers independently of the firmware."""
MAX_WAITING: Final = 16_384
"""Output buffer in bytes for a slow host; further frames are dropped."""
ASSEMBLY_BYTES: Final = 4096
"""The firmware's buffer for a transfer; a full buffer ends the transfer."""


def packets(transfer: bytes) -> list[bytes]:
    """The packets of a transfer, with an empty one at the end where it is needed."""
    return [transfer[at : at + PACKET] for at in range(0, len(transfer) + 1, PACKET)]


class _Transfer(Struct):
    """A transfer of the host that is not done yet."""

    number: int
    size: int
    """From the device: the size of the host's buffer."""
    packets: deque[bytes]
    """To the device: those that it has not taken."""
    count: int = 0
    data: bytes = b""

    def result(self, status: UsbStatus) -> UsbMessage:
        return UsbMessage(Op.DONE, self.number, status, self.count, self.data)


class _Endpoint:
    """The transfers of the host at one endpoint, in order."""

    def __init__(self) -> None:
        self.halted = False
        self._transfers: deque[_Transfer] = deque()

    def _fill(self, transfer: _Transfer) -> UsbStatus | None:
        """Move packets. The status of a transfer that is complete; None while it waits."""
        raise NotImplementedError

    def clear(self) -> None:
        """Drop what is buffered."""
        raise NotImplementedError

    def _start(self, transfer: _Transfer) -> list[UsbMessage]:
        if self.halted:
            return [transfer.result(UsbStatus.PIPE)]
        self._transfers.append(transfer)
        return self.resume()

    def resume(self) -> list[UsbMessage]:
        """Move packets as far as possible. Returns the transfers that are complete."""
        out = []
        while self._transfers and (status := self._fill(self._transfers[0])) is not None:
            out.append(self._transfers.popleft().result(status))
        return out

    def cancel(self, number: int) -> list[UsbMessage]:
        """The host's timeout: its transfer ends with what has been moved."""
        found = [one for one in self._transfers if one.number == number]
        for one in found:
            self._transfers.remove(one)
        return [one.result(UsbStatus.TIMEOUT) for one in found]

    def halt(self) -> list[UsbMessage]:
        self.halted = True
        return self.end(UsbStatus.PIPE)

    def end(self, status: UsbStatus) -> list[UsbMessage]:
        """End all pending transfers with this status."""
        ended, self._transfers = self._transfers, deque()
        return [one.result(status) for one in ended]

    def reset(self) -> list[UsbMessage]:
        self.clear()
        self.halted = False
        return self.end(UsbStatus.IO)


class InPipe(_Endpoint):
    """From the device to the host."""

    def __init__(self) -> None:
        super().__init__()
        self.lost = 0
        """Bytes that were dropped."""
        self._packets: deque[bytes] = deque()
        self._size = 0

    def send(self, transfer: bytes, *, claimed: bool) -> list[UsbMessage]:
        """Queue a transfer for the host. Without a host that has claimed the interface, only the
        endpoint's own buffer is available."""
        # One byte less there, so that no empty packet is needed at the end.
        own = (IN_HARDWARE - len(self._packets)) * PACKET - 1
        fit = whole_frames(transfer, MAX_WAITING - self._size if claimed else own)
        self.lost += len(transfer) - len(fit)
        if fit:
            self._packets.extend(packets(fit))
            self._size += len(fit)
        return self.resume()

    def read(self, number: int, size: int) -> list[UsbMessage]:
        return self._start(_Transfer(number, size, deque()))

    def clear(self) -> None:
        self._packets.clear()
        self._size = 0

    def _fill(self, transfer: _Transfer) -> UsbStatus | None:
        while transfer.count < transfer.size:
            if not self._packets:
                return None
            packet = self._packets.popleft()
            self._size -= len(packet)
            transfer.data = (transfer.data + packet)[: transfer.size]
            room = transfer.size - transfer.count
            transfer.count = len(transfer.data)
            if len(packet) > room:  # the rest of the packet is dropped, as by real hardware
                return UsbStatus.OVERFLOW
            if len(packet) < PACKET:
                break
        return UsbStatus.OK


class OutPipe(_Endpoint):
    """From the host to the device. `reading()` is whether the firmware accepts packets."""

    def __init__(self, reading: Callable[[], bool]) -> None:
        super().__init__()
        self._reading = reading
        self._arrived: list[bytes] = []
        self._assembly = bytearray()
        self._hardware: deque[bytes] = deque()

    def write(self, number: int, data: bytes) -> list[UsbMessage]:
        # Not packets(): sending the empty packet is up to the host.
        cut = [data[at : at + PACKET] for at in range(0, len(data), PACKET)] or [b""]
        return self._start(_Transfer(number, len(data), deque(cut)))

    def resume(self) -> list[UsbMessage]:
        """Move packets to the firmware while it accepts them."""
        while self._hardware and self._reading():
            self._take(self._hardware.popleft())
        return super().resume()

    def take(self) -> list[bytes]:
        """The transfers that are complete."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def clear(self) -> None:
        self._assembly.clear()
        self._hardware.clear()

    def _fill(self, transfer: _Transfer) -> UsbStatus | None:
        while transfer.packets:
            packet = transfer.packets[0]
            if self._reading():
                self._take(packet)
            elif len(self._hardware) < IN_HARDWARE:
                self._hardware.append(packet)
            else:
                return None
            transfer.count += len(transfer.packets.popleft())
        return UsbStatus.OK

    def _take(self, packet: bytes) -> None:
        self._assembly += packet
        if len(packet) < PACKET or len(self._assembly) >= ASSEMBLY_BYTES:
            transfer = bytes(self._assembly)
            self._assembly.clear()
            if transfer:
                self._arrived.append(transfer)


ADDRESSES: Final = 127
_LAST: Final = "last-address"
_CONNECTIONS: Final = 64
"""Concurrent connections; further ones are closed."""


class BusFull(Exception):
    """All addresses are in use."""


class _Connection:
    """One socket of a host: of its handle, or of one of the handle's endpoints."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.token = b""
        self.opened = False

    def answer(self, message: UsbMessage) -> None:
        # The host may have disconnected, or may not read its responses.
        with suppress(OSError):
            self.sock.send(message.encode())


class UsbDevice:
    """Serves its hosts in the event loop in which it is created."""

    def __init__(
        self,
        bus: Path,
        names: tuple[str, str, str],
        on_data: Callable[[bytes], None],
        *,
        reading: Callable[[], bool] = lambda: True,
        gone: UsbStatus = UsbStatus.NO_DEVICE,
    ) -> None:
        """`names`: maker, model, serial number. `reading()`: whether the firmware reads."""
        self._bus = bus
        self._names = names
        self._on_data = on_data
        self._reading = reading
        self._gone = gone
        self._loop = asyncio.get_running_loop()
        self._listener: Listener | None = None
        self._connections: list[_Connection] = []
        self._descriptors = Descriptors(0, 1, *names)
        self._new_pipes()

    def _new_pipes(self) -> None:
        self._in = InPipe()
        self._out = OutPipe(self._reading)
        self._claimed = b""
        self._pending: dict[int, tuple[_Connection, int]] = {}
        self._number = 0

    @property
    def plugged(self) -> bool:
        return self._listener is not None

    @property
    def waiting(self) -> int:
        """Number of transfers that are not done yet."""
        return len(self._pending)

    @property
    def address(self) -> int | None:
        return self._descriptors.address if self._listener else None

    def plug(self, number: int = 1) -> None:
        """Appear on the bus, in this port of the hub."""
        if self._listener is not None:
            return
        with _locked(self._bus):
            address = _free_address(self._bus)
            self._listener = Listener(socket_path(self._bus, address), socket.SOCK_SEQPACKET)
        self._descriptors = Descriptors(address, number, *self._names)
        self._new_pipes()
        self._loop.add_reader(self._listener.sock.fileno(), self._accept)

    def unplug(self) -> None:
        """Disappear from the bus. Pending transfers fail."""
        if self._listener is None:
            return
        self._answer(self._in.end(self._gone) + self._out.end(self._gone))
        self._loop.remove_reader(self._listener.sock.fileno())
        self._listener.close()
        self._listener = None
        for connection in list(self._connections):
            self._drop(connection)

    close = unplug

    def write(self, transfer: bytes) -> None:
        """Send a transfer to the host."""
        if self._listener is not None:
            self._answer(self._in.send(transfer, claimed=bool(self._claimed)))

    def resume(self) -> None:
        """The firmware reads again."""
        self._answer(self._out.resume())
        self._pass_on()

    def stall(self, end: int) -> None:
        """Halt an endpoint until the host clears the halt."""
        self._answer(self._in.halt() if end == END_IN else self._out.halt())

    # --- hosts ------------------------------------------------------------------------------------

    def _accept(self) -> None:
        if self._listener is None:
            return
        try:
            sock, _ = self._listener.sock.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return
        if len(self._connections) >= _CONNECTIONS:
            sock.close()
            return
        sock.setblocking(False)
        connection = _Connection(sock)
        self._connections.append(connection)
        self._loop.add_reader(sock.fileno(), self._receive, connection)

    def _receive(self, connection: _Connection) -> None:
        if connection not in self._connections:  # dropped in the same iteration of the event loop
            return
        try:
            raw = connection.sock.recv(MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            raw = b""
        try:
            message = decode(raw)
        except ValueError:  # disconnected, or an invalid message
            self._drop(connection)
            return
        self._dispatch(connection, message)

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._loop.remove_reader(connection.sock.fileno())
        if connection.token and connection.token == self._claimed and connection.opened:
            self._claimed = b""
        for number in [n for n, (asker, _) in self._pending.items() if asker is connection]:
            self._cancel(number)
        connection.sock.close()

    def _dispatch(self, connection: _Connection, message: UsbMessage) -> None:
        if message.op in (Op.OUT, Op.IN):
            self._transfer(connection, message)
        elif message.op is Op.CANCEL:
            for number, (asker, theirs) in list(self._pending.items()):
                if asker is connection and theirs == message.number:
                    self._cancel(number)
        else:
            status, data = self._at_once(connection, message)
            connection.answer(UsbMessage(Op.DONE, message.number, status, len(data), data))

    def _at_once(self, connection: _Connection, message: UsbMessage) -> tuple[UsbStatus, bytes]:
        """Handle a request that needs no waiting."""
        if message.op is Op.DESCRIBE:
            return UsbStatus.OK, msgspec.json.encode(self._descriptors)
        if message.op is Op.OPEN and len(message.data) == TOKEN:
            connection.token, connection.opened = message.data, message.arg == 0
            return UsbStatus.OK, b""
        if not connection.token:
            return UsbStatus.INVALID, b""
        if message.op is Op.CONTROL:
            return self._control(message.data)
        handlers = {
            Op.CLAIM: self._claim,
            Op.RELEASE: self._release,
            Op.CLEAR_HALT: self._clear_halt,
            Op.RESET: self._reset,
        }
        do = handlers.get(message.op)
        return (do(connection, message.arg) if do else UsbStatus.NOT_SUPPORTED), b""

    def _control(self, data: bytes) -> tuple[UsbStatus, bytes]:
        if self._claimed and sets_configuration(data):
            return UsbStatus.BUSY, b""
        return control_answer(self._descriptors, data)

    def _claim(self, connection: _Connection, interface: int) -> UsbStatus:
        if interface:
            return UsbStatus.NOT_FOUND
        if self._claimed not in (b"", connection.token):
            return UsbStatus.BUSY
        self._claimed = connection.token
        return UsbStatus.OK

    def _release(self, connection: _Connection, interface: int) -> UsbStatus:
        if interface or self._claimed != connection.token:
            return UsbStatus.NOT_FOUND
        self._claimed = b""
        return UsbStatus.OK

    def _clear_halt(self, _: _Connection, end: int) -> UsbStatus:
        if end not in (END_IN, END_OUT):
            return UsbStatus.NOT_FOUND
        (self._in if end == END_IN else self._out).halted = False
        return UsbStatus.OK

    def _reset(self, _: _Connection, __: int) -> UsbStatus:
        """Cancel all transfers. Address and claim stay, as on Linux."""
        self._answer(self._in.reset() + self._out.reset())
        return UsbStatus.OK

    # --- transfers --------------------------------------------------------------------------------

    def _transfer(self, connection: _Connection, message: UsbMessage) -> None:
        if not connection.token or connection.token != self._claimed:
            connection.answer(UsbMessage(Op.DONE, message.number, UsbStatus.NOT_FOUND))
            return
        self._number += 1
        self._pending[self._number] = (connection, message.number)
        if message.op is Op.IN:
            self._answer(self._in.read(self._number, message.arg))
        else:
            self._answer(self._out.write(self._number, message.data))
            self._pass_on()

    def _cancel(self, number: int) -> None:
        self._answer(self._in.cancel(number) + self._out.cancel(number))

    def _answer(self, dones: list[UsbMessage]) -> None:
        for done in dones:
            connection, number = self._pending.pop(done.number)
            connection.answer(replace(done, number=number))

    def _pass_on(self) -> None:
        # After the responses: the callback may unplug the device.
        for transfer in self._out.take():
            self._on_data(transfer)


@contextmanager
def _locked(bus: Path) -> Iterator[None]:
    """Lock the bus for assigning an address."""
    bus.mkdir(parents=True, exist_ok=True)
    folder = os.open(bus, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(bus):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _free_address(bus: Path) -> int:
    """The next address after the last one, so that an address is not reused soon."""
    taken = set()
    for path in bus.glob(SOCKET_PATTERN):
        if unix_sockets.is_listening(path, socket.SOCK_SEQPACKET):
            taken.add(int(path.name[-3:]))
        else:  # left by a killed device
            path.unlink(missing_ok=True)
    file = bus / _LAST
    last = _number(read_file(file))
    for step in range(ADDRESSES):
        address = (last + step) % ADDRESSES + 1
        if address not in taken:
            write_atomic(file, b"%d\n" % address, sync=False)
            return address
    raise BusFull(f"{bus}: all {ADDRESSES} addresses are taken")


def _number(text: bytes) -> int:
    """The last address; 0 if the file is damaged or empty, since addresses in use are skipped."""
    return int(text) if text.strip().isdigit() else 0
