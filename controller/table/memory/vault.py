"""The vault: the only place at a running table that holds a card which lies face down.

It binds and seals a card when it comes, answers the check with one bit, and gives the card up when
it is turned over. Nothing in it is written anywhere: after a restart the shoe is asked again.
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
from firmware_protocol.messages.shoe import CardRead

_MAKES: Final = tuple(
    tuple(VALUE[card] + up == 11 and ACE in (VALUE[card], up) for card in DECK) for up in range(11)
)
"""Whether a card makes a blackjack with an up card of this value: ace and ten."""


class NotInVault(LookupError):
    """The card that lies face down is not known here: the shoe has to be asked, or surveillance
    opens the sealed copy."""


class _FaceDown(Struct, frozen=True):
    """A card that lies face down."""

    cursor: DeviceCursor
    opened: CardOpening
    body: Sealed[CardRead]
    wrong: int = 0
    """So often somebody has said that it is another card."""


class CardVault:
    """Cards by their commitment."""

    def __init__(self, table: str, hole_key: HoleKey, surveillance: X25519PublicKey) -> None:
        self._table = table
        self._hole_key = hole_key
        self._surveillance = surveillance
        self._down: dict[str, _FaceDown] = {}

    def put(self, cursor: DeviceCursor, body: Sealed[CardRead]) -> CardCommitment:
        """A card came that nobody may see: what to record of it. SealProblem."""
        bound = commit(self._table, cursor, body, self._hole_key, self._surveillance)
        opened = opening(self._hole_key, cursor, body)
        self._down[bound.commitment_hex] = _FaceDown(cursor, opened, body)
        return bound

    def put_again(
        self, cursor: DeviceCursor, body: Sealed[CardRead], commitment: str, wrong: int = 0
    ) -> None:
        """The shoe has told it again after a restart. NotCommitted if it tells another card.
        `wrong`: how often somebody had said another one before."""
        opened = opening(self._hole_key, cursor, body)
        check(opened, self._table, cursor, commitment)
        self._down[commitment] = _FaceDown(cursor, opened, body, wrong)

    def has(self, commitment: str) -> bool:
        return commitment in self._down

    def makes_blackjack(self, commitment: str, up: int) -> bool:
        """The one bit of the check: whether it makes a blackjack with this value of the up card.

        A table is looked into at the card's number, so that it takes as long whatever it is."""
        return _MAKES[up][self._lying(commitment).opened.card.open()]

    def reveal(self, commitment: str) -> tuple[Card, str]:
        """It is turned over: the card, and what opens its commitment."""
        opened = self._lying(commitment).opened
        return opened.card.open(), opened.open().hex()

    def read(self, commitment: str) -> Sealed[CardRead]:
        """All that the shoe said of it."""
        return self._lying(commitment).body

    def cursor(self, commitment: str) -> DeviceCursor:
        """Which record of the shoe told it."""
        return self._lying(commitment).cursor

    def card(self, commitment: str) -> SealedCard:
        return self._lying(commitment).opened.card

    def wrong(self, commitment: str) -> int:
        """How often somebody has said that it is another card than it is."""
        return self._lying(commitment).wrong

    def is_said(self, commitment: str, card: Card) -> bool:
        """Whether it is the card that somebody says; where it is not, that counts."""
        down = self._lying(commitment)
        right = down.opened.card.open() == card
        if not right:
            self._down[commitment] = replace(down, wrong=down.wrong + 1)
        return right

    def forget(self, but: frozenset[str] = frozenset()) -> None:
        """Cards that lie face down no longer."""
        for commitment in [one for one in self._down if one not in but]:
            del self._down[commitment]

    def _lying(self, commitment: str) -> _FaceDown:
        found = self._down.get(commitment)
        if found is None:
            raise NotInVault("the card that lies face down is not known here")
        return found

    def __repr__(self) -> str:
        return f"CardVault({len(self._down)} face down)"
