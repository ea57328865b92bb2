"""Directories of keys, and files in them that are not as they must be."""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, x25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from controller.audit.keys import Role, create_key

WITNESS: Final = "floor.example/archive"
NAMES: Final[dict[Role, str | None]] = {
    "table": None,
    "hole": None,
    "surveillance": None,
    "witness": WITNESS,
}
PKCS8: Final = (Encoding.PEM, PrivateFormat.PKCS8)


def filled(place: Path) -> Path:
    """A directory with a key of each kind."""
    for role, name in NAMES.items():
        create_key(place, role, name)
    return place


def contents(place: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in place.iterdir() if file.name != "lock"}


def mode(place: Path) -> int:
    return stat.S_IMODE(place.stat().st_mode)


def _changed(data: bytes, at: int) -> bytes:
    """With another letter of base64 or digit of hex there."""
    return data[:at] + (b"1" if data[at] == ord("0") else b"0") + data[at:][1:]


ED, X = ed25519.Ed25519PrivateKey.generate(), x25519.X25519PrivateKey.generate()
FOREIGN: Final[dict[str, tuple[bytes, str]]] = {
    "empty": (b"", "is empty"),
    "blank": (b" \n\n", "is empty"),
    "words": (b"the key is under the mat\n", "holds no PEM"),
    "bytes": (b"\xff\xfe\x00", "holds bytes that are no text"),
    "encrypted": (
        ED.private_bytes(*PKCS8, BestAvailableEncryption(b"secret")),
        "holds an encrypted key, and nobody is there to type a passphrase",
    ),
    "public": (
        ED.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "holds a public key, not a private one",
    ),
    "openssh": (
        ED.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()),
        "holds a PEM block of another kind: OPENSSH PRIVATE KEY",
    ),
    "elliptic": (
        ec.generate_private_key(ec.SECP256R1()).private_bytes(*PKCS8, NoEncryption()),
        "holds another kind of key",
    ),
    "traditional": (
        ec.generate_private_key(ec.SECP256R1()).private_bytes(
            Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()
        ),
        "holds a PEM block of another kind: EC PRIVATE KEY",
    ),
    "Ed448": (
        ed448.Ed448PrivateKey.generate().private_bytes(*PKCS8, NoEncryption()),
        "holds another kind of key",
    ),
    "certificate": (
        b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "holds a PEM block of another kind: CERTIFICATE",
    ),
    "two": (ED.private_bytes(*PKCS8, NoEncryption()) * 2, "holds more than one PEM block"),
    "cut short": (
        ED.private_bytes(*PKCS8, NoEncryption())[:60],
        "is damaged: its PEM holds no key",
    ),
    "no key in it": (
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "is damaged: its PEM holds no key",
    ),
}
"""What may lie where a private key of the record should, and what is said of it."""

Change = Callable[[dict[str, bytes]], bytes]
CHANGED: Final[dict[str, tuple[str, Change, str]]] = {
    "surveillance's key for the table's": (
        "table.key",
        lambda was: was["surveillance.key"],
        "holds another kind of key",
    ),
    "the table's key for surveillance's": (
        "surveillance.key",
        lambda was: was["table.key"],
        "holds another kind of key",
    ),
    "the witness's key for the table's": (
        "table.key",
        lambda was: was["witness.key"],
        "does not belong to table.pub",
    ),
    "the table's key for the witness's": (
        "witness.key",
        lambda was: was["table.key"],
        "does not belong to witness.pub",
    ),
    "another surveillance's key": (
        "surveillance.key",
        lambda _: X.private_bytes(*PKCS8, NoEncryption()),
        "does not belong to surveillance.pub",
    ),
    "a bit of a private key": (
        "surveillance.key",
        lambda was: _changed(was["surveillance.key"], 70),
        "does not belong to surveillance.pub",
    ),
    "a private key for a public one": (
        "surveillance.pub",
        lambda was: was["surveillance.key"],
        "holds a PEM block",
    ),
    "the table's public key for surveillance's": (
        "surveillance.pub",
        lambda was: was["table.pub"],
        "holds a public key of a table",
    ),
    "the hole key for a public key": (
        "surveillance.pub",
        lambda was: was["hole.key"],
        "holds a hole key of a table",
    ),
    "a public key for the hole key": (
        "hole.key",
        lambda was: was["surveillance.pub"],
        "holds a public key of surveillance",
    ),
    "something else": (
        "hole.key",
        lambda was: was["hole.key"].replace(b"hole key", b"door key"),
        "says that it is something else",
    ),
    "a digit of the hole key": (
        "hole.key",
        lambda was: _changed(was["hole.key"], -2),
        "its key and its fingerprint do not belong together",
    ),
    "a hole key cut short": (
        "hole.key",
        lambda was: was["hole.key"][:-3],
        "its key is not 64 hex digits",
    ),
    "a hole key alone": (
        "hole.key",
        lambda was: was["hole.key"].partition(b"\n")[2],
        "is not a comment with a fingerprint and a line below it",
    ),
    "a public key cut short": (
        "table.pub",
        lambda was: was["table.pub"][:-6],
        "its key is not base64 of 32 bytes",
    ),
    "a letter of a public key": (
        "surveillance.pub",
        lambda was: _changed(was["surveillance.pub"], -20),
        "its key and its fingerprint do not belong together",
    ),
    "two lines": (
        "table.pub",
        lambda was: was["table.pub"] + was["table.pub"],
        "is not a comment with a fingerprint and a line below it",
    ),
    "an empty public key": ("witness.pub", lambda _: b"", "is empty"),
    "a public key that is no text": (
        "witness.pub",
        lambda _: b"\xff\xfe",
        "holds bytes that are no text",
    ),
    "a verifier key with another name": (
        "witness.pub",
        lambda was: was["witness.pub"].replace(b"floor", b"flaor"),
        "holds no verifier key, or a damaged one",
    ),
    "two verifier keys": (
        "witness.pub",
        lambda was: was["witness.pub"] * 2,
        "holds no verifier key, or a damaged one",
    ),
    "a hole key for a verifier key": (
        "witness.pub",
        lambda was: was["hole.key"],
        "holds no verifier key, or a damaged one",
    ),
}
"""Which file, what it then holds, and what is said of it (or of the private key beside it)."""


def secrets_of(place: Path) -> tuple[str, ...]:
    """What nobody may be shown: the inner lines of the PEMs, and the hole key."""
    lines = [
        line
        for file in place.glob("*.key")
        for line in file.read_text(errors="replace").splitlines()
        if len(line) > 40 and not line.startswith("#")
    ]
    return tuple(part for line in lines for part in (line, line[20:40]))
