"""Fingerprints of a boot's hole card keys in its `opened` record, to notice a key change."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from msgspec.structs import replace

from controller.audit.format.hole_cards import HoleKey
from controller.audit.format.records import BootIdentity, OpenedData
from controller.audit.keys.files import fingerprint, hole_fingerprint


def with_keys(identity: BootIdentity, hole: HoleKey, surveillance: X25519PublicKey) -> BootIdentity:
    """The identity of a boot with these keys."""
    sealed_to = fingerprint(surveillance.public_bytes_raw())
    return replace(identity, hole=hole_fingerprint(hole), sealed_to=sealed_to)


def with_previous_keys(identity: BootIdentity, opened: OpenedData) -> BootIdentity:
    """The identity of a boot without keys, which keeps those of the boot before."""
    return replace(identity, hole=opened.hole or "", sealed_to=opened.sealed_to or "")


def changed_keys(
    opened: OpenedData | None, hole: HoleKey, surveillance: X25519PublicKey
) -> Iterator[str]:
    """Warnings for keys that differ from those of the boot before."""
    if opened is None:
        return
    sealed_to, bound = fingerprint(surveillance.public_bytes_raw()), hole_fingerprint(hole)
    if opened.sealed_to and opened.sealed_to != sealed_to:
        yield (
            f"surveillance's key is another one than before: {sealed_to}, it was"
            f" {opened.sealed_to}; from here on hole cards are sealed to the new one"
        )
    if opened.hole and opened.hole != bound:
        yield (
            f"the hole key is another one than before: {bound}, it was {opened.hole};"
            " a card that lies face down now cannot be known again"
        )
