"""The record's keys: key files, loading, creation, listing."""

from __future__ import annotations

from controller.audit.keys.files import (
    BadKeyText,
    changed_keys,
    check_table_key,
    private_text,
    read_ed25519,
    read_table,
    table_text,
    with_keys,
    with_previous_keys,
    witness_text,
)
from controller.audit.keys.store import (
    ROLES,
    Role,
    create_key,
    key_file,
    list_keys,
    load_hole_key,
    load_surveillance_private,
    load_surveillance_public,
    load_table_private,
    load_table_public,
    load_witness_key,
    misplaced_keys,
    public_file,
    read_bytes,
)

__all__ = [
    "ROLES",
    "BadKeyText",
    "Role",
    "changed_keys",
    "check_table_key",
    "create_key",
    "key_file",
    "list_keys",
    "load_hole_key",
    "load_surveillance_private",
    "load_surveillance_public",
    "load_table_private",
    "load_table_public",
    "load_witness_key",
    "misplaced_keys",
    "private_text",
    "public_file",
    "read_bytes",
    "read_ed25519",
    "read_table",
    "table_text",
    "with_keys",
    "with_previous_keys",
    "witness_text",
]
