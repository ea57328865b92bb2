"""The state of the table from its record: every decision is made again and held against what was
recorded of it.

    folded = fold(opening, procedure)          # the last segment, from its snapshot on
    log = Log.begin(opening, identity, table_key, state=folded.state)

What other code than ours has decided is not made again: what it came to is not known, but for
whether a round is open. The next procedure, be it of other code or for another game, begins with
a closed table; with an open round it does not begin.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec
from msgspec import UNSET, Struct

from controller.audit.errors import RecordDamaged, RecordProblem
from controller.audit.format.records import (
    SHORT,
    OpenedData,
    Record,
    RecordPosition,
    Snapshot,
    encode,
)
from controller.audit.log import RecordOpening
from controller.audit.read.reader import ASK
from controller.audit.replay import fallback
from controller.audit.replay.entries import (
    DecisionData,
    RecordedEvent,
    RefusalData,
    decode_decision,
    decode_event,
    decode_refusal,
)
from controller.audit.replay.fallback import OtherCodeState
from controller.audit.replay.identity import (
    PROCEDURE,
    proc_of,
    procedure_of,
    software_name,
    source_hash,
)
from controller.errors import printable
from controller.procedure.engine import Procedure, RowFault
from controller.procedure.model.events import HoleRevealed
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.procedure.rows import BETWEEN, shut
from controller.rules.cards import DECK

_START: Final = State()
_MOST_SHOWN: Final = 200
"""Characters of what was recorded or made that an error repeats."""
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError)
"""What the rules fail with over an event that no table has brought: a seat, hand or amount that
cannot be, put into the record by somebody else."""


class ReplayMismatch(RecordProblem):
    """The rules make something else of an event than what was recorded."""


class OtherProcedure(RecordProblem):
    """A round is open, for all that is known, that another procedure deals."""


class ReplayedState(Struct, frozen=True):
    """What the records come to."""

    state: State | None
    """After the last decision; None before the first."""
    seq: int = 0
    """Of the last decision; 0 where none was read."""
    again: int = 0
    """Decisions and refusals that were made again, and came out as recorded."""
    taken: int = 0
    """Those of other code, taken as they stand."""

    @property
    def now(self) -> State:
        """Where the table stands."""
        return _START if self.state is None else self.state


def replay_opening(opening: RecordOpening, procedure: Procedure) -> ReplayedState:
    """What a boot with this procedure begins with. Disagrees, OtherProcedure, Damaged."""
    replay = RecordReplay(opening.record)
    if opening.segment is not None:
        for frame, record in zip(opening.segment.frames, opening.records, strict=True):
            replay.take(opening.segment.place(frame), record)
    return replay.folded(procedure)


def at_rest(state: State) -> bool:
    """No round is open and no wager lies on the felt."""
    return not state.seats and (state.step is Step.CLOSED or state.step in BETWEEN)


class RecordReplay:
    """The table played again from its record: one record after the other, from any snapshot on."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._opened: OpenedData | None = None
        self._procedure: Procedure | None = None
        self._begun = False
        self._standing: OtherCodeState | None = None
        """Under other code, all that is known of the state."""
        self._seq = self._again = self._taken = 0
        self.state: State | None = None
        """None before the first decision, and under other code."""

    def take(self, place: RecordPosition, record: Record) -> None:
        """The next record. Disagrees, OtherProcedure, Damaged."""
        try:
            match record.kind:
                case "snapshot":
                    self._snapshot(place, msgspec.json.decode(record.data, type=Snapshot))
                case "opened":
                    self._boot(place, msgspec.json.decode(record.data, type=OpenedData))
                case "decision" | "refusal":
                    self._event(place, record)
                case _:
                    pass  # nothing that the procedure has a part in
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            what = f"{place}: a {record.kind} that cannot be read: {printable(str(problem))}"
            raise RecordDamaged(self._record, what, ASK) from None

    @property
    def known(self) -> bytes:
        """The state as a snapshot has it; empty where it is not known."""
        return b"" if self._standing else encode(self.state)

    @property
    def counted(self) -> tuple[int, int]:
        """How many decisions and refusals were made again, and how many taken as they stand."""
        return self._again, self._taken

    def folded(self, procedure: Procedure) -> ReplayedState:
        """What it comes to for this procedure. OtherProcedure."""
        if self._opened is not None and self._opened.proc != proc_of(procedure.game):
            self._hand_over(f"seq {self._seq}")
        return ReplayedState(self.state, self._seq, self._again, self._taken)

    # --- whose decisions they are ---------------------------------------------------------

    def _snapshot(self, place: RecordPosition, snapshot: Snapshot) -> None:
        state = bytes(snapshot.state)
        if self._begun:
            if self._standing is None and state != encode(self.state):
                what = f"{place}: its state is not what the decisions before it come to"
                raise ReplayMismatch(self._record, what, ASK)
            return
        self._begun = True
        if snapshot.opened is not UNSET:
            self._serve(snapshot.opened)
        if self._opened is None or self._procedure is not None:
            self.state = msgspec.json.decode(state, type=State | None)
        else:
            self._standing = fallback.other_code_state(state)

    def _boot(self, place: RecordPosition, opened: OpenedData) -> None:
        if self._opened is not None and self._opened.proc != opened.proc:
            self._hand_over(str(place))
        self._serve(opened)

    def _serve(self, opened: OpenedData) -> None:
        self._opened = opened
        self._procedure = procedure_of(opened)
        if self._procedure is None and self._standing is None:
            now = _START if self.state is None else self.state
            self._standing = OtherCodeState(at_rest(now), now.round, now.shoe.decks_out)
            self.state = None

    def _hand_over(self, where: str) -> None:
        """Another procedure goes on: with a closed table, and over no open round."""
        left = self._standing
        rests = left.rests if left else self.state is None or at_rest(self.state)
        if not rests:
            raise self._other(where)
        if left:
            self.state, self._standing = left.closed(), None
        elif self.state is not None:
            self.state = shut(self.state)

    def _other(self, where: str) -> OtherProcedure:
        opened = self._opened
        assert opened is not None
        whose = "another game or jurisdiction"
        if opened.code != source_hash(*PROCEDURE):
            whose = f"other code ({opened.code[:SHORT]}, that of {printable(opened.software)})"
        what = f"{where}: a round may be open there, dealt by {whose}, not by {software_name()}"
        theirs = f"{printable(opened.software)} with the configuration {opened.conf[:SHORT]}"
        todo = f"start {theirs} once more, end the round or void it, and close the table"
        return OtherProcedure(self._record, what, todo)

    # --- decisions ------------------------------------------------------------------------

    def _event(self, place: RecordPosition, record: Record) -> None:
        if record.kind == "decision":
            self._seq = record.seq
        if self._procedure is None:
            if record.kind == "decision" and self._standing is not None:
                self._standing = fallback.other_code_state_after(self._standing, record)
            self._taken += 1
            return
        said = decode_event(record.data)
        answer = self._answer(place, record, said)
        made = _made(said, answer)
        taken = isinstance(answer, Decision)
        if taken != (record.kind == "decision") or encode(made) != bytes(record.data):
            read = decode_decision if record.kind == "decision" else decode_refusal
            raise self._disagrees(place, record, _difference(read(record.data), made))
        if isinstance(answer, Decision):
            self.state = answer.state
        self._again += 1

    def _answer(
        self, place: RecordPosition, record: Record, said: RecordedEvent
    ) -> Decision | Refused:
        assert self._procedure is not None
        event = said.event
        card = getattr(event, "card", 0)
        untold = isinstance(event, HoleRevealed) and record.kind == "refusal" and card == -1
        if not 0 <= card < len(DECK) and not untold:
            raise self._disagrees(place, record, f"{card} is no card")
        try:
            return self._procedure.step(_START if self.state is None else self.state, event)
        except _CANNOT as problem:
            what = f"the rules cannot take it: {type(problem).__name__}"
            raise self._disagrees(place, record, what) from problem

    def _disagrees(self, place: RecordPosition, record: Record, why: str) -> ReplayMismatch:
        kind = f"round {record.round}, a {record.kind} by {record.by.role} {record.by.name}"
        todo = "hold the table and call whoever looks into it; the record is not to be changed"
        return ReplayMismatch(self._record, f"{place}: {printable(f'{kind}: {why}')}", todo)


def _made(said: RecordedEvent, answer: Decision | Refused) -> DecisionData | RefusalData:
    if isinstance(answer, Decision):
        return DecisionData(said.event, answer.rows, answer.effects, said.sealed)
    return RefusalData(said.event, answer.id, answer.why)


def _difference(recorded: DecisionData | RefusalData, made: DecisionData | RefusalData) -> str:
    """Where what was recorded is not what the rules make, in words."""
    name = type(recorded.event).__name__
    if isinstance(recorded, RefusalData):
        if isinstance(made, DecisionData):
            return f"{name} was refused ({recorded.id}); the rules take it ({_listed(made.rows)})"
        return f"{name} was refused: {_shown(recorded)}; the rules refuse it: {_shown(made)}"
    if isinstance(made, RefusalData):
        return f"{name} was taken ({_listed(recorded.rows)}); the rules refuse it: {made.why}"
    if recorded.rows != made.rows:
        return f"{name}: recorded rows {_listed(recorded.rows)}; the rules: {_listed(made.rows)}"
    for one, other in zip(recorded.effects, made.effects, strict=False):
        if one != other:
            return f"{name}: recorded {_shown(one)}; the rules make {_shown(other)}"
    if len(recorded.effects) != len(made.effects):
        counts = f"{len(recorded.effects)} effects are recorded; the rules make"
        return f"{name}: {counts} {len(made.effects)}"
    return f"{name}: it says more than its event, rows and effects, or in another form"


def _listed(rows: tuple[str, ...]) -> str:
    return ", ".join(rows)


def _shown(part: Struct) -> str:
    text = encode(part).decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
