"""A simulated serial port as its host sees it: names, silence, hang-ups."""

import array
import asyncio
import errno
import fcntl
import os
import select
import stat
import termios
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path

import pytest
import serial

from hil.ports import LinkTaken, PtyPort, set_link
from hil.ports.pty import remove_link
from tests.support.asynchronous import asynchronous


class _Ear:
    """What the device's side has heard."""

    def __init__(self) -> None:
        self.data = b""
        self._more = asyncio.Event()

    def __call__(self, data: bytes) -> None:
        self.data += data
        self._more.set()

    async def until(self, size: int) -> bytes:
        async with asyncio.timeout(5):
            while len(self.data) < size:
                self._more.clear()
                await self._more.wait()
        return self.data


@asynccontextmanager
async def a_port(link: Path) -> AsyncIterator[tuple[PtyPort, _Ear]]:
    ear = _Ear()
    port = PtyPort(link, ear)
    port.plug()
    try:
        yield port, ear
    finally:
        port.close()


@contextmanager
def opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def all_of(host: int) -> bytes:
    """What waits there to be read."""
    data = b""
    with suppress(BlockingIOError):
        while True:
            data += os.read(host, 4096)
    return data


@asynchronous
async def test_bytes_go_both_ways_as_they_are(tmp_path: Path) -> None:
    every = bytes(range(256))
    async with a_port(tmp_path / "shoe") as (port, ear):
        with opened(port.name) as host:
            os.write(host, every)
            assert await ear.until(256) == every
            port.write(every)
            assert os.read(host, 4096) == every


@asynchronous
async def test_a_host_can_close_and_reopen_the_port(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, ear):
        for number in range(3):
            with opened(port.name) as host:
                os.write(host, b"%d" % number)
                await ear.until(number + 1)
        assert ear.data == b"012"
        assert port.plugged


@asynchronous
async def test_pyserial_opens_it_and_starts_with_nothing_old(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, ear):
        port.write(b"from before")
        with serial.Serial(str(port.name), 115200, timeout=0, exclusive=True) as host:
            assert host.read(100) == b""
            host.write(b"\0hello\0")
            assert await ear.until(7) == b"\0hello\0"
            port.write(b"answer")
            assert host.read(100) == b"answer"


@asynchronous
async def test_pulling_the_cable_is_a_real_hang_up(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, _):
        with opened(port.name) as host:
            port.write(b"never read")
            port.unplug()
            assert not os.path.lexists(tmp_path / "shoe")
            poll = select.poll()
            poll.register(host)
            assert poll.poll(0)[0][1] & select.POLLHUP
            assert os.read(host, 100) == b""
            with pytest.raises(OSError, match="Input/output error") as written:
                os.write(host, b"x")
            assert written.value.errno == errno.EIO
            with pytest.raises(OSError, match="Input/output error") as waiting:
                fcntl.ioctl(host, termios.TIOCINQ, array.array("i", [0]))
            assert waiting.value.errno == errno.EIO
            with pytest.raises(termios.error):
                termios.tcflush(host, termios.TCIFLUSH)


@asynchronous
async def test_the_link_leads_to_the_same_device_whatever_number_its_pty_has(
    tmp_path: Path,
) -> None:
    async with a_port(tmp_path / "shoe") as (port, ear):
        port.unplug()
        assert port.device is None
        # Most likely this one gets the number that was set free; whoever kept it as the
        # shoe's would talk to the shuffler now.
        async with a_port(tmp_path / "shuffler") as (other, _):
            port.plug()
            assert len({port.device, other.device}) == 2
            assert port.name == tmp_path / "shoe"
            with opened(tmp_path / "shoe") as host:
                os.write(host, b"x")
                assert await ear.until(1) == b"x"


@asynchronous
async def test_another_port_has_another_name(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, _):
        port.unplug()
        port.plug(2)
        assert port.name == tmp_path / "shoe-2"
        assert [path.name for path in tmp_path.iterdir()] == ["shoe-2"]
    assert not list(tmp_path.iterdir())


@asynchronous
async def test_unread_bytes_are_dropped_without_blocking(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, _):
        with opened(port.name) as host:
            port.write(bytes(100_000))
            kept = len(all_of(host))
            assert 4_000 < kept < 30_000
            assert port.dropped == 100_000 - kept
            port.write(b"fresh")
            assert os.read(host, 4096) == b"fresh"


@asynchronous
async def test_a_full_line_drops_whole_frames(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, _):
        with opened(port.name) as host:
            frames = [b"%03d" % number + b"x" * 90 + b"\0" for number in range(900)]
            port.write(b"".join(frames))
            came = b""
            for _ in range(3):
                came += all_of(host)
                port.write(b"last\0")
            *whole, end = came.split(b"\0")
            assert end == b""
            begun = [one for one in whole if one != b"last"]
            assert begun == [one[:-1] for one in frames[: len(begun)]]
            assert 20 < len(begun) < 400
            assert whole[len(begun) :] == [b"last"] * 2
            assert port.dropped == 94 * (900 - len(begun))


@asynchronous
async def test_while_the_cable_is_out_all_is_lost(tmp_path: Path) -> None:
    async with a_port(tmp_path / "shoe") as (port, _):
        port.unplug()
        port.unplug()
        port.write(b"nobody")
        assert port.dropped == 6
        port.plug()
        port.plug()
        with opened(port.name) as host, pytest.raises(BlockingIOError):
            os.read(host, 100)


@asynchronous
async def test_a_link_of_a_killed_device_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "shoe").symlink_to("/dev/pts/9999")
    async with a_port(tmp_path / "shoe") as (port, _):
        assert str((tmp_path / "shoe").readlink()) == port.device


def test_the_link_is_never_missing_while_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = tmp_path / "shoe"
    set_link(link, "/dev/pts/1")
    replace = Path.replace

    def replaced(self: Path, target: Path) -> Path:
        assert str(link.readlink()) == "/dev/pts/1"  # until the very moment
        return replace(self, target)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", replaced)
        set_link(link, "/dev/pts/2")
    assert str(link.readlink()) == "/dev/pts/2"
    remove_link(link, "/dev/pts/1")
    assert link.is_symlink()
    remove_link(link, "/dev/pts/2")
    remove_link(link, "/dev/pts/2")
    assert not list(tmp_path.iterdir())


@asynchronous
async def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "shoe").write_text("mine")
    port = PtyPort(tmp_path / "shoe", lambda _: None)
    with pytest.raises(LinkTaken):
        port.plug()
    assert not port.plugged
    assert stat.S_ISREG((tmp_path / "shoe").stat().st_mode)
