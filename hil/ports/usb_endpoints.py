"""The two bulk endpoints of a simulated device: packets and transfers, without sockets or time.

A transfer is sent as packets of PACKET bytes and ends with a shorter one, which may be empty. So a
transfer whose size is a multiple of PACKET needs an empty packet at its end, or the receiver waits
for more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from hil.faults import whole_frames
from hil.ports.usb_messages import PACKET, UsbStatus

IN_HARDWARE: Final = 2
"""Packets that an endpoint buffers independently of the firmware."""
MAX_WAITING: Final = 16_384
"""Output buffer in bytes for a slow host; further frames are dropped."""
ASSEMBLY_BYTES: Final = 4096
"""The firmware's buffer for a transfer; a full buffer ends the transfer."""


class TransferResult(Struct, frozen=True):
    """The result of a transfer: the data read, or the number of bytes written."""

    number: int
    status: UsbStatus
    count: int = 0
    data: bytes = b""


def packets(transfer: bytes) -> list[bytes]:
    """The packets of a transfer, with an empty one at the end where it is needed."""
    return [transfer[at : at + PACKET] for at in range(0, len(transfer) + 1, PACKET)]


class _Read(Struct):
    number: int
    size: int
    got: bytearray


class _Write(Struct):
    number: int
    packets: deque[bytes]
    taken: int = 0


class InPipe:
    """From the device to the host."""

    def __init__(self) -> None:
        self.lost = 0
        """Bytes that were dropped."""
        self.halted = False
        self._packets: deque[bytes] = deque()
        self._size = 0
        self._reads: deque[_Read] = deque()

    def send(self, transfer: bytes, *, claimed: bool) -> list[TransferResult]:
        """Queue a transfer for the host. Without a host that has claimed the interface, only the
        endpoint's own buffer is available."""
        fit = whole_frames(transfer, self._capacity(claimed))
        self.lost += len(transfer) - len(fit)
        if fit:
            self._packets.extend(packets(fit))
            self._size += len(fit)
        return self._move()

    def _capacity(self, claimed: bool) -> int:
        if claimed:
            return MAX_WAITING - self._size
        # One byte less, so that no empty packet is needed at the end.
        return (IN_HARDWARE - len(self._packets)) * PACKET - 1

    def read(self, number: int, size: int) -> list[TransferResult]:
        if self.halted:
            return [TransferResult(number, UsbStatus.PIPE)]
        self._reads.append(_Read(number, size, bytearray()))
        return self._move()

    def cancel(self, number: int) -> list[TransferResult]:
        """The host's timeout: its read ends with what has arrived."""
        return self._end([read for read in self._reads if read.number == number], UsbStatus.TIMEOUT)

    def halt(self) -> list[TransferResult]:
        self.halted = True
        return self.end(UsbStatus.PIPE)

    def end(self, status: UsbStatus) -> list[TransferResult]:
        """End all pending transfers with this status."""
        return self._end(list(self._reads), status)

    def clear(self) -> None:
        """Drop the queued packets."""
        self._packets.clear()
        self._size = 0

    def _end(self, reads: list[_Read], status: UsbStatus) -> list[TransferResult]:
        for read in reads:
            self._reads.remove(read)
        return [
            TransferResult(read.number, status, len(read.got), bytes(read.got)) for read in reads
        ]

    def _move(self) -> list[TransferResult]:
        out = []
        while self._reads and (status := self._fill(self._reads[0])) is not None:
            read = self._reads.popleft()
            out.append(TransferResult(read.number, status, len(read.got), bytes(read.got)))
        return out

    def _fill(self, read: _Read) -> UsbStatus | None:
        """The status of a read that is complete; None while it waits for packets."""
        while len(read.got) < read.size:
            if not self._packets:
                return None
            packet = self._packets.popleft()
            self._size -= len(packet)
            room = read.size - len(read.got)
            read.got += packet[:room]
            if len(packet) > room:  # the rest of the packet is dropped, as by real hardware
                return UsbStatus.OVERFLOW
            if len(packet) < PACKET:
                break
        return UsbStatus.OK


class OutPipe:
    """From the host to the device. `reading()` is whether the firmware accepts packets."""

    def __init__(self, reading: Callable[[], bool]) -> None:
        self.halted = False
        self._reading = reading
        self._arrived: list[bytes] = []
        self._assembly = bytearray()
        self._hardware: deque[bytes] = deque()
        self._writes: deque[_Write] = deque()

    def write(self, number: int, data: bytes) -> list[TransferResult]:
        if self.halted:
            return [TransferResult(number, UsbStatus.PIPE)]
        # Not packets(): sending the empty packet is up to the host.
        cut = [data[at : at + PACKET] for at in range(0, len(data), PACKET)] or [b""]
        self._writes.append(_Write(number, deque(cut)))
        return self.resume()

    def resume(self) -> list[TransferResult]:
        """Move packets to the firmware while it accepts them."""
        while self._hardware and self._reading():
            self._take(self._hardware.popleft())
        out = []
        while self._writes and self._move(self._writes[0]):
            write = self._writes.popleft()
            out.append(TransferResult(write.number, UsbStatus.OK, write.taken))
        return out

    def take(self) -> list[bytes]:
        """The transfers that are complete."""
        arrived, self._arrived = self._arrived, []
        return arrived

    def cancel(self, number: int) -> list[TransferResult]:
        return self._end([write for write in self._writes if write.number == number])

    def halt(self) -> list[TransferResult]:
        self.halted = True
        return self.end(UsbStatus.PIPE)

    def end(self, status: UsbStatus) -> list[TransferResult]:
        return self._end(list(self._writes), status)

    def clear(self) -> None:
        self._assembly.clear()
        self._hardware.clear()

    def _end(
        self, writes: list[_Write], status: UsbStatus = UsbStatus.TIMEOUT
    ) -> list[TransferResult]:
        for write in writes:
            self._writes.remove(write)
        return [TransferResult(write.number, status, write.taken) for write in writes]

    def _move(self, write: _Write) -> bool:
        while write.packets:
            if self._reading():
                self._take(write.packets[0])
            elif len(self._hardware) < IN_HARDWARE:
                self._hardware.append(write.packets[0])
            else:
                return False
            write.taken += len(write.packets.popleft())
        return True

    def _take(self, packet: bytes) -> None:
        self._assembly += packet
        if len(packet) < PACKET or len(self._assembly) >= ASSEMBLY_BYTES:
            transfer = bytes(self._assembly)
            self._assembly.clear()
            if transfer:
                self._arrived.append(transfer)
