"""What an index says of records: all that lies face up, and nothing that does not."""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import pytest
from msgspec import json

from controller.audit.format.records import Record, RecordActor, RecordEntry
from controller.audit.index import NOT_UNDERSTOOD, Index
from controller.audit.read.reader import records
from controller.games import DEALER, FLOOR, SECOND, SHOE, player
from controller.procedure.engine import Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import DECK
from tests.support.audit.record.dealing import Dealing, boot, recorded
from tests.support.audit.record.table import ANN, begun, note
from tests.support.audit.tools.indexing import Dump, Facts, dealt, dump, facts, rebuilt, written
from tests.support.audit.twin import Twin
from tests.support.procedure.random_games import GAMES, game_as_it_is, some_game

Heard: TypeAlias = tuple[int, int, State, events.Event, Decision | Refused]
"""Seq and utc, the state before it, the event, and what came of it."""
_ROUNDS: Final = 120
_ALWAYS: Final = frozenset(
    {
        *("drawn", "revealed", "settled"),
        *("wager", "refused", "double", "split", "insurance", "declared", "locked"),
        *("collected", "returned", "paid", "won", "was_paid", "was_due"),
        *("late_wager", "wrong_payment", "device_lost", "dealer_relieved", "deck_suspect"),
        "cannot_cover",
    }
)
"""What so many random rounds of every game bring."""


def heard(place: Path, table: Dealing) -> Iterator[Heard]:
    """The table's events with their places in the record."""
    found = [one for _, one in records(place) if one.kind in ("decision", "refusal")]
    for record, (before, event, answer) in zip(found, table.heard, strict=True):
        yield record.seq, record.utc, before, event, answer


def by_seq(rows: list[tuple[Any, ...]], at: int, *columns: int) -> dict[int, list[tuple[Any, ...]]]:
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows:
        found.setdefault(row[at], []).append(tuple(row[column] for column in columns))
    return found


@pytest.mark.parametrize("name", GAMES)
def test_of_random_rounds_it_says_what_the_states_tell(
    tmp_path: Path, place: Path, name: str
) -> None:
    table = dealt(f"rows {name}", _ROUNDS, name)
    written(place, table)
    said = rebuilt(place, tmp_path / "index.db")
    cards = by_seq(said["cards"], 1, 4, 2, 3)
    amounts = by_seq(said["amounts"], 0, 2, 3, 4, 5)
    bets = by_seq(said["bets"], 0, 2, 3, 4, 5, 6, 7, 8, 9)
    seats = by_seq(said["seats"], 1, 0)
    irregular = by_seq(said["irregularities"], 1, 0, 3, 4, 5, 6)
    problems: dict[int, str] = dict(said["problems"])
    second = {seq: who for who, seq, part in said["people"] if part == "second"}
    seen: Counter[str] = Counter()
    wanted: dict[int, Facts] = {}
    for seq, _, before, event, answer in heard(place, table):
        one = wanted[seq] = facts(before, event, answer)
        assert set(cards.get(seq, [])) == one.cards, seq
        assert sorted(amounts.get(seq, [])) == sorted(one.amounts), seq
        assert sorted(bets.get(seq, [])) == sorted(one.bets), seq
        assert {seat for (seat,) in seats.get(seq, [])} == one.seats, seq
        found = [(what, seat, "", "", "") for what, seat in one.found]
        ruled = [(what, 0, way, by, two) for what, way, by, two in one.ruled]
        assert sorted(irregular.get(seq, [])) == sorted(found + ruled), seq
        assert problems.get(seq, "") == one.problem, seq
        assert second.get(seq, "") == one.second, seq
        seen.update(how for _, _, how in one.cards)
        seen.update(what for what, *_ in one.amounts)
        seen.update(what for what, _ in one.found)
    assert {*cards, *bets, *irregular, *amounts, *seats, *problems} <= set(wanted)
    assert set(seen) >= _ALWAYS, _ALWAYS - set(seen)


def test_every_record_has_its_row_and_its_place(tmp_path: Path, place: Path) -> None:
    written(place, dealt("every", 20))
    said = rebuilt(place, tmp_path / "index.db")
    assert [(*row[:9], *row[10:13]) for row in said["records"]] == [
        (
            *(one.seq, one.utc, one.day, one.round, one.kind),
            *(one.by.role, one.by.name, one.by.seat, _event(one)),
            *(one.cause, at.segment, at.offset),
        )
        for at, one in records(place)
    ]


def _event(record: Record) -> str:
    if record.kind not in ("decision", "refusal"):
        return ""
    return str(json.decode(record.data)["event"]["type"])


def test_people_are_those_who_did_it_and_no_devices(tmp_path: Path, place: Path) -> None:
    written(place, dealt("people", 20))
    said = rebuilt(place, tmp_path / "index.db")
    assert {row for row in said["people"] if row[2] != "second"} == {
        (one.by.name, one.seq, one.by.role) for _, one in records(place) if one.by.role != "device"
    }
    assert {part for _, _, part in said["people"]} >= {"dealer", "player", "floor", "second"}


# --- rounds and shifts ------------------------------------------------------------------------


def test_rounds_begin_with_their_first_wager_and_end_where_the_next_begins(
    tmp_path: Path,
) -> None:
    for number, name in enumerate(GAMES):
        table = dealt(f"rounds {name}", 40, name)
        place = tmp_path / f"record {number}"
        written(place, table)
        said = rebuilt(place, tmp_path / f"index {number}.db")
        times = {row[0]: row[1] for row in said["records"]}
        last = max(times)
        found = {row[0]: row[1:] for row in said["rounds"]}
        wanted = _rounds(place, table, last)
        assert set(found) == set(wanted)
        for number_, (first, end, over, wagered, won, void, irregular, corrected) in wanted.items():
            row = found[number_]
            assert row[:4] == (first, end, times[first], times[end])
            assert row[4:6] == (over, times.get(over, 0))
            assert row[7:] == (wagered, won, void, irregular, corrected), (number_, name)


def _rounds(place: Path, table: Dealing, last: int) -> dict[int, tuple[int, ...]]:
    """First and last seq, when it was over, wagered, won, voided, irregularities, corrections."""
    rounds: dict[int, list[int]] = {}
    wagers = waiting = 0
    for seq, _, before, event, answer in heard(place, table):
        after = answer.state if isinstance(answer, Decision) else before
        if isinstance(answer, Decision) and isinstance(event, events.WagerPlaced):
            wagers = wagers or seq
        if after.round > before.round:
            first = wagers or seq
            if rounds:
                rounds[before.round][1] = first - 1
            rounds[after.round] = [first, last, 0, 0, 0, 0, waiting, 0]
            wagers = waiting = 0
        waiting += len(facts(before, event, answer).found)
        if not wagers or not after.seats:
            if after.round:
                rounds[after.round][6] += waiting
            wagers = waiting = 0
        understood = facts(before, event, answer).problem != NOT_UNDERSTOOD
        for effect in answer.effects if isinstance(answer, Decision) and understood else ():
            _of_round(rounds, seq, effect)
    return {number: tuple(row) for number, row in rounds.items()}


def _of_round(rounds: dict[int, list[int]], seq: int, effect: effects.Effect) -> None:
    match effect:
        case effects.WagersLocked():
            rounds[effect.round][3] = effect.total
        case effects.RoundOver():
            rounds[effect.round][2], rounds[effect.round][4] = seq, effect.won
        case effects.RoundVoid():
            rounds[effect.round][5] = 1
        case effects.Corrected():
            rounds[effect.round][7] += 1
        case _:
            pass


def test_a_correction_counts_for_the_round_it_is_about(tmp_path: Path, place: Path) -> None:
    """However long that is over: here the index has long taken it."""
    table = dealt("correct", 12)
    with closing(boot(place, table.game)) as log, Index.rebuild(place) as index:
        for entry in table.entries:
            log.write([entry])
            index.catch_up()
        late = events.PaymentCorrected(FLOOR, 3, 1, 0, "main", 100, 150, SECOND)
        for _ in range(2):
            table.hand_in(late)
            log.write(table.entries[-1:])
            index.catch_up()
        before = [row[-1] for row in rebuilt(place, tmp_path / "other.db")["rounds"]]
        assert [row[-1] for row in dump(index.db)["rounds"]] == before
    assert before[2] >= 2


def test_shifts_go_from_a_dealers_first_act_to_the_next_dealers_or_the_close(
    tmp_path: Path,
    place: Path,
) -> None:
    table = Dealing(Procedure(game_as_it_is("classic")), "shifts")
    ann, bob = events.Actor("dealer", "Ann"), events.Actor("dealer", "Bob")
    table.hand_in(events.TableOpened(FLOOR, 1000, SECOND))
    table.hand_in(events.ShuffleStarted(ann))
    table.hand_in(events.ShuffleDone(SHOE))
    table.hand_in(events.ShoeLoaded(SHOE, table.game.decks * 52))
    while table.state.step is Step.BURNING:
        table.hand_in(events.CardBurned(SHOE))
    relieved = len(table.entries)
    table.hand_in(events.DealerRelieved(bob))
    while table.state.step is Step.RELIEF_BURN:
        table.hand_in(events.CardBurned(SHOE))
    closed = len(table.entries)
    table.hand_in(events.TableClosed(FLOOR, 1000, SECOND))
    assert table.state.step is Step.CLOSED
    recorded(place, table.game, table.entries)
    said = rebuilt(place, tmp_path / "index.db")
    first = next(one.seq for _, one in records(place) if one.kind == "decision")
    assert said["shifts"] == [
        (first + 1, first + relieved - 1, "Ann"),
        (first + relieved, first + closed, "Bob"),
    ]
    dealers = {row[0]: row[9] for row in said["records"]}
    assert (dealers[first], dealers[first + 1]) == ("", "Ann")
    assert {dealers[first + relieved], dealers[first + closed]} == {"Bob"}
    assert dealers[first + closed + 1] == ""


# --- records that other software has written ---------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        {"event": "Hit", "rows": [], "effects": []},
        {"event": {"type": "Hit", "seat": "three"}, "rows": [], "effects": []},
        {"event": {"type": "Hit"}, "effects": [{"type": "Settled", "stake": "ten"}]},
        {"event": {"type": "WagerPlaced", "seat": 1, "amount": 1 << 62}, "effects": []},
        {"event": {"type": "Hit", "seat": -(1 << 63)}, "effects": []},
        {"effects": []},
        [],
        None,
        "Hit",
    ],
)
def test_of_a_decision_that_is_not_understood_there_is_a_row_and_no_more(
    tmp_path: Path, place: Path, data: object
) -> None:
    with closing(begun(place)) as log:
        seq = log.write([RecordEntry("decision", ANN, data, 1), note("next")])[0].seq
    said = rebuilt(place, tmp_path / "index.db")
    row = next(row for row in said["records"] if row[0] == seq)
    assert (row[4], row[6], row[8]) == ("decision", "Ann", "")
    assert (said["problems"], len(said["records"])) == ([(seq, "not_understood")], seq + 3)
    assert [said[name] for name in ("cards", "seats", "amounts", "bets", "rounds")] == [[]] * 5


def test_what_it_does_not_know_of_a_decision_it_leaves_out(tmp_path: Path, place: Path) -> None:
    with closing(begun(place)) as log:
        event = {"type": "CardFlipped", "actor": DEALER, "seat": 2, "card": 5, "speed": [1, 2]}
        effects = [{"type": "Fireworks", "seat": 3, "card": 6}, {"type": "ShoeLock", "locked": 1}]
        data = {"event": event, "rows": ["flip"], "effects": effects, "more": {"a": [1.5]}}
        seq = log.write([RecordEntry("decision", RecordActor("player", "seat-2", 2), data, 4)])[
            0
        ].seq
    said = rebuilt(place, tmp_path / "index.db")
    assert next(row[8] for row in said["records"] if row[0] == seq) == "CardFlipped"
    assert said["seats"] == [(2, seq)]
    assert said["cards"] == said["problems"] == []


def test_entries_that_were_not_recorded_are_a_problem(tmp_path: Path, place: Path) -> None:
    links = RecordActor("device", "controller")
    with closing(begun(place)) as log:
        log.write([RecordEntry("link", links, {"what": "PortGone", "device": "SH-1"})])
        seq = log.write([RecordEntry("link", links, {"what": "not_recorded", "count": 3})])[0].seq
    said = rebuilt(place, tmp_path / "index.db")
    assert said["problems"] == [(seq, "not_recorded")]


def test_a_face_is_one_of_the_deck(tmp_path: Path, place: Path) -> None:
    with closing(begun(place)) as log:
        for card in (-1, 52, 1000, *DECK):
            event = {"type": "CardDrawn", "actor": player(1), "card": card}
            log.write(
                [RecordEntry("decision", ANN, {"event": event, "rows": [], "effects": []}, 1)]
            )
    said = rebuilt(place, tmp_path / "index.db")
    assert [row[0] for row in said["cards"]] == list(DECK)


# --- What an index says of a card that lies face down: nothing --------------------------------


_TWINS: Final = 15
"""Pairs of hole cards, for each game."""


@pytest.mark.parametrize("name", GAMES)
def test_up_to_the_reveal_two_indexes_are_the_same_whatever_the_hole_card_is(
    tmp_path: Path, name: str
) -> None:
    pairs = number = 0
    while pairs < _TWINS:
        number += 1
        seed = f"index {name} {number}"
        game, _ = some_game(Random(seed), name)
        one, other = (Twin(Procedure(game), seed, second=second) for second in (False, True))
        for twin in (one, other):
            twin.play(number % 2)
            twin.exchange()
        if not all([one.to_the_reveal(), other.to_the_reveal()]) or one.pair is None:
            continue
        assert one.face(one.state.hole) != other.face(other.state.hole)
        said = []
        for which, twin in (("one", one), ("other", other)):
            place = tmp_path / f"{number} {which}"
            recorded(place, twin.game, twin.entries)
            said.append(_but_for_chance(rebuilt(place, tmp_path / f"{number} {which}.db")))
        assert said[0] == said[1], seed
        pairs += 1


def _but_for_chance(said: Dump) -> Dump:
    """Without what is drawn for each record anew."""
    return {name: rows for name, rows in said.items() if name != "goes"}


def test_no_commitment_and_no_opening_stands_in_an_index(tmp_path: Path, place: Path) -> None:
    file = tmp_path / "index.db"
    written(place, dealt("hidden", 60))
    hidden: set[str] = set()
    for _, one in records(place):
        if one.kind == "decision":
            data = json.decode(one.data)
            secret = (
                data.get("sealed"),
                *(data["event"].get(n) for n in ("commitment", "opening")),
            )
            hidden.update(text for text in secret if text)
    assert len(hidden) > 90
    with Index.rebuild(place, file) as index:
        index.catch_up()
        words = {word for (word,) in index.db.execute("SELECT word FROM words")}
    content = file.read_bytes()
    assert not hidden & words
    assert not [text for text in hidden if text.encode() in content]
    assert not [word for word in words if re.search(r"[0-9a-f]{16}", word)]


def test_a_card_that_a_refused_event_names_is_none(tmp_path: Path, place: Path) -> None:
    """Nor is one that is told by an event which does not show it."""
    with closing(begun(place)) as log:
        for kind in ("HoleRevealed", "CardDrawn", "FaceUpCardFound", "CardEntered"):
            event = {"type": kind, "actor": SHOE, "card": 7}
            log.write(
                [RecordEntry("refusal", ANN, {"event": event, "id": "no", "why": "not now"}, 1)]
            )
        for kind in ("HoleDealt", "ErrorCardDrawn", "HoleChecked", "Hit"):
            shown = {"type": kind, "actor": SHOE, "card": 7, "cards": [7]}
            log.write(
                [RecordEntry("decision", ANN, {"event": shown, "rows": [], "effects": []}, 1)]
            )
        log.write([RecordEntry("device", ANN, {"what": "card", "card": 7})])
    said = rebuilt(place, tmp_path / "index.db")
    assert (said["cards"], [what for _, what in said["problems"]]) == ([], ["no"] * 4)
