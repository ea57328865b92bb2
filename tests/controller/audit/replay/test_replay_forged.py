"""Replay detects forged decisions, even if they are correctly signed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import replace

from controller.audit.errors import RecordDamaged, RecordProblem
from controller.audit.format.records import OpenedData, Record, RecordEntry, RecordPosition, encode
from controller.audit.read.reader import records, segments
from controller.audit.replay import DecisionData, RecordReplay, ReplayMismatch, identity_of
from controller.audit.replay.entries import RefusalData
from controller.games import DEALER, player
from controller.procedure.engine import Procedure
from controller.procedure.model import effects as f
from controller.procedure.model import events
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision
from controller.procedure.model.state import State, Step
from tests.support.audit.record.dealing import TABLE, Dealing, as_read, boot
from tests.support.audit.record.folded import dealt, folded, plain, replayed, write
from tests.support.audit.record.table import ANN
from tests.support.procedure.random_games import game_as_it_is, some_game

EVENTS: Final = ("decision", "refusal")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "record"


# --- what the rules would not have made -------------------------------------------------------


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
        log = boot(self.place, self.game, size=1024 * 1024)
        write(log, [*self.table.entries, forged])
        log.close()

    def made(self, event: events.Event) -> RecordEntry:
        answer = self.procedure.step(self.table.state, event)
        assert isinstance(answer, Decision)
        data = DecisionData(event, answer.rows, answer.effects)
        return RecordEntry("decision", ANN, data, answer.state.round, state=answer.state)


@pytest.fixture
def forger(place: Path) -> Forger:
    return Forger(place)


def refused(forger: Forger) -> str:
    with pytest.raises(ReplayMismatch) as found:
        folded(forger.place, forger.game)
    last = max(record.seq for _, record in records(forger.place) if record.kind in EVENTS)
    assert f"seq {last}: round " in found.value.what
    assert "\n" not in str(found.value)
    return found.value.what


def paid_more(data: DecisionData) -> DecisionData:
    effects = tuple(
        replace(effect, returned=effect.returned + 100) if isinstance(effect, f.Settled) else effect
        for effect in data.effects
    )
    assert effects != data.effects
    return replace(data, effects=effects)


FORGERIES: Final[dict[str, tuple[Callable[[DecisionData], Any], str]]] = {
    "payout": (paid_more, "the rules make"),
    "rows": (lambda data: replace(data, rows=("pay_all", *data.rows)), "recorded rows pay_all, "),
    "fewer effects": (lambda data: replace(data, effects=data.effects[:-1]), "effects are record"),
    "more effects": (
        lambda data: replace(data, effects=(*data.effects, f.RoundOver(1, 0))),
        "effects are recorded",
    ),
    "sealed where nothing is": (lambda data: {**plain(data), "sealed": 7}, "cannot be read"),
    "a field too many": (lambda data: {**plain(data), "hole": 7}, "cannot be read"),
    "a field of the event too many": (
        lambda data: {**plain(data), "event": {**plain(data.event), "hole": 7}},
        "in another form",
    ),
    "in another order": (
        lambda data: dict(reversed(plain(data).items())),
        "in another form",
    ),
    "another event": (
        lambda data: replace(data, event=events.Cleared(DEALER)),
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


def test_the_same_without_forgery_is_accepted(forger: Forger) -> None:
    forger.write(forger.made(events.Paid(DEALER, forger.table.state.due[0].moves)))
    assert folded(forger.place, forger.game).now.round == forger.table.state.round


def test_a_forged_refusal_is_named(forger: Forger) -> None:
    event = events.Paid(DEALER, forger.table.state.due[0].moves)
    data = RefusalData(event, "declared_wrong", "count again")
    forger.write(RecordEntry("refusal", ANN, data, forger.table.state.round))
    assert "was refused (declared_wrong); the rules take it (pay" in refused(forger)


def test_a_refusal_with_another_reason_is_named(forger: Forger) -> None:
    data = RefusalData(events.Cleared(DEALER), "not_to_clear", "because I say so")
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
        data = DecisionData(event, (), ())
        forger.write(RecordEntry("decision", ANN, data, 1))
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
            data = DecisionData(kind(player(1), seat, hand), ("hit",), ())
            where = place / f"{step.value}-{kind.__name__}"
            where.parent.mkdir(exist_ok=True)
            log = boot(where, game, size=1024 * 1024)
            write(log, [*table.entries, RecordEntry("decision", ANN, data, 1)])
            log.close()
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
    boot = replace(record, kind="opened", data=Raw(encode(_opened(dealt_game()))))
    replay.take(RecordPosition(1, 24, 8), boot)
    replay.state = before
    problem: RecordProblem | None = None
    try:
        replay.take(RecordPosition(1, 24, 9), replace(record, data=Raw(bytes(data))))
    except (RecordDamaged, ReplayMismatch) as found:
        problem = found
    if problem is None:
        assert replay.counted == (1, 0)
    else:
        assert str(problem).isprintable()
        assert bytes(data) != bytes(record.data)


def dealt_game() -> Game:
    return some_game(Random("folding mega altered"), "mega")[0]


def _opened(game: Game) -> OpenedData:
    me = identity_of(TABLE, game)
    origin = f"holecard/{TABLE}/0011223344556677"
    hashes = (me.sw, me.conf, me.proc, me.code)
    return OpenedData(origin, me.software, *hashes, Raw(me.game), "", 0, 0, "direct")


def test_a_snapshot_with_a_wrong_state_is_named(place: Path) -> None:
    table = dealt("maxtime", "lies", events=300)
    log = boot(place, table.game)
    richer = 0
    for made in table.entries:
        if made.state is not None and len(list(segments(place))) == 2 and not richer:
            made = replace(made, state=replace(made.state, won=made.state.won + 1))  # noqa: PLW2901
            richer = log.where.seq + 1
        elif richer:
            made = replace(made, state=None)  # noqa: PLW2901
        log.write([made])
    log.close()
    with pytest.raises(ReplayMismatch, match="not what the decisions before it come to") as found:
        replayed(place)
    assert "segment 00000003, offset 24, " in found.value.what
