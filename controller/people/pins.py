"""PINs: validation, and the verifiers that are stored.

    verifier = argon2id(HMAC-SHA-256(people key, badge and PIN), salt)

Six digits are few: from verifiers alone all PINs could be found in minutes. So the PIN goes through
an HMAC first, whose key is stored separately. The badge goes in too, so that a verifier cannot be
moved to a different person. No error text contains a part of a PIN.
"""

from __future__ import annotations

import hmac
import os
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from itertools import pairwise
from typing import Final

from argon2.exceptions import HashingError
from argon2.low_level import Type, hash_secret_raw
from msgspec import Struct

from firmware_protocol.tablelink import FINGERPRINT_SIZE, fingerprint_text

MIN_DIGITS, MAX_DIGITS = 6, 32
ALLOWED: Final = f"{MIN_DIGITS} to {MAX_DIGITS} digits 0 to 9"
BADGE_ALLOWED: Final = "1 to 32 letters, digits, dots, dashes and underscores"
KEY_SIZE: Final = 32
_BADGE: Final = re.compile(r"[A-Za-z0-9._-]{1,32}")
_SALT, _DIGEST = 16, 32
_ENCODED: Final = re.compile(
    r"\$argon2id\$v=19\$m=([1-9][0-9]{0,6}),t=([1-9][0-9]{0,2}),p=([1-9][0-9]?)"
    r"\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})"
)
"""The common encoding of argon2 tools."""
_VERSION: Final = 0x13
_MIN_KIB: Final = 8
"""Per lane."""
MAX_KIB, MAX_PASSES, MAX_LANES = 1 << 20, 64, 16
"""Limits for the cost in a file: a damaged one could take all memory, or hours."""


class BadPin(ValueError):
    """The PIN is not allowed."""

    def __init__(self, what: str, allowed: str) -> None:
        super().__init__(f"{what}; allowed: {allowed}")
        self.what = what
        self.allowed = allowed


class CannotHash(Exception):
    """There is not enough memory for argon2."""


# --- badges and PINs --------------------------------------------------------------------------


def is_badge(text: str) -> bool:
    """Whether `text` is a valid badge. A badge is a name, not a secret."""
    return _BADGE.fullmatch(text) is not None


def folded(badge: str) -> str:
    """The badge for comparisons, independent of case and surrounding blanks."""
    return badge.strip().lower()


def check_pin(pin: str, badge: str) -> None:
    """Raises BadPin if the PIN is too short, not a number, or one of the first guesses."""
    if not pin.isascii() or not pin.isdigit():
        raise BadPin("a PIN has digits only", ALLOWED)
    if not MIN_DIGITS <= len(pin) <= MAX_DIGITS:
        raise BadPin(f"a PIN has {MIN_DIGITS} to {MAX_DIGITS} digits, not {len(pin)}", ALLOWED)
    if _counts(pin):
        raise BadPin("that PIN only counts on, or repeats one digit", "one that nobody guesses")
    if any(_repeats(pin, size) for size in (2, 3)):
        raise BadPin("that PIN repeats itself", "one that nobody guesses")
    if pin in (badge, "".join(filter(str.isdigit, badge))):
        raise BadPin("that PIN is the badge, which everybody sees", "one that nobody guesses")


def _counts(pin: str) -> bool:
    """Whether all digits differ by the same step, modulo 10."""
    steps = {(int(after) - int(before)) % 10 for before, after in pairwise(pin)}
    return len(steps) == 1


def _repeats(pin: str, size: int) -> bool:
    return pin[:-size] == pin[size:]


# --- verifiers --------------------------------------------------------------------------------


class Cost(Struct, frozen=True):
    """The argon2 parameters: the cost of one guess."""

    kib: int
    passes: int
    lanes: int


COST: Final = Cost(64 * 1024, 3, 1)
"""The second recommendation of RFC 9106, with one lane, since the table's loop needs a core."""


class Verifier(Struct, frozen=True):
    """A salted hash of a PIN, with its cost."""

    cost: Cost
    salt: bytes
    digest: bytes

    @classmethod
    def parse(cls, text: str) -> Verifier:
        """Parse the encoded form. Raises ValueError if it is invalid or too costly."""
        found = _ENCODED.fullmatch(text)
        if found is None:
            raise ValueError("is no argon2id verifier")
        cost = Cost(int(found[1]), int(found[2]), int(found[3]))
        if cost.kib > MAX_KIB or cost.passes > MAX_PASSES or cost.lanes > MAX_LANES:
            raise ValueError("asks for more than any verifier may")
        if cost.kib < _MIN_KIB * cost.lanes:
            raise ValueError("asks for less memory than argon2 works with")
        made = cls(cost, _unpadded(found[4]), _unpadded(found[5]))
        if str(made) != text:
            raise ValueError("is not written as a verifier is")
        return made

    def __str__(self) -> str:
        cost = self.cost
        return (
            f"$argon2id$v=19$m={cost.kib},t={cost.passes},p={cost.lanes}"
            f"${_padless(self.salt)}${_padless(self.digest)}"
        )

    def __repr__(self) -> str:
        return f"Verifier({self.cost})"


def _unpadded(text: str) -> bytes:
    return b64decode(text + "=" * (-len(text) % 4))


def _padless(data: bytes) -> str:
    return b64encode(data).decode().rstrip("=")


class PeopleKey:
    """The HMAC key of the PINs. Its repr contains the fingerprint only."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_SIZE:
            raise ValueError(f"a people key has {KEY_SIZE} bytes")
        self._key = key

    @classmethod
    def generate(cls) -> PeopleKey:
        return cls(os.urandom(KEY_SIZE))

    def open(self) -> bytes:
        return self._key

    @property
    def fingerprint(self) -> str:
        """A fingerprint that does not reveal the key."""
        digest = sha256(b"holecard people key\0" + self._key).digest()
        return fingerprint_text(digest[:FINGERPRINT_SIZE])

    def __repr__(self) -> str:
        return f"PeopleKey({self.fingerprint})"

    # --- PINs -----------------------------------------------------------------------------

    def verifier(self, badge: str, pin: str, cost: Cost = COST) -> Verifier:
        """A new verifier for the PIN of a badge. Raises CannotHash."""
        salt = os.urandom(_SALT)
        return Verifier(cost, salt, self._digest(badge, pin, salt, cost))

    def fits(self, verifier: Verifier, badge: str, pin: str) -> bool:
        """Whether it is the badge's PIN. The time depends on the cost only."""
        digest = self._digest(badge, pin, verifier.salt, verifier.cost)
        return hmac.compare_digest(digest, verifier.digest)

    def decoy(self, badge: str, costs: tuple[Cost, ...]) -> Verifier:
        """A verifier for an unknown badge, which no PIN fits: deterministic, with one of these
        costs."""
        drawn = self._mac(b"decoy", badge)
        cost = costs[int.from_bytes(drawn[:8]) % len(costs)] if costs else COST
        return Verifier(cost, drawn[-_SALT:], bytes(_DIGEST))

    def lock(self, badge: str, verifier: Verifier) -> str:
        """The key under which wrong PINs of this badge are counted; it changes with the PIN. It
        does not contain the badge, because users sometimes type the PIN there."""
        return self._mac(b"lock", badge, verifier.salt.hex())[:8].hex()

    def _digest(self, badge: str, pin: str, salt: bytes, cost: Cost) -> bytes:
        secret = self._mac(b"pin", badge, pin)
        try:
            return hash_secret_raw(
                secret, salt, cost.passes, cost.kib, cost.lanes, _DIGEST, Type.ID, _VERSION
            )
        except HashingError as problem:
            raise CannotHash(f"the PIN cannot be checked: {problem}") from None

    def _mac(self, use: bytes, *texts: str) -> bytes:
        texts = (folded(texts[0]), *texts[1:])
        parts = [text.encode("utf-8", "surrogatepass") for text in texts]
        framed = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
        return hmac.digest(self._key, b"holecard-people-v1\0" + use + b"\0" + framed, "sha256")
