"""Files that hold keys: who may touch them, how they are written, and what stands in them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from drivers.address import SERIAL_ALLOWED, is_serial
from firmware_protocol.enums import DeviceClass
from firmware_protocol.keys import fingerprint, fingerprint_of, fingerprint_text

SUFFIX: Final = ".json"
_NEW: Final = ".new"
_OTHERS: Final = 0o077
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_MOST: Final = 64 * 1024
"""Bytes of a file that can still be one of ours."""


class KeyProblem(Exception):
    """The keys cannot be used: which file, how it is, how it must be."""

    def __init__(self, where: str, what: str, allowed: str | None) -> None:
        super().__init__(where, what, allowed)
        self.where = where
        self.what = what
        self.allowed = allowed

    def __str__(self) -> str:
        text = f"{self.where}: {self.what}"
        return text if self.allowed is None else f"{text}; allowed: {self.allowed}"


class Paired(Struct, frozen=True):
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
        """Of its key, as people read it."""
        return fingerprint_text(fingerprint(self.key))

    def __repr__(self) -> str:
        return f"Paired({self.device_class.name}, {self.serial!r}, {self.fingerprint})"


# --- what stands in the files -----------------------------------------------------------------


class HostFile(Struct, frozen=True, forbid_unknown_fields=True):
    """host.json. The fingerprint tells damage: of a key alone every bit would be as good."""

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
    """The host's key, or KeyProblem."""
    found = _decode(file, HostFile)
    if not _KEY.fullmatch(found.private_key_hex):
        raise damaged(file, "its key is not 64 digits 0 to 9 and a to f")
    if found.fingerprint != _fingerprint(found.private_key()):
        raise damaged(file, "its key and its fingerprint do not belong together")
    return found


def read_device(file: Path) -> Paired:
    """A paired device, or KeyProblem."""
    found = _decode(file, _DeviceFile)
    if file.name != f"{found.serial}{SUFFIX}":
        raise damaged(file, f"it is that of the device {found.serial!r}")
    if not _KEY.fullmatch(found.key):
        raise damaged(file, "its key is not 64 digits 0 to 9 and a to f")
    paired = Paired(
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


def device_file(paired: Paired) -> bytes:
    """A paired device as its file has it."""
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
    paired: Paired,
    *,
    by: tuple[str, str] | None = None,
    at: str | None = None,
) -> bytes:
    line = _HistoryLine(
        what, at or paired.paired_at, by or paired.by, paired.serial, paired.fingerprint
    )
    return msgspec.json.encode(line) + b"\n"


def check_serial(serial: str) -> None:
    """Refuse what is no serial number: it becomes a file's name."""
    if not is_serial(serial):
        raise KeyProblem(repr(serial), "is no serial number", SERIAL_ALLOWED)


def damaged(file: Path, what: str) -> KeyProblem:
    return KeyProblem(str(file), f"is damaged: {what}", "the file from a backup")


def _fingerprint(key: X25519PrivateKey) -> str:
    return fingerprint_text(fingerprint_of(key))


def _encode(found: Struct) -> bytes:
    return msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n"


def _decode(file: Path, kind: type[_F]) -> _F:
    with opened(file, os.O_RDONLY) as descriptor:
        try:
            data = os.read(descriptor, _MOST)
        except OSError as problem:
            raise failed(file, "cannot be read", problem) from None
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.MsgspecError as problem:
        what = str(problem)  # its words name fields and places, never values
    except UnicodeDecodeError:
        what = "it holds bytes that are no text"
    # Not in the handler: UnicodeDecodeError carries all that was read, the key too.
    raise damaged(file, what)


# --- who may touch them -----------------------------------------------------------------------


def check_directory(place: Path) -> None:
    """KeyProblem unless the directory is there, and ours alone."""
    try:
        found = place.stat()
    except FileNotFoundError:
        raise KeyProblem(
            str(place), "there is no such directory", "`holecard devices init` makes one"
        ) from None
    except OSError as problem:
        raise failed(place, "cannot be looked at", problem) from None
    if not stat.S_ISDIR(found.st_mode):
        raise KeyProblem(str(place), "is no directory", "a directory for keys alone")
    _check(place, found, "700")


@contextmanager
def opened(file: Path, flags: int) -> Iterator[int]:
    """A descriptor of this file, made 0600 if it is made; KeyProblem if it is not ours alone."""
    try:
        descriptor = os.open(file, flags | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except FileNotFoundError:
        raise KeyProblem(str(file), "is missing", "the file from a backup") from None
    except OSError as problem:
        raise failed(file, "cannot be opened", problem) from None
    try:
        found = _looked_at(file, descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise KeyProblem(str(file), "is no file", "a file")
        _check(file, found, "600")
        yield descriptor
    finally:
        os.close(descriptor)


def exists(place: Path) -> bool:
    """Whether there is something of this name. KeyProblem where that cannot be told: what only
    cannot be seen must not be taken as missing."""
    try:
        os.lstat(place)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as problem:
        raise failed(place, "cannot be looked at", problem) from None
    return True


def listed(place: Path) -> list[Path]:
    """The files of devices in this directory, by name."""
    try:
        names = sorted(os.listdir(place))
    except OSError as problem:
        raise failed(place, "cannot be looked into", problem) from None
    return [place / name for name in names if name.endswith(SUFFIX)]


def _looked_at(file: Path, descriptor: int) -> os.stat_result:
    try:
        return os.fstat(descriptor)
    except OSError as problem:
        raise failed(file, "cannot be looked at", problem) from None


def _check(place: Path, found: os.stat_result, mode: str) -> None:
    if found.st_uid != os.geteuid():
        raise KeyProblem(
            str(place),
            f"belongs to the user with number {found.st_uid}, not to us ({os.geteuid()})",
            f"to run as that user, or: chown {os.geteuid()} {place}",
        )
    if found.st_mode & _OTHERS:
        raise KeyProblem(
            str(place),
            f"others may touch it (mode {stat.S_IMODE(found.st_mode):o})",
            f"mode {mode}: chmod {mode} {place}",
        )


# --- how they are written ---------------------------------------------------------------------


def make_directory(place: Path) -> None:
    """Make it, durably, unless it is there."""
    try:
        place.mkdir(mode=0o700)
        _sync_directory(place.parent)
    except FileExistsError:
        check_directory(place)
    except OSError as problem:
        raise failed(place, "cannot be made", problem) from None


def write(file: Path, data: bytes, *, once: bool = False) -> None:
    """Put these bytes into the file, durably: it holds the old ones or the new ones, whenever
    power goes. With `once`, a file that is there already stays as it is."""
    new = file.with_name(file.name + _NEW)
    try:
        new.unlink(missing_ok=True)  # left by one that was cut short; we hold the lock
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_all(descriptor, data)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if once:
            _link(new, file)
        else:
            new.replace(file)
        _sync_directory(file.parent)
    except OSError as problem:
        raise failed(file, "cannot be written", problem) from None


def append(file: Path, line: bytes) -> None:
    """Add a line, durably. One that was cut short before it is ended first."""
    with opened(file, os.O_RDWR | os.O_CREAT | os.O_APPEND) as descriptor:
        try:
            size = os.fstat(descriptor).st_size
            torn = size > 0 and os.pread(descriptor, 1, size - 1) != b"\n"
            _write_all(descriptor, b"\n" * torn + line)
            os.fsync(descriptor)
            _sync_directory(file.parent)
        except OSError as problem:
            raise failed(file, "cannot be written", problem) from None


def remove(file: Path) -> None:
    """Remove the file, durably."""
    try:
        file.unlink()
        _sync_directory(file.parent)
    except OSError as problem:
        raise failed(file, "cannot be removed", problem) from None


def failed(place: Path, what: str, problem: OSError) -> KeyProblem:
    reason = (problem.strerror or type(problem).__name__).lower()
    return KeyProblem(str(place), f"{what}: {reason}", None)


def _link(new: Path, file: Path) -> None:
    try:
        os.link(new, file)  # unlike a rename it never replaces a key that is there
    except FileExistsError:
        pass
    finally:
        new.unlink()


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _sync_directory(place: Path) -> None:
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
