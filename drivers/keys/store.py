"""Key store of a host: its own key, and those of its paired devices.

    DIRECTORY/            0700, of this user
      host.json           the host's key pair, created once
      devices/SERIAL.json one file per paired device: its key, and who paired it when
      history.jsonl       one line per pairing and removal, append-only
      lock                locked during changes

A program that can read host.json can act as this host. A directory or file that other users may
access is rejected and not repaired, and a damaged file is rejected and not skipped, so that people
learn of it.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, Self, TypeVar

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from drivers.keys import private_files
from drivers.keys.private_files import KeyProblem, key_problem, open_private
from drivers.ports import SERIAL_ALLOWED, is_serial
from firmware_protocol.messages import DeviceClass
from firmware_protocol.tablelink import fingerprint, fingerprint_of, fingerprint_text

KEYS_VARIABLE: Final = "HOLECARD_KEYS"
"""The variable that names the directory."""
HOST: Final = "host.json"
DEVICES: Final = "devices"
HISTORY: Final = "history.jsonl"
LOCK: Final = "lock"
_ROOM: Final = 1024
"""Bytes of the largest device file, about."""
LOCK_TIMEOUT: Final = 5.0
"""Timeout for the lock. A change takes milliseconds."""
SUFFIX: Final = ".json"
_KEY: Final = re.compile(r"[0-9a-f]{64}")
_MAX_FILE_BYTES: Final = 64 * 1024
"""Limit of bytes that are read of a key file."""

# --- content of the files ----------------------------------------------------------------------


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
            data = os.read(descriptor, _MAX_FILE_BYTES)
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


# --- the store ---------------------------------------------------------------------------------


def keys_directory(given: Path | None) -> Path:
    """The directory of the keys: as given, else from the environment, else in the user's settings.
    Raises KeyProblem if there is no such place."""
    if given is not None:
        return given
    if named := os.environ.get(KEYS_VARIABLE):
        return Path(named)
    base = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    try:
        return Path(base).expanduser() / "holecard" / "keys"
    except RuntimeError:
        raise KeyProblem(
            f"${KEYS_VARIABLE}", "is not set, and this user has no home", "a path"
        ) from None


class KeyStore:
    """The keys in a private directory. Raises KeyProblem if it does not exist or is not private."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        private_files.check_private_directory(directory)
        if private_files.path_exists(self._devices):
            private_files.check_private_directory(self._devices)

    @classmethod
    def create(cls, directory: Path) -> KeyStore:
        """Create the directory and the host's key. Raises KeyProblem if there is a key, and then
        leaves no directory that was created for it."""
        made = _make(directory)
        try:
            store = cls(directory)
            with store._locked():
                if private_files.path_exists(directory / HOST):
                    raise KeyProblem(
                        str(directory), "the host has its key already", "another directory"
                    )
                store._begin(new=bool(made))
        except KeyProblem:
            _unmake(made)
            raise
        return store

    def own(self) -> X25519PrivateKey:
        """The host's key. An empty store creates it, and may block on the lock."""
        if not private_files.path_exists(self.directory / HOST):
            with self._locked():
                self._make_own()
        return self.existing_own()

    def existing_own(self) -> X25519PrivateKey:
        """The host's key, which must exist. Does not block: may be called on an event loop."""
        return read_host(self.directory / HOST).private_key()

    def devices(self) -> list[PairedDevice]:
        """All paired devices, by serial number."""
        return [read_device(file) for file in self._files()]

    def find(self, serial: str) -> PairedDevice | None:
        """The device with this serial number, if it is paired."""
        file = self._file(serial)
        return read_device(file) if private_files.path_exists(file) else None

    def add(self, paired: PairedDevice, *, replace: bool = False) -> None:
        """Store a device's key durably. Raises KeyProblem if it exists, without `replace`."""
        with self._locked():
            file = self._file(paired.serial)
            if not replace and private_files.path_exists(file):
                raise KeyProblem(str(file), "this device is paired already", "to replace it")
            private_files.make_private_directory(self._devices)
            with private_files.private_file_written(file, device_file(paired)):
                line = history_line("paired", paired)
                private_files.append_line(self.directory / HISTORY, line)

    def forget(self, serial: str, by: tuple[str, str], at: str) -> None:
        """Remove a device's key. It must be paired again before it is served."""
        with self._locked():
            paired = self.find(serial)
            if paired is None:
                raise KeyProblem(str(self._file(serial)), "no such device is paired", None)
            line = history_line("forgotten", paired, by=by, at=at)
            private_files.append_line(self.directory / HISTORY, line)
            private_files.remove_file(self._file(serial))

    def check_room(self) -> None:
        """Raises KeyProblem if no key could be stored now: before a pairing, not after it."""
        with self._locked():
            private_files.make_private_directory(self._devices)
            private_files.check_free_space(self._devices / "room", _ROOM)

    @property
    def _devices(self) -> Path:
        return self.directory / DEVICES

    def _files(self) -> list[Path]:
        if not private_files.path_exists(self._devices):
            return []
        return private_files.list_files(self._devices, SUFFIX)

    def _file(self, serial: str) -> Path:
        check_serial(serial)
        return self._devices / f"{serial}{SUFFIX}"

    def _begin(self, *, new: bool) -> None:
        """Create the host's key in a new store; the caller holds the lock. If the key cannot be
        written, the lock file is removed too, and other waiting processes notice."""
        try:
            self._make_own()
        except KeyProblem:
            if new:
                with suppress(OSError):
                    (self.directory / LOCK).unlink()
            raise

    def _make_own(self) -> None:
        """Create the host's key unless another process has. The caller holds the lock."""
        if private_files.path_exists(self.directory / HOST):
            return
        if self._files():
            # With a new key this host would be unknown to all of them.
            raise KeyProblem(
                str(self.directory / HOST),
                "is missing, and devices are paired with it",
                "the file from a backup",
            )
        key = HostFile.of(X25519PrivateKey.generate())
        private_files.write_private(self.directory / HOST, key.encode(), once=True)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        file = self.directory / LOCK
        with private_files.open_private(file, os.O_RDWR | os.O_CREAT) as lock:
            deadline = time.monotonic() + LOCK_TIMEOUT
            while not _lock(file, lock):
                if time.monotonic() > deadline:
                    raise KeyProblem(str(file), "another program changes the keys", "one at a time")
                time.sleep(0.02)
            if not private_files.is_same_file(file, lock):
                raise KeyProblem(str(file), "was removed while it was waited for", "to try again")
            yield  # closing the file releases the lock


def _make(directory: Path) -> list[Path]:
    """Create the directory and its parents. Returns what was created, the innermost first."""
    missing = []
    try:
        for one in (directory, *directory.parents):
            if private_files.path_exists(one):
                break
            missing.append(one)
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as problem:
        _unmake(missing)
        raise private_files.key_problem(directory, "cannot be made", problem) from None
    return missing


def _unmake(made: list[Path]) -> None:
    """Remove these directories again if they are empty."""
    for directory in made:
        with suppress(OSError):
            directory.rmdir()


def _lock(file: Path, descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as problem:
        raise private_files.key_problem(file, "cannot be locked", problem) from None
    return True
