"""What was heard becomes what the table knows and what is recorded of it. Pure: nothing of it is
true before it is recorded, and whoever cannot record it drops it.

    taken = take(table, now, heard, cursor)
    await book.append(*taken.entries)
    now = taken.now
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Protocol, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from controller.audit.format.records import DeviceCursor, RecordEntry
from controller.audit.replay import event_entry
from controller.procedure.model.effects import Effect
from controller.procedure.model.events import CountersAccepted, DeckSuspect, Event, ShoeRanOut
from controller.procedure.model.felt import top
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.table.intake.context import SHOE, IntakeContext, TableInput, TableSnapshot
from controller.table.intake.station import AcceptsEvent, open_buttons
from controller.table.memory import (
    ButtonTokens,
    Suspicion,
    assign_tokens,
    deck_suspicions,
    ends_loading,
    inventory,
    inventory_entry,
    next_report,
)

MAX_FOLLOWING: Final = 8
"""Things that follow from one that was heard: a device lost or back each, and a suspicion."""

Answer: TypeAlias = Decision | Refused


class RowEngine(Protocol):
    """Picks the row: at a live table, `procedure.live.LiveTable`."""

    def step(self, s: State, e: Event, /) -> Answer: ...

    def shows(self, s: State, /) -> tuple[Effect, ...]: ...


class EventAnswer(Struct, frozen=True):
    """An event, and what the procedure made of it."""

    event: Event
    answer: Answer


class AppliedInput(Struct, frozen=True):
    """What comes of it, once it is recorded."""

    now: TableSnapshot
    entries: tuple[RecordEntry, ...]
    answered: tuple[EventAnswer, ...]

    @property
    def effects(self) -> tuple[Effect, ...] | None:
        """Those that show where the table stands; None where nothing was decided."""
        found = None
        for one in self.answered:
            if isinstance(one.answer, Decision):
                found = one.answer.effects
        return found


class Applier:
    """Takes what was heard, one thing after the other. Holds nothing but who decides."""

    def __init__(
        self, engine: RowEngine, ear: IntakeContext, takes: AcceptsEvent, seats: Iterable[int]
    ) -> None:
        """`engine` picks the rows; `takes` is asked which buttons mean something, of every seat at
        every event. `seats`: those that have buttons."""
        self._engine = engine
        self._takes = takes
        self.ear = ear
        self._seats = tuple(seats)

    def take(
        self, now: TableSnapshot, heard: TableInput, cursor: DeviceCursor | None = None
    ) -> AppliedInput:
        """The entries are to be recorded together. ValueError, LookupError or RowFault where the
        procedure cannot take it at all."""
        work = _Application(self._engine, now, cursor, self.ear.game.decks)
        for event in heard.events:
            if not work.step(event, heard.sealed):
                break
        if work.takes or not _shows_card(heard):
            for note in heard.notes:
                work.note(note)
        work.changes(heard)
        for _ in range(MAX_FOLLOWING):
            follows = next_report(work.troubles, work.state) or work.suspicion()
            if follows is None or not work.step(follows):
                break
        known = TableSnapshot(
            work.state, work.troubles, work.recall, self._armed(now.arms, work.state)
        )
        return AppliedInput(known, tuple(work.entries), tuple(work.answered))

    def begins(self, now: TableSnapshot) -> TableSnapshot:
        """With its buttons, before anything has happened."""
        return replace(now, arms=self._armed(now.arms, now.state))

    def shows(self, state: State) -> tuple[Effect, ...]:
        return self._engine.shows(state)

    def _armed(self, former: ButtonTokens, state: State) -> ButtonTokens:
        game, house, takes = self.ear.game, self.ear.house, self._takes
        return assign_tokens(
            former, state, self._seats, lambda seat: open_buttons(game, house, takes, state, seat)
        )


class _Application:
    """One taking, while it is worked at."""

    def __init__(
        self, engine: RowEngine, now: TableSnapshot, cursor: DeviceCursor | None, decks: int
    ) -> None:
        self._engine = engine
        self._decks = decks
        self._suspected: list[Suspicion] = []
        """What the cards of a closed shoe have shown."""
        self._before = now
        self._cursor = cursor
        self.state, self.recall, self.troubles = now.state, now.recall, now.troubles
        self.answered: list[EventAnswer] = []
        self.entries: list[RecordEntry] = []

    @property
    def takes(self) -> bool:
        """Nothing was refused so far."""
        return all(isinstance(one.answer, Decision) for one in self.answered)

    def step(self, event: Event, sealed: str = "") -> bool:
        """Whether the procedure has taken it."""
        before = self.state
        answer = self._engine.step(before, event)
        self.answered.append(EventAnswer(event, answer))
        if isinstance(answer, Refused):
            # What is sealed of a card that is not taken stands nowhere.
            self.entries.append(event_entry(event, answer, before, cursor=self._once()))
            return False
        if isinstance(event, CountersAccepted):
            self.troubles = self.troubles.accept(top(before).device)
        first = not self.entries
        self.entries.append(
            event_entry(event, answer, before, cursor=self._once(), sealed=sealed if first else "")
        )
        self.state = answer.state
        if ends_loading(event, before, answer.state) and not self.recall.closed:
            self._count(ran_out=isinstance(event, ShoeRanOut))
        self.recall = self.recall.decided(event, answer.effects)
        return True

    def _count(self, *, ran_out: bool) -> None:
        """The shoe is closed: what was seen of it is counted."""
        if not self.recall.last:
            return
        found = inventory(self.recall, self._decks, ran_out=ran_out)
        self.note(inventory_entry(found, self.state.round))
        self._suspected += [why for why in deck_suspicions(found) if why not in self.recall.alarmed]

    def suspicion(self) -> Event | None:
        """What people are still to be told of the decks."""
        s, recall = self.state, self.recall
        if s.step is Step.CLOSED:
            return None
        if self._suspected:
            return DeckSuspect(SHOE, self._suspected.pop(0))
        # What the shoe says of a card, once it can tell no other one.
        if recall.twin and not face_down(s):
            return DeckSuspect(SHOE, "duplicate")
        return None

    def note(self, note: RecordEntry) -> None:
        cursor = self._once()
        self.entries.append(note if cursor is None else replace(note, cursor=cursor))
        if note.kind == "device":
            self.recall = self.recall.told(note.data)

    def changes(self, heard: TableInput) -> None:
        self.troubles = self.troubles.after(heard.wrong, heard.right)
        if heard.twin and "duplicate" not in self.recall.alarmed:
            self.recall = replace(self.recall, twin=True)

    def _once(self) -> DeviceCursor | None:
        """The cursor goes with what is recorded first."""
        cursor, self._cursor = self._cursor, None
        return cursor


def _shows_card(heard: TableInput) -> bool:
    """Whether what stands beside its events would tell a card."""
    return any(note.kind == "device" and "card" in note.data for note in heard.notes)


def face_down(s: State) -> frozenset[str]:
    """The commitments of all cards that lie face down."""
    holds = (held.commitment for held in s.holds)
    spare = "" if s.spare is None or s.spare.card >= 0 else s.spare.commitment
    return frozenset(one for one in (s.hole, spare, *holds) if one)
