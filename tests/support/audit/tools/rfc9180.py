"""HPKE once more, written from RFC 9180 alone: base mode, one message, X25519, HKDF-SHA256,
ChaCha20-Poly1305. What one side seals the other must open."""

import hmac
from hashlib import sha256

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

_KEM = b"KEM" + (0x0020).to_bytes(2, "big")
_HPKE = b"HPKE" + b"".join(number.to_bytes(2, "big") for number in (0x0020, 0x0001, 0x0003))


def seal_with(
    ephemeral: X25519PrivateKey, public: bytes, info: bytes, aad: bytes, plaintext: bytes
) -> bytes:
    """SealBase with the ephemeral key given: enc || ct."""
    enc = ephemeral.public_key().public_bytes_raw()
    dh = ephemeral.exchange(X25519PublicKey.from_public_bytes(public))
    key, base_nonce = schedule(shared_secret(dh, enc + public), info)
    return enc + ChaCha20Poly1305(key).encrypt(base_nonce, plaintext, aad)


def open_with(private: X25519PrivateKey, info: bytes, aad: bytes, sealed: bytes) -> bytes:
    """OpenBase."""
    enc, ct = sealed[:32], sealed[32:]
    dh = private.exchange(X25519PublicKey.from_public_bytes(enc))
    key, base_nonce = schedule(
        shared_secret(dh, enc + private.public_key().public_bytes_raw()), info
    )
    return ChaCha20Poly1305(key).decrypt(base_nonce, ct, aad)


def shared_secret(dh: bytes, kem_context: bytes) -> bytes:
    """ExtractAndExpand of section 4.1."""
    return _expand(_KEM, _extract(_KEM, b"", b"eae_prk", dh), b"shared_secret", kem_context, 32)


def schedule(shared: bytes, info: bytes) -> tuple[bytes, bytes]:
    """KeySchedule of section 5.1: key and base nonce."""
    context = (
        b"\0" + _extract(_HPKE, b"", b"psk_id_hash", b"") + _extract(_HPKE, b"", b"info_hash", info)
    )
    secret = _extract(_HPKE, shared, b"secret", b"")
    return _expand(_HPKE, secret, b"key", context, 32), _expand(
        _HPKE, secret, b"base_nonce", context, 12
    )


def _extract(suite: bytes, salt: bytes, label: bytes, ikm: bytes) -> bytes:
    return hmac.digest(salt or bytes(32), b"HPKE-v1" + suite + label + ikm, sha256)


def _expand(suite: bytes, prk: bytes, label: bytes, info: bytes, size: int) -> bytes:
    """One block is enough: no more than 32 bytes are ever asked for."""
    labeled = size.to_bytes(2, "big") + b"HPKE-v1" + suite + label + info
    return hmac.digest(prk, labeled + b"\x01", sha256)[:size]
