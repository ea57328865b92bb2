"""Keys for tests, always the same, and a checkpoint that they sign."""

from __future__ import annotations

from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.format.merkle import leaf_hash
from controller.audit.format.notes import Checkpoint, SigningKey, format_note

ORIGIN = "holecard/bj-3/00112233445566ff"
BOOT = "8899aabbccddeeff"
SECONDS = 1_790_000_000


def signing_key(name: str, seed: str = "") -> SigningKey:
    secret = sha256(f"a key for tests, of {name}{seed}".encode()).digest()
    return SigningKey(name, Ed25519PrivateKey.from_private_bytes(secret))


BOOT_KEY = signing_key(ORIGIN)
TABLE_KEY = signing_key(f"{ORIGIN}/table")
WITNESS = signing_key("archive.example/floor-2")
STRANGER = signing_key("stranger.example")

CHECKPOINT = Checkpoint(ORIGIN, 20852, leaf_hash(b"a root"))
TEXT = CHECKPOINT.text()
SIGNED = format_note(TEXT, BOOT_KEY.sign(TEXT))
WITNESSED = format_note(TEXT, BOOT_KEY.sign(TEXT), WITNESS.cosign(TEXT, SECONDS))
