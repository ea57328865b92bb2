"""Serial port, owned by one event loop and opened exclusively. Nothing here blocks.

pyserial opens and configures the port. The descriptor is read and written directly, 19 us a
message: pyserial's own methods block, or use `in_waiting`, which raises after a hang-up.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import stat
import termios
import threading
from typing import Final

import serial

from drivers.ports.port import WRITE_BOUND, Port, PortListener, PortLost, PortRefused

READ_SIZE: Final = 4096
"""More than a tty delivers at once."""
AGAIN_SECONDS: Final = 1.0
"""Seconds until a close that needs a thread is retried if none could be started."""

_GONE: Final = "there is no such port"
_REFUSALS: Final = {
    errno.ENOENT: (_GONE, True),
    errno.ENOTDIR: (_GONE, True),
    errno.ENODEV: (_GONE, True),
    errno.ENXIO: (_GONE, True),
    errno.EIO: ("it has just been unplugged, or does not work", True),
    errno.EACCES: ("no permission to open it; its group may (often: dialout)", False),
    errno.EPERM: ("no permission to open it; its group may (often: dialout)", False),
    errno.EBUSY: ("it is in use by another program", False),
    errno.EAGAIN: ("it is in use by another program", False),
    errno.ENOTTY: ("it is no serial port", False),
    errno.EINVAL: ("it is no serial port that can be set to 8N1 at this speed", False),
}


async def open_serial(path: str, listener: PortListener, *, baud: int = 115200) -> Port:
    """Open the port with 8N1, no flow control, exclusive. Raises PortRefused."""
    return SerialPort(_open(path, baud), path, listener, asyncio.get_running_loop())


class SerialPort:
    """Port that open_serial() returns."""

    def __init__(
        self, tty: serial.Serial, name: str, listener: PortListener, loop: asyncio.AbstractEventLoop
    ) -> None:
        self._tty = tty
        self._name = name
        self._listener = listener
        self._loop = loop
        self._fd = tty.fileno()
        self._waiting = bytearray()
        self._over = False
        self._closed = False
        loop.add_reader(self._fd, self._read)

    @property
    def name(self) -> str:
        return self._name

    def write(self, data: bytes) -> None:
        if self._over:
            return
        if len(self._waiting) + len(data) > WRITE_BOUND:
            self._end_soon(PortLost(f"it does not take bytes: {WRITE_BOUND} wait"))
            return
        idle = not self._waiting
        self._waiting += data
        if idle:  # else the loop calls _write_more()
            self._write_waiting()
            if self._waiting:
                self._loop.add_writer(self._fd, self._write_more)

    async def close(self) -> None:
        self._closed = True
        self._release()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, READ_SIZE)
        except BlockingIOError:
            return  # spurious wake-up
        except OSError as problem:
            self._end(_lost(problem))
            return
        if data:
            self._listener.received(data)
        else:
            # With VMIN 1 an empty read is a hang-up.
            self._end(PortLost("it was unplugged or hung up"))

    def _write_more(self) -> None:
        self._write_waiting()
        if not self._waiting and not self._over:
            self._loop.remove_writer(self._fd)

    def _write_waiting(self) -> None:
        try:
            taken = os.write(self._fd, self._waiting)
        except BlockingIOError:
            return
        except OSError as problem:
            self._end_soon(_lost(problem))
            return
        del self._waiting[:taken]

    def _end(self, why: PortLost) -> None:
        self._release()
        self._listener.lost(why)

    def _end_soon(self, why: PortLost) -> None:
        """As _end(), but deferred: not within the caller's write()."""
        self._release()
        self._loop.call_soon(self._report_lost, why)

    def _report_lost(self, why: PortLost) -> None:
        if not self._closed:
            self._listener.lost(why)

    def _release(self) -> None:
        if self._over:
            return
        self._over = True
        # A reader on a descriptor that has hung up would be called in a loop.
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        self._waiting.clear()
        if _discard(self._tty):
            self._tty.close()
        else:
            self._close_elsewhere()

    def _close_elsewhere(self) -> None:
        """Close in a thread: the kernel blocks up to 30 s if the device accepts no bytes."""
        closing = threading.Thread(
            target=self._tty.close, name=f"closing {self._name}", daemon=True
        )
        try:
            closing.start()
        except RuntimeError:  # no thread could be started, and no caller waits for this
            self._loop.call_later(AGAIN_SECONDS, self._close_elsewhere)


def _discard(tty: serial.Serial) -> bool:
    """Drop what the kernel has not sent. Returns whether close() will not block."""
    try:
        # termios.error is neither OSError nor SerialException.
        termios.tcflush(tty.fileno(), termios.TCOFLUSH)
        return tty.out_waiting == 0
    except (termios.error, OSError):
        return True  # it has hung up: nothing is sent any more


def _lost(problem: OSError) -> PortLost:
    words = {
        errno.EIO: "it was unplugged or hung up",
        errno.ENODEV: "it was unplugged",
        errno.ENXIO: "it was unplugged",
    }
    known = words.get(problem.errno or 0)
    return PortLost(known or f"it failed: {problem.strerror or type(problem).__name__}")


# --- opening ----------------------------------------------------------------------------------


def _open(path: str, baud: int) -> serial.Serial:
    try:
        _check_is_device(path)
        tty = serial.Serial(
            path,
            baud,
            bytesize=serial.EIGHTBITS,
            parity=serial.PARITY_NONE,
            stopbits=serial.STOPBITS_ONE,
            timeout=0,
            write_timeout=0,
            exclusive=True,
            # Sets VMIN to 1: a read without bytes is then EAGAIN, and only a hang-up is b"".
            inter_byte_timeout=0,
        )
    except (OSError, termios.error) as problem:
        raise _refused(path, problem) from None
    except ValueError as problem:  # a speed that the driver does not know
        raise PortRefused(f"{path}: {problem}") from None
    with contextlib.suppress(ValueError, NotImplementedError, OSError, termios.error):
        # Without it FTDI adapters delay bytes by 16 ms. Other adapters do not need it.
        tty.set_low_latency_mode(True)
    return tty


def _check_is_device(path: str) -> None:
    """Reject what is not a device before it is opened: opening can have side effects."""
    mode = os.stat(path).st_mode
    if stat.S_ISDIR(mode):
        raise PortRefused(f"{path}: it is a directory, no serial port")
    if not stat.S_ISCHR(mode):
        raise PortRefused(f"{path}: it is a file, no serial port")


def _refused(path: str, problem: BaseException) -> PortRefused:
    number = _number(problem)
    reason, absent = _REFUSALS.get(number, (f"it cannot be opened: {problem}", False))
    return PortRefused(f"{path}: {reason}", absent=absent)


def _number(problem: BaseException | None) -> int:
    """The errno behind an exception of pyserial, which often has it only in its text."""
    while problem is not None:
        if isinstance(problem, OSError) and problem.errno is not None:
            return problem.errno
        if isinstance(problem, termios.error) and isinstance(problem.args[0], int):
            return problem.args[0]
        problem = problem.__context__
    return 0
