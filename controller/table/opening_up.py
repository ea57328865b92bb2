"""The record of a table opened for a new boot: read, played again, and begun."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controller.audit.clock import Clock
from controller.audit.identity import identity_of
from controller.audit.log import Log
from controller.audit.notes import SigningKey
from controller.audit.opening import Opening
from controller.audit.problems import OtherTable
from controller.audit.signing import table_name
from controller.procedure.engine import Procedure
from controller.table.parts import Parts
from controller.table.recovery import Recovered, recover


def open_record(
    parts: Parts, procedure: Procedure, utc: Clock | None = None
) -> tuple[Log, Recovered]:
    """The record, begun, and where the table goes on. RecordProblem: then it is let go of."""
    opening = Opening.at(parts.record, table=parts.name)
    try:
        _check_key(opening, parts.keys.table)
        devices = [(one.device, one.serial) for one in parts.devices]
        found = recover(opening, procedure, devices)
    except BaseException:
        opening.close()
        raise
    log = Log.begin(
        opening,
        identity_of(parts.name, parts.what),
        parts.keys.table,
        state=found.last,
        clock=utc,
        day=parts.day,
        size=parts.size,
    )
    return log, found


def _check_key(opening: Opening, key: Ed25519PrivateKey) -> None:
    """A record is signed by one table's key from its beginning."""
    opened = opening.opened()
    if opened is None:
        return
    ours = SigningKey(table_name(opened.origin), key).verifier
    if str(ours) != opened.table_key:
        what = "was begun with another table's key than the one that is given"
        raise OtherTable(opening.record, what, "name the keys that it was begun with")
