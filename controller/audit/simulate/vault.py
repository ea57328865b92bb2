"""A simulated shoe for recorded rounds, with commitments to hole cards.

Each card is a record in the shoe's own chain, with salt, so that cursors, commitments and
openings are verified like a table's.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, NamedTuple

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from controller.audit.format.hole_cards import HoleKey, commit, opening
from controller.audit.format.records import DeviceCursor
from controller.games import SHOE
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    Event,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
)
from controller.rules.cards import Card
from controller.rules.hands import is_blackjack
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags, CardRead
from firmware_protocol.tablelink.plaintext import NO_CHAIN, chained

SERIAL: Final = "SIM-SHOE"
_EPOCH: Final = 1
_SALT: Final = 11
_NOTHING_ELSE: Final = 0xFE
_SURE: Final = 100
_DWELL: Final = 120
_PACE_US: Final = 400_000
"""Microseconds between cards, by the shoe's own clock."""
_BACK: Final = 1


class CardSource(NamedTuple):
    """What is recorded beside an event of the shoe."""

    cursor: DeviceCursor | None = None
    sealed: str = ""


class _Hidden(NamedTuple):
    """A face-down card: its device record and its content."""

    cursor: DeviceCursor
    body: Sealed[CardRead]


class RecordingVault:
    """The card source of recorded rounds: simulates the shoe and keeps face-down cards secret."""

    def __init__(
        self,
        table: str,
        hole_key: HoleKey,
        surveillance: X25519PublicKey,
        last: DeviceCursor | None = None,
        salt: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """`last`: the last recorded position of this shoe, to continue after a restart."""
        self._table = table
        self._hole_key = hole_key
        self._surveillance = surveillance
        self._salt = salt
        self._epoch, self._seq, self._boot, self._t_us = _EPOCH, 0, 1, 0
        self._chain = NO_CHAIN
        if last is not None:
            self._epoch, self._seq = last.epoch, last.seq
            self._chain, self._boot = bytes.fromhex(last.chain), last.boot + 1
        self._shoe = self._pos = 0
        self._told = CardSource()
        self.face_down: _Hidden | None = None
        """The last card that was drawn face down."""
        self._hole: _Hidden | None = None

    @property
    def hole(self) -> Card:
        return -1 if self._hole is None else self._hole.body.open().card

    def loaded(self) -> None:
        """A new shoe: positions start again."""
        self._shoe += 1
        self._pos = 0

    def take_source(self) -> CardSource:
        """Return and clear the source of the last event."""
        told, self._told = self._told, CardSource()
        return told

    def restore_source(self, told: CardSource) -> None:
        """Undo take_source(): the append failed and will be retried."""
        self._told = told

    # --- what becomes of a card -----------------------------------------------------------

    def drawn(self, card: Card, /) -> Event:
        self._read(card)
        return CardDrawn(SHOE, card)

    def burned(self, card: Card, /) -> Event:
        self._read(card)
        return CardBurned(SHOE)

    def dealt(self, card: Card, /) -> Event:
        commitment = self.hidden(card)
        self._hole = self.face_down
        return HoleDealt(SHOE, commitment)

    def hidden(self, card: Card, /) -> str:
        """Draw a card face down; returns its commitment."""
        self.face_down = down = self._read(card)
        bound = commit(self._table, down.cursor, down.body, self._hole_key, self._surveillance)
        self._told = CardSource(down.cursor, bound.sealed_b64)
        return bound.commitment_hex

    def checked(self, up: Card, /) -> Event:
        return HoleChecked(SHOE, is_blackjack(up, self._lying().body.open().card))

    def revealed(self) -> Event:
        cursor, body = self._lying()
        opened = opening(self._hole_key, cursor, body)
        return HoleRevealed(SHOE, opened.card.open(), opened.open().hex())

    def _lying(self) -> _Hidden:
        if self._hole is None:
            raise LookupError("no hole card lies on the table")
        return self._hole

    def _read(self, card: Card) -> _Hidden:
        """The shoe's record of a drawn card."""
        self._seq += 1
        self._pos += 1
        self._t_us += _PACE_US
        read = CardRead(
            self._shoe,
            self._pos,
            card,
            _SURE,
            _NOTHING_ELSE,
            CardFlags(0),
            _DWELL,
            _BACK,
            self._salt(_SALT),
        )
        record = chained(
            self._chain,
            epoch=self._epoch,
            seq=self._seq,
            boot=self._boot,
            t_us=self._t_us,
            event=read,
        )
        self._chain = record.chain
        cursor = DeviceCursor(
            SERIAL, self._epoch, self._seq, record.chain.hex(), self._boot, self._t_us
        )
        self._told = CardSource(cursor)
        return _Hidden(cursor, Sealed(read))
