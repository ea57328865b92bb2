"""Records to be indexed, and what an index says of them in words."""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import apsw

from controller.audit.format.records import RecordEntry
from controller.audit.index import Index
from controller.audit.index.schema import TABLES
from controller.audit.log import Log
from controller.procedure.engine import Procedure
from controller.procedure.model import effects, events
from controller.procedure.model.felt import expected
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State, Step
from controller.rules.cards import NAMES
from tests.support.audit.record.dealing import Dealing, boot
from tests.support.audit.record.table import FakeClock
from tests.support.procedure.random_games import some_game

Dump: TypeAlias = dict[str, list[tuple[Any, ...]]]
SMALL: Final = 32 * 1024


def dealt(seed: str, rounds: int, name: str = "mega") -> Dealing:
    """Rounds of a game at random, with all that goes wrong."""
    game, _ = some_game(Random(seed), name)
    table = Dealing(Procedure(game), seed)
    table.play(rounds)
    return table


def written(place: Path, table: Dealing, *, size: int = SMALL, together: int = 3) -> None:
    """Their record, some entries in each write, with a checkpoint now and then."""
    with closing(boot(place, table.game, size=size)) as log:
        for at, entries in enumerate(in_groups(table.entries, together)):
            log.write(entries)
            if at % 5 == 0:
                log.sign()


def in_groups(entries: Sequence[RecordEntry], size: int) -> list[Sequence[RecordEntry]]:
    return [entries[at : at + size] for at in range(0, len(entries), size)]


def write_all(log: Log, entries: Sequence[RecordEntry], together: int = 3) -> None:
    for group in in_groups(entries, together):
        log.write(group)


def dump(db: apsw.Connection) -> Dump:
    """All that an index says, whatever numbers its words have; and how far it goes."""
    said: Dump = {
        table.name: sorted(db.execute(f"SELECT * FROM {table.name}").fetchall()) for table in TABLES
    }
    said["goes"] = db.execute(
        "SELECT origin, segment, offset, until, seq, chain FROM goes"
    ).fetchall()
    return said


def dump_of(file: Path) -> Dump:
    db = apsw.Connection(str(file), apsw.SQLITE_OPEN_READONLY)
    try:
        return dump(db)
    finally:
        db.close()


def rebuilt(record: Path, file: Path) -> Dump:
    """What an index made at one go, in another place, says."""
    with Index.rebuild(record, file) as index:
        index.catch_up()
        return dump(index.db)


@contextmanager
def indexed(record: Path, file: Path | None = None) -> Iterator[Index]:
    """An index that has caught up with its record."""
    with Index.open(record, file) as index:
        index.catch_up()
        yield index


@contextmanager
def with_its_clock_set(place: Path) -> Iterator[Index]:
    """The index of rounds during which the clock was set, back and forth."""
    table = dealt("query", 60)
    clock = FakeClock()
    with closing(boot(place, table.game, clock=clock)) as log:
        for at in range(0, len(table.entries), 150):
            write_all(log, table.entries[at : at + 150])
            clock.set((-3600, 5400, 2)[at // 150 % 3])
    with indexed(place) as index:
        yield index


@cache
def some_rounds() -> Dealing:
    return dealt("interleaved", 25)


def caught_up(record: Path, file: Path | None = None) -> None:
    with Index.rebuild(record, file) as index:
        index.catch_up()


def same_as_rebuilt(index: Index) -> bool:
    with tempfile.TemporaryDirectory() as elsewhere:
        return dump(index.db) == rebuilt(index.record, Path(elsewhere) / "other.db")


@contextmanager
def held(index: Index) -> Iterator[None]:
    """Somebody writes the index, and does not end."""
    index.db.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        index.db.execute("ROLLBACK")


Amounts: TypeAlias = list[tuple[str, int, str, int]]
Cards: TypeAlias = set[tuple[str, int, str]]


class Facts(NamedTuple):
    cards: Cards
    """Name, seat, how."""
    amounts: Amounts
    """What, seat, bet, amount."""
    bets: list[tuple[Any, ...]]
    found: list[tuple[str, int]]
    """Irregularities, with their seats."""
    ruled: list[tuple[str, str, str, str]]
    seats: set[int]
    second: str
    problem: str


_NOT_UNDERSTOOD: Final = Facts(set(), [], [], [], [], set(), "", "not_understood")


def facts(before: State, event: events.Event, answer: Decision | Refused) -> Facts:
    if _not_understood(event, answer):
        return _NOT_UNDERSTOOD._replace(seats=_seats({event.actor.seat}))
    if isinstance(answer, Refused):
        return _refused(event, answer)
    cards = _face_up(before, event)
    amounts = _asked(before, event, answer)
    bets: list[tuple[Any, ...]] = []
    found, ruled = [], []
    seats = {getattr(event, "seat", 0), event.actor.seat}
    for effect in answer.effects:
        match effect:
            case effects.Settled():
                bets.append(_bet(effect))
                amounts.append(_moved(effect))
                cards |= {(NAMES[card], effect.seat, "settled") for card in effect.cards}
            case effects.Tucked():
                cards |= {(NAMES[card], effect.seat, "tucked") for card in effect.cards}
            case effects.Burned() | effects.Discarded() if effect.card >= 0:
                cards.add((NAMES[effect.card], 0, type(effect).__name__.lower()))
            case effects.Told(who="floor"):
                found.append((effect.what, effect.seat))
            case effects.Corrected():
                found.append(("wrong_payment", effect.seat))
                amounts.append(("was_paid", effect.seat, effect.bet, effect.paid))
                amounts.append(("was_due", effect.seat, effect.bet, effect.due))
            case effects.Ruled():
                ruled.append((effect.what, effect.way, effect.by, effect.second))
            case effects.SeatDead():
                seats.add(effect.seat)
            case _:
                amounts += _totals(effect)
    if isinstance(event, events.Withdrawn):
        found.append(("cannot_cover", _asked_to_confirm(before)))
    seats |= {seat for _, seat, _ in cards} | {seat for _, seat, _, _ in amounts}
    seats |= {seat for _, seat in found}
    second = getattr(event, "second", None)
    name = "" if second is None else second.name
    return Facts(
        cards, amounts, bets, found, ruled, _seats(seats), name, found[0][0] if found else ""
    )


def _not_understood(event: events.Event, answer: Decision | Refused) -> bool:
    """SQLite has no place for such a number, and it is one that the index has."""
    values = [getattr(event, name, 0) for name in ("seat", "card", "amount")]
    for effect in answer.effects if isinstance(answer, Decision) else ():
        values += [getattr(effect, name) for name in effect.__struct_fields__ if name != "cap"]
    return any(isinstance(value, int) and abs(value) >= (1 << 62) for value in values)


def _refused(event: events.Event, answer: Refused) -> Facts:
    seat = getattr(event, "seat", 0)
    amount = getattr(event, "amount", None)
    bet = getattr(event, "bet", "")
    late = isinstance(event, events.WagerPlaced) and answer.id in (
        "late_wager",
        "first_card_is_out",
        "without_main",
    )
    amounts = [] if amount is None else [("refused", seat, bet, amount)]
    problem = "late_wager" if late else answer.id
    found = [("late_wager", seat)] if late else []
    return Facts(set(), amounts, [], found, [], _seats({seat, event.actor.seat}), "", problem)


def _seats(numbers: set[int]) -> set[int]:
    """Those that a table can have: an event that is refused may name any number."""
    return {number for number in numbers if number > 0}


def _bet(effect: effects.Settled) -> tuple[Any, ...]:
    where = (effect.round, effect.seat, effect.hand, effect.bet)
    return (*where, effect.outcome, effect.stake, effect.returned, effect.why)


def _moved(effect: effects.Settled) -> tuple[str, int, str, int]:
    won = effect.returned - effect.stake
    if won > 0:
        return "paid", effect.seat, effect.bet, won
    if effect.returned:
        return "returned", effect.seat, effect.bet, effect.returned
    return "collected", effect.seat, effect.bet, effect.stake


def _totals(effect: effects.Effect) -> Amounts:
    match effect:
        case effects.WagersLocked():
            return [("locked", 0, "", effect.total)]
        case effects.RoundOver():
            return [("won", 0, "", effect.won)]
        case effects.BankCounted():
            return [("bank", 0, "", effect.bank)]
        case _:
            return []


def _asked(before: State, event: events.Event, answer: Decision) -> Amounts:
    """Wagers, and the chips that a player asks to put down."""
    match event:
        case events.WagerPlaced():
            return [("wager", event.seat, event.bet, event.amount)]
        case events.Paid(amount=int(amount)):
            return [("declared", 0, "", amount)]
        case events.Insure() if answer.state.step is Step.INSURANCE_CONFIRM:
            return [("insurance", event.seat, "insurance", event.amount)]
        case events.Double() if answer.state.step is Step.DOUBLE_CONFIRM:
            return [("double", event.seat, "main", answer.state.asking)]
        case events.Split() if answer.state.step is Step.SPLIT_CONFIRM:
            return [("split", event.seat, "main", before.hands[before.turn].wager)]
        case _:
            return []


def _face_up(before: State, event: events.Event) -> Cards:
    match event:
        case events.CardDrawn():
            return {(NAMES[event.card], _place(before), "drawn")}
        case events.CardEntered():
            at = State(**{**_fields(before), "step": before.holds[-1].back})
            return {(NAMES[event.card], _place(at), "entered")}
        case events.HoleRevealed():
            return {(NAMES[event.card], 0, "revealed")}
        case events.FaceUpCardFound():
            return {(NAMES[event.card], 0, "found")}
        case events.ErrorCardExposed():
            return {(NAMES[event.card], 0, "exposed")}
        case _:
            return set()


def _asked_to_confirm(before: State) -> int:
    """The seat whose chips were waited for."""
    if before.step is Step.INSURANCE_CONFIRM:
        return before.seats[before.asked].number
    return before.hands[before.turn].seat


def _fields(state: State) -> dict[str, Any]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def _place(state: State) -> int:
    """The seat that a card goes to in this state."""
    if state.step is Step.WAGERING:
        return state.seats[0].number if state.seats else 0
    place = expected(state)
    return 0 if place is None else place.seat
