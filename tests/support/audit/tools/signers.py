"""Keys for tests, always the same, and what they sign: a checkpoint, a certificate."""

from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from hypothesis import strategies as st

from controller.audit.format.merkle import leaf_hash
from controller.audit.format.notes import (
    Checkpoint,
    Signature,
    SigningKey,
    certificate,
    format_note,
)

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
CERTIFICATE = certificate(ORIGIN, BOOT, BOOT_KEY.verifier.key, 7, TABLE_KEY)


letters = st.characters(exclude_categories=["Cs", "Cc"])
texts = st.lists(st.text(letters, max_size=12), min_size=1, max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)
names = st.text(letters, min_size=1, max_size=12).filter(
    lambda name: "+" not in name and not any(one.isspace() for one in name)
)
signatures = st.builds(
    Signature, names, st.binary(min_size=4, max_size=4), st.binary(min_size=1, max_size=80)
)
close = st.text("— +=\n\t09aAzZ/é\ud800\u2028\0", max_size=60)
"""Text that is not far from a note."""
