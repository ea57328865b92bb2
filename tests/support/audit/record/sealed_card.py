"""A hole card, its device record, and the keys that protect it."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Struct

from controller.audit.format.hole_cards import HoleKey, commit, opening
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags, CardRead


class At(Struct, frozen=True):
    """A cursor."""

    device: str = "SH-0001"
    epoch: int = 5
    seq: int = 9


TABLE = "mega-1"
CURSOR = At()
CARD = 37
SALT = b"saltysecret"
BODY = CardRead(7, 211, CARD, 91, 38, CardFlags.DUPLICATE, 433, 66, SALT)
READ = Sealed(BODY)
HOLE_KEY = HoleKey(bytes(range(32)))
SURVEILLANCE = X25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
PUBLIC = SURVEILLANCE.public_key()
OPENED = opening(HOLE_KEY, CURSOR, READ)
COMMITTED = commit(TABLE, CURSOR, READ, HOLE_KEY, PUBLIC)
