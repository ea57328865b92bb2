"""Random rounds with irregularities, recorded as a table records them."""

import os
from collections.abc import Callable, Sequence
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.format.hole_cards import HOLE_KEY_SIZE, HoleKey, opening
from controller.audit.format.records import BootIdentity, Record, RecordEntry, encode
from controller.audit.log import Log, RecordOpening
from controller.audit.replay import event_entry, identity_of
from controller.audit.simulate import CardSource, RecorderKeys, RecordingVault
from controller.procedure.engine import Procedure
from controller.procedure.model.events import (
    CardDrawn,
    ErrorCardDrawn,
    Event,
    HoleDealt,
    HoleRevealed,
    ShoeLoaded,
)
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from controller.rules.cards import Card
from controller.sim.play import Stepper
from tests.support.audit.record.table import TABLE_KEY, FakeClock, FastDisk
from tests.support.procedure.random_games import some_game
from tests.support.procedure.random_table import RandomTable

TABLE: Final = "bj-1"
SURVEILLANCE_KEY: Final = X25519PrivateKey.generate()
KEYS: Final = RecorderKeys(
    TABLE_KEY, HoleKey(os.urandom(HOLE_KEY_SIZE)), SURVEILLANCE_KEY.public_key()
)
SMALL: Final = 64 * 1024


def keyring(opening: RecordOpening) -> RecorderKeys:
    return KEYS


def same_salt() -> Callable[[int], bytes]:
    """Deterministic salt that looks random."""
    number = 0

    def salt(size: int) -> bytes:
        nonlocal number
        number += 1
        return sha256(f"salt {number}".encode()).digest()[:size]

    return salt


class Dealing(RandomTable):
    """All that it does is appended to `entries`."""

    def __init__(self, engine: Stepper, seed: str) -> None:
        super().__init__(engine, seed)
        self.vault = RecordingVault(TABLE, KEYS.hole, KEYS.surveillance, salt=same_salt())
        self.entries: list[RecordEntry] = []
        self.heard: list[tuple[State, Event, Decision | Refused]] = []
        self._told: dict[str, CardSource] = {}

    def play_to(self, entries: int) -> None:
        """Play until there are so many entries, wherever that is in a round."""
        while len(self.entries) < entries:
            self.once()

    def hide(self, card: Card) -> str:
        commitment = self.vault.hidden(card)
        self._told[commitment] = self.vault.take_source()
        self._vault[commitment] = card
        return commitment

    def hand_in(self, event: Event) -> Decision | Refused:
        before = self.state
        event = self._bound(event)
        answer = super().hand_in(event)
        if isinstance(event, ShoeLoaded):
            self.vault.loaded()
        told = self._of(event)
        sealed = told.sealed if isinstance(answer, Decision) else ""
        made = event_entry(event, answer, before, cursor=told.cursor, sealed=sealed)
        if isinstance(answer, Decision) or _can_be_written(made):
            self.heard.append((before, event, answer))
            self.entries.append(made)
        return answer

    def _bound(self, event: Event) -> Event:
        """A made-up card is a card of the shoe too."""
        made_up = (
            isinstance(event, HoleDealt | ErrorCardDrawn)
            and not getattr(event, "spare", False)
            and event.commitment not in self._told
        )
        return replace(event, commitment=self.hide(max(self.draw(), 0))) if made_up else event

    def _of(self, event: Event) -> CardSource:
        if isinstance(event, HoleDealt | ErrorCardDrawn):
            return self._told.get(event.commitment, CardSource())
        if isinstance(event, CardDrawn) and not event.spare:
            self.vault.drawn(event.card)
            return self.vault.take_source()
        return CardSource()


def _can_be_written(made: RecordEntry) -> bool:
    """Record integers have 64 bits."""
    try:
        encode(made.data)
    except OverflowError:
        return False
    return True


def boot(place: Path, game: Game, state: State | None = None, **more: Any) -> Log:
    """A boot that deals this game."""
    return boot_of(place, identity_of(TABLE, game), state, **more)


def boot_of(
    place: Path,
    identity: BootIdentity,
    state: State | None = None,
    *,
    size: int = SMALL,
    clock: FakeClock | None = None,
) -> Log:
    """A boot of this identity, later than all that is recorded."""
    opening = RecordOpening.at(place, table=TABLE, disk=FastDisk())
    last = opening.last
    clock = clock or (FakeClock() if last is None else FakeClock(last.utc + 10**9))
    return Log.begin(opening, identity, TABLE_KEY, state=state, clock=clock, size=size)


def recorded(place: Path, game: Game, entries: Sequence[RecordEntry]) -> None:
    """A record of these entries, starting with a closed table."""
    with closing(boot(place, game)) as log:
        for made in entries:
            log.write([made])


def as_read(made: RecordEntry) -> Record:
    """The decoded entry; only data and kind matter."""
    data = Raw(encode(made.data))
    return Record(2, "0" * 16, 1, 0, 0, "synced", made.round, made.kind, data, made.by)


class Revealing(Dealing):
    """Keeps what the shoe said of each card that came face down."""

    def __init__(self, engine: Stepper, seed: str) -> None:
        super().__init__(engine, seed)
        self._illegal = (
            0.0  # what nobody could bring: a seat that cannot be, a card without a place
        )
        self._openings: dict[str, str] = {}

    def hide(self, card: Card) -> str:
        commitment = super().hide(card)
        down = self.vault.face_down
        assert down is not None
        self._openings[commitment] = opening(KEYS.hole, down.cursor, down.body).open().hex()
        return commitment

    def _bound(self, event: Event) -> Event:
        bound = super()._bound(event)
        if isinstance(bound, HoleRevealed) and self.state.hole in self._openings:
            return replace(
                bound, card=self._vault[self.state.hole], opening=self._openings[self.state.hole]
            )
        return bound


def revealed(name: str, seed: str, events: int = 400) -> Revealing:
    """A table after so many events, wherever that is in a round."""
    game, what = some_game(Random(f"revealing {name} {seed}"), name)
    table = Revealing(Procedure(game), f"revealing {what} {seed}")
    table.play_to(events)
    return table


def played(game: Game, there: Callable[[State], bool], seed: str = "other") -> Revealing:
    """A table that has come to such a state."""
    table = Revealing(Procedure(game), seed)
    while not (table.entries and there(table.state)):
        table.once()
    return table
