"""The errors for invalid bytes of a peer, each with a name and a number.

PROTOCOL.md lists the numbers with their meaning. The text of an error never contains a value that
may be a card.
"""

from __future__ import annotations

from typing import ClassVar


class ProtocolError(Exception):
    """Bytes, or a step of a handshake, that TableLink does not allow."""

    number: ClassVar[int] = 100

    @property
    def name(self) -> str:
        """The name in records and reports: that of WrongSize is wrong-size."""
        return slug(type(self).__name__)


def slug(name: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).lstrip("-")


# --- plaintexts and payloads ----------------------------------------------------------------


class WrongSize(ProtocolError):
    """A plaintext, body or payload does not have the length of its kind."""

    number = 101


class UnknownType(ProtocolError):
    """The first byte of a plaintext is not a known type."""

    number = 102


class UnknownMessage(ProtocolError):
    """The id is not that of a message of this type of plaintext."""

    number = 103


class ReservedMessage(ProtocolError):
    """The id is reserved in this version."""

    number = 104


class WrongDirection(ProtocolError):
    """A message that only the other side sends."""

    number = 105


class WrongClass(ProtocolError):
    """A message of another class of device."""

    number = 106


class OutOfRange(ProtocolError):
    """A field has a value that the catalogue does not allow."""

    number = 107


class BadPadding(ProtocolError):
    """A padding byte is not zero."""

    number = 108


class BadText(ProtocolError):
    """A text is empty, has a character that is not allowed, or continues after a zero."""

    number = 109


# --- frames and sessions --------------------------------------------------------------------


class BadFrame(ProtocolError):
    """A frame that must not be sent: its kind does not allow this length, version, session id or
    counter."""

    number = 201


class WrongSession(ProtocolError):
    """A DATA frame of another session."""

    number = 202


class Replayed(ProtocolError):
    """A counter that is not above the last one accepted."""

    number = 203


class NotAuthentic(ProtocolError):
    """A DATA frame with a correct CRC and a wrong tag: it was forged or changed."""

    number = 204


class SessionSpent(ProtocolError):
    """A counter has reached its limit; a new handshake is required."""

    number = 205


class KeysWiped(ProtocolError):
    """The session is over and its keys are wiped."""

    number = 206


# --- HELLO ----------------------------------------------------------------------------------


class NoCommonVersion(ProtocolError):
    """The version ranges of host and device do not overlap."""

    number = 301


class SchemaDiffers(ProtocolError):
    """The device was built from another catalogue of the same version."""

    number = 302


class WrongDevice(ProtocolError):
    """Another class, serial number or key fingerprint than expected."""

    number = 303


class WrongAnswer(ProtocolError):
    """A HELLO_RSP that does not answer the HELLO."""

    number = 304


class BadLabelCode(ProtocolError):
    """A label code that was mistyped: wrong length, character or check digits."""

    number = 305


# --- handshakes -----------------------------------------------------------------------------


class HandshakeError(ProtocolError):
    """A handshake failed."""

    number = 400


class HandshakeSize(HandshakeError):
    """A handshake message is too short or too long."""

    number = 401


class HandshakeOrder(HandshakeError):
    """A step of the handshake out of turn, after its end or after its failure."""

    number = 402


class HandshakeNotAuthentic(HandshakeError):
    """Another key or label code, a replayed message, or HELLO, HELLO_RSP or an earlier message
    was changed. By design, the cause cannot be determined."""

    number = 403


class WeakKey(HandshakeError):
    """A public key of low order, which gives no shared secret."""

    number = 404


class BadKey(HandshakeError):
    """A key or psk that is not 32 bytes."""

    number = 405


def all_errors() -> list[type[ProtocolError]]:
    """Returns every error, by number."""
    classes = [one for one in globals().values() if isinstance(one, type)]
    found = [one for one in classes if issubclass(one, ProtocolError)]
    return sorted(found, key=lambda one: one.number)
