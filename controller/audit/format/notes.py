"""Signed notes, keys, checkpoints and boot certificates.

C2SP signed-note, tlog-checkpoint and tlog-cosignature; a certificate is a note of our own.

A note is a text followed by signature lines. Nothing in it may be trusted before `verify_note` has
checked the signatures.
"""

from __future__ import annotations

import re
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Iterable
from enum import IntEnum
from hashlib import sha256
from typing import Final, TypeAlias

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec import Struct

from controller.audit.format.merkle import HASH_SIZE

MAX_SIZE: Final = 131072
"""Size limit of a note in bytes; above what the specification requires."""
MAX_LINES: Final = 1000
"""Line limit of a note's text."""
LARGEST: Final = (1 << 63) - 1
"""Maximum of sizes and times: a signed 64-bit integer."""

_CONTROL: Final = re.compile(r"[\x00-\x09\x0b-\x1f]")
_NUMBER: Final = re.compile(r"0|[1-9][0-9]{0,18}")
_SHOWN: Final = 64
"""Maximum number of characters that an error quotes."""


class NoteProblem(Exception):
    """A note, key, checkpoint or certificate is malformed or not correctly signed."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


def quoted(text: str) -> str:
    """Quote text in an error message, truncated."""
    return ascii(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def check_text(text: str) -> None:
    """Raise NoteProblem unless a note may contain this text: printable lines."""
    check_characters(text)
    if not text.endswith("\n"):
        raise NoteProblem("a text that does not end with a newline")
    if (lines := text.count("\n")) > MAX_LINES:
        raise NoteProblem(f"a text of {lines} lines; allowed: {MAX_LINES}")


def check_characters(text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise NoteProblem("a text that UTF-8 cannot say") from None
    if size > MAX_SIZE:
        raise NoteProblem(f"a note of {size} bytes; allowed: {MAX_SIZE}")
    if found := _CONTROL.search(text):
        raise NoteProblem(f"a note with the character {found[0]!a}; allowed: none but newlines")


def check_name(name: str) -> None:
    """Raise NoteProblem unless a key may have this name."""
    check_characters(name)
    if not name or "+" in name or any(letter.isspace() for letter in name):
        raise NoteProblem(f"no name of a key: {quoted(name)}; allowed: no spaces, no +, not empty")


def parse_number(text: str) -> int:
    if not _NUMBER.fullmatch(text) or (number := int(text)) > LARGEST:
        raise NoteProblem(f"no number: {quoted(text)}; allowed: 0 to {LARGEST}, no leading zeros")
    return number


def base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def parse_base64(text: str, size: int | None = None) -> bytes:
    """Decode canonical base64: at least one byte, or exactly `size`."""
    try:
        data = a2b_base64(text, strict_mode=True)
    except ValueError:
        raise NoteProblem(f"no base64: {quoted(text)}") from None
    # The last character may have unused bits, which base64() leaves zero.
    if not data or base64(data) != text:
        raise NoteProblem(f"no base64 as it is to be written: {quoted(text)}")
    if size is not None and len(data) != size:
        raise NoteProblem(f"base64 of {len(data)} bytes; allowed: {size}")
    return data


MAX_SIGNATURES: Final = 100
KEY_SIZE: Final = 32
KEY_ID_SIZE: Final = 4
TIME_SIZE: Final = 8

Octets: TypeAlias = bytes

_DASH: Final = "\N{EM DASH} "
_COSIGNED: Final = "cosignature/v1\n"
_KEY_ID: Final = re.compile(r"[0-9a-f]{8}")


class KeyKind(IntEnum):
    """The algorithm byte of a verifier key."""

    ED25519 = 1
    COSIGNATURE = 4


class Signature(Struct, frozen=True, gc=False):
    """A signature line; not verified yet."""

    name: str
    key_id: Octets
    bytes: Octets
    """The decoded bytes behind the key id: the time of a cosignature, then the signature."""


class SignedNote(Struct, frozen=True, gc=False):
    """A text that ends with a newline, and its signatures."""

    text: str
    signatures: tuple[Signature, ...]


class VerifierKey(Struct, frozen=True, gc=False):
    """A name and a public key that verifies signatures."""

    name: str
    key: Octets
    kind: KeyKind = KeyKind.ED25519

    def __post_init__(self) -> None:
        check_name(self.name)
        if len(self.key) != KEY_SIZE:
            size = len(self.key)
            raise NoteProblem(f"a key of {size} bytes for {self.name}; allowed: {KEY_SIZE}")

    @classmethod
    def parse(cls, text: str) -> VerifierKey:
        """Parse NAME+KEYID+BASE64."""
        name, _, rest = text.partition("+")
        key_id, _, encoded = rest.partition("+")
        if not _KEY_ID.fullmatch(key_id):
            raise NoteProblem(
                f"no verifier key: {quoted(text)}; allowed: NAME+8 hexadecimal digits+BASE64"
            )
        data = parse_base64(encoded)
        if data[0] not in tuple(KeyKind):
            allowed = ", ".join(f"{kind} {kind.name}" for kind in KeyKind)
            raise NoteProblem(f"a verifier key of kind {data[0]}; allowed: {allowed}")
        key = cls(name, data[1:], KeyKind(data[0]))
        if key.key_id.hex() != key_id:
            raise NoteProblem(f"the key of {name} does not have the id {key_id}")
        return key

    @property
    def key_id(self) -> Octets:
        return sha256(self.name.encode() + b"\n" + self._kind_and_public()).digest()[:KEY_ID_SIZE]

    def check(self, text: str, signature: Octets) -> int | None:
        """Verify a signature of this text; returns the time of a cosignature. Raises
        NoteProblem."""
        seconds = None
        if self.kind is KeyKind.COSIGNATURE:
            seconds = int.from_bytes(signature[:TIME_SIZE])
            signature = signature[TIME_SIZE:]
            text = _cosigned(text, seconds)
        try:
            Ed25519PublicKey.from_public_bytes(self.key).verify(signature, text.encode())
        except InvalidSignature:
            raise NoteProblem(f"the signature of {self.name} is not one of this text") from None
        return seconds

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id.hex()}+{base64(self._kind_and_public())}"

    def __repr__(self) -> str:
        return f"VerifierKey({self.name}+{self.key_id.hex()}, {self.kind.name})"

    def _kind_and_public(self) -> Octets:
        return self.kind.to_bytes() + self.key


class SigningKey:
    """A name and a private key, which is never printed."""

    __slots__ = ("_key", "_public", "name")

    def __init__(self, name: str, key: Ed25519PrivateKey) -> None:
        check_name(name)
        self.name = name
        self._key = key
        self._public = key.public_key().public_bytes_raw()

    @property
    def verifier(self) -> VerifierKey:
        """Verifies `sign`."""
        return VerifierKey(self.name, self._public)

    @property
    def public(self) -> Ed25519PublicKey:
        return self._key.public_key()

    @property
    def cosigner(self) -> VerifierKey:
        """Verifies `cosign`."""
        return VerifierKey(self.name, self._public, KeyKind.COSIGNATURE)

    def sign(self, text: str) -> Signature:
        check_text(text)
        if text.startswith(_COSIGNED):
            # A cosignature signs the same bytes, so sign() must never produce one.
            raise NoteProblem(f"a text to be signed that begins with {quoted(_COSIGNED)}")
        return Signature(self.name, self.verifier.key_id, self._key.sign(text.encode()))

    def cosign(self, text: str, seconds: int) -> Signature:
        """Cosign a checkpoint as the largest one seen at this time, consistent with all before."""
        parse_checkpoint(text)
        signature = self._key.sign(_cosigned(text, seconds).encode())
        return Signature(self.name, self.cosigner.key_id, seconds.to_bytes(TIME_SIZE) + signature)

    def __repr__(self) -> str:
        return f"SigningKey({self.name})"


class VerifiedSignature(Struct, frozen=True, gc=False):
    """A verified signature: its key and, for a cosignature, its time."""

    verifier: VerifierKey
    seconds: int | None = None


def parse_note(data: bytes | str) -> SignedNote:
    """Parse a signed note. Signatures are not verified."""
    if len(data) > MAX_SIZE:
        raise NoteProblem(f"a note of {len(data)} or more bytes; allowed: {MAX_SIZE}")
    try:
        whole = data if isinstance(data, str) else data.decode()
    except UnicodeDecodeError:
        raise NoteProblem("a note that is not UTF-8") from None
    check_characters(whole)
    # The text may contain empty lines; the last one ends it.
    above, blank, below = whole.rpartition("\n\n")
    if not blank:
        raise NoteProblem("a note without an empty line between its text and its signatures")
    text = f"{above}\n"
    check_text(text)
    *lines, rest = below.split("\n")
    if rest or not lines:
        raise NoteProblem("a note that does not end with a line of signature")
    if len(lines) > MAX_SIGNATURES:
        raise NoteProblem(f"a note with {len(lines)} signatures; allowed: {MAX_SIGNATURES}")
    return SignedNote(text, tuple(_signature(line) for line in lines))


def format_note(text: str, *signatures: Signature) -> str:
    """Encode a note with at least one signature."""
    note = f"{text}\n{''.join(_line(one) for one in signatures)}"
    if parse_note(note) != SignedNote(text, signatures):
        raise NoteProblem("a text or signatures that a note cannot hold")
    return note


def verify_note(
    note: SignedNote, verifiers: Iterable[VerifierKey]
) -> tuple[VerifiedSignature, ...]:
    """Verify the signatures by these keys; returns each key once, in the order of the lines.

    Signatures of unknown keys are ignored. Raises NoteProblem if a signature by one of these keys
    is wrong, or if none of them signed.
    """
    known: dict[tuple[str, bytes], VerifierKey] = {}
    for verifier in verifiers:
        if known.setdefault((verifier.name, verifier.key_id), verifier) != verifier:
            raise NoteProblem(f"two keys with the name and id of {verifier!r}")
    found: dict[VerifierKey, VerifiedSignature] = {}
    for signature in note.signatures:
        signer = known.get((signature.name, signature.key_id))
        if signer is not None:
            seconds = signer.check(note.text, signature.bytes)
            found.setdefault(signer, VerifiedSignature(signer, seconds))
    if not found:
        raise NoteProblem("a note that none of the known keys has signed")
    return tuple(found.values())


def _signature(line: str) -> Signature:
    if not line.startswith(_DASH):
        raise NoteProblem(f"no line of signature: {quoted(line)}")
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    check_name(name)
    data = parse_base64(encoded)
    if len(data) <= KEY_ID_SIZE:
        raise NoteProblem(f"a signature of {quoted(name)} that is no more than a key id")
    return Signature(name, data[:KEY_ID_SIZE], data[KEY_ID_SIZE:])


def _line(signature: Signature) -> str:
    return f"{_DASH}{signature.name} {base64(signature.key_id + signature.bytes)}\n"


def _cosigned(text: str, seconds: int) -> str:
    """The text that a witness signs."""
    if not 0 <= seconds <= LARGEST:
        raise NoteProblem(f"a cosignature at second {seconds}; allowed: 0 to {LARGEST}")
    return f"{_COSIGNED}time {seconds}\n{text}"


class Checkpoint(Struct, frozen=True, gc=False):
    """The root of a record's tree at a given size."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """The text that is signed. Raises NoteProblem if a field is invalid."""
        text = f"{self.origin}\n{self.size}\n{base64(self.root)}\n"
        parse_checkpoint(text)
        return text


def parse_checkpoint(text: str) -> Checkpoint:
    """Parse a checkpoint from the text of a note: origin, size and root, without extensions."""
    check_text(text)
    *lines, _ = text.split("\n")
    if len(lines) != 3:
        raise NoteProblem(f"a checkpoint of {len(lines)} lines; allowed: origin, size, root")
    origin, size, root = lines
    if not origin:
        raise NoteProblem("a checkpoint without an origin")
    return Checkpoint(origin, parse_number(size), parse_base64(root, HASH_SIZE))


def table_name(origin: str) -> str:
    """The name of the table's key."""
    return f"{origin}{TABLE_KEY}"


TABLE_KEY: Final = "/table"
"""Suffix of the origin in the name of the table's key."""


TITLE: Final = "holecard boot key 1"

_BOOT: Final = re.compile(r"[0-9a-f]{16}")


class Certificate(Struct, frozen=True, gc=False):
    """The key that signs the checkpoints of a boot."""

    origin: str
    boot: str
    key: bytes
    """The Ed25519 public key."""
    seq: int
    """The seq of the boot's `opened` record."""

    @property
    def verifier(self) -> VerifierKey:
        """Verifies the checkpoints of the boot."""
        return VerifierKey(self.origin, self.key)

    def text(self) -> str:
        """The text that the table's key signs. Raises NoteProblem if a field is invalid."""
        key = base64(self.key)
        text = f"{TITLE}\n{self.origin}\n{self.boot}\n{key}\n{self.seq}\n"
        _parse_text(text)
        return text


def certificate(
    origin: str, boot: str, boot_key_public: bytes, seq: int, table_key: SigningKey
) -> str:
    """The signed note that certifies a boot's key."""
    text = Certificate(origin, boot, boot_key_public, seq).text()
    _check_table(table_key.verifier, origin)
    return format_note(text, table_key.sign(text))


def read_certificate(note_text: str, table: VerifierKey) -> Certificate:
    """Parse and verify a certificate. Raises NoteProblem unless this table's key signed it."""
    note = parse_note(note_text)
    verify_note(note, (table,))
    found = _parse_text(note.text)
    _check_table(table, found.origin)
    return found


def _parse_text(text: str) -> Certificate:
    *lines, _ = text.split("\n")
    if len(lines) != 5 or lines[0] != TITLE:
        raise NoteProblem(
            f"no certificate: {quoted(text)}; allowed: the five lines {TITLE!r}, origin, boot, "
            "public key, seq"
        )
    _, origin, boot, key, seq = lines
    check_name(origin)
    if not _BOOT.fullmatch(boot):
        raise NoteProblem(f"no boot: {quoted(boot)}; allowed: 16 hexadecimal digits")
    found = Certificate(origin, boot, parse_base64(key, KEY_SIZE), parse_number(seq))
    if found.seq == 0:
        raise NoteProblem("a boot that record 0 opened; allowed: 1 or more")
    return found


def _check_table(table: VerifierKey, origin: str) -> None:
    if table.name != origin + TABLE_KEY or table.kind is not KeyKind.ED25519:
        raise NoteProblem(f"{table!r} certifies nothing of {quoted(origin)}")
