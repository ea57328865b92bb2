"""Prints what is installed where this runs, for the signed list of a release.

VENV/bin/python -I -m controller.packaging.installed
"""

from __future__ import annotations

import sys

import msgspec
from msgspec import Struct

from controller.audit.release import (
    PROCEDURE,
    SOFTWARE,
    InstalledPackage,
    ReleaseHashes,
    installed_software,
    release_hashes,
    source_hash,
    this_platform,
)


class InstalledRelease(Struct, frozen=True):
    """An installation of the release, as it sees itself."""

    platform: str
    sw: str
    code: str
    hashes: ReleaseHashes
    packages: tuple[InstalledPackage, ...]
    started: tuple[str, ...]
    """Files that Python runs at each start: a release has none."""


def installed_release() -> InstalledRelease:
    found = installed_software()
    *needed, startup = found.dependencies
    return InstalledRelease(
        this_platform(),
        source_hash(*SOFTWARE),
        source_hash(*PROCEDURE),
        release_hashes(),
        (found.own, *needed),
        tuple(file.path for file in startup.files),
    )


if __name__ == "__main__":
    sys.stdout.buffer.write(msgspec.json.encode(installed_release()))
