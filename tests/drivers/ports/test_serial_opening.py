"""Serial ports that cannot be opened, each with its reason, and how one is set up."""

from __future__ import annotations

import asyncio
import errno
import os
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import serial

from drivers.ports import PortRefused, open_serial
from tests.support.asynchronous import asynchronous
from tests.support.drivers.lines import Line, descriptors
from tests.support.drivers.listening import Listener


@pytest.fixture
def line() -> Iterator[Line]:
    made = Line()
    yield made
    made.hang_up()


def refusal(path: str) -> PortRefused:
    async def run() -> PortRefused:
        before = descriptors()
        with pytest.raises(PortRefused) as caught:
            await open_serial(path, Listener())
        assert descriptors() == before
        return caught.value

    return asyncio.run(run())


@asynchronous
async def test_a_second_opening_is_refused(line: Line) -> None:
    listener = Listener()
    port = await open_serial(line.path, listener)
    with pytest.raises(PortRefused, match="in use by another program") as caught:
        await open_serial(line.path, Listener())
    assert not caught.value.absent
    line.send(b"the first goes on")
    await listener.until(lambda: listener.data == b"the first goes on")
    await port.close()
    again = await open_serial(line.path, listener)
    await again.close()


def test_what_is_no_port_is_refused_in_plain_words(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("words")
    gone = refusal(str(tmp_path / "none"))
    assert gone.absent
    assert str(gone) == f"{tmp_path}/none: there is no such port"
    assert refusal(f"{file}/below").absent
    assert str(refusal(str(tmp_path))) == f"{tmp_path}: it is a directory, no serial port"
    assert str(refusal(str(file))) == f"{file}: it is a file, no serial port"
    assert str(refusal("/dev/null")) == "/dev/null: it is no serial port"
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
def test_each_refusal_of_the_system_has_its_words(
    line: Line, monkeypatch: pytest.MonkeyPatch, number: int, words: str, absent: bool
) -> None:
    really = os.open

    def fail(path: Any, *how: Any, **where: Any) -> int:
        if path == line.path:
            raise OSError(number, os.strerror(number))
        return really(path, *how, **where)

    monkeypatch.setattr(os, "open", fail)
    why = refusal(line.path)
    assert words in str(why)
    assert why.absent == absent


def test_a_port_that_goes_while_it_is_opened(line: Line, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, queue: int) -> None:
        raise termios.error(errno.EIO, "Input/output error")

    monkeypatch.setattr(termios, "tcflush", fail)
    assert refusal(line.path).absent


def test_the_line_is_raw_and_adapters_are_asked_for_low_latency(
    line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr(serial.Serial, "set_low_latency_mode", lambda self, low: asked.append(low))

    async def run() -> None:
        port = await open_serial(line.path, Listener(), baud=921600)
        attributes = termios.tcgetattr(line.master)  # those of the line, for both of its ends
        assert attributes[4] == attributes[5] == termios.B921600
        assert not attributes[3] & (termios.ICANON | termios.ECHO | termios.ISIG)
        assert not attributes[0] & (termios.IXON | termios.ICRNL)
        assert attributes[6][termios.VMIN] in (1, b"\x01")
        await port.close()

    asyncio.run(run())
    assert asked == [True]
