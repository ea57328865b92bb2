"""Comparison with the signed list of a release: what is installed, and what the table last ran."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Final

from controller.audit.commands import (
    GivenReleases,
    boot_texts,
    first_of,
    installed_differences,
    releases_of,
)
from controller.audit.format.segments import numbers
from controller.audit.release import compare_boots
from controller.doctor.check import CheckFindings, DoctorCase, DoctorCheck, found, skipped, wrong

_INSTALL: Final = "do not play; find out what changed it, then install the release as in INSTALL.md"


def release_checks(args: argparse.Namespace) -> tuple[DoctorCheck, ...]:
    """The checks that --release adds. Raises UsageProblem."""
    given = releases_of(args)
    if not given.files:
        return ()
    return (
        DoctorCheck("release", "the installed files", partial(_installed, given)),
        DoctorCheck("last boots", "the software that the table ran", partial(_ran, given)),
    )


def _installed(given: GivenReleases, case: DoctorCase) -> CheckFindings:
    """All installed files, with all that the software needs, are those of a given release."""
    del case  # independent of the table
    lines = [*given.wrong, *(installed_differences(given.known) if given.known else ())]
    note = " or ".join(f"holecard {one.version}, commit {one.commit[:12]}" for one in given.known)
    return found(note, [wrong(one, mend=_INSTALL) for one in first_of(lines)])


def _ran(given: GivenReleases, case: DoctorCase) -> CheckFindings:
    """The boots in the last segment of the record, with the one that may run now. `audit verify`
    compares all boots."""
    record = case.record.directory
    there = numbers(record) if record.is_dir() else []
    if not there or not given.known:
        return skipped("there is no record yet" if given.known else "no list is signed")
    compared = compare_boots(record, given.known, since=there[-1])
    if compared.unread:
        return skipped(compared.unread[0])
    return found(
        f"{compared.boots} in segment {there[-1]}",
        [wrong(one, mend=_INSTALL) for one in first_of(list(boot_texts(compared)))],
    )
