"""Frames and plaintexts as texts of a report."""

from __future__ import annotations

from firmware_protocol.messages import Alert, ProtocolError
from firmware_protocol.tablelink.framing import Frame, FrameDamage
from firmware_protocol.tablelink.plaintext import CommandCall, CommandReply, EventRecord, Plaintext


def of_frame(frame: Frame) -> str:
    session = f"session {frame.session:#06x}"
    if frame.kind.name == "ALERT":
        return of_alert(frame)
    if frame.kind.name == "DATA":
        return f"DATA, {session}, counter {frame.counter}, {len(frame.payload)} bytes"
    return f"{frame.kind.name}, {session}"


def of_alert(frame: Frame) -> str:
    try:
        alert = Alert.decode(frame.payload)
    except ProtocolError as error:
        return f"ALERT that is malformed ({error})"
    return f"ALERT {alert.code.name} {alert.arg}"


def of_damage(damage: FrameDamage) -> str:
    return f"a damaged frame ({damage.cause.value}, {damage.size} bytes)"


def of_plaintext(what: Plaintext) -> str:
    if isinstance(what, EventRecord):
        return f"EVENT {what.seq} {of_message(what.event)}"
    if isinstance(what, CommandCall):
        return f"COMMAND {what.command_id} {of_message(what.command)}"
    if isinstance(what, CommandReply):
        return f"REPLY to {what.command_id}: {of_message(what.reply)}"
    return of_message(what)


def of_message(message: object) -> str:
    """The name and the fields; of a secret message only the name."""
    name = getattr(type(message), "NAME", type(message).__name__)
    spec = getattr(type(message), "SPEC", None)
    if spec is None or spec.secret or not spec.fields:
        return str(name)
    fields = ", ".join(f"{field} {_value(getattr(message, field))}" for field in spec.fields)
    return f"{name} ({fields})"


def _value(value: object) -> str:
    if isinstance(value, bytes):
        return value.hex()
    named = getattr(value, "name", None)
    return str(value) if named is None else str(named)


def few(texts: list[str], most: int = 6) -> str:
    """The last `most` of the texts, and the number of the others."""
    if not texts:
        return "nothing"
    before = f"... {len(texts) - most} more, then " if len(texts) > most else ""
    return before + "; ".join(texts[-most:])
