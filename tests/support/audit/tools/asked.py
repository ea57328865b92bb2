"""Verifying, as its tests ask for it."""

from __future__ import annotations

from pathlib import Path

from controller.audit.format.notes import VerifierKey
from controller.audit.verify import SeenCheckpoint, Verification, VerifyReport


def verify(
    place: Path,
    witness: SeenCheckpoint | None = None,
    *,
    replay: bool = True,
    table_key: VerifierKey | None = None,
    jobs: int = 1,
) -> VerifyReport:
    run = Verification(place, replay=replay, table_key=table_key, witness=witness, jobs=jobs)
    for _ in run:
        pass
    return run.report


def whats(report: VerifyReport) -> list[str]:
    """What was found, without the places."""
    return [found.what for found in report.findings]
