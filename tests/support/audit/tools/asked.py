"""Findings of a verification."""

from __future__ import annotations

from controller.audit.verify import VerifyReport


def whats(report: VerifyReport) -> list[str]:
    """What was found, without the places."""
    return [found.what for found in report.findings]
