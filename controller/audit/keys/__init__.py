"""The record's keys: key store, creation, listing, signing."""

from __future__ import annotations

from controller.audit.keys.files import BadText
from controller.audit.keys.fingerprints import as_before, other_keys, with_keys
from controller.audit.keys.list import look, out_of_place
from controller.audit.keys.store import (
    Role,
    key_file,
    load_hole_key,
    load_surveillance_public,
    load_table_private,
    load_table_public,
    public_file,
    read_bytes,
)

__all__ = [
    "BadText",
    "Role",
    "as_before",
    "key_file",
    "load_hole_key",
    "load_surveillance_public",
    "load_table_private",
    "load_table_public",
    "look",
    "other_keys",
    "out_of_place",
    "public_file",
    "read_bytes",
    "with_keys",
]
