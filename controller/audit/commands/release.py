"""Options that name the signed list of a release, and what is found with it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from controller.audit.commands.common import bytes_of, release_key_of
from controller.audit.format.notes import NoteProblem
from controller.audit.release import (
    MAX_BYTES,
    ComparedBoots,
    Installation,
    ReleaseList,
    compare_boots,
    differences,
    read_release,
)
from controller.audit.text import format_time
from controller.errors import UsageProblem, printable
from controller.procedure.prompts import counted

_MAX_SHOWN: Final = 20
"""Limit of differences that are listed as text."""


class GivenReleases(NamedTuple):
    """The lists that were given."""

    files: int
    known: tuple[ReleaseList, ...]
    wrong: tuple[str, ...]
    """Why others are not what the key signed."""


class ReleaseFindings(NamedTuple):
    """What differs from the given releases."""

    wrong: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def shown(self) -> Iterator[str]:
        """The lines of the report."""
        yield from (f"release: {one}" for one in self.remarks)
        yield from (f"not checked: {one}" for one in self.unchecked)
        yield from (f"wrong: {one}" for one in first_of(self.wrong))


def releases_of(args: argparse.Namespace) -> GivenReleases:
    """The lists of --release. Raises UsageProblem; what the key did not sign is a finding."""
    files: list[str] = args.release or []
    if bool(files) != (args.release_key is not None):
        raise UsageProblem(
            "arguments", "--release and --release-key go together", "both, or neither"
        )
    known: list[ReleaseList] = []
    wrong: list[str] = []
    for file in files:
        verifier = release_key_of(args.release_key)
        try:
            known.append(read_release(bytes_of("--release", file, MAX_BYTES), verifier))
        except NoteProblem as problem:
            wrong.append(f"--release {printable(file)}: {problem.what}")
    return GivenReleases(len(files), tuple(known), tuple(wrong))


def first_of(lines: Sequence[str]) -> Iterator[str]:
    """The first lines, and how many there are more."""
    yield from lines[:_MAX_SHOWN]
    if len(lines) > _MAX_SHOWN:
        yield f"{len(lines) - _MAX_SHOWN:,} more"


def installed_differences(releases: Sequence[ReleaseList]) -> tuple[str, ...]:
    """How the running software differs from the most similar of these releases."""
    here = Installation.here()
    found = (differences(one, here) for one in releases)
    nearest = min(found, key=len)
    return tuple(map(str, nearest))


def boot_texts(compared: ComparedBoots) -> Iterator[str]:
    """A line for each boot of other software."""
    for boot, what in compared.other:
        yield (
            f"{boot.place}: boot {boot.boot} of {format_time(boot.utc)} ran "
            f"{printable(boot.ran.software)}, which is in no list: {what} differs"
        )


def compared_with_releases(record: Path, given: GivenReleases) -> ReleaseFindings:
    """Compare what runs now, and what ran at each boot of the record, with these releases."""
    if not given.known:
        return ReleaseFindings(given.wrong)
    runs = installed_differences(given.known)
    boots = compare_boots(record, given.known)
    here = (f"the software that runs here: {one}" for one in runs)
    right = boots.boots - len(boots.other)
    remarks = [f"{counted(right, 'boot')} of {boots.boots} ran software of the given releases"]
    if boots.bare:
        remarks.append(f"{counted(boots.bare, 'boot')} recorded no hashes of files, but of source")
    if not runs:
        remarks.append("the software that runs here is that of a given release, with all it needs")
    return ReleaseFindings((*given.wrong, *here, *boot_texts(boots)), boots.unread, tuple(remarks))
