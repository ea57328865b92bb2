"""Noise, for both sides: the handshakes KK for sessions and XXpsk3 for pairing, and the ciphers.

    shake = Handshake.kk("host", prologue, own_key, device_public)
    port.write(frame(HS1, shake.write()))
    shake.read(payload_of_hs2)
    keys = shake.split()
    sealer, opener = Sealer(keys.send, session), Opener(keys.receive, session)
    port.write(sealer.seal(encode_plaintext(message)).encode())
    message = decode_plaintext(opener.open(frame), sender="device")

In a session the counter in a frame's header is the nonce, and the header is the associated data. A
counter is never used twice: a retry is sealed again under the next one.

Implements CipherState, SymmetricState and HandshakeState of the Noise specification (revision 34),
reduced to these two patterns. Every invalid input of the peer raises a HandshakeError, after which
the handshake is over.
"""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, Literal, NamedTuple, Self, TypeVar

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from firmware_protocol.messages import (
    MAX_FRAMES,
    TAG_SIZE,
    VERSION,
    BadFrame,
    BadKey,
    FrameKind,
    HandshakeNotAuthentic,
    HandshakeOrder,
    HandshakeSize,
    KeysWiped,
    NotAuthentic,
    Replayed,
    SessionSpent,
    WeakKey,
    WrongSession,
    WrongSize,
)
from firmware_protocol.tablelink.framing import Frame, pack_header
from firmware_protocol.tablelink.plaintext import PLAINTEXT_SIZES

Role = Literal["host", "device"]
Token = Literal["e", "s", "ee", "es", "se", "ss", "psk"]

KEY_SIZE: Final = 32
KK_NAME: Final = b"Noise_KK_25519_ChaChaPoly_BLAKE2b"
XX_NAME: Final = b"Noise_XXpsk3_25519_ChaChaPoly_BLAKE2b"
_KK: Final[tuple[tuple[Token, ...], ...]] = (("e", "es", "ss"), ("e", "ee", "se"))
_XX: Final[tuple[tuple[Token, ...], ...]] = (
    ("e",),
    ("e", "ee", "s", "es"),
    ("s", "se", "psk"),
)
_HASH: Final = 64


class SessionKeys(NamedTuple):
    """The result of a handshake: a key per direction, and the hash of its transcript, which is
    equal on both sides and identifies the session."""

    send: bytes
    receive: bytes
    transcript: bytes

    def __repr__(self) -> str:
        return "SessionKeys(...)"


class Cipher:
    """One key of ChaCha20-Poly1305. The caller must not use a nonce twice."""

    def __init__(self, key: bytes) -> None:
        self._aead: ChaCha20Poly1305 | None = ChaCha20Poly1305(key)

    def seal(self, nonce: int, associated: bytes, plaintext: bytes) -> bytes:
        return self._live().encrypt(_nonce(nonce), plaintext, associated)

    def open(self, nonce: int, associated: bytes, ciphertext: bytes) -> bytes:
        """Returns the plaintext. Raises InvalidTag if key, nonce, data or ciphertext differ."""
        return self._live().decrypt(_nonce(nonce), ciphertext, associated)

    def wipe(self) -> None:
        """Release the key. Python cannot overwrite it; the library frees its own copy."""
        self._aead = None

    def _live(self) -> ChaCha20Poly1305:
        if self._aead is None:
            raise KeysWiped("the session is over")
        return self._aead


def _nonce(number: int) -> bytes:
    """4 zero bytes, then the number in 8 bytes."""
    return (number << 32).to_bytes(12, "little")


class Sealer:
    """Sends one direction of a session."""

    def __init__(self, key: bytes, session: int, version: int = VERSION) -> None:
        if not 0 < session <= 0xFFFF:
            raise BadFrame(f"session {session} is not 1 to 65535")
        self._cipher = Cipher(key)
        self.session = session
        self.version = version
        self.counter = 0
        """The counter of the next frame."""

    def seal(self, plaintext: bytes) -> Frame:
        """The frame that carries this plaintext, under the next counter."""
        if len(plaintext) not in PLAINTEXT_SIZES:
            raise WrongSize(f"plaintext: has {len(plaintext)} bytes, not one of {PLAINTEXT_SIZES}")
        if self.counter >= MAX_FRAMES:
            raise SessionSpent(f"session {self.session}: all counters are used")
        counter = self.counter
        size = len(plaintext) + TAG_SIZE
        header = pack_header(FrameKind.DATA, self.session, counter, size, self.version)
        sealed = self._cipher.seal(counter, header, plaintext)
        self.counter += 1
        return Frame(FrameKind.DATA, self.session, counter, sealed, self.version)

    def wipe(self) -> None:
        self._cipher.wipe()


class Opener:
    """Receives one direction of a session. A rejected frame has no side effects."""

    def __init__(self, key: bytes, session: int, version: int = VERSION) -> None:
        self._cipher = Cipher(key)
        self.session = session
        self.version = version
        self.last = -1
        """The highest counter that was accepted."""

    def open(self, frame: Frame) -> bytes:
        """Returns the plaintext of this frame.

        Raises WrongSession, Replayed, SessionSpent or NotAuthentic. Only NotAuthentic means that
        the frame was forged or changed, because the CRC detects noise.
        """
        if (
            frame.session != self.session
            or frame.version != self.version
            or frame.kind is not FrameKind.DATA
        ):
            raise WrongSession(f"{frame.kind.name} of session {frame.session}")
        if frame.counter <= self.last:
            raise Replayed(f"counter {frame.counter} after {self.last}")
        if frame.counter >= MAX_FRAMES:
            raise SessionSpent(f"counter {frame.counter} is beyond the limit of a session")
        try:
            plaintext = self._cipher.open(frame.counter, frame.header(), frame.payload)
        except InvalidTag:
            raise NotAuthentic(f"session {frame.session}, counter {frame.counter}") from None
        self.last = frame.counter
        return plaintext

    def wipe(self) -> None:
        self._cipher.wipe()


class _Symmetric:
    """SymmetricState: the chaining key, the hash, and the key derived from them."""

    def __init__(self, name: bytes, prologue: bytes) -> None:
        self.hash = name.ljust(_HASH, b"\0")  # both names are shorter than a hash
        self.chaining = bytearray(self.hash)
        self.cipher: Cipher | None = None
        self.nonce = 0
        self.mix_hash(prologue)

    def mix_hash(self, data: bytes) -> None:
        self.hash = hashlib.blake2b(self.hash + data).digest()

    def mix_key(self, secret: bytes) -> None:
        chaining, key = self._derive(secret, 2)
        self._set_key(chaining, key)

    def mix_key_and_hash(self, psk: bytes) -> None:
        chaining, extra, key = self._derive(psk, 3)
        self.mix_hash(extra)
        self._set_key(chaining, key)

    def seal(self, plaintext: bytes) -> bytes:
        out = plaintext
        if self.cipher is not None:
            out = self.cipher.seal(self.nonce, self.hash, plaintext)
            self.nonce += 1
        self.mix_hash(out)
        return out

    def open(self, ciphertext: bytes) -> bytes:
        out = ciphertext
        if self.cipher is not None:
            out = self.cipher.open(self.nonce, self.hash, ciphertext)
            self.nonce += 1
        self.mix_hash(ciphertext)
        return out

    def split(self) -> tuple[bytes, bytes]:
        first, second = self._derive(b"", 2)
        return first[:KEY_SIZE], second[:KEY_SIZE]

    def wipe(self) -> None:
        self.chaining[:] = bytes(_HASH)
        if self.cipher is not None:
            self.cipher.wipe()

    def _set_key(self, chaining: bytes, key: bytes) -> None:
        self.chaining[:] = chaining
        self.cipher = Cipher(key[:KEY_SIZE])
        self.nonce = 0

    def _derive(self, secret: bytes, count: int) -> list[bytes]:
        """HKDF of Noise: `count` outputs of the length of a hash."""
        key = hmac.digest(self.chaining, secret, "blake2b")
        out: list[bytes] = []
        for number in range(1, count + 1):
            before = out[-1] if out else b""
            out.append(hmac.digest(key, before + bytes((number,)), "blake2b"))
        return out


class Handshake:
    """One side of one handshake. write() and read() take turns, the host first."""

    def __init__(
        self,
        name: bytes,
        patterns: tuple[tuple[Token, ...], ...],
        role: Role,
        prologue: bytes,
        own: X25519PrivateKey,
        psk: bytes = b"",
    ) -> None:
        self._patterns = patterns
        self._host = role == "host"
        self._own: X25519PrivateKey | None = own
        self._psk = psk
        self._ephemeral: X25519PrivateKey | None = None
        self._their_ephemeral: X25519PublicKey | None = None
        self._theirs: X25519PublicKey | None = None
        self._step = 0
        self._over = False
        self._state = _Symmetric(name, prologue)

    @classmethod
    def kk(cls, role: Role, prologue: bytes, own: X25519PrivateKey, theirs: bytes) -> Self:
        """A session between two that know each other's public keys."""
        self = cls(KK_NAME, _KK, role, prologue, own)
        if len(theirs) != KEY_SIZE:
            raise BadKey(f"the public key has {len(theirs)} bytes, not {KEY_SIZE}")
        self._theirs = X25519PublicKey.from_public_bytes(theirs)
        mine = own.public_key().public_bytes_raw()
        for key in (mine, theirs) if self._host else (theirs, mine):
            self._state.mix_hash(key)
        return self

    @classmethod
    def xxpsk3(cls, role: Role, prologue: bytes, own: X25519PrivateKey, psk: bytes) -> Self:
        """Pairing: two sides that share the code of the device's label exchange their keys."""
        if len(psk) != KEY_SIZE:
            raise BadKey(f"the psk has {len(psk)} bytes, not {KEY_SIZE}")
        return cls(XX_NAME, _XX, role, prologue, own, psk)

    @property
    def finished(self) -> bool:
        """Whether all messages were written and read, so that split() is allowed."""
        return self._step == len(self._patterns) and not self._over

    @property
    def their_key(self) -> bytes:
        """The other side's public key. In a pairing it is authenticated only by a DATA frame under
        the split keys, because the sender of PAIR2 need not know the psk."""
        if self._theirs is None:
            raise HandshakeOrder("the other side's key was not received yet")
        return self._theirs.public_bytes_raw()

    def fix_ephemeral(self, key: X25519PrivateKey) -> None:
        """For golden vectors only: a session with a known ephemeral key protects nothing."""
        self._ephemeral = key

    def write(self) -> bytes:
        """Encode the next message, which this side sends. Its payload is empty."""
        tokens = self._turn(writing=True)
        out = b""
        for token in tokens:
            if token == "e":
                out += self._write_ephemeral()
            elif token == "s":
                out += self._state.seal(_live(self._own).public_key().public_bytes_raw())
            else:
                self._mix(token)
        out += self._state.seal(b"")
        self._step += 1
        self._over = False
        return out

    def read(self, message: bytes) -> None:
        """Handle the next message, which the other side sent. Raises HandshakeError."""
        tokens = self._turn(writing=False)
        size = sum(_sizes(tokens))
        if len(message) != size:
            raise HandshakeSize(f"message {self._step + 1} has {len(message)} bytes, not {size}")
        rest = message
        try:
            for token, taken in zip(tokens, _sizes(tokens), strict=False):
                part, rest = rest[:taken], rest[taken:]
                self._take(token, part)
            self._state.open(rest)
        except InvalidTag:
            raise HandshakeNotAuthentic(
                f"message {self._step + 1}: another key or label code, a replayed message, or "
                "something was changed on the way"
            ) from None
        self._step += 1
        self._over = False

    def split(self) -> SessionKeys:
        """Returns the keys, exactly once, and wipes the secrets of the handshake."""
        if not self.finished:
            raise HandshakeOrder("the handshake is not finished")
        first, second = self._state.split()
        keys = (first, second) if self._host else (second, first)
        self.wipe()
        return SessionKeys(*keys, self._state.hash)

    def wipe(self) -> None:
        """End the handshake in any state, and wipe its secrets."""
        self._over = True
        self._own = self._ephemeral = None
        self._psk = b""
        self._state.wipe()

    def _turn(self, *, writing: bool) -> tuple[Token, ...]:
        """Returns the tokens of the next message. The handshake is over unless that succeeds."""
        if self._over or self._step == len(self._patterns):
            raise HandshakeOrder("the handshake is over")
        if writing != (self._host == (self._step % 2 == 0)):
            raise HandshakeOrder("it is the other side's turn")
        self._over = True
        return self._patterns[self._step]

    def _write_ephemeral(self) -> bytes:
        if self._ephemeral is None:
            self._ephemeral = X25519PrivateKey.generate()
        public = self._ephemeral.public_key().public_bytes_raw()
        self._mix_ephemeral(public)
        return public

    def _mix_ephemeral(self, public: bytes) -> None:
        self._state.mix_hash(public)
        if self._psk:  # with a psk, ephemeral keys are mixed into the key, so that no key repeats
            self._state.mix_key(public)

    def _take(self, token: Token, part: bytes) -> None:
        if token == "e":
            self._their_ephemeral = X25519PublicKey.from_public_bytes(part)
            self._mix_ephemeral(part)
        elif token == "s":
            self._theirs = X25519PublicKey.from_public_bytes(self._state.open(part))
        else:
            self._mix(token)

    def _mix(self, token: Token) -> None:
        if token == "psk":
            self._state.mix_key_and_hash(self._psk)
            return
        # es and se name the host's key first, on both sides.
        mine, theirs = (token[0], token[1]) if self._host else (token[1], token[0])
        own = _live(self._ephemeral if mine == "e" else self._own)
        other = _live(self._their_ephemeral if theirs == "e" else self._theirs)
        try:
            secret = own.exchange(other)
        except ValueError:
            raise WeakKey("a public key of low order") from None
        self._state.mix_key(secret)


_T = TypeVar("_T")


def _live(key: _T | None) -> _T:
    if key is None:
        raise HandshakeOrder("the handshake is over")
    return key


def _sizes(tokens: tuple[Token, ...]) -> tuple[int, ...]:
    """Encoded size of each token and of the empty payload. In both patterns static keys and
    payloads are always sealed."""
    sizes: dict[Token, int] = {"e": KEY_SIZE, "s": KEY_SIZE + TAG_SIZE}
    return (*(sizes.get(token, 0) for token in tokens), TAG_SIZE)
