"""The keys of a run: the host's own, and those of the devices that are paired with it."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from controller.errors import UsageProblem
from drivers.keys import KeyProblem, KeyStore, keys_directory

_HEX: Final = re.compile(r"[0-9A-Fa-f]{64}")
_DIGITS: Final = "64 hexadecimal digits"


class Keyring:
    """The host's key, and the device's key if it is known."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.absent = ""
        """Why the key of a device is unknown; empty: it is not in the store."""
        self._store: KeyStore | None = None
        self._device = _device_key(args.device_key)
        if args.keys is not None and (args.host_key is not None or self._device):
            raise UsageProblem("--keys", "the keys come from one place", "--keys or --host-key")
        if args.device_key is not None and args.host_key is None:
            raise UsageProblem("--device-key", "it belongs to a host key", "--host-key FILE too")
        if args.host_key is not None:
            self.own = _host_key(args.host_key)
            self.absent = "--device-key does not give the device's public key"
        elif args.control is not None and args.keys is None:
            self.own = X25519PrivateKey.generate()  # the simulated device will be paired with it
        elif args.keys is None and _missing(keys_directory(None)):
            # A new device of a maker cannot be paired yet.
            self.own = X25519PrivateKey.generate()
            self.absent = (
                f"there is no key store {keys_directory(None)}; `holecard devices init` makes one"
            )
        else:
            self._store, self.own = _opened(keys_directory(args.keys))

    def device(self, serial: str) -> bytes | None:
        """The device's public key, or None."""
        if self._store is None:
            return self._device
        try:
            found = self._store.find(serial)
        except KeyProblem as problem:
            raise UsageProblem(problem.where, problem.what, problem.allowed) from None
        return None if found is None else found.key


def _missing(directory: Path) -> bool:
    try:
        directory.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        pass  # the key store reports the error
    return False


def _opened(directory: Path) -> tuple[KeyStore, X25519PrivateKey]:
    try:
        store = KeyStore(directory)
        return store, store.own()
    except KeyProblem as problem:
        raise UsageProblem(problem.where, problem.what, problem.allowed) from None


def _host_key(file: Path) -> X25519PrivateKey:
    try:
        if file.stat().st_mode & 0o077:
            raise UsageProblem("--host-key", f"{file} is open to others", f"chmod 600 {file}")
        text = file.read_text(encoding="ascii").strip()
    except OSError as problem:
        raise UsageProblem("--host-key", f"{file}: {problem.strerror}", "a file") from None
    except UnicodeDecodeError:
        text = ""
    if not _HEX.fullmatch(text):
        raise UsageProblem("--host-key", f"{file} has no private key", _DIGITS)
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def _device_key(text: str | None) -> bytes | None:
    if text is None:
        return None
    if not _HEX.fullmatch(text):
        raise UsageProblem("--device-key", f"{text!r} is no public key", _DIGITS)
    key = bytes.fromhex(text)
    try:
        X25519PrivateKey.generate().exchange(X25519PublicKey.from_public_bytes(key))
    except ValueError:
        raise UsageProblem("--device-key", f"{text!r} is no device's key", _DIGITS) from None
    return key
