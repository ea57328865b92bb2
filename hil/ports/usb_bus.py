"""A directory as a USB bus, and a device that is plugged into it.

    device = UsbDevice(Path("run/usb"), maker, model, serial, heard, reading)
    device.plug()
    device.write(transfer)

Hosts reach it through `hil.ports.usb_backend`. As on a real bus, each plug gives another address,
one handle at a time has claimed the interface, and a transfer that waits when the cable is pulled
ends with ENODEV or with EIO, depending on the host controller: `gone` says which one this is.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec

from firmware_protocol.device.storage import naming, read_file, write_atomic
from hil.ports import unix_sockets, usb_descriptors
from hil.ports.unix_sockets import Listener
from hil.ports.usb_endpoints import InPipe, OutPipe, TransferResult
from hil.ports.usb_messages import (
    END_IN,
    END_OUT,
    MAX_MESSAGE_BYTES,
    SOCKET_PATTERN,
    TOKEN,
    Descriptors,
    Op,
    UsbMessage,
    UsbStatus,
    decode,
    socket_path,
)

ADDRESSES: Final = 127
_LAST: Final = "last-address"
_CONNECTIONS: Final = 64
"""More than these at a time are turned away."""


class BusFull(Exception):
    """All addresses are taken."""


class _Connection:
    """One socket of a host: its handle's own, or that of one of the handle's endpoints."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.token = b""
        self.opened = False

    def answer(self, done: TransferResult) -> None:
        message = UsbMessage(Op.DONE, done.number, done.status, done.count, done.data)
        # A host that has gone, or that asks and never listens, gets no answer.
        with suppress(OSError):
            self.sock.send(message.encode())


class UsbDevice:
    """Made inside of a running loop, which serves it."""

    def __init__(
        self,
        bus: Path,
        names: tuple[str, str, str],
        heard: Callable[[bytes], None],
        *,
        reading: Callable[[], bool] = lambda: True,
        gone: UsbStatus = UsbStatus.NO_DEVICE,
    ) -> None:
        """`names`: maker, model, serial number. `reading`: whether the firmware takes packets."""
        self._bus = bus
        self._names = names
        self._heard = heard
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
        self._asked: dict[int, tuple[_Connection, int]] = {}
        self._number = 0

    @property
    def plugged(self) -> bool:
        return self._listener is not None

    @property
    def address(self) -> int | None:
        return self._descriptors.address if self._listener else None

    def plug(self, number: int = 1) -> None:
        """Appear on the bus, in the `number`th port of the hub."""
        if self._listener is not None:
            return
        with _sole(self._bus):
            address = _free_address(self._bus)
            self._listener = Listener(socket_path(self._bus, address), socket.SOCK_SEQPACKET)
        self._descriptors = Descriptors(address, number, *self._names)
        self._new_pipes()
        self._loop.add_reader(self._listener.sock.fileno(), self._accept)

    def unplug(self) -> None:
        """Vanish from the bus. What is under way ends with an error."""
        if self._listener is None:
            return
        self._answer(self._in.end(self._gone))
        self._answer(self._out.end(self._gone))
        self._loop.remove_reader(self._listener.sock.fileno())
        self._listener.close()
        self._listener = None
        for connection in list(self._connections):
            self._drop(connection)

    close = unplug

    def write(self, transfer: bytes) -> None:
        """A transfer for the host."""
        if self._listener is not None:
            self._answer(self._in.send(transfer, claimed=bool(self._claimed)))

    def go_on(self) -> None:
        """The firmware looks at its endpoint again."""
        self._answer(self._out.go_on())
        self._hear()

    def stall(self, end: int) -> None:
        """The firmware halts an endpoint, until the host clears that."""
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
        if connection not in self._connections:  # dropped in the same turn of the loop
            return
        try:
            raw = connection.sock.recv(MAX_MESSAGE_BYTES)
        except BlockingIOError:
            return
        except ConnectionError:
            raw = b""
        try:
            message = decode(raw)
        except ValueError:  # the end, or nothing that a host of ours says
            self._drop(connection)
            return
        self._dispatch(connection, message)

    def _drop(self, connection: _Connection) -> None:
        self._connections.remove(connection)
        self._loop.remove_reader(connection.sock.fileno())
        if connection.token and connection.token == self._claimed and connection.opened:
            self._claimed = b""
        for number in [n for n, (asker, _) in self._asked.items() if asker is connection]:
            self._give_up(number)
        connection.sock.close()

    def _dispatch(self, connection: _Connection, message: UsbMessage) -> None:
        if message.op in (Op.OUT, Op.IN):
            self._transfer(connection, message)
        elif message.op is Op.GIVE_UP:
            for number, (asker, theirs) in list(self._asked.items()):
                if asker is connection and theirs == message.number:
                    self._give_up(number)
        else:
            status, data = self._at_once(connection, message)
            connection.answer(TransferResult(message.number, status, len(data), data))

    def _at_once(self, connection: _Connection, message: UsbMessage) -> tuple[UsbStatus, bytes]:
        """What is answered without waiting."""
        if message.op is Op.DESCRIBE:
            return UsbStatus.OK, msgspec.json.encode(self._descriptors)
        if message.op is Op.OPEN and len(message.data) == TOKEN:
            connection.token, connection.opened = message.data, message.arg == 0
            return UsbStatus.OK, b""
        if not connection.token:
            return UsbStatus.INVALID, b""
        if message.op is Op.CONTROL:
            return self._control(message.data)
        simple = {
            Op.CLAIM: self._claim,
            Op.RELEASE: self._release,
            Op.CLEAR_HALT: self._clear_halt,
            Op.RESET: self._reset,
        }
        do = simple.get(message.op)
        return (do(connection, message.arg) if do else UsbStatus.NOT_SUPPORTED), b""

    def _control(self, data: bytes) -> tuple[UsbStatus, bytes]:
        if self._claimed and usb_descriptors.configures(data):
            return UsbStatus.BUSY, b""
        return usb_descriptors.control(self._descriptors, data)

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
        if end == END_IN:
            self._in.halted = False
        else:
            self._out.halted = False
        return UsbStatus.OK

    def _reset(self, _: _Connection, __: int) -> UsbStatus:
        """The address and the claim stay, as Linux does it; what was under way is gone."""
        self._answer(self._in.end(UsbStatus.IO) + self._out.end(UsbStatus.IO))
        self._in.clear()
        self._out.clear()
        self._in.halted = self._out.halted = False
        return UsbStatus.OK

    # --- transfers --------------------------------------------------------------------------------

    def _transfer(self, connection: _Connection, message: UsbMessage) -> None:
        if not connection.token or connection.token != self._claimed:
            connection.answer(TransferResult(message.number, UsbStatus.NOT_FOUND))
            return
        self._number += 1
        self._asked[self._number] = (connection, message.number)
        if message.op is Op.IN:
            self._answer(self._in.read(self._number, message.arg))
        else:
            self._answer(self._out.write(self._number, message.data))
            self._hear()

    def _give_up(self, number: int) -> None:
        self._answer(self._in.give_up(number) + self._out.give_up(number))

    def _answer(self, dones: list[TransferResult]) -> None:
        for done in dones:
            connection, number = self._asked.pop(done.number)
            connection.answer(TransferResult(number, done.status, done.count, done.data))

    def _hear(self) -> None:
        # After the answers: what the device does with it may pull the cable.
        for transfer in self._out.take():
            self._heard(transfer)


@contextmanager
def _sole(bus: Path) -> Iterator[None]:
    """Nobody else gives out addresses meanwhile."""
    bus.mkdir(parents=True, exist_ok=True)
    folder = os.open(bus, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with naming(bus):
            fcntl.flock(folder, fcntl.LOCK_EX)
        yield
    finally:
        os.close(folder)


def _free_address(bus: Path) -> int:
    """The next one after the last that was given out, so that none comes back soon."""
    taken = set()
    for path in bus.glob(SOCKET_PATTERN):
        if unix_sockets.is_listening(path, socket.SOCK_SEQPACKET):
            taken.add(int(path.name[-3:]))
        else:  # left behind by a device that was killed
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
    """Which address was the last; damaged or empty, any will do: those in use are left out."""
    return int(text) if text.strip().isdigit() else 0
