"""Hole cards in the record: bound by a commitment, sealed to surveillance, told by nothing.

    commit(table, cursor, body, hole_key, surveillance)    # face down: what to record of it
    opening(hole_key, cursor, body)                        # face up: the same after a REREAD
    check(opened, table, cursor, commitment_hex, card)     # whether it is what was committed to
    opened_card(cursor, table, commitment_hex, sealed_b64, private)    # of a voided round

The page FORMAT.md ("Hole cards") says how the bytes lie. Whatever holds a card here is a Sealed
value: it shows nothing and is opened on purpose only. Every result is as long as any other, and no
problem's words depend on a card.
"""

from __future__ import annotations

import hashlib
import hmac
from contextlib import suppress
from typing import Final, Protocol, final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hpke import AEAD, KDF, KEM, Suite
from msgspec import Struct

from controller.audit.format.notes import NoteProblem, base64, parse_base64
from drivers.devices import Sealed, SealedCard
from firmware_protocol.messages.shoe import CardRead

HOLE_KEY_SIZE: Final = 32
NONCE_SIZE: Final = 32
BODY_SIZE: Final = 24
"""That of CARD_READ."""
OPENING_SIZE: Final = NONCE_SIZE + BODY_SIZE
COMMITMENT_SIZE: Final = 32
SEALED_SIZE: Final = 32 + OPENING_SIZE + 16
SEALED_TEXT: Final = "[A-Za-z0-9+/]{138}[AEIMQUYcgkosw048]="
"""Base64 of so many bytes, as a pattern."""
"""Encapsulated key, ciphertext, tag."""
_CARD_AT: Final = 6
_CARDS: Final = 52
_COMMITMENT: Final = b"holecard-v1"
_NONCE: Final = b"holecard-nonce-v1"
_SUITE: Final = Suite(KEM.X25519, KDF.HKDF_SHA256, AEAD.CHACHA20_POLY1305)


class SealProblem(Exception):
    """A hole card cannot be sealed or opened, or is not what was committed to. Shows no card."""


class WrongForm(SealProblem):
    """Something is not as long as it must be, or not written as it must be."""


class WrongKey(SealProblem):
    """Nothing can be sealed to this key."""


class NotOpened(SealProblem):
    """The key does not open it. Another key, another commitment and damage look all the same."""


class NotCommitted(SealProblem):
    """The opening is not that of the commitment."""


class OtherCard(SealProblem):
    """The opening is that of the commitment, and its card is not the one that is said."""


class CardCursor(Protocol):
    """Which record of which device. That of a record is one."""

    @property
    def device(self) -> str: ...
    @property
    def epoch(self) -> int: ...
    @property
    def seq(self) -> int: ...


@final
class HoleKey(Sealed[bytes]):
    """What the nonces of a table are made from. Whoever has it and the record has the cards."""

    __slots__ = ()

    def __init__(self, raw: bytes) -> None:
        _sized("the hole key", raw, HOLE_KEY_SIZE)
        super().__init__(bytes(raw))


@final
class CardOpening(Sealed[bytes]):
    """What a commitment is opened with: a nonce, and all that the shoe said of the card.
    `open()` gives its bytes as they are recorded."""

    __slots__ = ()

    def __init__(self, nonce: bytes, body: bytes) -> None:
        _sized("the nonce of an opening", nonce, NONCE_SIZE)
        _sized("the body of an opening", body, BODY_SIZE)
        if body[_CARD_AT] >= _CARDS:
            raise WrongForm(f"byte {_CARD_AT} of the opening's body is no card")
        super().__init__(nonce + body)

    @classmethod
    def of_bytes(cls, raw: bytes) -> CardOpening:
        """From its bytes, nonce first."""
        _sized("the opening", raw, OPENING_SIZE)
        return cls(raw[:NONCE_SIZE], raw[NONCE_SIZE:])

    @classmethod
    def of_hex(cls, text: str) -> CardOpening:
        """As HoleRevealed has it."""
        return cls.of_bytes(_hex("the opening", text, OPENING_SIZE))

    @property
    def card(self) -> SealedCard:
        """The card, sealed still."""
        return SealedCard(self.open()[NONCE_SIZE + _CARD_AT])


class CardCommitment(Struct, frozen=True):
    """What the record takes of a hole card that lies face down. Tells nothing of it."""

    commitment_hex: str
    sealed_b64: str


# --- at the table -----------------------------------------------------------------------------


def nonce(hole_key: HoleKey, device: str, epoch: int, seq: int, salt: Sealed[bytes]) -> bytes:
    """Found again from the salt that the shoe has drawn, so it is never stored. The salt is sealed
    as well: with it the device's chain, which is recorded, tells the card."""
    place = _place(_NONCE, (device,), epoch, seq)
    return hmac.digest(hole_key.open(), place + salt.open(), "sha256")


def opening(hole_key: HoleKey, cursor: CardCursor, body: Sealed[CardRead]) -> CardOpening:
    """The opening of a card that was read: the same whenever the shoe tells that record again."""
    salt = Sealed(body.open().salt)
    made = nonce(hole_key, cursor.device, cursor.epoch, cursor.seq, salt)
    return CardOpening(made, body.open().encode())


def commitment(table: str, device: str, epoch: int, seq: int, opened: CardOpening) -> bytes:
    """What binds the table to this card of this record of this device."""
    place = _place(_COMMITMENT, (table, device), epoch, seq)
    return hashlib.sha256(place + opened.open()).digest()


def seal(surveillance: X25519PublicKey, committed: bytes, opened: CardOpening) -> bytes:
    """The opening, readable for surveillance only, and only together with its commitment."""
    _sized("the commitment", committed, COMMITMENT_SIZE)
    with suppress(ValueError):  # of a point of small order: what it seals, everybody could open
        return _SUITE.encrypt(opened.open(), surveillance, info=committed)
    raise WrongKey("surveillance's public key is none that anything can be sealed to")


def commit(
    table: str,
    cursor: CardCursor,
    body: Sealed[CardRead],
    hole_key: HoleKey,
    surveillance: X25519PublicKey,
) -> CardCommitment:
    """What to record of a card that was read face down."""
    opened = opening(hole_key, cursor, body)
    committed = commitment(table, cursor.device, cursor.epoch, cursor.seq, opened)
    sealed = seal(surveillance, committed, opened)
    return CardCommitment(committed.hex(), base64(sealed))


def check(
    opened: CardOpening,
    table: str,
    cursor: CardCursor,
    commitment_hex: str,
    card: int | None = None,
) -> None:
    """SealProblem unless this is the opening of the commitment and, where one is said, of this
    card."""
    said = _hex("the commitment", commitment_hex, COMMITMENT_SIZE)
    found = commitment(table, cursor.device, cursor.epoch, cursor.seq, opened)
    if not hmac.compare_digest(said, found):
        raise NotCommitted(
            "the opening does not give the commitment: another card, another table or another"
            " record of the shoe"
        )
    if card is not None and opened.card.open() != card:
        raise OtherCard("the card is not the one that was committed to")


# --- at surveillance --------------------------------------------------------------------------


def open_sealed(private: X25519PrivateKey, committed: bytes, sealed: bytes) -> CardOpening:
    """What surveillance was given to keep. Whether it is that of the commitment, check() says."""
    _sized("the commitment", committed, COMMITMENT_SIZE)
    _sized("the sealed opening", sealed, SEALED_SIZE)
    with suppress(InvalidTag):
        return CardOpening.of_bytes(_SUITE.decrypt(sealed, private, info=committed))
    raise NotOpened(
        "this key does not open it: it was sealed to another key or with another commitment, or"
        " it was altered"
    )


def opened_card(
    cursor: CardCursor, table: str, commitment_hex: str, sealed_b64: str, private: X25519PrivateKey
) -> int:
    """The card that a record keeps under seal, or SealProblem: one of a round that was voided, or
    whose shoe was lost."""
    committed = _hex("the commitment", commitment_hex, COMMITMENT_SIZE)
    opened = open_sealed(private, committed, _base64("the sealed opening", sealed_b64))
    check(opened, table, cursor, commitment_hex)
    return opened.card.open()


# --- bytes and texts --------------------------------------------------------------------------


def _sized(what: str, raw: bytes, size: int) -> None:
    if len(raw) != size:
        raise WrongForm(f"{what} has {len(raw)} bytes, not {size}")


def _place(domain: bytes, names: tuple[str, ...], epoch: int, seq: int) -> bytes:
    """What it is, and which record of which device it belongs to."""
    return b"\0".join((domain, *map(_name, names), _number(epoch) + _number(seq)))


def _number(value: int) -> bytes:
    if not 0 <= value <= 0xFFFF_FFFF:
        raise WrongForm(f"{value} is no epoch or seq of a device: they are 0 to 4294967295")
    return value.to_bytes(4, "little")


def _name(name: str) -> bytes:
    try:
        raw = name.encode()
    except UnicodeEncodeError:
        raw = b""
    if not raw or 0 in raw:  # a zero ends a name: with one inside, two names would be one
        raise WrongForm(f"{name!r} is no name of a table or a device")
    return raw


def _hex(what: str, text: str, size: int) -> bytes:
    """One form only, so that a text and its bytes are equally unalterable."""
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
