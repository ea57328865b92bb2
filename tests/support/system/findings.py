"""The findings of a verification."""

from pathlib import Path

from controller.audit.verify import verify


def findings(record: Path) -> list[str]:
    report = verify(record)
    assert report.again > 0
    return [str(finding) for finding in report.findings]
