"""Verifying, as its tests ask for it."""

from __future__ import annotations

from pathlib import Path

from controller.audit.format.notes import VerifierKey
from controller.audit.verify import Report, Sighting, Verification


def verify(
    place: Path,
    witness: Sighting | None = None,
    *,
    replay: bool = True,
    table_key: VerifierKey | None = None,
    jobs: int = 1,
) -> Report:
    run = Verification(place, replay=replay, table_key=table_key, witness=witness, jobs=jobs)
    for _ in run:
        pass
    return run.report


def whats(report: Report) -> list[str]:
    """What was found, without the places."""
    return [found.what for found in report.findings]
