"""Translates device events into table input, and applies one input to the table.

Applying returns the new snapshot and the records to append. Only in this package do the
vocabularies of devices and procedure meet. Pure. The caller adopts the snapshot only after the
records are durable, and discards it if the append fails.

    applied = applier.apply_input(now, input, cursor)
    await writer.append(*applied.entries)
    now = applied.now
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import DeviceCursor, RecordEntry
from controller.audit.replay import event_entry
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import (
    CountersAccepted,
    DeckSuspect,
    DeviceLost,
    Event,
    ShoeRanOut,
    ShuffleStarted,
)
from controller.procedure.model.felt import top
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.table.intake import shoe, shuffler, station
from controller.table.intake.context import (
    SHOE,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from controller.table.intake.station import AcceptsEvent, assign_tokens, open_buttons
from controller.table.memory import (
    ButtonTokens,
    Suspicion,
    count_loading,
    deck_suspicions,
    inventory_entry,
    next_report,
)
from drivers import devices
from drivers.devices import DeviceEvent, Faulted, ShoeJammed, ShufflerJammed, Tampered
from firmware_protocol.messages import FaultCode, JamCode

MAX_FOLLOWING: Final = 8
"""Events that may follow one input: each device lost or back, and a suspicion."""

Answer: TypeAlias = Decision | Refused


class RowEngine(Protocol):
    """Picks the rows: at a live table a `procedure.engine.LiveTable`."""

    def step(self, s: State, e: Event, /) -> Answer: ...

    def shows(self, s: State, /) -> tuple[Effect, ...]: ...


class EventAnswer(Struct, frozen=True):
    """An event, and the procedure's answer."""

    event: Event
    answer: Answer


class AppliedInput(Struct, frozen=True):
    """The result of an input, true once `entries` are durable."""

    now: TableSnapshot
    entries: tuple[RecordEntry, ...]
    answered: tuple[EventAnswer, ...]

    @property
    def effects(self) -> tuple[Effect, ...] | None:
        """The effects to show; None if nothing was decided."""
        found = None
        for one in self.answered:
            if isinstance(one.answer, Decision):
                found = one.answer.effects
        return found


class Applier:
    """Applies inputs with one procedure; stateless."""

    def __init__(
        self, engine: RowEngine, context: IntakeContext, accepts: AcceptsEvent, seats: Iterable[int]
    ) -> None:
        """`accepts` decides which buttons are armed; `seats` are those that have buttons."""
        self._engine = engine
        self._accepts = accepts
        self.context = context
        self._seats = tuple(seats)

    def apply_input(
        self, now: TableSnapshot, given: TableInput, cursor: DeviceCursor | None = None
    ) -> AppliedInput:
        """Apply `given` to `now`. The entries must be appended atomically; the first one carries
        `cursor`. Raises ValueError, LookupError or RowFault if the procedure cannot process it."""
        work = _Application(self._engine, now, cursor, self.context.game.decks)
        accepted = True
        for event in given.events:
            accepted = work.step(event, given.sealed)
            if not accepted:
                break
        if accepted or not _shows_card(given):
            for note in given.notes:
                work.note(note)
        if given.wrong or given.right:
            work.faults = work.faults.after(given.wrong, given.right)
        if given.twin and "duplicate" not in work.memory.alarmed:
            work.memory = replace(work.memory, twin=True)
        for _ in range(MAX_FOLLOWING):
            follows = work.device_report() or work.suspicion()
            if follows is None or not work.step(follows):
                break
        arms = self._armed(now.arms, work.state)
        known = TableSnapshot(work.state, work.faults, work.memory, arms)
        return AppliedInput(known, tuple(work.entries), tuple(work.answered))

    def with_buttons(self, now: TableSnapshot) -> TableSnapshot:
        """The snapshot with its buttons armed, for the start of the table."""
        return replace(now, arms=self._armed(now.arms, now.state))

    def shows(self, state: State) -> tuple[Effect, ...]:
        return self._engine.shows(state)

    def _armed(self, former: ButtonTokens, state: State) -> ButtonTokens:
        game, settings = self.context.game, self.context.settings
        masks = open_buttons(game, settings, self._accepts, state, self._seats)
        return assign_tokens(former, state, masks)


class _Application:
    """The working state while one input is applied."""

    def __init__(
        self, engine: RowEngine, now: TableSnapshot, cursor: DeviceCursor | None, decks: int
    ) -> None:
        self._engine = engine
        self._decks = decks
        self._suspected: list[Suspicion] = []
        """Suspicions from the count of a closed shoe, still to be reported."""
        self._cursor = cursor
        self.state, self.memory, self.faults = now.state, now.memory, now.faults
        self.answered: list[EventAnswer] = []
        self.entries: list[RecordEntry] = []

    def step(self, event: Event, sealed: str = "") -> bool:
        """Let the procedure decide on `event`. Returns whether it was accepted."""
        before = self.state
        answer = self._engine.step(before, event)
        self.answered.append(EventAnswer(event, answer))
        if isinstance(answer, Refused):
            # The sealed copy of a refused card is not recorded.
            self.entries.append(event_entry(event, answer, before, cursor=self._take_cursor()))
            return False
        if isinstance(event, CountersAccepted):
            self.faults = self.faults.accept(top(before).device)
        if isinstance(event, DeviceLost):
            self.faults = self.faults.after_report(event)
        sealed = "" if self.entries else sealed
        self.entries.append(
            event_entry(event, answer, before, cursor=self._take_cursor(), sealed=sealed)
        )
        self.state = answer.state
        if not self.memory.closed and _ends_loading(event, before, answer.state):
            self._count(ran_out=isinstance(event, ShoeRanOut))
        self.memory = self.memory.after_event(event, answer.effects)
        return True

    def _count(self, *, ran_out: bool) -> None:
        """Count the cards that were seen of the closed shoe."""
        if not self.memory.last:
            return
        found = count_loading(self.memory, self._decks, ran_out=ran_out)
        self.note(inventory_entry(found, self.state.round))
        self._suspected += [why for why in deck_suspicions(found) if why not in self.memory.alarmed]

    def device_report(self) -> Event | None:
        """The next event about a device that was lost or is back."""
        if not self.faults.every and not self.state.lost:
            return None
        return next_report(self.faults, self.state)

    def suspicion(self) -> Event | None:
        """The next suspicion about the decks that is still to be reported."""
        if self.state.step is Step.CLOSED:
            return None
        if self._suspected:
            return DeckSuspect(SHOE, self._suspected.pop(0))
        # Reported only while no card lies face down, since it could reveal that one.
        if self.memory.twin and not face_down(self.state):
            return DeckSuspect(SHOE, "duplicate")
        return None

    def note(self, note: RecordEntry) -> None:
        cursor = self._take_cursor()
        self.entries.append(note if cursor is None else replace(note, cursor=cursor))
        if note.kind == "device":
            self.memory = self.memory.after_note(note.data)

    def _take_cursor(self) -> DeviceCursor | None:
        """The cursor, for the first entry only."""
        cursor, self._cursor = self._cursor, None
        return cursor


def _ends_loading(event: Event, before: State, after: State) -> bool:
    """Whether no further card of this loading will be dealt."""
    match event:
        case ShoeRanOut():
            return True
        case ShuffleStarted():
            return before.step is Step.SHUFFLE_NEEDED
        case _:
            return before.step is not Step.CLOSED and after.step is Step.CLOSED


def _shows_card(given: TableInput) -> bool:
    """Whether a note of the input names a card."""
    return any(note.kind == "device" and "card" in note.data for note in given.notes)


def face_down(s: State) -> frozenset[str]:
    """The commitments of all cards that lie face down."""
    holds = (held.commitment for held in s.holds)
    spare = "" if s.spare is None or s.spare.card >= 0 else s.spare.commitment
    return frozenset(one for one in (s.hole, spare, *holds) if one)


Reader: TypeAlias = Callable[[IntakeContext, TableSnapshot, Any, DeviceSource], TableInput]
"""Translates a type of device event at a snapshot; pure. If it returns no notes, the event is
recorded with all of its fields."""


def device_input(
    context: IntakeContext, now: TableSnapshot, event: DeviceEvent, source: DeviceSource
) -> TableInput:
    """Translate a device event at the state `now`."""
    reader = READERS.get(type(event))
    given = TableInput() if reader is None else reader(context, now, event, source)
    if given.notes:
        return given
    return replace(given, notes=(source.entry_of(event, now.state.round),))


# --- events of every device -------------------------------------------------------------------

_HARMLESS: Final = frozenset(
    {FaultCode.NONE, FaultCode.LAMPS, FaultCode.CLOCK, FaultCode.READER_DIRTY}
)
"""A dirty reader still reads: a card that it reads with too little confidence is entered."""


def _faulted(
    context: IntakeContext, now: TableSnapshot, event: Faulted, source: DeviceSource
) -> TableInput:
    """A fault of moving or reading cards stops the table; one that leaves both working does not."""
    if source.device == "station" or event.code in _HARMLESS:
        return TableInput()
    if event.code is not FaultCode.ABORTED:
        why = f"it reports a fault ({event.code.name.lower()})"
        return TableInput(wrong=(source.fault("fault", why),))
    if now.state.step is not Step.SHUFFLING:
        return TableInput()
    # The order of the cards is unknown: they are taken out and shuffled again.
    return TableInput(wrong=(source.fault("aborted", "its shuffle was broken off"),))


def _tampered(
    context: IntakeContext, now: TableSnapshot, event: Tampered, source: DeviceSource
) -> TableInput:
    if source.device == "station":
        return TableInput()
    what = event.source.name.lower()
    return source.fault_input("tampering", f"tampering ({what})", what, active=event.active)


def _jammed(
    context: IntakeContext,
    now: TableSnapshot,
    event: ShoeJammed | ShufflerJammed,
    source: DeviceSource,
) -> TableInput:
    stuck = "a card is stuck" if isinstance(event, ShoeJammed) else "cards are stuck"
    why = f"{stuck} ({event.code.name.lower()})"
    return source.fault_input("jam", why, active=event.code is not JamCode.CLEARED)


READERS: Final[Mapping[type[DeviceEvent], Reader]] = MappingProxyType(
    {
        devices.ShoeCardRead: shoe.card,
        devices.ReadFailed: shoe.unread,
        devices.CutCardCame: shoe.cut_card,
        devices.CardRetracted: shoe.retracted,
        devices.ShoeLoaded: shoe.loaded,
        devices.CoverMoved: shoe.cover,
        ShoeJammed: _jammed,
        devices.ShuffleStarted: shuffler.started,
        devices.ShuffleDone: shuffler.done,
        devices.CountWrong: shuffler.miscounted,
        devices.DoorMoved: shuffler.door,
        ShufflerJammed: _jammed,
        devices.ButtonPressed: station.pressed,
        Faulted: _faulted,
        Tampered: _tampered,
    }
)
"""Events of all other types are recorded only."""
