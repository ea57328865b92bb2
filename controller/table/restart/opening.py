"""Opens the record of a table for a new boot: verify, replay, start the log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

import structlog
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.errors import OtherTable
from controller.audit.format.notes import SigningKey, table_name
from controller.audit.keys import changed_keys, with_keys
from controller.audit.log import Clock, Log, RecordOpening, SystemClock
from controller.audit.replay import identity_of
from controller.errors import UsageProblem
from controller.procedure.engine import Procedure
from controller.table.loop import TableParts
from controller.table.restart.restore import RestoredTable, restore

_log: Final = structlog.get_logger("table")

MAX_BEHIND: Final = timedelta(minutes=1)
"""A clock that is less behind the record was set while the controller was down, which is recorded.
A clock that is further behind is wrong now, or was wrong before."""


class ClockBehind(UsageProblem):
    """The machine's clock is before the record's last entry."""


def open_record(
    parts: TableParts,
    procedure: Procedure,
    utc: Clock | None = None,
    believed: tuple[str, str] | None = None,
) -> tuple[Log, RestoredTable]:
    """Open the record, and restore the table from it. `believed` are two people who confirm that
    the clock is right although the record is ahead of it. Raises RecordProblem or ClockBehind; the
    record is closed then."""
    opening = RecordOpening.at(parts.record, table=parts.name)
    try:
        _check_key(opening, parts.keys.table)
        behind = _behind(opening, utc or SystemClock())
        if believed is None and behind is not None:
            raise behind
        devices = [(one.device, one.serial) for one in parts.devices]
        found = restore(opening, procedure, devices)
        hole, surveillance = parts.keys.hole, parts.keys.surveillance
        identity = with_keys(identity_of(parts.name, parts.what), hole, surveillance)
        for words in changed_keys(opening.opened(), hole, surveillance):
            _log.warning("another key", what=words)
    except BaseException:
        opening.close()
        raise
    opening.believed = None if behind is None else believed
    log = Log.begin(
        opening,
        identity,
        parts.keys.table,
        state=found.last,
        clock=utc,
        day=parts.day,
        size=parts.size,
    )
    return log, found


def _check_key(opening: RecordOpening, key: Ed25519PrivateKey) -> None:
    """Raises OtherTable if the record was started with the key of a different table."""
    opened = opening.opened()
    if opened is None:
        return
    verifier = SigningKey(table_name(opened.origin), key).verifier
    if str(verifier) != opened.table_key:
        what = "was begun with another table's key than the one that is given"
        raise OtherTable(opening.record, what, "name the keys that it was begun with")


def _behind(opening: RecordOpening, utc: Clock) -> ClockBehind | None:
    """The problem if the clock is too far behind. Rate limits and readers depend on the times."""
    last = opening.last_told
    now = utc().utc
    if last is None or timedelta(microseconds=last.utc - now) <= MAX_BEHIND:
        return None
    what = f"says {_when(now)}, but the record goes to {_when(last.utc)}"
    allowed = "a clock that is set right; if it is right now: --believe-clock, once"
    return ClockBehind("the machine's clock", what, allowed)


def _when(utc: int) -> str:
    return datetime.fromtimestamp(utc // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
