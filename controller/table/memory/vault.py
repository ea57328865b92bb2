"""The vault: the only place of a running table that stores cards which lie face down.

It commits to a card and seals it when the card comes, answers the check with one bit, and returns
the card when it is turned over. It is in memory only: after a restart the shoe is read again.
"""

from __future__ import annotations

from typing import Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.hole_cards import (
    CardCommitment,
    CardOpening,
    HoleKey,
    check,
    commit,
    opening,
)
from controller.audit.format.records import DeviceCursor
from controller.rules.cards import ACE, DECK, VALUE, Card
from drivers.devices import Sealed, SealedCard
from firmware_protocol.messages import CardRead

_MAKES: Final = tuple(
    tuple(VALUE[card] + up == 11 and ACE in (VALUE[card], up) for card in DECK) for up in range(11)
)
"""By up card value and card: whether the two make a blackjack, an ace and a ten."""


class NotInVault(LookupError):
    """The face-down card is not in the vault: the shoe must be read again, or surveillance opens
    the sealed copy."""


class _FaceDown(Struct, frozen=True):
    """A card that lies face down."""

    cursor: DeviceCursor
    opened: CardOpening
    body: Sealed[CardRead]
    wrong: int = 0
    """How often a wrong card was named for it."""


class CardVault:
    """Face-down cards by commitment."""

    def __init__(self, table: str, hole_key: HoleKey, surveillance: X25519PublicKey) -> None:
        self._table = table
        self._hole_key = hole_key
        self._surveillance = surveillance
        self._down: dict[str, _FaceDown] = {}

    def put(self, cursor: DeviceCursor, body: Sealed[CardRead]) -> CardCommitment:
        """Store a card that came face down, and return its commitment and sealed copy. Raises
        SealProblem."""
        bound = commit(self._table, cursor, body, self._hole_key, self._surveillance)
        opened = opening(self._hole_key, cursor, body)
        self._down[bound.commitment_hex] = _FaceDown(cursor, opened, body)
        return bound

    def put_again(
        self, cursor: DeviceCursor, body: Sealed[CardRead], commitment: str, wrong: int = 0
    ) -> None:
        """Store a card that the shoe sent again after a restart, with the number of wrong cards
        named so far. Raises NotCommitted if it is not the card of this commitment."""
        opened = opening(self._hole_key, cursor, body)
        check(opened, self._table, cursor, commitment)
        self._down[commitment] = _FaceDown(cursor, opened, body, wrong)

    def has(self, commitment: str) -> bool:
        return commitment in self._down

    def makes_blackjack(self, commitment: str, up: int) -> bool:
        """The one bit of the check: whether the card makes a blackjack with an up card of this
        value.

        A table lookup, so that the time does not depend on the card."""
        return _MAKES[up][self._down_card(commitment).opened.card.open()]

    def reveal(self, commitment: str) -> tuple[Card, str]:
        """Returns the card that is turned over, and the opening of its commitment."""
        opened = self._down_card(commitment).opened
        return opened.card.open(), opened.open().hex()

    def read(self, commitment: str) -> Sealed[CardRead]:
        """The complete reading of the shoe."""
        return self._down_card(commitment).body

    def cursor(self, commitment: str) -> DeviceCursor:
        """The position of the reading in the shoe's log."""
        return self._down_card(commitment).cursor

    def card(self, commitment: str) -> SealedCard:
        return self._down_card(commitment).opened.card

    def wrong(self, commitment: str) -> int:
        """How often a wrong card was named for it."""
        return self._down_card(commitment).wrong

    def matches(self, commitment: str, card: Card) -> bool:
        """Returns whether `card` is the card; a wrong one is counted."""
        down = self._down_card(commitment)
        right = down.opened.card.open() == card
        if not right:
            self._down[commitment] = replace(down, wrong=down.wrong + 1)
        return right

    def forget(self, but: frozenset[str] = frozenset()) -> None:
        """Delete all cards `but` these, which still lie face down."""
        for commitment in [one for one in self._down if one not in but]:
            del self._down[commitment]

    def _down_card(self, commitment: str) -> _FaceDown:
        found = self._down.get(commitment)
        if found is None:
            raise NotInVault("the card that lies face down is not known here")
        return found

    def __repr__(self) -> str:
        return f"CardVault({len(self._down)} face down)"
