"""The errors for invalid bytes of a peer, each with a name and a number.

PROTOCOL.md lists the numbers with their meaning. The text of an error never contains a value that
may be a card.
"""

from __future__ import annotations

from typing import ClassVar


class ProtocolError(Exception):
    """Bytes, or a step of a handshake, that TableLink does not allow."""

    number: ClassVar[int] = 100

    def __init_subclass__(cls, number: int) -> None:
        cls.number = number

    @property
    def name(self) -> str:
        """The name in records and reports: that of WrongSize is wrong-size."""
        return slug(type(self).__name__)


def slug(name: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).lstrip("-")


# --- plaintexts and payloads ----------------------------------------------------------------


class WrongSize(ProtocolError, number=101):
    """A plaintext, body or payload does not have the length of its kind."""


class UnknownType(ProtocolError, number=102):
    """The first byte of a plaintext is not a known type."""


class UnknownMessage(ProtocolError, number=103):
    """The id is not that of a message of this type of plaintext."""


class ReservedMessage(ProtocolError, number=104):
    """The id is reserved in this version."""


class WrongDirection(ProtocolError, number=105):
    """A message that only the other side sends."""


class WrongClass(ProtocolError, number=106):
    """A message of another class of device."""


class OutOfRange(ProtocolError, number=107):
    """A field has a value that the catalogue does not allow."""


class BadPadding(ProtocolError, number=108):
    """A padding byte is not zero."""


class BadText(ProtocolError, number=109):
    """A text is empty, has a character that is not allowed, or continues after a zero."""


# --- frames and sessions --------------------------------------------------------------------


class BadFrame(ProtocolError, number=201):
    """A frame that must not be sent: its kind does not allow this length, version, session id or
    counter."""


class WrongSession(ProtocolError, number=202):
    """A DATA frame of another session."""


class Replayed(ProtocolError, number=203):
    """A counter that is not above the last one accepted."""


class NotAuthentic(ProtocolError, number=204):
    """A DATA frame with a correct CRC and a wrong tag: it was forged or changed."""


class SessionSpent(ProtocolError, number=205):
    """A counter has reached its limit; a new handshake is required."""


class KeysWiped(ProtocolError, number=206):
    """The session is over and its keys are wiped."""


# --- HELLO ----------------------------------------------------------------------------------


class NoCommonVersion(ProtocolError, number=301):
    """The version ranges of host and device do not overlap."""


class SchemaDiffers(ProtocolError, number=302):
    """The device was built from another catalogue of the same version."""


class WrongDevice(ProtocolError, number=303):
    """Another class, serial number or key fingerprint than expected."""


class WrongAnswer(ProtocolError, number=304):
    """A HELLO_RSP that does not answer the HELLO."""


class BadLabelCode(ProtocolError, number=305):
    """A label code that was mistyped: wrong length, character or check digits."""


# --- handshakes -----------------------------------------------------------------------------


class HandshakeError(ProtocolError, number=400):
    """A handshake failed."""


class HandshakeSize(HandshakeError, number=401):
    """A handshake message is too short or too long."""


class HandshakeOrder(HandshakeError, number=402):
    """A step of the handshake out of turn, after its end or after its failure."""


class HandshakeNotAuthentic(HandshakeError, number=403):
    """Another key or label code, a replayed message, or HELLO, HELLO_RSP or an earlier message
    was changed. By design, the cause cannot be determined."""


class WeakKey(HandshakeError, number=404):
    """A public key of low order, which gives no shared secret."""


class BadKey(HandshakeError, number=405):
    """A key or psk that is not 32 bytes."""


def all_errors() -> list[type[ProtocolError]]:
    """Returns every error, by number."""
    classes = [one for one in globals().values() if isinstance(one, type)]
    found = [one for one in classes if issubclass(one, ProtocolError)]
    return sorted(found, key=lambda one: one.number)
