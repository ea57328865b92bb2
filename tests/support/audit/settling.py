"""Decisions of random rounds, and what each verifier says of them when they are altered."""

import json
from collections.abc import Iterator, Sequence
from copy import deepcopy
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from controller.audit import verify_record
from controller.audit.format.records import Record, RecordActor, encode
from controller.audit.replay import DecisionData, decode_event, identity_of, without_actor
from controller.procedure.engine import Procedure, RowFault
from controller.procedure.model.events import Event
from controller.procedure.model.game import Game
from controller.procedure.model.row import Decision, Refused
from controller.procedure.model.state import State
from controller.rules.cards import DECK
from tests.support.procedure.random_table import RandomTable

Json = dict[str, Any]
_LARGEST: Final = 2**63
_CANNOT: Final = (RowFault, ArithmeticError, LookupError, ValueError, msgspec.DecodeError)


class Entry(NamedTuple):
    """What a record has of a decision or refusal, and the state after it."""

    kind: str
    by: Json
    data: Json
    after: Any
    """As in a snapshot; None after a refusal."""

    @property
    def record(self) -> Json:
        return {"kind": self.kind, "by": self.by, "data": self.data}


def as_json(value: object) -> Any:
    return json.loads(encode(value))


def dealt(game: Game, seed: str, rounds: int, wrong: float = 0.05) -> list[Entry]:
    """Random rounds of a game, with irregularities and refusals, as they would be recorded."""
    entries: list[Entry] = []

    def watch(before: State, event: Event, answer: Decision | Refused) -> None:
        by = as_json(event.actor)
        if isinstance(answer, Decision):
            made = DecisionData(without_actor(event), answer.rows, answer.effects)
            entries.append(Entry("decision", by, as_json(made), as_json(answer.state)))
        else:
            refusal = {"event": as_json(without_actor(event)), "id": answer.id, "why": answer.why}
            entries.append(Entry("refusal", by, refusal, None))

    RandomTable(Procedure(game), seed, wrong=wrong, watch=watch).play(rounds)
    unfit = [one.kind == "decision" and not _recordable(one) for one in entries]
    if any(unfit):  # what follows from a decision that no record can contain is none, too
        del entries[unfit.index(True) :]
    return [one for one in entries if _recordable(one)]


def _recordable(entry: Entry) -> bool:
    """Whether a record can contain the entry: 64-bit numbers, cards, and for a hidden card a
    commitment."""
    event = entry.data["event"]
    numbers = [value for value in event.values() if type(value) is int]
    in_range = all(-_LARGEST <= number < _LARGEST for number in numbers)
    return in_range and 0 <= event.get("card", 0) < 52 and event.get("commitment") != ""


def game_of_record(game: Game) -> Json:
    """The game as in `opened`."""
    found: Json = json.loads(bytes(identity_of("table", game).game))
    return found


def read_back(entry: Entry) -> Record:
    data, by = msgspec.Raw(encode(entry.data)), msgspec.convert(entry.by, RecordActor)
    return Record(2, "0" * 16, 1, 0, 0, "synced", 0, entry.kind, data, by)


class Independent:
    """The settlement of the stand-alone verifier, decision by decision."""

    def __init__(self, game: Json) -> None:
        self.settlement = verify_record.Settlement()
        self.settlement.begin({"proc": "", "game": game}, None)
        assert self.settlement.table, self.settlement.why

    def wrong(self, entry: Entry) -> str:
        """What is wrong with the next entry; empty if nothing is."""
        try:
            left_out = self.settlement.judge(entry.record)
            if entry.after is not None:
                self.settlement.compare(None, entry.after)
        except verify_record.Wrong as problem:
            return str(problem)
        return left_out


class Replayed:
    """The same by the replay, as `audit verify` does it."""

    def __init__(self, game: Game) -> None:
        self.procedure, self.state = Procedure(game), State()

    def wrong(self, entry: Entry) -> str:
        try:
            said = decode_event(read_back(entry)).event
            if not 0 <= getattr(said, "card", 0) < len(DECK):
                return "no card"
            answer = self.procedure.step(self.state, said)
        except _CANNOT as problem:
            return type(problem).__name__
        if isinstance(answer, Decision) != (entry.kind == "decision"):
            return "taken or refused"
        event = without_actor(said)
        made: Json = {"event": as_json(event)}
        if isinstance(answer, Decision):
            made = as_json(DecisionData(event, answer.rows, answer.effects))
        else:
            made |= {"id": answer.id, "why": answer.why}
        if made != entry.data:
            return "another answer"
        self.state = answer.state if isinstance(answer, Decision) else self.state
        return ""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths to every value in the data of a decision that is no object and no list."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        if isinstance(inner, dict | list) and inner:
            yield from leaves(inner, (*path, key))
        else:
            yield (*path, key)


def altered(value: Any, random: Random, words: Sequence[str]) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice([one for one in (value + 1, value - 1, 2 * value, 0) if one != value])
    if isinstance(value, str):
        return random.choice([word for word in words if word != value])
    if value is None:
        return random.choice((1, 100))
    return [1] if isinstance(value, list) else {"pays": 1, "on": 1}


def mutated(entry: Entry, random: Random, words: Sequence[str]) -> tuple[tuple[Any, ...], Entry]:
    """A copy in which one value is another one; where, and the entry."""
    data = deepcopy(entry.data)
    path = random.choice(list(leaves(data)))
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = altered(holder[path[-1]], random, words)
    return path, entry._replace(data=data, after=None)
