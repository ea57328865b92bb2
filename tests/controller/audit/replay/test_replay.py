"""Replay gives the recorded state, bit for bit."""

import re
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged, RecordProblem
from controller.audit.format.records import (
    Record,
    RecordActor,
    RecordEntry,
    RecordPosition,
    encode,
)
from controller.audit.format.segments import segment_file
from controller.audit.read.reader import records, segments
from controller.audit.replay import (
    DecisionData,
    OtherProcedure,
    RecordReplay,
    ReplayMismatch,
    at_rest,
    event_entry,
    identity_of,
    procedure_of,
    software_name,
    without_actor,
)
from controller.audit.replay.entries import RefusalData
from controller.audit.replay.replay import ReplayResult
from controller.games import DEALER, FLOOR, SECOND, player
from controller.procedure.engine import Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import Shoe, State, Step
from tests.support.audit.record.dealing import TABLE, Dealing, as_read, boot, boot_of
from tests.support.audit.record.scripted import (
    AT_REST,
    IN_THE_MIDDLE,
    OTHER_CODE,
    dealt,
    fill,
    folded,
    opened_at,
    other,
    plain,
    replayed,
)
from tests.support.audit.record.table import ANN, opened
from tests.support.procedure.random_games import GAMES, game_as_it_is, game_with, some_game

# --- the same state, bit for bit --------------------------------------------------------------


def test_a_new_record_replays_to_a_closed_table(place: Path) -> None:
    found = folded(place, game_as_it_is("mega"))
    assert (found, found.now) == (ReplayResult(None), State())


@pytest.mark.parametrize("name", GAMES)
def test_replay_gives_the_tables_state(place: Path, name: str) -> None:
    """At each boot's end, at any point of a round, and with small segments."""
    table = dealt(name, "ends", events=0)
    state: State | None = None
    written = 0
    for ends in (1, 40, 41, 150, 333, 600):
        table.play_to(ends)
        fill(boot(place, table.game, state), table.entries[written:])
        written = len(table.entries)
        found = folded(place, table.game)
        assert encode(found.state) == encode(table.state)
        state = found.state
    assert len(list(segments(place))) > 3


def test_replay_from_each_snapshot_gives_the_same_state(place: Path) -> None:
    table = dealt("classic", "snapshots")
    fill(boot(place, table.game), table.entries)
    numbers = [segment.number for segment in segments(place)]
    assert len(numbers) > 3
    for number in numbers:
        assert replayed(place, number).known == encode(table.state)


def test_each_snapshot_contains_the_replayed_state(place: Path) -> None:
    table = dealt("mega", "snapshots")
    fill(boot(place, table.game), table.entries)
    replay = RecordReplay(place)
    compared = 0
    for at, record in records(place):
        if record.kind == "snapshot" and at.segment > 1:
            snapshot: dict[str, Any] = msgspec.json.decode(record.data)
            assert encode(snapshot["state"]) == replay.known
            assert msgspec.json.decode(encode(snapshot["state"]), type=State) == replay.state
            compared += 1
        replay.take(at, record)
    assert compared > 3
    kept = [made for made in table.entries if made.kind in ("decision", "refusal")]
    assert (replay.again, replay.taken) == (len(kept), 0)


def test_replayed_decisions_are_counted(place: Path) -> None:
    table = dealt("sf21x", "counted", events=60)
    fill(
        boot(place, table.game, size=1024 * 1024),
        [RecordEntry("note", ANN, {"text": "before it all"}), *table.entries],
    )
    found = folded(place, table.game)
    assert 0 < len([made for made in table.entries if made.kind == "decision"]) < len(table.entries)
    assert (found.again, found.taken) == (len(table.entries), 0)
    assert found.seq == max(record.seq for _, record in records(place) if record.kind == "decision")


# --- another procedure ------------------------------------------------------------------------


def played_to(game: Game, there: Callable[[State], bool], seed: str = "other") -> Dealing:
    table = Dealing(Procedure(game), seed)
    while not (table.entries and there(table.state)):
        table.once()
    return table


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_other_code_does_not_take_over_an_open_round(place: Path, what: str) -> None:
    game = game_as_it_is("classic")
    fill(boot_of(place, other(game)), played_to(game, IN_THE_MIDDLE[what]).entries)
    with pytest.raises(OtherProcedure) as found:
        folded(place, game)
    told = str(found.value)
    wanted = ["holecard 0.0.1", OTHER_CODE[:16], software_name(), "close the table"]
    assert [words for words in wanted if words in told] == wanted
    assert "\n" not in told


@pytest.mark.parametrize("what", IN_THE_MIDDLE)
def test_another_game_does_not_take_over_an_open_round(place: Path, what: str) -> None:
    game = game_as_it_is("classic")
    table = played_to(game, IN_THE_MIDDLE[what])
    fill(boot(place, game), table.entries)
    with pytest.raises(OtherProcedure, match="dealt by another game or jurisdiction"):
        folded(place, game_as_it_is("classic", "strict"))
    assert folded(place, game).now == table.state


@pytest.mark.parametrize("what", AT_REST)
def test_other_code_between_rounds_leaves_a_closed_table(place: Path, what: str) -> None:
    game = game_as_it_is("mega")
    table = played_to(game, AT_REST[what], f"rests {what}")
    if table.state.step is Step.SHUFFLE_NEEDED:
        assert isinstance(table.heard[-1][1], events.Cleared)
    fill(boot_of(place, other(game)), table.entries)
    found = folded(place, game)
    assert found.now == State(
        round=table.state.round, shoe=Shoe(decks_out=table.state.shoe.decks_out)
    )
    assert found.again == 0
    assert found.taken > 0
    # The same after a boot of this code has taken over.
    boot(place, game, found.state).close()
    assert folded(place, game).now == found.now


@pytest.mark.parametrize("what", AT_REST)
def test_another_game_between_rounds_starts_closed(place: Path, what: str) -> None:
    game = game_as_it_is("mega")
    table = played_to(game, AT_REST[what], f"rests {what}")
    fill(boot(place, game), table.entries)
    next_game = game_with("mega", {"dealer.soft_17": "stand"})
    found = folded(place, next_game)
    assert found.now.step is Step.CLOSED
    assert found.now.round == table.state.round
    assert found.again > 0
    # The new game replays its own decisions, the old game those before.
    with closing(boot(place, next_game, found.state)) as log:
        event = events.TableOpened(FLOOR, 0, SECOND)
        after = Procedure(next_game).step(found.now, event)
        assert isinstance(after, Decision)
        log.write([event_entry(event, after, found.now)])
    assert folded(place, next_game).now == after.state
    # Back to the first game: the table is closed again.
    assert folded(place, game).now.step is Step.CLOSED


def test_removed_decks_stay_removed_under_other_code(place: Path) -> None:
    game = game_as_it_is("classic")
    table = played_to(game, lambda s: s.shoe.decks_out and s.step is Step.SHUFFLE_NEEDED, "decks")
    table.hand_in(events.TableClosed(FLOOR, 0, SECOND))
    assert table.state.step is Step.CLOSED
    fill(boot_of(place, other(game)), table.entries)
    assert folded(place, game).now.shoe.decks_out


def test_unknown_values_of_other_code_count_as_an_open_round(place: Path) -> None:
    """Whether a round is open is unknown then."""
    game = game_as_it_is("classic")
    with closing(boot_of(place, other(game))) as log:
        data = {
            "event": {"type": "Moonlit"},
            "rows": ["moon"],
            "effects": [{"type": "Howl", "at": 3}],
        }
        log.write([RecordEntry("decision", RecordActor("dealer", "Ann"), data, 7)])
    with pytest.raises(OtherProcedure):
        folded(place, game)
    closed = {
        "event": {"type": "Set"},
        "rows": [],
        "effects": [plain(effects.Prompt(effects.Tell.OPEN_TABLE))],
    }
    with closing(boot_of(place, other(game))) as log:
        log.write(
            [RecordEntry("decision", ANN, closed, 8), RecordEntry("refusal", ANN, {"odd": 1}, 8)]
        )
    last = max(record.seq for _, record in records(place) if record.kind == "decision")
    assert folded(place, game) == ReplayResult(State(round=8), last, 0, 3)


@pytest.mark.parametrize(
    ("state", "rests"),
    [
        (b"null", True),
        (encode(State(round=4)), True),
        (encode(State(step=Step.WAGERING, round=4)), True),
        (encode(State(step=Step.TURN, round=4)), False),
        (b'{"step":"wagering","round":4,"seats":[{"who":1}],"shoe":{}}', False),
        (b'{"step":"howling","round":4,"seats":[],"shoe":{}}', False),
        (b'{"moon":4}', False),
        (b"[4]", False),
    ],
)
def test_a_snapshot_of_other_code_shows_whether_a_round_is_open(
    place: Path, state: bytes, rests: bool
) -> None:
    """The state comes from the snapshot of a later segment only."""
    game = game_as_it_is("classic")
    with closing(boot_of(place, other(game))) as log:
        told = RecordEntry("note", ANN, {"text": "x" * 1000}, 4, state=msgspec.Raw(state))  # type: ignore[arg-type]
        while not segment_file(place, 2).exists():
            log.write([told])
    if not rests:
        with pytest.raises(OtherProcedure):
            folded(place, game)
    else:
        expected = None if state == b"null" else State(round=4)
        assert folded(place, game).now == (expected or State())


def test_a_procedure_is_identified_by_code_and_game(place: Path) -> None:
    """Software and configuration may change without ending a round."""
    game = game_as_it_is("classic")
    table = played_to(game, IN_THE_MIDDLE["a round"])
    mine = identity_of(TABLE, game)
    fill(
        boot_of(place, replace(mine, software="holecard 9", sw="77" * 32, conf="88" * 32)),
        table.entries,
    )
    with closing(opened_at(place)) as opening:
        opened = opening.opened()
    assert opened is not None
    assert procedure_of(opened) is not None
    assert folded(place, game).now == table.state


def test_a_table_is_at_rest_between_rounds_only() -> None:
    assert {step for step in Step if at_rest(State(step=step))} == {
        Step.CLOSED,
        Step.SHUFFLE_NEEDED,
        Step.SHUFFLING,
        Step.LOADING,
        Step.BURNING,
        Step.WAGERING,
    }


# --- what the rules would not have made, even if it is correctly signed -----------------------


class Forger:
    """Has the table's key and software, and writes forged records."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.game = game_as_it_is("classic")
        self.procedure = Procedure(self.game)
        self.table = Dealing(self.procedure, "forged")
        while self.table.state.step is not Step.PAYING:
            self.table.once()

    def write(self, forged: RecordEntry) -> None:
        fill(boot(self.place, self.game, size=1024 * 1024), [*self.table.entries, forged])

    def made(self, event: events.Event) -> RecordEntry:
        answer = self.procedure.step(self.table.state, event)
        assert isinstance(answer, Decision)
        return event_entry(event, answer, self.table.state)


@pytest.fixture
def forger(place: Path) -> Forger:
    return Forger(place)


def refused(forger: Forger) -> str:
    with pytest.raises(ReplayMismatch) as found:
        folded(forger.place, forger.game)
    last = max(
        record.seq for _, record in records(forger.place) if record.kind in ("decision", "refusal")
    )
    assert f"seq {last}: round " in found.value.what
    assert "\n" not in str(found.value)
    return found.value.what


def paid_more(data: DecisionData) -> DecisionData:
    more = tuple(
        replace(effect, returned=effect.returned + 100)
        if isinstance(effect, effects.Settled)
        else effect
        for effect in data.effects
    )
    assert more != data.effects
    return replace(data, effects=more)


FORGERIES: Final[dict[str, tuple[Callable[[DecisionData], Any], str]]] = {
    "payout": (paid_more, "the rules make"),
    "rows": (lambda data: replace(data, rows=("pay_all", *data.rows)), "recorded rows pay_all, "),
    "fewer effects": (lambda data: replace(data, effects=data.effects[:-1]), "effects are record"),
    "more effects": (
        lambda data: replace(data, effects=(*data.effects, effects.RoundOver(1, 0))),
        "effects are recorded",
    ),
    "sealed where nothing is": (lambda data: {**plain(data), "sealed": 7}, "cannot be read"),
    "a field too many": (lambda data: {**plain(data), "hole": 7}, "cannot be read"),
    "a field of the event too many": (
        lambda data: {**plain(data), "event": {**plain(data.event), "hole": 7}},
        "in another form",
    ),
    "another event": (
        lambda data: replace(data, event=without_actor(events.Cleared(DEALER))),
        "Cleared was taken (.*); the rules refuse it: ",
    ),
}


@pytest.mark.parametrize("name", FORGERIES)
def test_a_forged_decision_is_named(forger: Forger, name: str) -> None:
    forge, words = FORGERIES[name]
    made = forger.made(events.Paid(DEALER, forger.table.state.due[0].moves))
    forger.write(replace(made, data=forge(made.data)))
    if words == "cannot be read":
        with pytest.raises(RecordDamaged, match=words):
            folded(forger.place, forger.game)
    else:
        assert re.search(words, refused(forger))


@pytest.mark.parametrize("way", [lambda data: data, lambda data: dict(reversed(data.items()))])
def test_the_same_without_forgery_is_accepted(
    forger: Forger, way: Callable[[dict[str, Any]], Any]
) -> None:
    """In any order of its fields."""
    made = forger.made(events.Paid(DEALER, forger.table.state.due[0].moves))
    forger.write(replace(made, data=way(plain(made.data))))
    assert folded(forger.place, forger.game).now.round == forger.table.state.round


def test_a_forged_refusal_is_named(forger: Forger) -> None:
    paid = events.Paid(DEALER, forger.table.state.due[0].moves)
    data = RefusalData(without_actor(paid), "declared_wrong", "count again")
    forger.write(RecordEntry("refusal", ANN, data, forger.table.state.round))
    assert "was refused (declared_wrong); the rules take it (pay" in refused(forger)


def test_a_refusal_with_another_reason_is_named(forger: Forger) -> None:
    data = RefusalData(without_actor(events.Cleared(DEALER)), "not_to_clear", "because I say so")
    forger.write(RecordEntry("refusal", ANN, data, forger.table.state.round))
    words = refused(forger)
    assert "because I say so" in words
    assert "the cards stay on the felt" in words


def test_a_decision_recorded_as_a_refusal_is_named(forger: Forger) -> None:
    made = forger.made(events.Paid(DEALER, forger.table.state.due[0].moves))
    forger.write(replace(made, kind="refusal", state=None))
    with pytest.raises(RecordDamaged, match="a refusal that cannot be read"):
        folded(forger.place, forger.game)


@pytest.mark.parametrize("card", [-1, 52, 10**9])
def test_an_invalid_card_is_named(forger: Forger, card: int) -> None:
    for event in (events.CardDrawn(DEALER, card), events.HoleRevealed(DEALER, card, "")):
        forger.write(RecordEntry("decision", ANN, DecisionData(without_actor(event), (), ()), 1))
        assert f"{card} is no card" in refused(forger)
        forger.place = forger.place.with_name(f"{forger.place.name}+")


def test_an_impossible_event_is_named(place: Path) -> None:
    """A decision for an impossible seat or hand: an exception of a row is reported."""
    game = game_as_it_is("mega")
    rng = Random("what cannot be")
    tried = 0
    for step in (Step.WAGERING, Step.TURN, Step.PAYING, Step.CLEARING):
        table = Dealing(Procedure(game), f"odd {step.value}")
        while table.state.step is not step:
            table.once()
        for kind in (events.Hit, events.Split, events.Double, events.Surrender, events.Stand):
            seat, hand = rng.choice((-(2**40), 0, 9, 2**60)), rng.choice((-1, 99, 2**60))
            event = without_actor(kind(player(1), seat, hand))
            data = DecisionData(event, ("hit",), ())
            where = place / f"{step.value}-{kind.__name__}"
            where.parent.mkdir(exist_ok=True)
            fill(
                boot(where, game, size=1024 * 1024),
                [*table.entries, RecordEntry("decision", ANN, data, 1)],
            )
            with pytest.raises(ReplayMismatch):
                folded(where, game)
            tried += 1
    assert tried == 20


_MANY: Final = 200
"""Records to alter, each at several places."""


@pytest.fixture(scope="module")
def played() -> list[tuple[Record, State]]:
    """Records of a table, each with the state before it."""
    table = dealt("mega", "altered", events=_MANY)
    return [
        (as_read(made), before)
        for made, (before, _, _) in zip(table.entries, table.heard, strict=True)
    ]


@given(
    which=st.integers(0, _MANY - 1),
    cuts=st.lists(st.tuples(st.floats(0, 1), st.binary(max_size=3), st.integers(0, 3)), max_size=4),
)
def test_any_altered_decision_is_a_record_problem(
    played: list[tuple[Record, State]],
    which: int,
    cuts: list[tuple[float, bytes, int]],
) -> None:
    """Or the altered decision is the one that the rules make. No other exception is raised."""
    record, before = played[which]
    data = bytearray(bytes(record.data))
    for at, put, away in cuts:
        start = int(at * len(data))
        data[start : start + away] = put
    replay = RecordReplay(Path("record"))
    boot = replace(
        record, kind="opened", data=msgspec.Raw(encode(opened(identity_of(TABLE, dealt_game()))))
    )
    replay.take(RecordPosition(1, 24, 8), boot)
    replay.state = before
    problem: RecordProblem | None = None
    try:
        replay.take(RecordPosition(1, 24, 9), replace(record, data=msgspec.Raw(bytes(data))))
    except (RecordDamaged, ReplayMismatch) as found:
        problem = found
    if problem is None:
        assert (replay.again, replay.taken) == (1, 0)
    else:
        assert str(problem).isprintable()
        assert bytes(data) != bytes(record.data)


def dealt_game() -> Game:
    return some_game(Random("folding mega altered"), "mega")[0]


def test_a_snapshot_with_a_wrong_state_is_named(place: Path) -> None:
    table = dealt("maxtime", "lies", events=300)
    with closing(boot(place, table.game)) as log:
        richer = 0
        for made in table.entries:
            if made.state is not None and len(list(segments(place))) == 2 and not richer:
                made = replace(made, state=replace(made.state, won=made.state.won + 1))  # noqa: PLW2901
                richer = log.where.seq + 1
            elif richer:
                made = replace(made, state=None)  # noqa: PLW2901
            log.write([made])
    with pytest.raises(ReplayMismatch, match="not what the decisions before it come to") as found:
        replayed(place)
    assert "segment 00000003, offset 24, " in found.value.what
