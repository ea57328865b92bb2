"""The installed software: hashes of its files, the signed list of a release, comparison."""

from __future__ import annotations

from controller.audit.release.boots import (
    BootSoftware,
    ComparedBoots,
    RecordedSoftware,
    boot_differences,
    compare_boots,
)
from controller.audit.release.compare import (
    Difference,
    Installation,
    differences,
    this_platform,
)
from controller.audit.release.hashes import (
    PROCEDURE,
    SOFTWARE,
    CodeForm,
    InstalledFile,
    InstalledPackage,
    InstalledSoftware,
    ReleaseHashes,
    canonical_name,
    code_form,
    files_hash,
    installed_software,
    release_hashes,
    required_name,
    source_hash,
)
from controller.audit.release.listing import (
    MAX_BYTES,
    ReleaseArchive,
    ReleaseList,
    read_release,
    release_text,
)

__all__ = [
    "MAX_BYTES",
    "PROCEDURE",
    "SOFTWARE",
    "BootSoftware",
    "CodeForm",
    "ComparedBoots",
    "Difference",
    "Installation",
    "InstalledFile",
    "InstalledPackage",
    "InstalledSoftware",
    "RecordedSoftware",
    "ReleaseArchive",
    "ReleaseHashes",
    "ReleaseList",
    "boot_differences",
    "canonical_name",
    "code_form",
    "compare_boots",
    "differences",
    "files_hash",
    "installed_software",
    "read_release",
    "release_hashes",
    "release_text",
    "required_name",
    "source_hash",
    "this_platform",
]
