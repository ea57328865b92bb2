"""The record's keys: key store, creation, listing, signing."""

from __future__ import annotations

from controller.audit.keys.files import BadKeyText
from controller.audit.keys.fingerprints import changed_keys, with_keys, with_previous_keys
from controller.audit.keys.list import list_keys, misplaced_keys
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
    "BadKeyText",
    "Role",
    "changed_keys",
    "key_file",
    "list_keys",
    "load_hole_key",
    "load_surveillance_public",
    "load_table_private",
    "load_table_public",
    "misplaced_keys",
    "public_file",
    "read_bytes",
    "with_keys",
    "with_previous_keys",
]
