"""Content of the key files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from drivers.keys.private_files import KeyProblem, key_problem, open_private
from drivers.ports import SERIAL_ALLOWED, is_serial
from firmware_protocol.messages import DeviceClass
from firmware_protocol.tablelink import fingerprint, fingerprint_of, fingerprint_text

SUFFIX: Final = ".json"
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_MOST: Final = 64 * 1024
"""Limit of bytes that are read of a key file."""

__all__ = ["SUFFIX", "HostFile", "KeyProblem", "PairedDevice"]


class PairedDevice(Struct, frozen=True):
    """A device that was paired with this host."""

    device_class: DeviceClass
    serial: str
    maker: str
    model: str
    key: bytes
    """Its public key, 32 bytes."""
    paired_at: str
    """UTC, as 2026-07-29T17:30:00Z."""
    by: tuple[str, str]
    """The two people."""

    @property
    def fingerprint(self) -> str:
        """Fingerprint of its key as text."""
        return fingerprint_text(fingerprint(self.key))

    def __repr__(self) -> str:
        return f"Paired({self.device_class.name}, {self.serial!r}, {self.fingerprint})"


class HostFile(Struct, frozen=True, forbid_unknown_fields=True):
    """Content of host.json. The fingerprint detects damage: a key alone has no redundancy."""

    format: Literal[1]
    private_key_hex: str
    fingerprint: str

    @classmethod
    def of(cls, key: X25519PrivateKey) -> Self:
        return cls(1, key.private_bytes_raw().hex(), _fingerprint(key))

    def private_key(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(bytes.fromhex(self.private_key_hex))

    def encode(self) -> bytes:
        return _encode(self)

    def __repr__(self) -> str:
        return f"HostFile({self.fingerprint})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("fingerprint", self.fingerprint)]


class _DeviceFile(Struct, frozen=True, forbid_unknown_fields=True):
    format: Literal[1]
    device_class: Literal["shoe", "shuffler", "station"]
    serial: str
    maker: str
    model: str
    key: str
    fingerprint: str
    paired_at: str
    by: tuple[str, str]


class _HistoryLine(Struct, frozen=True):
    what: Literal["paired", "forgotten"]
    at: str
    by: tuple[str, str]
    serial: str
    fingerprint: str


_F = TypeVar("_F", HostFile, _DeviceFile)


def read_host(file: Path) -> HostFile:
    """Read the host's key. Raises KeyProblem."""
    found = _decode(file, HostFile)
    if not _KEY.fullmatch(found.private_key_hex):
        raise damaged(file, "its key is not 64 digits 0 to 9 and a to f")
    if found.fingerprint != _fingerprint(found.private_key()):
        raise damaged(file, "its key and its fingerprint do not belong together")
    return found


def read_device(file: Path) -> PairedDevice:
    """Read a paired device. Raises KeyProblem."""
    found = _decode(file, _DeviceFile)
    if file.name != f"{found.serial}{SUFFIX}":
        raise damaged(file, f"it is that of the device {found.serial!r}")
    if not _KEY.fullmatch(found.key):
        raise damaged(file, "its key is not 64 digits 0 to 9 and a to f")
    paired = PairedDevice(
        DeviceClass[found.device_class.upper()],
        found.serial,
        found.maker,
        found.model,
        bytes.fromhex(found.key),
        found.paired_at,
        found.by,
    )
    if found.fingerprint != paired.fingerprint:
        raise damaged(file, "its key and its fingerprint do not belong together")
    return paired


def device_file(paired: PairedDevice) -> bytes:
    """Encode the file of a paired device."""
    check_serial(paired.serial)
    name = paired.device_class.name.lower()
    found = _DeviceFile(
        1,
        name,  # type: ignore[arg-type]
        paired.serial,
        paired.maker,
        paired.model,
        paired.key.hex(),
        paired.fingerprint,
        paired.paired_at,
        paired.by,
    )
    return _encode(found)


def history_line(
    what: Literal["paired", "forgotten"],
    paired: PairedDevice,
    *,
    by: tuple[str, str] | None = None,
    at: str | None = None,
) -> bytes:
    line = _HistoryLine(
        what, at or paired.paired_at, by or paired.by, paired.serial, paired.fingerprint
    )
    return msgspec.json.encode(line) + b"\n"


def check_serial(serial: str) -> None:
    """Reject an invalid serial number, which becomes a file name. Raises KeyProblem."""
    if not is_serial(serial):
        raise KeyProblem(repr(serial), "is no serial number", SERIAL_ALLOWED)


def damaged(file: Path, what: str) -> KeyProblem:
    return KeyProblem(str(file), f"is damaged: {what}", "the file from a backup")


def _fingerprint(key: X25519PrivateKey) -> str:
    return fingerprint_text(fingerprint_of(key))


def _encode(found: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def _decode(file: Path, kind: type[_F]) -> _F:
    with open_private(file, os.O_RDONLY) as descriptor:
        try:
            data = os.read(descriptor, _MOST)
        except OSError as problem:
            raise key_problem(file, "cannot be read", problem) from None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as problem:
        what = str(problem)  # its text names fields and places, never values
    except UnicodeDecodeError:
        what = "it holds bytes that are no text"
    # Not in the handler: UnicodeDecodeError contains all that was read, also the key.
    raise damaged(file, what)
