"""HELLO and HELLO_RSP: agreement on a version, and the prologue of the handshake.

Both frames are in clear and can be forged. They are authenticated because their bytes are the
prologue of the handshake, which fails if host and device did not see the same bytes.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection

from firmware_protocol.messages import (
    SCHEMA_HASHES,
    DeviceClass,
    FrameKind,
    Hello,
    HelloRsp,
    NoCommonVersion,
    SchemaDiffers,
    WrongAnswer,
    WrongDevice,
)
from firmware_protocol.tablelink.framing import Frame

NO_SESSION = 0
"""The session id of ALERT; never that of a session."""


def pick_session(
    taken: Collection[int] = (), draw: Callable[[int], bytes] = secrets.token_bytes
) -> int:
    """Returns a random session id that is not in `taken`."""
    while (session := int.from_bytes(draw(2), "little")) == NO_SESSION or session in taken:
        pass
    return session


def prologue(hello: Frame, answer: Frame) -> bytes:
    """The prologue of both handshakes: the two frames as sent, without their CRC."""
    if hello.kind != FrameKind.HELLO or answer.kind != FrameKind.HELLO_RSP:
        raise WrongAnswer(f"{answer.kind.name} does not answer {hello.kind.name}")
    if hello.session != answer.session:
        raise WrongAnswer(f"HELLO of session {hello.session}, answer of {answer.session}")
    return hello.decoded() + answer.decoded()


def common_version(hello: Hello, low: int, high: int) -> int:
    """The highest version that both sides support. Raises NoCommonVersion."""
    version = min(hello.version_max, high)
    if version < max(hello.version_min, low):
        raise NoCommonVersion(
            f"versions {hello.version_min} to {hello.version_max} and {low} to {high}"
        )
    return version


def agree(hello: Hello, answer: HelloRsp) -> int:
    """The version for the session, as the host computes it. Raises a ProtocolError if the device is
    incompatible or another one."""
    version = common_version(hello, answer.version_min, answer.version_max)
    if answer.schema != SCHEMA_HASHES[version]:
        raise SchemaDiffers(
            f"version {version} is {SCHEMA_HASHES[version].hex()} here and "
            f"{answer.schema.hex()} in the device"
        )
    if hello.device_class not in (DeviceClass.ANY, answer.device_class):
        raise WrongDevice(
            f"expected a {hello.device_class.name.lower()}, found a "
            f"{answer.device_class.name.lower()}"
        )
    return version
