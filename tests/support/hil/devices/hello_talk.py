"""A HELLO to a device that runs behind a real port, and its answer."""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import usb.core
import usb.util

from firmware_protocol.messages import (
    SCHEMA_HASHES,
    DeviceClass,
    FrameKind,
    FrameLimit,
    Hello,
    HelloRsp,
)
from firmware_protocol.tablelink import Deframer, Frame
from hil.ports.usb_backend import backend
from hil.ports.usb_messages import END_IN, END_OUT

HELLO = Frame(
    FrameKind.HELLO,
    7,
    0,
    Hello(1, 1, DeviceClass.ANY, FrameLimit.LARGE, SCHEMA_HASHES[1], bytes(16)).encode(),
).encode()


def answer(data: bytes) -> HelloRsp | None:
    frames = [frame for frame in Deframer().feed(data) if isinstance(frame, Frame)]
    return HelloRsp.decode(frames[0].payload) if frames else None


async def asked(path: Path) -> HelloRsp:
    """What the device behind this serial port says to HELLO."""
    loop = asyncio.get_running_loop()
    descriptor = os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_NONBLOCK)
    ready = asyncio.Event()
    loop.add_reader(descriptor, ready.set)
    try:
        os.write(descriptor, b"\0" + HELLO)
        data = b""
        async with asyncio.timeout(5):
            while (said := answer(data)) is None:
                await ready.wait()
                ready.clear()
                with suppress(BlockingIOError):  # the loop may tell of the same bytes twice
                    data += os.read(descriptor, 4096)
        return said
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def asked_over_usb(bus: Path) -> HelloRsp:
    device = usb.core.find(backend=backend(str(bus)))
    device.write(END_OUT, b"\0" + HELLO, 5_000)
    said = said_over_usb(device)
    usb.util.dispose_resources(device)
    return said


def said_over_usb(device: Any) -> HelloRsp:
    data = b""
    while (said := answer(data)) is None:
        data += device.read(END_IN, 4096, 5_000).tobytes()
    return said
