"""A hole card, its device record, and the keys that protect it."""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from controller.audit.format.hole_cards import HoleKey, commit, opening
from controller.audit.format.records import DeviceCursor
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags, CardRead


def at(device: str = "SH-0001", epoch: int = 5, seq: int = 9) -> DeviceCursor:
    return DeviceCursor(device, epoch, seq, "0" * 16)


TABLE = "mega-1"
CURSOR = at()
CARD = 37
SALT = b"saltysecret"
BODY = CardRead(7, 211, CARD, 91, 38, CardFlags.DUPLICATE, 433, 66, SALT)
READ = Sealed(BODY)
HOLE_KEY = HoleKey(bytes(range(32)))
SURVEILLANCE = X25519PrivateKey.from_private_bytes(bytes(range(32, 64)))
PUBLIC = SURVEILLANCE.public_key()
OPENED = opening(HOLE_KEY, CURSOR, READ)
COMMITTED = commit(TABLE, CURSOR, READ, HOLE_KEY, PUBLIC)
