"""Records rounds without a table as a table does: each event and decision is durable before its
effects are visible.

  with Recorder(place, "scripts", keyring) as recorder:
      recorder.begin(procedure)                  # a new boot if the game changes
      recorder.fresh_shoe()
      recorder.step(recorder.state, event)       # decided, and recorded

The record replays from its beginning, so every state results from events: the table is opened,
the shoe shuffled and loaded, and an unfinished round is voided.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self, TypeAlias

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.errors import RecordProblem, RetryLater
from controller.audit.files import Disk
from controller.audit.format.hole_cards import HoleKey, commit, opening
from controller.audit.format.records import BootIdentity, DeviceCursor, RecordEntry, encode
from controller.audit.format.segments import SIZE
from controller.audit.keys import changed_keys, check_table_key, with_keys
from controller.audit.log import Clock, Log, RecordOpening
from controller.audit.replay import at_rest, event_entry, identity_of, procedure_of, replay_opening
from controller.games import DEALER, FLOOR, SECOND, SHOE
from controller.procedure.engine import Procedure
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import (
    CardBurned,
    CardDrawn,
    Cleared,
    DecksChanged,
    Event,
    FloorRuled,
    HoleChecked,
    HoleDealt,
    HoleRevealed,
    Paid,
    PaymentApproved,
    RoundVoided,
    ShoeLoaded,
    ShuffleCalled,
    ShuffleDone,
    ShuffleStarted,
    TableClosed,
    TableOpened,
    WagerRemoved,
)
from controller.procedure.model.felt import top
from controller.procedure.model.game import Game
from controller.procedure.model.holds import IN_ROUND
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import Card
from controller.rules.hands import is_blackjack
from controller.rules.irregularities import Way
from controller.sim.play import RoundStuck
from drivers.devices import Sealed
from firmware_protocol.messages import CardFlags, CardRead
from firmware_protocol.tablelink import NO_CHAIN, chained

SERIAL: Final = "SIM-SHOE"
_READ: Final = CardRead(0, 0, 0, 100, 0xFE, CardFlags(0), 120, 1, b"")
"""What the simulated shoe reports of every card: a sure reading, without another candidate."""
_SALT: Final = 11
"""Bytes."""
_PACE_US: Final = 400_000
"""Microseconds between cards, by the shoe's own clock."""


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
        self._last = DeviceCursor(SERIAL, 1, 0, NO_CHAIN.hex(), 1, 0)
        if last is not None:
            self._last = replace(last, boot=last.boot + 1, t_us=0)
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
        """Returns and clear the source of the last event."""
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
        self._pos += 1
        salt = self._salt(_SALT)
        read = replace(_READ, shoe=self._shoe, pos=self._pos, card=card, salt=salt)
        last = self._last
        seq, t_us = last.seq + 1, last.t_us + _PACE_US
        chain = bytes.fromhex(last.chain)
        record = chained(chain, epoch=last.epoch, seq=seq, boot=last.boot, t_us=t_us, event=read)
        self._last = replace(last, seq=seq, t_us=t_us, chain=record.chain.hex())
        self._told = CardSource(self._last)
        return _Hidden(self._last, Sealed(read))


MAX_TOGETHER: Final = 512 * 1024
"""Group commit limit for bulk recording: bytes of records that share a sync."""
_AROUND: Final = 512
"""Approximate size of a record and its frame without `data`."""
_MAX_EVENTS: Final = 1_000
_VOIDED: Final = "nobody goes on with it"


class RecorderKeys(NamedTuple):
    """The keys that sign a table's record and protect its hole cards."""

    table: Ed25519PrivateKey
    hole: HoleKey
    surveillance: X25519PublicKey


Keyring: TypeAlias = Callable[[RecordOpening], RecorderKeys]
"""Returns the keys for a record."""


class Recorder:
    """A table without devices, with a record. A context manager; leaving it normally closes the
    table."""

    def __init__(
        self,
        place: Path,
        table: str,
        keyring: Keyring,
        *,
        size: int = SIZE,
        disk: Disk | None = None,
        clock: Clock | None = None,
        together: int = 0,
    ) -> None:
        """`together`: bytes of records that may be buffered; with 0 each record is durable
        before the next event."""
        self._place = place
        self._table = table
        self._keyring = keyring
        self._size, self._disk, self._clock = size, disk, clock
        self._most_waiting = together
        self.on_warning: Callable[[str], None] = lambda words: None
        """Callback for warnings about changed keys."""
        self._waiting: list[RecordEntry] = []
        self._bytes = 0
        self._sign = False
        """A checkpoint must be retried after a full disk."""
        self._boot: _RecorderBoot | None = None
        self._looked = False
        """A round of an earlier run has been ended."""
        self.seq = 0
        """The seq of the last durable record."""
        self.state = State()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if problem is None:
                self.end()
        finally:
            if self._boot is not None:
                boot, self._boot = self._boot, None
                with suppress(RecordProblem):  # the first error is raised
                    boot.log.close()
                self.seq = boot.log.where.seq

    # --- boots ----------------------------------------------------------------------------

    def begin(self, procedure: Procedure) -> None:
        """Switch to this procedure. Raises RecordProblem."""
        identity = identity_of(self._table, procedure.game)
        if self._boot is not None and self._boot.identity.proc == identity.proc:
            return
        self.end()
        if not self._looked:
            self._looked = True
            self._end_former(identity)
        self._begin(identity, procedure)

    def end(self) -> None:
        """Close the table and end the boot."""
        if self._boot is None:
            return
        self.close_table()
        self._flush()
        boot, self._boot = self._boot, None
        boot.log.close()
        self.seq = boot.log.where.seq

    def _end_former(self, identity: BootIdentity) -> None:
        """End a round that an earlier run left open, with the game it was dealt by."""
        opening = RecordOpening.at(self._place, table=self._table, disk=self._disk)
        try:
            opened = opening.opened()
            former = procedure_of(opened) if opened is not None else None
            if opened is None or former is None or opened.proc == identity.proc:
                return
            if at_rest(replay_opening(opening, former).now):
                return
        finally:
            opening.close()
        self._begin(replace(identity_of(self._table, former.game), conf=opened.conf), former)
        self.end()

    def _begin(self, identity: BootIdentity, procedure: Procedure) -> None:
        opening = RecordOpening.at(self._place, table=self._table, disk=self._disk)
        try:
            keys = self._keyring(opening)
            check_table_key(opening.record, opening.opened(), keys.table)
            folded = replay_opening(opening, procedure)
            cursor = opening.cursors.get(SERIAL)
            for words in changed_keys(opening.opened(), keys.hole, keys.surveillance):
                self.on_warning(words)
            identity = with_keys(identity, keys.hole, keys.surveillance)
            vault = RecordingVault(self._table, keys.hole, keys.surveillance, cursor)
        except BaseException:
            opening.close()
            raise
        log = Log.begin(
            opening, identity, keys.table, state=folded.state, clock=self._clock, size=self._size
        )
        self._boot = _RecorderBoot(log, identity, procedure, vault)
        self.state, self.seq = folded.now, log.where.seq

    # --- what the rounds of scripts and simulations need ----------------------------------

    @property
    def game(self) -> Game:
        return self._running.procedure.game

    @property
    def vault(self) -> RecordingVault:
        return self._running.vault

    @property
    def _running(self) -> _RecorderBoot:
        assert self._boot is not None, "begin() comes first"
        return self._boot

    def shows(self, s: State, /) -> tuple[Effect, ...]:
        return self._running.procedure.shows(s)

    def step(self, s: State, e: Event, /) -> Decision | Refused:
        """Decide and record. Raises RecordProblem without side effects; after RetryLater the
        same step may be repeated."""
        if s is not self.state:
            raise ValueError("the record goes on from where it stands, and from nowhere else")
        boot = self._running
        answer = boot.procedure.step(s, e)
        told = boot.vault.take_source()
        sealed = "" if isinstance(answer, Refused) else told.sealed
        try:
            self._keep(event_entry(e, answer, s, cursor=told.cursor, sealed=sealed))
        except RetryLater:
            boot.vault.restore_source(told)
            raise
        if isinstance(answer, Refused):
            return answer
        self.state = answer.state
        if type(e) is ShoeLoaded:
            boot.vault.loaded()
        return answer

    def must(self, event: Event) -> None:
        """Apply an event that the current state must accept."""
        at = self.state.step.value
        answer = self.step(self.state, event)
        if isinstance(answer, Refused):
            raise RoundStuck(f"{type(event).__name__} at {at}: {answer.why}")

    # --- the life of the table ------------------------------------------------------------

    def rest(self) -> None:
        """Bring the table to rest: no open round, no wager on the felt."""
        self._go_on(_to_rest)

    def close_table(self) -> None:
        self.rest()
        if self.state.step is not Step.CLOSED:
            self.must(TableClosed(FLOOR, 0, SECOND))

    def fresh_shoe(self) -> None:
        """Open the table and shuffle, so that the next round is the first of its shuffle. Only
        for games without burn cards: a script's shoe contains dealt cards only."""
        self.rest()
        self._go_on(_to_wagers)

    def _go_on(self, way: Callable[[Game, State], Event | None]) -> None:
        for _ in range(_MAX_EVENTS):
            event = way(self.game, self.state)
            if event is None:
                return
            self.must(event)
        raise RoundStuck(f"no end after {_MAX_EVENTS} events, at {self.state.step.value}")

    # --- the record -----------------------------------------------------------------------

    def _keep(self, made: RecordEntry) -> None:
        """Buffer an entry, and flush at the limit. Raises RetryLater; the entry is dropped then,
        earlier ones stay buffered."""
        data = encode(made.data)
        size = len(data) + _AROUND
        self._waiting.append(replace(made, data=Raw(data)))
        self._bytes += size
        if self._bytes >= self._most_waiting or self._bytes >= self._running.log.size // 4:
            try:
                self._flush()
            except RetryLater:
                self._waiting.pop()
                self._bytes -= size
                raise

    def _flush(self) -> None:
        """Append the buffer; add a checkpoint if one is requested or due. Raises RetryLater
        without side effects."""
        log = self._running.log
        if self._waiting:
            log.write(self._waiting)
        self._sign = self._sign or any(made.sign for made in self._waiting)
        self._waiting, self._bytes = [], 0
        self.seq = log.where.seq
        if self._sign or log.checkpoint_due_in() == 0:
            with suppress(RetryLater):  # appended already; the checkpoint is retried later
                log.sign()
                self._sign = False
            self.seq = log.where.seq


class _RecorderBoot(NamedTuple):
    """A boot without devices."""

    log: Log
    identity: BootIdentity
    procedure: Procedure
    vault: RecordingVault


def _to_rest(g: Game, s: State) -> Event | None:
    """The next event that ends an open round or returns wagers; None at rest."""
    if at_rest(s):
        return None
    if s.step is Step.PAYING and s.after is Step.CLEARING:
        due = s.due[0]
        if due.floor and not s.approved:
            return PaymentApproved(FLOOR)
        return Paid(DEALER, due.moves)
    if s.step is Step.CLEARING:
        return Cleared(DEALER)
    if s.step in IN_ROUND:
        return RoundVoided(FLOOR, _VOIDED, SECOND)
    if s.step is Step.HELD:
        ways = top(s).options
        return FloorRuled(FLOOR, Way.VOID if Way.VOID in ways else ways[0], SECOND)
    if s.seats and not s.hands:
        return WagerRemoved(DEALER, s.seats[0].number, "main")
    raise RoundStuck(f"nobody is there to go on from {s.step.value}")


def _to_wagers(g: Game, s: State) -> Event | None:
    """The next event from rest to the first wagers of a shuffle; None there."""
    match s.step:
        case Step.CLOSED:
            return TableOpened(FLOOR, 0, SECOND)
        case Step.SHUFFLE_NEEDED if s.shoe.decks_out:
            return DecksChanged(FLOOR, SECOND)
        case Step.SHUFFLE_NEEDED:
            return ShuffleStarted(DEALER)
        case Step.SHUFFLING:
            return ShuffleDone(DEALER)
        case Step.LOADING:
            return ShoeLoaded(DEALER, g.decks * 52)
        case Step.WAGERING if s.seen or s.shoe.rounds or s.shoe.rounds_left >= 0 or s.spare:
            return ShuffleCalled(DEALER)
        case Step.WAGERING:
            return None
        case _:
            raise RoundStuck(f"a game that burns cards is not scripted: {s.step.value}")
