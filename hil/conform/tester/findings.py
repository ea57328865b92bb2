"""The exceptions that end an item without success, and the texts of frames in a report."""

from __future__ import annotations

from firmware_protocol.messages import Alert, ProtocolError
from firmware_protocol.tablelink import (
    CommandCall,
    CommandReply,
    EventRecord,
    Frame,
    FrameDamage,
    Plaintext,
)


class ItemFinding(Exception):
    """The device violates a rule: what was sent, what was expected, and what came."""

    def __init__(self, sent: str, expected: str, came: str) -> None:
        super().__init__(sent, expected, came)
        self.sent = sent
        self.expected = expected
        self.came = came


class _Ended(Exception):
    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class ItemSkipped(_Ended):
    """The item cannot be run here: what it needs."""


class NotApplicable(ItemSkipped):
    """The rule does not apply to this model, so that nothing is left untested."""


class ItemBlocked(_Ended):
    """An obstacle that is independent of the rule."""


class RequestDenied(ItemBlocked):
    """The state of the device does not allow a request that the item needs."""


class RunAborted(_Ended):
    """The run cannot continue."""


def frame_text(frame: Frame) -> str:
    session = f"session {frame.session:#06x}"
    if frame.kind.name == "ALERT":
        return alert_text(frame)
    if frame.kind.name == "DATA":
        return f"DATA, {session}, counter {frame.counter}, {len(frame.payload)} bytes"
    return f"{frame.kind.name}, {session}"


def alert_text(frame: Frame) -> str:
    try:
        alert = Alert.decode(frame.payload)
    except ProtocolError as error:
        return f"ALERT that is malformed ({error})"
    return f"ALERT {alert.code.name} {alert.arg}"


def damage_text(damage: FrameDamage) -> str:
    return f"a damaged frame ({damage.cause.value}, {damage.size} bytes)"


def plaintext_text(what: Plaintext) -> str:
    if isinstance(what, EventRecord):
        return f"EVENT {what.seq} {message_text(what.event)}"
    if isinstance(what, CommandCall):
        return f"COMMAND {what.command_id} {message_text(what.command)}"
    if isinstance(what, CommandReply):
        return f"REPLY to {what.command_id}: {message_text(what.reply)}"
    return message_text(what)


def message_text(message: object) -> str:
    """The name and the fields; of a secret message only the name."""
    name = getattr(type(message), "NAME", type(message).__name__)
    spec = getattr(type(message), "SPEC", None)
    if spec is None or spec.secret or not spec.fields:
        return str(name)
    fields = ", ".join(f"{field} {value_text(getattr(message, field))}" for field in spec.fields)
    return f"{name} ({fields})"


def value_text(value: object) -> str:
    """A message, or a field of one."""
    if isinstance(value, EventRecord | CommandCall | CommandReply):
        return plaintext_text(value)
    if hasattr(type(value), "SPEC"):
        return message_text(value)
    if isinstance(value, bytes):
        return value.hex()
    named = getattr(value, "name", None)
    return str(value) if named is None else str(named)


def last_texts(texts: list[str]) -> str:
    """The last six of the texts, and the number of the others."""
    if not texts:
        return "nothing"
    before = f"... {len(texts) - 6} more, then " if len(texts) > 6 else ""
    return before + "; ".join(texts[-6:])
