"""Values of decisions altered one by one: which of the two verifiers finds each, and why not."""

from __future__ import annotations

from collections import Counter
from copy import deepcopy
from random import Random
from typing import Any, Final

from controller.procedure.model.game import Game
from tests.support.audit.settling import (
    Entry,
    Independent,
    Replayed,
    dealt,
    game_of_record,
    leaves,
    mutated,
)
from tests.support.procedure.random_games import some_game

GAMES: Final = ("classic", "maxtime", "mega", "sf21x")
ALTERATIONS: Final = 40_000
SETTLED: Final = 4_000
"""Number of rounds that are settled again unaltered."""
ROUNDS_IN_A_ROW: Final = 10
PER_ENTRY: Final = 4
"""Alterations of each entry of a random table."""
ROUNDS: Final = 2
FOLLOWED: Final = 40
"""Number of entries after an altered one that are still verified."""

PAYS: Final = ("pay", "collect", "give_back", "floor_first")
_SHOWN: Final = ("to", "near", "warn", "rule", "choices", "total", "soft", "count")
_PLACED: Final = ("tell", "seat", "hand", "place", "why", "cards")
_DISPUTES: Final = (
    *("HoleExposed", "HoleUnchecked", "PlayedOutOfTurn", "InsuranceDisputed"),
    *("MisdealCalled", "FloorCalled"),
)
NO_MONEY: Final = frozenset(
    (
        *("rows", "Told", "Stations", "ShoeLock", "Shuffler"),
        *(f"Payment.{name}" for name in _SHOWN),
        *(f"Prompt.{name}" for name in (*_SHOWN, *_PLACED)),
        *(f"{name}.seat" for name in _DISPUTES),
        *("CardUnreadable.why", "DeckSuspect.why", "DeviceLost.why", "DeviceLost.device"),
        *("ShuffleDone.missing", "ShuffleDone.extra", "ShoeLoaded.count", "DeviceBack.device"),
    )
)
"""What only a replay finds in a decision: rows, lamps, locks, messages, words of a prompt, prompts
about no payment, and the words of a stop. In a refusal it finds that the reason is another one."""


class Unnoticed(AssertionError):
    """One verifier finds what the other one should find too."""


def kind_of(entry: Entry, path: tuple[Any, ...]) -> str:
    """Where an altered value is, as in NO_MONEY."""
    if path[0] == "event":
        return f"{entry.data['event']['type']}.{path[1]}"
    if path[0] != "effects":
        return str(path[0])
    effect = entry.data["effects"][path[1]]
    name = "Payment" if effect.get("tell") in PAYS else str(effect["type"])
    return name if name in NO_MONEY else f"{name}.{path[2]}"


def first_found(verifier: Independent | Replayed, entries: list[Entry]) -> int:
    """The index of the first entry in which something is wrong, or -1."""
    for index, entry in enumerate(entries):
        if verifier.wrong(entry):
            return index
    return -1


def words_of(entries: list[Entry]) -> list[str]:
    """The strings of these entries, from which altered ones are taken."""
    found = {"x"}
    for entry in entries:
        for path in leaves(entry.data):
            value: Any = entry.data
            for key in path:
                value = value[key]
            if isinstance(value, str):
                found.add(value)
    return sorted(found)


def of_a_table(game: Game, seed: str, per_entry: int = PER_ENTRY) -> Counter[tuple[str, str]]:
    """Counts alterations by what finds them and where they are. Raises Unnoticed.

    What the replay accepts, too, is another record that could have happened.
    """
    entries, random = dealt(game, seed, ROUNDS), Random(seed)
    ours, replay, words = Independent(game_of_record(game)), Replayed(game), words_of(entries)
    counted: Counter[tuple[str, str]] = Counter()
    for index, entry in enumerate(entries):
        for _ in range(per_entry):
            path, other = mutated(entry, random, words)
            after = [one._replace(after=None) for one in entries[index + 1 : index + FOLLOWED]]
            trial, again = deepcopy(ours), Replayed(game)
            again.state = replay.state
            found = [first_found(one, [other, *after]) >= 0 for one in (trial, again)]
            counted[_verdict(entry, other, path, *found), kind_of(entry, path)] += 1
        if ours.wrong(entry) or replay.wrong(entry):
            raise Unnoticed(f"{seed}: a valid record is found wrong: {entry}")
    return counted


def _verdict(entry: Entry, other: Entry, path: tuple[Any, ...], ours: bool, replay: bool) -> str:
    kind = kind_of(entry, path)
    known = entry.kind == "refusal" or kind in NO_MONEY
    if ours and replay:
        return "both"
    if ours or (replay and not known):
        which = "the stand-alone verifier" if ours else "the replay"
        raise Unnoticed(f"only {which} finds {kind} at {path}: {entry.data}\nas {other.data}")
    return "replay" if replay else "neither"


def rounds_of_tables(share: int, seed: int) -> dict[str, int]:
    """Counts rounds of random tables, all of which the stand-alone verifier must accept."""
    counted: Counter[str] = Counter()
    table = 0
    while counted["rounds"] < SETTLED // share:
        name, table = GAMES[table % len(GAMES)], table + 1
        game, what = some_game(Random(f"{seed} {table}"), name)
        ours = Independent(game_of_record(game))
        for entry in dealt(game, f"{seed} {table}", ROUNDS_IN_A_ROW):
            wrong = ours.wrong(entry)
            if wrong:
                raise Unnoticed(f"{what}, {seed} {table}: {wrong}: {entry}")
        counted.update(ours.settlement.counts)
    return {f"{what} settled again": number for what, number in counted.items()}


def alterations(share: int, seed: int) -> dict[str, int]:
    """Counts alterations of random tables of all games."""
    counted: Counter[str] = Counter()
    table = 0
    while counted["altered"] < ALTERATIONS // share:
        name, table = GAMES[table % len(GAMES)], table + 1
        random = Random(f"{seed} {table}")
        game, _ = some_game(random, name)
        for (verdict, _), count in of_a_table(game, f"{seed} {table}").items():
            counted["altered"] += count
            counted[f"found by {verdict}"] += count
    return dict(counted)
