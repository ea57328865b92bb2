"""The folder of a simulated device: its identity, its paired host and its state, in private files.

    identity = create_identity(Path("shoe-1"), DeviceClass.SHOE, "SH-0001")
    identity.label_text            # the text that the maker prints and seals

Files are written atomically; only the device itself reads its private key. Errors of the system are
raised as OSError with the name of the file, which the error of a write to a full disk does not
contain.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Final, Literal

import msgspec
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from firmware_protocol.messages import RING_LEAST, DeviceClass, ProtocolError
from firmware_protocol.tablelink import (
    LABEL_SIZE,
    fingerprint,
    label_text,
    public_bytes,
    read_label,
)


class FolderProblem(Exception):
    """A file in the device's folder is unusable: where, what, and what is allowed."""

    def __init__(self, where: Path | str, what: str, allowed: str) -> None:
        super().__init__(f"{where}: {what}; allowed: {allowed}")
        self.where = str(where)
        self.what = what
        self.allowed = allowed


class DeviceFolder(Struct, frozen=True):
    """Paths of the files of one device. `kept` has the state of the core, `mechanism` that of the
    cards and buttons."""

    folder: Path
    sync: bool = True
    """Whether a write is durable when it returns; tests do without."""

    @property
    def identity(self) -> Path:
        return self.folder / "identity.toml"

    @property
    def host(self) -> Path:
        return self.folder / "host"

    @property
    def ring(self) -> Path:
        return self.folder / "ring"

    @property
    def ring_copy(self) -> Path:
        return self.folder / "ring.saved"

    @property
    def kept(self) -> Path:
        return self.folder / "kept"

    @property
    def mechanism(self) -> Path:
        return self.folder / "mechanism"

    @property
    def all(self) -> tuple[Path, ...]:
        """Every path that a device uses."""
        return self.identity, self.host, self.ring, self.ring_copy, self.kept, self.mechanism


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Raises an OSError of the block again with the name of this file."""
    try:
        yield
    except OSError as problem:
        why = problem.strerror or str(problem)
        raise OSError(problem.errno, why, str(path)) from problem


def make_folder(folder: Path) -> list[Path]:
    """Create the folder and its missing parents. Returns those that were created, the innermost
    first. Nothing is left after an OSError."""
    missing = []
    for one in (folder, *folder.parents):
        if one.exists():
            break
        missing.append(one)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        remove_folders(missing)
        raise
    return missing


def remove_folders(folders: list[Path]) -> None:
    """Remove the folders that make_folder() created, if they are still empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def write_atomic(path: Path, data: bytes, *, sync: bool, once: bool = False) -> None:
    """Replace the content of the file atomically: after a power cut or on a full disk it has either
    the old or the new content. With `sync` the write is durable. Raises FileExistsError if `once`
    is set and the file exists."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new" if once else f"{path.name}.new")
    with naming(path):
        try:
            _fill(fresh, data, sync=sync)
            if once:
                os.link(fresh, path)  # unlike a rename, it never replaces another file
                fresh.unlink()
            else:
                fresh.replace(path)
        except OSError:
            with suppress(OSError):  # the first error is the one to report
                fresh.unlink()
            raise
        if sync:
            _sync_folder(path.parent)


def _fill(path: Path, data: bytes, *, sync: bool) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        if sync:
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_at(path: Path, data: bytes, at: int, *, sync: bool) -> None:
    """Write all of `data` at offset `at`; durable on return if `sync` is set."""
    with naming(path):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            while data:
                written = os.pwrite(descriptor, data, at)
                data, at = data[written:], at + written
            if sync:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)


def read_file(path: Path) -> bytes:
    """Returns the content of the file; b"" if it does not exist."""
    try:
        with naming(path):
            return path.read_bytes()
    except FileNotFoundError:
        return b""


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*")


class StateStore:
    """Values by name in one folder. They are durable when save() or next_number() returns."""

    def __init__(self, folder: Path, *, sync: bool) -> None:
        self._folder = folder
        self._sync = sync
        make_folder(folder)

    def save(self, name: str, data: bytes) -> None:
        write_atomic(self._path(name, ""), data, sync=self._sync)

    def load(self, name: str) -> bytes:
        return read_file(self._path(name, ""))

    def next_number(self, name: str) -> int:
        """Count up the number of this name, and return it; the first is 1."""
        number = self.last_number(name) + 1
        self.set_number(name, number)
        return number

    def last_number(self, name: str) -> int:
        path = self._path(name, ".number")
        text = read_file(path)
        if not text:
            return 0
        try:
            return int(text)
        except ValueError:
            raise FolderProblem(path, "holds no number", "decimal digits") from None

    def set_number(self, name: str, number: int) -> None:
        write_atomic(self._path(name, ".number"), b"%d\n" % number, sync=self._sync)

    def _path(self, name: str, ending: str) -> Path:
        if not _NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a value; allowed: {_NAME.pattern}")
        return self._folder / f"{name}{ending}"


# --- the identity ---------------------------------------------------------------------------

RandomBytes = Callable[[int], bytes]
"""Returns so many random bytes for keys."""

FIRMWARE: Final = "holecard-sim-1"
MAKER: Final = "Holecard"
MODELS: Final = {
    DeviceClass.SHOE: "Sim shoe",
    DeviceClass.SHUFFLER: "Sim shuffler",
    DeviceClass.STATION: "Sim station",
}
_KEY_SIZE: Final = 32
_SERIAL: Final = re.compile(r"[A-Za-z0-9._-]{1,20}")
SERIAL_ALLOWED: Final = "1 to 20 of A-Z a-z 0-9 . _ -"
_AS_MADE: Final = "the file that was written when the device was created"
_TEXT: Final = re.compile(r"[!-~](?:[ -~]{0,14}[!-~])?")


class DeviceIdentity(Struct, frozen=True, dict=True):
    device_class: DeviceClass
    maker: str
    model: str
    serial: str
    key: bytes
    """The private key."""
    label: bytes
    """The code under the seal, without its checksum."""
    firmware: str
    """Version text of the installed firmware."""
    capacity: int
    """Capacity of a new ring in records."""

    @property
    def private(self) -> X25519PrivateKey:
        return X25519PrivateKey.from_private_bytes(self.key)

    @cached_property
    def public(self) -> bytes:
        return public_bytes(self.private)

    @cached_property
    def fingerprint(self) -> bytes:
        return fingerprint(self.public)

    @cached_property
    def label_text(self) -> str:
        return label_text(self.label)

    @property
    def digest(self) -> bytes:
        """Represents the SHA-256 of the firmware image."""
        return hashlib.sha256(self.firmware.encode()).digest()

    def __repr__(self) -> str:
        return f"Identity({self.device_class.name.lower()} {self.serial})"


class _IdentityFile(
    Struct, frozen=True, forbid_unknown_fields=True, rename={"device_class": "class"}
):
    device_class: Literal["shoe", "shuffler", "station"]
    maker: str
    model: str
    serial: str
    key: str
    label: str
    firmware: str
    ring: int


def create_identity(
    folder: Path,
    device_class: DeviceClass,
    serial: str,
    *,
    maker: str = MAKER,
    model: str | None = None,
    rng: RandomBytes = secrets.token_bytes,
    capacity: int = RING_LEAST,
) -> DeviceIdentity:
    """Create a device that was never switched on. Raises FolderProblem if its folder has one."""
    place = DeviceFolder(folder)
    if device_class not in MODELS:
        raise FolderProblem(folder, f"{device_class.name} is no class of a device", _names())
    if place.identity.exists():
        raise FolderProblem(folder, "holds a device already", "an empty folder")
    identity = DeviceIdentity(
        device_class=device_class,
        maker=maker,
        model=MODELS[device_class] if model is None else model,
        serial=serial,
        key=rng(_KEY_SIZE),
        label=rng(LABEL_SIZE),
        firmware=FIRMWARE,
        capacity=capacity,
    )
    _check(identity, place.identity)
    made = make_folder(folder)
    try:
        save_identity(folder, identity, once=True)
    except FileExistsError:  # created by another process in between
        raise FolderProblem(folder, "holds a device already", "an empty folder") from None
    except OSError:
        remove_folders(made)
        raise
    return identity


def save_identity(folder: Path, identity: DeviceIdentity, *, once: bool = False) -> None:
    fields = {
        "class": identity.device_class.name.lower(),
        "maker": identity.maker,
        "model": identity.model,
        "serial": identity.serial,
        "key": identity.key.hex(),
        "label": identity.label_text,
        "firmware": identity.firmware,
        "ring": identity.capacity,
    }
    # For these characters, JSON strings are TOML strings.
    lines = "".join(f"{name} = {json.dumps(value)}\n" for name, value in fields.items())
    write_atomic(DeviceFolder(folder).identity, lines.encode(), sync=True, once=once)


def load_identity(folder: Path) -> DeviceIdentity:
    """Read the identity of the device in this folder. Raises FolderProblem."""
    path = DeviceFolder(folder).identity
    data = read_file(path)
    if not data:
        raise FolderProblem(path, "is missing or empty", _AS_MADE)
    try:
        file = msgspec.toml.decode(data, type=_IdentityFile)
        identity = DeviceIdentity(
            device_class=DeviceClass[file.device_class.upper()],
            maker=file.maker,
            model=file.model,
            serial=file.serial,
            key=bytes.fromhex(file.key),
            label=read_label(file.label),
            firmware=file.firmware,
            capacity=file.ring,
        )
    except (msgspec.DecodeError, ProtocolError, ValueError) as problem:
        raise FolderProblem(path, str(problem), _AS_MADE) from None
    _check(identity, path)
    return identity


def is_device_serial(text: str) -> bool:
    """Whether this is a valid serial number."""
    return _SERIAL.fullmatch(text) is not None


def _check(identity: DeviceIdentity, path: Path) -> None:
    for name, value in (("maker", identity.maker), ("model", identity.model)):
        if not _TEXT.fullmatch(value):
            raise FolderProblem(path, f"{name} {value!r}", "1 to 16 printable ASCII characters")
    if not is_device_serial(identity.serial):
        raise FolderProblem(path, f"serial {identity.serial!r}", SERIAL_ALLOWED)
    if len(identity.key) != _KEY_SIZE:
        raise FolderProblem(path, f"key of {len(identity.key)} bytes", f"{_KEY_SIZE} bytes")
    if not RING_LEAST <= identity.capacity <= 0xFFFF:
        raise FolderProblem(path, f"ring of {identity.capacity} records", f"{RING_LEAST} to 65535")


def _names() -> str:
    return ", ".join(one.name.lower() for one in MODELS)


# --- the paired host ------------------------------------------------------------------------


def paired_host(folder: Path) -> bytes | None:
    """The public key of the paired host; None if no host is paired."""
    path = DeviceFolder(folder).host
    text = read_file(path)
    if not text:
        return None
    try:
        key = bytes.fromhex(text.decode("ascii"))
    except ValueError:
        key = b""
    if len(key) != _KEY_SIZE:
        raise FolderProblem(path, "holds no public key", "64 hexadecimal digits")
    return key


def pair_directly(folder: Path, host_public_key: bytes) -> None:
    """Pair without label, switch and record, for tests and demos. A running device reads the key at
    the next HELLO."""
    path = DeviceFolder(folder).host
    if len(host_public_key) != _KEY_SIZE:
        raise FolderProblem(path, f"key of {len(host_public_key)} bytes", "32 bytes")
    write_atomic(path, host_public_key.hex().encode() + b"\n", sync=True)
