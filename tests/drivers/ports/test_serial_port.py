"""Serial ports over a pty: every known trap, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import errno
import os
import termios
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from drivers.ports import Port, PortRefused, open_serial
from drivers.ports.port import WRITE_BOUND
from tests.support.asynchronous import asynchronous
from tests.support.drivers.lines import Line, descriptors
from tests.support.drivers.listening import PATIENCE, Listener, turns


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.hang_up()


async def opened(line: Line) -> tuple[Listener, Port]:
    listener = Listener()
    return listener, await open_serial(line.path, listener)


async def received(line: Line, size: int) -> bytes:
    """What the device gets, once it is `size` bytes."""
    data = b""
    async with asyncio.timeout(PATIENCE):
        while len(data) < size:
            data += line.read()
            await asyncio.sleep(0)
    return data


@asynchronous
async def test_bytes_go_both_ways_as_they_are(line: Line) -> None:
    every = bytes(range(256))
    listener, port = await opened(line)
    assert port.name == line.path
    port.write(every)
    assert await received(line, 256) == every
    line.send(every[:100])
    await listener.until(lambda: len(listener.data) == 100)
    line.send(every[100:])
    await listener.until(lambda: len(listener.data) == 256)
    assert listener.data == every
    await port.close()
    assert listener.losses == []


@asynchronous
async def test_close_gives_everything_back_and_can_be_said_twice(line: Line) -> None:
    listener = Listener()
    before = descriptors()
    port = await open_serial(line.path, listener)
    assert descriptors() > before
    await port.close()
    assert descriptors() == before
    await port.close()
    port.write(b"nobody takes this")
    line.send(b"nor hears this")
    await turns()
    assert (listener.data, listener.losses) == (b"", [])


@asynchronous
async def test_bytes_that_were_not_read_before_close_are_not_received(line: Line) -> None:
    listener, port = await opened(line)
    line.send(b"late")
    await port.close()
    await turns()
    assert listener.data == b""


@asynchronous
async def test_a_hang_up_is_reported_once_and_the_reader_does_not_spin(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = 0
    read = os.read

    def counted(fd: int, size: int) -> bytes:
        nonlocal reads
        reads += 1
        return read(fd, size)

    monkeypatch.setattr(os, "read", counted)
    listener = Listener()
    before = descriptors()
    port = await open_serial(line.path, listener)
    line.send(b"last words")
    await listener.until(lambda: listener.data)  # what was not read is lost with the line
    line.hang_up()
    await listener.until(lambda: listener.losses)
    await asyncio.sleep(0.05)
    assert listener.data == b"last words"
    assert [why.reason for why in listener.losses] == ["it was unplugged or hung up"]
    assert reads <= 3
    assert descriptors() == before - 2  # our own two ends of the line
    port.write(b"to nobody")
    await port.close()
    assert len(listener.losses) == 1


@asynchronous
async def test_a_write_that_finds_the_hang_up_first_tells_it_later(line: Line) -> None:
    listener, port = await opened(line)
    line.hang_up()
    port.write(b"to nobody")
    assert listener.losses == []  # never in the middle of the caller's write
    await listener.until(lambda: listener.losses)
    await turns()
    assert len(listener.losses) == 1


@asynchronous
async def test_close_after_a_write_that_failed_says_nothing(line: Line) -> None:
    listener, port = await opened(line)
    line.hang_up()
    port.write(b"to nobody")
    await port.close()
    await turns()
    assert listener.losses == []


@asynchronous
async def test_the_port_opens_again_after_a_hang_up(line: Line) -> None:
    listener, _ = await opened(line)
    line.hang_up()
    await listener.until(lambda: listener.losses)
    other = Line()
    port = await open_serial(other.path, listener)
    other.send(b"back")
    await listener.until(lambda: listener.data)
    await port.close()
    other.hang_up()


@asynchronous
async def test_end_of_file_is_a_hang_up_and_a_wake_without_bytes_is_not(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = os.read
    listener, _ = await opened(line)
    problems: list[type[OSError]] = []

    def too_late(fd: int, size: int) -> bytes:
        assert read(fd, size) == b"x"
        try:
            return read(fd, size)  # nothing is there: EAGAIN, and no end of file
        except OSError as problem:
            problems.append(type(problem))
            raise

    with monkeypatch.context() as patch:
        patch.setattr(os, "read", too_late)
        line.send(b"x")
        async with asyncio.timeout(PATIENCE):
            while not problems:
                await asyncio.sleep(0)
        await turns()
    assert (problems, listener.data, listener.losses) == ([BlockingIOError], b"", [])
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", lambda fd, size: b"")
        line.send(b"x")
        await listener.until_lost()
    assert [why.reason for why in listener.losses] == ["it was unplugged or hung up"]


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        (errno.EIO, "it was unplugged or hung up"),
        (errno.ENODEV, "it was unplugged"),
        (errno.ENOMEM, "it failed: "),
    ],
)
@asynchronous
async def test_any_error_of_a_read_ends_it(
    line: Line, monkeypatch: pytest.MonkeyPatch, number: int, reason: str
) -> None:
    def fail(fd: int, size: int) -> bytes:
        raise OSError(number, "words")

    listener, _ = await opened(line)
    with monkeypatch.context() as patch:
        patch.setattr(os, "read", fail)
        line.send(b"x")
        await listener.until_lost()
    assert listener.losses[0].reason.startswith(reason)


# --- output that nobody takes -----------------------------------------------------------------


@asynchronous
async def test_output_waits_in_its_order_until_the_device_takes_it(line: Line) -> None:
    sent = b"".join(b"%07d\n" % number for number in range(8000))  # more than a pty holds
    _, port = await opened(line)
    for at in range(0, len(sent), 500):
        port.write(sent[at : at + 500])
    assert await received(line, len(sent)) == sent
    port.write(b"more")
    assert await received(line, 4) == b"more"
    await port.close()


@asynchronous
async def test_a_port_with_nothing_to_write_does_not_spin(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes = 0
    write = os.write

    def counted(fd: int, data: bytes) -> int:
        nonlocal writes
        writes += 1
        return write(fd, data)

    monkeypatch.setattr(os, "write", counted)
    port = await open_serial(line.path, Listener())
    port.write(bytes(40_000))
    assert len(await received(line, 40_000)) == 40_000
    await turns()
    before = writes
    assert before > 1
    await turns(20)
    assert writes == before
    await port.close()


@asynchronous
async def test_output_that_is_never_taken_ends_the_port(line: Line) -> None:
    listener, port = await opened(line)
    written = 0
    while not listener.losses:
        assert written < WRITE_BOUND + 64 * 1024  # what a pty holds at most
        port.write(bytes(1000))
        written += 1000
        await asyncio.sleep(0)
    assert written > WRITE_BOUND
    assert listener.losses[0].reason == "it does not take bytes: 65536 wait"
    await asyncio.sleep(0)
    assert len(listener.losses) == 1
    await port.close()


@asynchronous
async def test_close_drops_output_that_the_device_does_not_accept(line: Line) -> None:
    port = await open_serial(line.path, Listener())
    port.write(bytes(WRITE_BOUND))
    await asyncio.wait_for(port.close(), 1)


@asynchronous
async def test_close_does_not_wait_for_a_kernel_that_waits(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = threading.Event()
    close = serial.Serial.close

    def slow(self: serial.Serial) -> None:
        assert allowed.wait(PATIENCE)
        close(self)

    port = await open_serial(line.path, Listener())
    # A device that has stopped taking bytes, behind a driver that cannot drop them.
    monkeypatch.setattr(serial.Serial, "out_waiting", property(lambda self: 1))
    monkeypatch.setattr(serial.Serial, "close", slow)
    await asyncio.wait_for(port.close(), 1)
    allowed.set()


def no_flush(fd: int, queue: int) -> None:
    raise termios.error(errno.EIO, "Input/output error")


@asynchronous
async def test_termios_error_while_closing(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    before = descriptors()
    port = await open_serial(line.path, Listener())
    monkeypatch.setattr(termios, "tcflush", no_flush)
    await port.close()
    assert descriptors() == before


# --- opening ----------------------------------------------------------------------------------


async def refusal(path: str) -> PortRefused:
    before = descriptors()
    with pytest.raises(PortRefused) as caught:
        await open_serial(path, Listener())
    assert descriptors() == before
    return caught.value


@asynchronous
async def test_a_second_opening_is_refused(line: Line) -> None:
    listener, port = await opened(line)
    with pytest.raises(PortRefused, match="in use by another program") as caught:
        await open_serial(line.path, Listener())
    assert not caught.value.absent
    line.send(b"the first goes on")
    await listener.until(lambda: listener.data == b"the first goes on")
    await port.close()
    await (await open_serial(line.path, listener)).close()


@asynchronous
async def test_what_is_no_port_is_refused_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("words")
    gone = await refusal(str(tmp_path / "none"))
    assert (gone.absent, str(gone)) == (True, f"{tmp_path}/none: there is no such port")
    assert (await refusal(f"{file}/below")).absent
    for what, words in (
        (tmp_path, "it is a directory, no serial port"),
        (file, "it is a file, no serial port"),
        ("/dev/null", "it is no serial port"),
    ):
        assert str(await refusal(str(what))) == f"{what}: {words}"
    assert file.read_text() == "words"


@pytest.mark.parametrize(
    ("number", "words", "absent"),
    [
        (errno.EACCES, "no permission", False),
        (errno.EBUSY, "in use by another program", False),
        (errno.ENXIO, "there is no such port", True),
        (errno.EIO, "unplugged", True),
        (errno.EMFILE, "it cannot be opened: ", False),
    ],
)
@asynchronous
async def test_each_refusal_of_the_system_has_its_words(
    line: Line, monkeypatch: pytest.MonkeyPatch, number: int, words: str, absent: bool
) -> None:
    really = os.open

    def fail(path: Any, *how: Any, **where: Any) -> int:
        if path == line.path:
            raise OSError(number, os.strerror(number))
        return really(path, *how, **where)

    monkeypatch.setattr(os, "open", fail)
    why = await refusal(line.path)
    assert words in str(why)
    assert why.absent == absent


@asynchronous
async def test_a_port_that_goes_while_it_is_opened(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(termios, "tcflush", no_flush)
    assert (await refusal(line.path)).absent


@asynchronous
async def test_the_line_is_raw_and_adapters_are_asked_for_low_latency(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(serial.Serial, "set_low_latency_mode", lambda self, low: asked.append(low))

    port = await open_serial(line.path, Listener(), baud=921600)
    attributes = termios.tcgetattr(line.master)  # those of the line, for both of its ends
    assert attributes[4] == attributes[5] == termios.B921600
    assert not attributes[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
    assert not attributes[0] & (termios.IXON | termios.ICRNL)
    assert attributes[6][termios.VMIN] in (1, b"\x01")
    await port.close()
    assert asked == [True]
