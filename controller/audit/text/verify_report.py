"""The report of a verification, as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from controller.audit.text.times import format_time
from controller.audit.verify import INCOMPLETE, INVALID, VALID, VerifyReport, WitnessedCheckpoint
from controller.procedure.prompts import counted

_MAX_FINDINGS: Final = 20


def verify_report_lines(
    report: VerifyReport, *, replay: bool = True, witness: WitnessedCheckpoint | None = None
) -> Iterator[str]:
    """The lines of `holecard audit verify`."""
    first, last = report.segments
    yield report.origin or "a record whose beginning cannot be read"
    yield (
        f"  {report.records:,} records in segments {first} to {last}, {report.size:,} bytes, "
        f"{counted(report.boots, 'boot')}"
    )
    yield f"  from {format_time(report.utc[0])} to {format_time(report.utc[1])}"
    yield f"  {report.checkpoints:,} checkpoints; signed up to record {report.signed:,}"
    if replay:
        yield f"  {report.again:,} decisions and refusals replayed by the rules"
    yield f"  {report.opened:,} hole cards opened as they were committed to"
    if report.witnessed:
        at = format_time(report.witnessed_at * 1_000_000)
        who = "" if witness is None else witness.who
        yield f"  the first {report.witnessed:,} records are those that {who} saw on {at}"
    for one in report.retired:
        yield f"retired: {one}"
    for remark in report.remarks:
        yield f"remark: {remark}"
    for one in report.unchecked:
        yield f"not checked: {one}"
    if report.unread:
        why = "after an error" if replay else "--no-replay"
        yield f"not checked: {report.unread:,} decisions and refusals were not replayed: {why}"
    yield from _key_words(report)
    yield from _findings(report)
    yield VERDICTS[report.code]


def _key_words(report: VerifyReport) -> Iterator[str]:
    if not report.proven_key:
        yield (
            "THE TABLE'S KEY IS NOT PROVEN: it comes from the record itself. Compare it with the "
            "table's papers, or give --table-key"
        )
    if report.table_key:
        yield f"  {report.table_key}"


def _findings(report: VerifyReport) -> Iterator[str]:
    for found in report.findings[:_MAX_FINDINGS]:
        yield f"wrong: {found}"
        if found is report.findings[0] and found.since:
            yield f"  until {format_time(found.since)} all was as it must be"
    rest = len(report.findings) - _MAX_FINDINGS + report.more
    if rest > 0:
        yield f"wrong: {rest:,} more"


VERDICTS: Final = {
    VALID: "RIGHT",
    INVALID: "WRONG",
    INCOMPLETE: "RIGHT AS FAR AS IT COULD BE CHECKED",
}
