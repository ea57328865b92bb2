"""Which keys a boot binds and seals hole cards with: by their fingerprints, in its `opened` record,
so that another key than before is taken by nobody without a word."""

from __future__ import annotations

from collections.abc import Iterator

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from msgspec.structs import replace

from controller.audit.format.hole_cards import HoleKey
from controller.audit.format.records import BootIdentity, OpenedData
from controller.audit.keys.files import fingerprint, hole_fingerprint


def with_keys(identity: BootIdentity, hole: HoleKey, surveillance: X25519PublicKey) -> BootIdentity:
    """A boot that has these."""
    sealed_to = fingerprint(surveillance.public_bytes_raw())
    return replace(identity, hole=hole_fingerprint(hole), sealed_to=sealed_to)


def with_previous_keys(identity: BootIdentity, opened: OpenedData) -> BootIdentity:
    """A boot that has none, and goes on with those of the one before."""
    return replace(identity, hole=opened.hole or "", sealed_to=opened.sealed_to or "")


def changed_keys(
    opened: OpenedData | None, hole: HoleKey, surveillance: X25519PublicKey
) -> Iterator[str]:
    """Which of them are others than those of the boot before, in words."""
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
