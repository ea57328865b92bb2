"""Text of keys: fingerprints, and the code on a device's sealed label.

A label reads `9C0F-5A11-7B2E-44D0-8E93-C6A7-1F58-02BD-63FA`: 128 random bits and 16 check bits, in
hexadecimal. The check bits reveal a typing error before the device counts a wrong attempt.
"""

from __future__ import annotations

import hashlib
from string import hexdigits
from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from firmware_protocol.messages import BadKey, BadLabelCode

FINGERPRINT_SIZE: Final = 16
LABEL_SIZE: Final = 16
_CHECK_SIZE: Final = 2
_DIGITS: Final = 2 * (LABEL_SIZE + _CHECK_SIZE)


def public_bytes(own: X25519PrivateKey) -> bytes:
    """The public key of a key pair."""
    return own.public_key().public_bytes_raw()


def fingerprint(public_key: bytes) -> bytes:
    """The fingerprint in HELLO, which people compare: BLAKE2b-128("TableLink key" || public
    key)."""
    if len(public_key) != 32:
        raise BadKey(f"a public key has 32 bytes, not {len(public_key)}")
    return hashlib.blake2b(b"TableLink key" + public_key, digest_size=FINGERPRINT_SIZE).digest()


def fingerprint_of(own: X25519PrivateKey) -> bytes:
    """The fingerprint of a key pair."""
    return fingerprint(public_bytes(own))


def fingerprint_text(of: bytes) -> str:
    """Format a fingerprint: eight groups of four digits."""
    return _groups(of)


def label_psk(code: bytes) -> bytes:
    """The pre-shared key of a pairing: BLAKE2b-256("TableLink pair" || code)."""
    _check_size(code)
    return hashlib.blake2b(b"TableLink pair" + code, digest_size=32).digest()


def label_text(code: bytes) -> str:
    """Format the code as printed on the label, with its check bits."""
    _check_size(code)
    return _groups(code + _check(code))


def read_label(text: str) -> bytes:
    """Parse a typed code. Case, blanks and dashes are ignored. Raises BadLabelCode."""
    digits = "".join(text.split()).replace("-", "")
    if not set(digits) <= set(hexdigits):
        raise BadLabelCode("a label code has the digits 0 to 9 and A to F only")
    if len(digits) != _DIGITS:
        raise BadLabelCode(f"a label code has {_DIGITS} digits, not {len(digits)}")
    raw = bytes.fromhex(digits)
    code, check = raw[:LABEL_SIZE], raw[LABEL_SIZE:]
    if check != _check(code):
        raise BadLabelCode("the last group does not fit the rest: a digit was mistyped")
    return code


def _check(code: bytes) -> bytes:
    return hashlib.blake2b(b"TableLink label" + code, digest_size=_CHECK_SIZE).digest()


def _check_size(code: bytes) -> None:
    if len(code) != LABEL_SIZE:
        raise BadLabelCode(f"a label code has {LABEL_SIZE} bytes, not {len(code)}")


def _groups(raw: bytes) -> str:
    digits = raw.hex().upper()
    return "-".join(digits[at : at + 4] for at in range(0, len(digits), 4))
