"""Replays a record: repeats each decision and compares it with the recorded one.

  state = replay_opening(opening, procedure).state    # the last segment, from its snapshot
  log = Log.begin(opening, identity, table_key, state=state)

Decisions of other code are not repeated: only whether a round is open is known after them. A
different procedure (other code or another game) starts with a closed table, and does not start
while a round is open.
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
from controller.audit.format.validation import same_value
from controller.audit.log import RecordOpening
from controller.audit.read.lookup import EffectOutline, decode_outline
from controller.audit.read.reader import ASK
from controller.audit.release import PROCEDURE, source_hash
from controller.audit.replay.entries import (
    DecisionData,
    RecordedEvent,
    RefusalData,
    decode_decision,
    decode_event,
    decode_refusal,
    without_actor,
)
from controller.audit.replay.identity import (
    proc_of,
    procedure_of,
    software_name,
)
from controller.errors import printable
from controller.procedure.engine import Procedure, RowFault
from controller.procedure.model.effects import DecksOut, RoundOver, Tell
from controller.procedure.model.events import DecksChanged, HoleRevealed
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import Shoe, State, Step
from controller.procedure.rows import BETWEEN, shut
from controller.rules.cards import DECK


class OtherCodeState(Struct, frozen=True):
    """The known part of a state under other code."""

    rests: bool
    """No round is open and no wager is on the felt, as far as known."""
    round: int = 0
    decks_out: bool = False

    def closed(self) -> State:
        """The state with which this version's procedure takes over."""
        return State(round=self.round, shoe=Shoe(decks_out=self.decks_out))


class _Shoe(Struct):
    decks_out: bool = False


class _State(Struct):
    step: str
    round: int
    seats: tuple[msgspec.Raw, ...]
    shoe: _Shoe


_STATE: Final = msgspec.json.Decoder(_State | None)
_AT_REST: Final = frozenset(step.value for step in (Step.CLOSED, *BETWEEN))
_SHUFFLES: Final = frozenset({Tell.SHUFFLE.value, Tell.CHANGE_DECKS.value})


def other_code_state(state: bytes) -> OtherCodeState:
    """Decode the state of a snapshot."""
    try:
        found = _STATE.decode(state)
    except msgspec.DecodeError:
        return OtherCodeState(False)
    if found is None:
        return OtherCodeState(True)
    rests = found.step in _AT_REST and not found.seats
    return OtherCodeState(rests, found.round, found.shoe.decks_out)


def other_code_state_after(before: OtherCodeState, record: Record) -> OtherCodeState:
    """The state after a decision, judged by the prompts that it shows."""
    try:
        made = decode_outline(record.data)
    except msgspec.DecodeError:
        return OtherCodeState(False, record.round, before.decks_out)
    types = {effect.type for effect in made.effects}
    decks_out = DecksOut.__name__ in types or (
        before.decks_out and made.event.type != DecksChanged.__name__
    )
    over = RoundOver.__name__ in types
    rests = any(_rests(effect, over=over) for effect in made.effects)
    return OtherCodeState(rests, record.round, decks_out)


def _rests(effect: EffectOutline, *, over: bool) -> bool:
    if effect.tell == Tell.TAKE_WAGERS.value:
        return effect.count == 0  # seats with a wager
    return effect.tell == Tell.OPEN_TABLE.value or (over and effect.tell in _SHUFFLES)


_START: Final = State()
_MOST_SHOWN: Final = 200
"""Maximum number of characters that an error quotes."""
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError)
"""Exceptions of the rules for events that no table produces, such as an impossible seat, hand or
amount in a forged record."""


class ReplayMismatch(RecordProblem):
    """The rules decide differently from what was recorded."""


class OtherProcedure(RecordProblem):
    """A round may be open that a different procedure deals."""


class ReplayResult(Struct, frozen=True):
    """The result of a replay."""

    state: State | None
    """After the last decision; None before the first."""
    seq: int = 0
    """The seq of the last decision; 0 if there is none."""
    again: int = 0
    """The number of decisions and refusals that were repeated with the same result."""
    taken: int = 0
    """The number of decisions and refusals by other code, which were not repeated."""

    @property
    def now(self) -> State:
        """The current state."""
        return _START if self.state is None else self.state


def replay_opening(opening: RecordOpening, procedure: Procedure) -> ReplayResult:
    """The state with which a boot of this procedure starts. Raises ReplayMismatch,
    OtherProcedure, RecordDamaged."""
    replay = RecordReplay(opening.record)
    if opening.segment is not None:
        for frame, record in zip(opening.segment.frames, opening.records, strict=True):
            replay.take(opening.segment.place(frame), record)
    return replay.folded(procedure)


def at_rest(state: State) -> bool:
    """Whether no round is open and no wager is on the felt."""
    return not state.seats and (state.step is Step.CLOSED or state.step in BETWEEN)


class RecordReplay:
    """Replays records one by one, from any snapshot on."""

    def __init__(self, record: Path) -> None:
        self._record = record
        self._opened: OpenedData | None = None
        self._procedure: Procedure | None = None
        self._begun = False
        self._standing: OtherCodeState | None = None
        """What is known of the state under other code."""
        self._seq = 0
        self.again = self.taken = 0
        """How many decisions and refusals were repeated, and how many were not."""
        self.state: State | None = None
        """None before the first decision, and under other code."""

    def take(self, place: RecordPosition, record: Record) -> None:
        """Replay the next record. Raises ReplayMismatch, OtherProcedure, RecordDamaged."""
        try:
            match record.kind:
                case "snapshot":
                    self._snapshot(place, msgspec.json.decode(record.data, type=Snapshot))
                case "opened":
                    self._boot(place, msgspec.json.decode(record.data, type=OpenedData))
                case "decision" | "refusal":
                    self._event(place, record)
                case _:
                    pass  # not an input of the procedure
        except (msgspec.DecodeError, UnicodeDecodeError) as problem:
            raise RecordDamaged(
                self._record,
                f"{place}: a {record.kind} that cannot be read: {printable(str(problem))}",
                ASK,
            ) from None

    @property
    def known(self) -> bytes:
        """The encoded state as in a snapshot; empty if it is unknown."""
        return b"" if self._standing else encode(self.state)

    def folded(self, procedure: Procedure) -> ReplayResult:
        """The result for this procedure. Raises OtherProcedure."""
        if self._opened is not None and self._opened.proc != proc_of(procedure.game):
            self._hand_over(f"seq {self._seq}")
        return ReplayResult(self.state, self._seq, self.again, self.taken)

    # --- whose decisions they are ---------------------------------------------------------

    def _snapshot(self, place: RecordPosition, snapshot: Snapshot) -> None:
        state = bytes(snapshot.state)
        if self._begun:
            if self._standing is None and not same_value(state, encode(self.state)):
                raise ReplayMismatch(
                    self._record,
                    f"{place}: its state is not what the decisions before it come to",
                    ASK,
                )
            return
        self._begun = True
        if snapshot.opened is not UNSET:
            self._serve(snapshot.opened)
        if self._opened is None or self._procedure is not None:
            self.state = msgspec.json.decode(state, type=State | None)
        else:
            self._standing = other_code_state(state)

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
        """Switch to a different procedure: close the table. Raises OtherProcedure if a round may
        be open."""
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
        return OtherProcedure(
            self._record,
            what,
            f"start {theirs} once more, end the round or void it, and close the table",
        )

    # --- decisions ------------------------------------------------------------------------

    def _event(self, place: RecordPosition, record: Record) -> None:
        if record.kind == "decision":
            self._seq = record.seq
        if self._procedure is None:
            if record.kind == "decision" and self._standing is not None:
                self._standing = other_code_state_after(self._standing, record)
            self.taken += 1
            return
        said = decode_event(record)
        answer = self._answer(place, record, said)
        made = _made(said, answer)
        taken = isinstance(answer, Decision)
        if taken != (record.kind == "decision") or not same_value(record.data, encode(made)):
            read = decode_decision if record.kind == "decision" else decode_refusal
            raise self._disagrees(place, record, _difference(read(record), made))
        if isinstance(answer, Decision):
            self.state = answer.state
        due = 0 if self.state is None else self.state.round
        if record.round != due:
            raise self._disagrees(place, record, f"it is in round {due}")
        self.again += 1

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
            raise self._disagrees(
                place, record, f"the rules cannot take it: {type(problem).__name__}"
            ) from problem

    def _disagrees(self, place: RecordPosition, record: Record, why: str) -> ReplayMismatch:
        kind = f"round {record.round}, a {record.kind} by {record.by.role} {record.by.name}"
        return ReplayMismatch(
            self._record,
            f"{place}: {printable(f'{kind}: {why}')}",
            "hold the table and call whoever looks into it; the record is not to be changed",
        )


def _made(said: RecordedEvent, answer: Decision | Refused) -> DecisionData | RefusalData:
    event = without_actor(said.event)
    if isinstance(answer, Decision):
        return DecisionData(event, answer.rows, answer.effects, said.sealed)
    return RefusalData(event, answer.id, answer.why)


def _difference(recorded: DecisionData | RefusalData, made: DecisionData | RefusalData) -> str:
    """Describe how the recorded result differs from the repeated one."""
    name = type(recorded.event).__name__
    if isinstance(recorded, RefusalData):
        if isinstance(made, DecisionData):
            return f"{name} was refused ({recorded.id}); the rules take it ({', '.join(made.rows)})"
        return f"{name} was refused: {_shown(recorded)}; the rules refuse it: {_shown(made)}"
    if isinstance(made, RefusalData):
        return f"{name} was taken ({', '.join(recorded.rows)}); the rules refuse it: {made.why}"
    if recorded.rows != made.rows:
        return (
            f"{name}: recorded rows {', '.join(recorded.rows)}; the rules: {', '.join(made.rows)}"
        )
    for one, other in zip(recorded.effects, made.effects, strict=False):
        if one != other:
            return f"{name}: recorded {_shown(one)}; the rules make {_shown(other)}"
    if len(recorded.effects) != len(made.effects):
        counts = f"{len(recorded.effects)} effects are recorded; the rules make"
        return f"{name}: {counts} {len(made.effects)}"
    return f"{name}: it says more than its event, rows and effects, or in another form"


def _shown(part: Struct) -> str:
    text = encode(part).decode()
    return text if len(text) <= _MOST_SHOWN else f"{text[:_MOST_SHOWN]}..."
