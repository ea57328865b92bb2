"""Commitments to hole cards, and their encryption to surveillance.

  commit(table, cursor, body, hole_key, surveillance)     # face down: what to record
  opening(hole_key, cursor, body)                         # face up: the same after a REREAD
  check(opened, table, cursor, commitment_hex, card)      # verify an opening
  opened_card(cursor, table, commitment_hex, sealed_b64, private)  # of a voided round

The encoding is in FORMAT.md ("Hole cards"). Values that contain a card are `Sealed`: they print
nothing and are opened explicitly. All results have the same length, and no error message depends on
a card.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from typing import Final, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from msgspec import Struct

from controller.audit.format.notes import NoteProblem, base64, parse_base64
from controller.audit.format.records import DeviceCursor
from drivers.devices import Sealed, SealedCard
from firmware_protocol.messages import CardRead

HOLE_KEY_SIZE: Final = 32
NONCE_SIZE: Final = 32
BODY_SIZE: Final = 24
"""The size of CARD_READ."""
OPENING_SIZE: Final = NONCE_SIZE + BODY_SIZE
COMMITMENT_SIZE: Final = 32
SEALED_SIZE: Final = 32 + OPENING_SIZE + 16
SEALED_TEXT: Final = "[A-Za-z0-9+/]{138}[AEIMQUYcgkosw048]="
"""Pattern of a sealed opening in base64."""
"""Encapsulated key, ciphertext, tag."""
_CARD_AT: Final = 6
_CARDS: Final = 52
_COMMITMENT: Final = b"holecard-v1"
_NONCE: Final = b"holecard-nonce-v1"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class SealProblem(Exception):
    """Base class of errors while sealing, opening or checking a hole card. Shows no card."""


class WrongForm(SealProblem):
    """A value has the wrong length or encoding."""


class WrongKey(SealProblem):
    """The public key cannot be used for encryption."""


class NotOpened(SealProblem):
    """Decryption failed: a wrong key, a different commitment or corruption, which look the same."""


class NotCommitted(SealProblem):
    """The opening does not match the commitment."""


class OtherCard(SealProblem):
    """The opening matches the commitment, but its card is not the expected one."""


@final
class HoleKey(Sealed[bytes]):
    """The secret that nonces are derived from. With it, the record reveals the cards."""

    __slots__ = ()

    def __init__(self, raw: bytes) -> None:
        _sized("the hole key", raw, HOLE_KEY_SIZE)
        super().__init__(bytes(raw))


@final
class CardOpening(Sealed[bytes]):
    """The opening of a commitment: nonce and encoded CARD_READ. `open()` returns its bytes as
    recorded."""

    __slots__ = ()

    def __init__(self, nonce: bytes, body: bytes) -> None:
        _sized("the nonce of an opening", nonce, NONCE_SIZE)
        _sized("the body of an opening", body, BODY_SIZE)
        if body[_CARD_AT] >= _CARDS:
            raise WrongForm(f"byte {_CARD_AT} of the opening's body is no card")
        super().__init__(nonce + body)

    @classmethod
    def of_bytes(cls, raw: bytes) -> CardOpening:
        """Decode an opening, nonce first."""
        _sized("the opening", raw, OPENING_SIZE)
        return cls(raw[:NONCE_SIZE], raw[NONCE_SIZE:])

    @classmethod
    def of_hex(cls, text: str) -> CardOpening:
        """Decode the text of a HoleRevealed event."""
        return cls.of_bytes(_hex("the opening", text, OPENING_SIZE))

    @property
    def card(self) -> SealedCard:
        """The card, still sealed."""
        return SealedCard(self.open()[NONCE_SIZE + _CARD_AT])


class CardCommitment(Struct, frozen=True):
    """What is recorded of a face-down card; reveals nothing about it."""

    commitment_hex: str
    sealed_b64: str


# --- at the table -----------------------------------------------------------------------------


def nonce(hole_key: HoleKey, cursor: DeviceCursor, salt: Sealed[bytes]) -> bytes:
    """Derive the nonce from the shoe's salt, so that it is never stored. The salt is secret too:
    with it the recorded device chain would reveal the card."""
    return hmac.digest(
        hole_key.open(), _place(_NONCE, (cursor.device,), cursor) + salt.open(), "sha256"
    )


def opening(hole_key: HoleKey, cursor: DeviceCursor, body: Sealed[CardRead]) -> CardOpening:
    """The opening of a card; deterministic, so a reread of the record gives the same one."""
    made = nonce(hole_key, cursor, Sealed(body.open().salt))
    return CardOpening(made, body.open().encode())


def commitment(table: str, cursor: DeviceCursor, opened: CardOpening) -> bytes:
    """The hash that binds the table to this card of this device record."""
    return hashlib.sha256(
        _place(_COMMITMENT, (table, cursor.device), cursor) + opened.open()
    ).digest()


def seal(surveillance: X25519PublicKey, committed: bytes, opened: CardOpening) -> bytes:
    """Encrypt the opening for surveillance, bound to its commitment."""
    _sized("the commitment", committed, COMMITMENT_SIZE)
    with suppress(ValueError):  # a point of small order, with which anybody could decrypt
        return _SUITE.encrypt(opened.open(), surveillance, info=committed)
    raise WrongKey("surveillance's public key is none that anything can be sealed to")


def commit(
    table: str,
    cursor: DeviceCursor,
    body: Sealed[CardRead],
    hole_key: HoleKey,
    surveillance: X25519PublicKey,
) -> CardCommitment:
    """Commitment and sealed opening of a card that was read face down."""
    opened = opening(hole_key, cursor, body)
    committed = commitment(table, cursor, opened)
    return CardCommitment(committed.hex(), base64(seal(surveillance, committed, opened)))


def check(
    opened: CardOpening,
    table: str,
    cursor: DeviceCursor,
    commitment_hex: str,
    card: int | None = None,
) -> None:
    """Raise SealProblem unless the opening matches the commitment and, if given, the card."""
    said = _hex("the commitment", commitment_hex, COMMITMENT_SIZE)
    if not hmac.compare_digest(said, commitment(table, cursor, opened)):
        raise NotCommitted(
            "the opening does not give the commitment: another card, another table or another"
            " record of the shoe"
        )
    if card is not None and opened.card.open() != card:
        raise OtherCard("the card is not the one that was committed to")


# --- at surveillance --------------------------------------------------------------------------


def open_sealed(private: X25519PrivateKey, committed: bytes, sealed: bytes) -> CardOpening:
    """Decrypt a sealed opening. The caller verifies it with check()."""
    _sized("the commitment", committed, COMMITMENT_SIZE)
    _sized("the sealed opening", sealed, SEALED_SIZE)
    with suppress(InvalidTag):
        return CardOpening.of_bytes(_SUITE.decrypt(sealed, private, info=committed))
    raise NotOpened(
        "this key does not open it: it was sealed to another key or with another commitment, or"
        " it was altered"
    )


def opened_card(
    cursor: DeviceCursor,
    table: str,
    commitment_hex: str,
    sealed_b64: str,
    private: X25519PrivateKey,
) -> int:
    """Decrypt and verify the card of a sealed opening; needed if a round was voided or its shoe
    lost. Raises SealProblem."""
    committed = _hex("the commitment", commitment_hex, COMMITMENT_SIZE)
    opened = open_sealed(private, committed, _base64("the sealed opening", sealed_b64))
    check(opened, table, cursor, commitment_hex)
    return opened.card.open()


# --- bytes and texts --------------------------------------------------------------------------


def _sized(what: str, raw: bytes, size: int) -> None:
    if len(raw) != size:
        raise WrongForm(f"{what} has {len(raw)} bytes, not {size}")


def _place(domain: bytes, names: tuple[str, ...], cursor: DeviceCursor) -> bytes:
    """Encoded domain, names, and device record."""
    return b"\0".join((domain, *map(_name, names), _number(cursor.epoch) + _number(cursor.seq)))


def _number(value: int) -> bytes:
    if not 0 <= value <= 0xFFFF_FFFF:
        raise WrongForm(f"{value} is no epoch or seq of a device: they are 0 to 4294967295")
    return value.to_bytes(4, "little")


def _name(name: str) -> bytes:
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raw = b""
    if not raw or 0 in raw:  # a zero terminates a name, so it may not contain one
        raise WrongForm(f"{name!r} is no name of a table or a device")
    return raw


def _hex(what: str, text: str, size: int) -> bytes:
    """Decode canonical lower-case hex, so that text and bytes are equally tamper-evident."""
    try:
        raw = bytes.fromhex(text)
    except ValueError:
        raw = b""
    if len(raw) != size or raw.hex() != text:
        raise WrongForm(f"{what} is not {2 * size} digits 0 to 9 and a to f")
    return raw


def _base64(what: str, text: str) -> bytes:
    try:
        return parse_base64(text)
    except NoteProblem:
        raise WrongForm(f"{what} is not base64") from None
