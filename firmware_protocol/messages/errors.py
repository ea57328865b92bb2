"""Everything that a peer's bytes can be refused for, each by a name and a number.

Numbers stand in PROTOCOL.md with what they mean. A text of an error never holds a value that may
be a card.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar


class ProtocolError(Exception):
    """Bytes, or a step of a handshake, that TableLink does not allow."""

    number: ClassVar[int] = 100

    @property
    def name(self) -> str:
        """As records and reports name it: WrongSize is wrong-size."""
        return slug(type(self).__name__)


def slug(name: str) -> str:
    return "".join(f"-{one.lower()}" if one.isupper() else one for one in name).lstrip("-")


# --- plaintexts and payloads ----------------------------------------------------------------


class WrongSize(ProtocolError):
    """A plaintext, body or payload is not as long as its kind says."""

    number = 101


class UnknownType(ProtocolError):
    """The first byte of a plaintext is no type of plaintext."""

    number = 102


class UnknownMessage(ProtocolError):
    """The id is no message, or none of this type of plaintext."""

    number = 103


class ReservedMessage(ProtocolError):
    """The id is reserved for something that this version does not have."""

    number = 104


class WrongDirection(ProtocolError):
    """A message that the other side sends."""

    number = 105


class WrongClass(ProtocolError):
    """A message of another class of device."""

    number = 106


class OutOfRange(ProtocolError):
    """A field holds a value that the catalogue does not allow."""

    number = 107


class BadPadding(ProtocolError):
    """A byte that means nothing is not zero."""

    number = 108


class BadText(ProtocolError):
    """A text is empty, holds a character it may not, or goes on after a zero."""

    number = 109


# --- frames and sessions --------------------------------------------------------------------


class BadFrame(ProtocolError):
    """A frame that may not be sent: a length, version, session id or counter that its kind has
    not."""

    number = 201


class WrongSession(ProtocolError):
    """A DATA frame of another session."""

    number = 202


class Replayed(ProtocolError):
    """A counter that is not above the last one accepted."""

    number = 203


class NotAuthentic(ProtocolError):
    """A DATA frame came whole, and its tag is wrong: it was made or changed on the way."""

    number = 204


class SessionSpent(ProtocolError):
    """A counter has reached its end; only a new handshake helps."""

    number = 205


class KeysWiped(ProtocolError):
    """The session is over and its keys are gone."""

    number = 206


# --- HELLO ----------------------------------------------------------------------------------


class NoCommonVersion(ProtocolError):
    """The version ranges of host and device do not meet."""

    number = 301


class SchemaDiffers(ProtocolError):
    """The device was built from another catalogue of the same version."""

    number = 302


class WrongDevice(ProtocolError):
    """Another class, serial number or key fingerprint than expected."""

    number = 303


class WrongAnswer(ProtocolError):
    """A HELLO_RSP that does not belong to the HELLO."""

    number = 304


class BadLabelCode(ProtocolError):
    """A label code that was mistyped: wrong length, character or check digits."""

    number = 305


# --- handshakes -----------------------------------------------------------------------------


class HandshakeError(ProtocolError):
    """A handshake came to nothing."""

    number = 400


class HandshakeSize(HandshakeError):
    """A handshake message is too short or too long."""

    number = 401


class HandshakeOrder(HandshakeError):
    """A step of the handshake out of turn, after its end or after its failure."""

    number = 402


class HandshakeNotAuthentic(HandshakeError):
    """Another key or label code, a replayed message, or HELLO, HELLO_RSP or an earlier message
    was changed on the way. Which one it was cannot be told, by design."""

    number = 403


class WeakKey(HandshakeError):
    """A public key that leads to no secret (a point of low order)."""

    number = 404


class BadKey(HandshakeError):
    """A key or psk that is not 32 bytes."""

    number = 405


def all_errors() -> Iterator[type[ProtocolError]]:
    """Every error there is, by number."""

    def below(one: type[ProtocolError]) -> Iterator[type[ProtocolError]]:
        yield one
        for more in one.__subclasses__():
            if more.__module__ == __name__:
                yield from below(more)

    yield from sorted(below(ProtocolError), key=lambda one: one.number)
