"""What the commands of `holecard audit` do, one module for each or a few."""

from __future__ import annotations

from controller.audit.commands.common import index_progress, table_key_of
from controller.audit.commands.release import (
    GivenReleases,
    boot_texts,
    first_of,
    installed_differences,
    releases_of,
)

__all__ = [
    "GivenReleases",
    "boot_texts",
    "first_of",
    "index_progress",
    "installed_differences",
    "releases_of",
    "table_key_of",
]
