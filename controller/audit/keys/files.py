"""Encoding and parsing of the key files, and fingerprints of keys.

Private keys are unencrypted PKCS8 in PEM. The public keys of table and surveillance, and the hole
key, are one line below a comment with a title and a fingerprint, because a bare key has no
checksum. A witness's public key is a verifier key, which includes its name and a checksum.

No error quotes what was read: it may be a secret key in the wrong file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from msgspec.structs import replace

from controller.audit.errors import OtherTable
from controller.audit.format.hole_cards import HOLE_KEY_SIZE, HoleKey
from controller.audit.format.notes import (
    KEY_SIZE,
    KeyKind,
    NoteProblem,
    SigningKey,
    VerifierKey,
    base64,
    parse_base64,
    table_name,
)
from controller.audit.format.records import BootIdentity, OpenedData
from firmware_protocol.tablelink import FINGERPRINT_SIZE, fingerprint_text

TABLE: Final = "public key of a table (Ed25519)"
SURVEILLANCE: Final = "public key of surveillance (X25519)"
HOLE: Final = "hole key of a table (secret)"

_TITLES: Final = (TABLE, SURVEILLANCE, HOLE)
_TITLED: Final = re.compile(r"# ([^\n]{1,80}); fingerprint ([0-9A-F-]{39})\n([^\n]{1,100})\n?")
_HEX: Final = re.compile(f"[0-9a-f]{{{2 * HOLE_KEY_SIZE}}}")
_PEM: Final = re.compile(r"-----BEGIN ([A-Z0-9 ]{1,40})-----")
_PKCS8: Final = "PRIVATE KEY"
_REFUSED: Final = {
    "PUBLIC KEY": "holds a public key, not a private one",
    "ENCRYPTED PRIVATE KEY": "holds an encrypted key, and nobody is there to type a passphrase",
}
_PROBE: Final = X25519PrivateKey.from_private_bytes(bytes(32))
"""Any key: used to test whether a key exchange works."""


class BadKeyText(Exception):
    """The file does not contain the expected key."""

    def __init__(self, what: str, allowed: str) -> None:
        super().__init__(what, allowed)
        self.what = what
        self.allowed = allowed


def fingerprint(public: bytes) -> str:
    """Fingerprint of a public key: the first half of its SHA-256."""
    return fingerprint_text(sha256(public).digest()[:FINGERPRINT_SIZE])


def hole_fingerprint(key: HoleKey) -> str:
    """Fingerprint of the hole key; reveals nothing about it."""
    return fingerprint(b"holecard hole key\0" + key.open())


# --- private keys -----------------------------------------------------------------------------


def private_text(key: Ed25519PrivateKey | X25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def read_ed25519(data: bytes) -> Ed25519PrivateKey:
    """Parse a private key in PEM. Raises BadKeyText."""
    found = _loaded(data, "Ed25519")
    if isinstance(found, Ed25519PrivateKey):
        return found
    raise _other("Ed25519")


def read_x25519(data: bytes) -> X25519PrivateKey:
    """Parse a private key in PEM. Raises BadKeyText."""
    found = _loaded(data, "X25519")
    if isinstance(found, X25519PrivateKey):
        return found
    raise _other("X25519")


def _loaded(data: bytes, kind: str) -> object:
    allowed = f"a private {kind} key: PKCS8 in PEM, unencrypted"
    what = _refused(_text(data, allowed))
    if what is None:
        with suppress(ValueError, TypeError, UnsupportedAlgorithm):
            return load_pem_private_key(data, None)
        what = "is damaged: its PEM holds no key"
    raise BadKeyText(what, allowed)


def _other(kind: str) -> BadKeyText:
    return BadKeyText(
        "holds another kind of key", f"a private {kind} key: PKCS8 in PEM, unencrypted"
    )


def _refused(text: str) -> str | None:
    labels = _PEM.findall(text)
    if labels == [_PKCS8]:
        return None
    if not labels:
        return "holds no PEM"
    if len(labels) > 1:
        return "holds more than one PEM block"
    return _REFUSED.get(labels[0], f"holds a PEM block of another kind: {labels[0]}")


# --- one line below a comment -----------------------------------------------------------------


def table_text(public: bytes) -> bytes:
    return _titled(TABLE, fingerprint(public), base64(public))


def read_table(data: bytes) -> bytes:
    """Parse the table's public key. Raises BadKeyText."""
    return _public(TABLE, data)


def surveillance_text(public: bytes) -> bytes:
    return _titled(SURVEILLANCE, fingerprint(public), base64(public))


def read_surveillance(data: bytes) -> X25519PublicKey:
    """Parse surveillance's public key. Raises BadKeyText, also if the key cannot be used for
    encryption."""
    key = X25519PublicKey.from_public_bytes(_public(SURVEILLANCE, data))
    with suppress(ValueError):
        _PROBE.exchange(key)
        return key
    raise BadKeyText("holds a key that nothing can be sealed to", _a(SURVEILLANCE))


def hole_text(key: HoleKey) -> bytes:
    return _titled(HOLE, hole_fingerprint(key), key.open().hex())


def read_hole(data: bytes) -> HoleKey:
    """Parse the hole key. Raises BadKeyText."""
    said, line = _read_titled(HOLE, data)
    if not _HEX.fullmatch(line):
        raise BadKeyText(f"is damaged: its key is not {2 * HOLE_KEY_SIZE} hex digits", _a(HOLE))
    key = HoleKey(bytes.fromhex(line))
    _belong(HOLE, said, hole_fingerprint(key))
    return key


def _public(title: str, data: bytes) -> bytes:
    said, line = _read_titled(title, data)
    public = b""
    with suppress(NoteProblem):  # its message quotes the input
        public = parse_base64(line, KEY_SIZE)
    if not public:
        raise BadKeyText("is damaged: its key is not base64 of 32 bytes", _a(title))
    _belong(title, said, fingerprint(public))
    return public


def _titled(title: str, said: str, line: str) -> bytes:
    return f"# {title}; fingerprint {said}\n{line}\n".encode()


def _read_titled(title: str, data: bytes) -> tuple[str, str]:
    text = _text(data, _a(title))
    if _PEM.search(text):
        raise BadKeyText("holds a PEM block", _a(title))
    found = _TITLED.fullmatch(text)
    if found is None:
        raise BadKeyText("is not a comment with a fingerprint and a line below it", _a(title))
    other, said, line = found.groups()
    if other != title:
        raise BadKeyText(
            f"holds a {other}" if other in _TITLES else "says that it is something else", _a(title)
        )
    return said, line


def _belong(title: str, said: str, found: str) -> None:
    if said != found:
        raise BadKeyText(
            "is damaged: its key and its fingerprint do not belong together", _a(title)
        )


def _a(title: str) -> str:
    return f"a {title}, as it was made"


# --- verifier keys ----------------------------------------------------------------------------

WITNESS: Final = "a witness's verifier key on one line"


def witness_text(key: VerifierKey) -> bytes:
    return f"{key}\n".encode()


def read_witness(data: bytes) -> VerifierKey:
    """Parse a witness's public key with its name. Raises BadKeyText."""
    text = _text(data, WITNESS)
    found = None
    with suppress(NoteProblem):  # its message quotes the input
        found = VerifierKey.parse(text.removesuffix("\n"))
    if found is None or not found.name.isprintable():  # the name will be displayed
        raise BadKeyText("holds no verifier key, or a damaged one", WITNESS)
    if found.kind is not KeyKind.COSIGNATURE:
        raise BadKeyText("holds a key that signs notes and countersigns nothing", WITNESS)
    return found


def _text(data: bytes, allowed: str) -> str:
    if not data.strip():
        raise BadKeyText("is empty", allowed)
    with suppress(UnicodeDecodeError):
        return data.decode()
    # Raised outside of the handler: UnicodeDecodeError contains the input.
    raise BadKeyText("holds bytes that are no text", allowed)


def with_keys(identity: BootIdentity, hole: HoleKey, surveillance: X25519PublicKey) -> BootIdentity:
    """The identity of a boot with these keys."""
    return replace(
        identity,
        hole=hole_fingerprint(hole),
        sealed_to=fingerprint(surveillance.public_bytes_raw()),
    )


def with_previous_keys(identity: BootIdentity, opened: OpenedData) -> BootIdentity:
    """The identity of a boot without keys, which keeps those of the boot before."""
    return replace(identity, hole=opened.hole or "", sealed_to=opened.sealed_to or "")


def changed_keys(
    opened: OpenedData | None, hole: HoleKey, surveillance: X25519PublicKey
) -> Iterator[str]:
    """Warnings for keys that differ from those of the boot before."""
    if opened is None:
        return
    sealed_to, bound = fingerprint(surveillance.public_bytes_raw()), hole_fingerprint(hole)
    if opened.sealed_to and opened.sealed_to != sealed_to:
        yield (
            f"surveillance's key is another one than before: {sealed_to}, it was"
            f" {opened.sealed_to}; from here on hole cards are sealed to the new one"
        )
    if opened.hole and opened.hole != bound:
        yield (
            f"the hole key is another one than before: {bound}, it was {opened.hole};"
            " a card that lies face down now cannot be known again"
        )


def check_table_key(record: Path, opened: OpenedData | None, key: Ed25519PrivateKey) -> None:
    """Raise OtherTable if the record was started with the key of a different table."""
    if opened is None:
        return
    if str(SigningKey(table_name(opened.origin), key).verifier) != opened.table_key:
        what = "was begun with another table's key than the one that is given"
        raise OtherTable(record, what, "name the keys that it was begun with")
