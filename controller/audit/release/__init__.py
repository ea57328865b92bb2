"""The installed software: hashes of its files and of its dependencies."""

from __future__ import annotations

from controller.audit.release.hashes import (
    PROCEDURE,
    SOFTWARE,
    CodeForm,
    InstalledFile,
    InstalledPackage,
    InstalledSoftware,
    ReleaseHashes,
    code_form,
    files_hash,
    installed_software,
    release_hashes,
    source_hash,
)

__all__ = [
    "PROCEDURE",
    "SOFTWARE",
    "CodeForm",
    "InstalledFile",
    "InstalledPackage",
    "InstalledSoftware",
    "ReleaseHashes",
    "code_form",
    "files_hash",
    "installed_software",
    "release_hashes",
    "source_hash",
]
