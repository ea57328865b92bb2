"""The certificate of a boot key: a note in which the table's key binds it to a boot."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from controller.audit.format.notes import (
    KEY_SIZE,
    TABLE_KEY,
    KeyKind,
    NoteProblem,
    SigningKey,
    VerifierKey,
    base64,
    check_name,
    format_note,
    parse_base64,
    parse_note,
    parse_number,
    quoted,
    verify_note,
)

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
