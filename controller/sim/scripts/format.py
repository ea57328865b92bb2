"""Script files: strict decoding and validation of scripted rounds."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec
from msgspec import Struct

from controller.errors import UsageProblem, printable, shown
from controller.procedure.model.game import BETS
from controller.rules.cards import NAMES, Card, parse_card

SCHEMA: Final = 1
_MAX_BYTES: Final = 64 * 1024 * 1024

GameName = Literal["maxtime", "sf21x", "classic", "mega"]
Phase = Literal["insurance", "play"]
Do = Literal["insure", "decline", "even_money", "hit", "stand", "double", "split", "surrender"]
_IN_PHASE: Final[dict[str, tuple[str, ...]]] = {
    "insurance": ("insure", "decline", "even_money"),
    "play": ("hit", "stand", "double", "split", "surrender"),
}


class ScriptSeat(Struct, frozen=True, forbid_unknown_fields=True):
    seat: int
    bets: dict[str, int]


class ScriptAction(Struct, frozen=True, forbid_unknown_fields=True):
    phase: Phase
    seat: int
    do: Do
    hand: int | None = None
    amount: int | None = None
    expect: Literal["rejected"] | None = None
    implicit: bool = False

    @property
    def rejected(self) -> bool:
        return self.expect == "rejected"


# Results: those that were played have all fields; those that are expected may leave some out, which
# are not compared.


class HandResult(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    hand: int | msgspec.UnsetType = msgspec.UNSET
    cards: list[str] | msgspec.UnsetType = msgspec.UNSET
    wager: int | msgspec.UnsetType = msgspec.UNSET
    outcome: str | msgspec.UnsetType = msgspec.UNSET
    odds: str | msgspec.UnsetType | None = msgspec.UNSET
    returned: int | msgspec.UnsetType = msgspec.UNSET
    net: int | msgspec.UnsetType = msgspec.UNSET
    when: str | msgspec.UnsetType = msgspec.UNSET


class SideBetResult(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    bet: str | msgspec.UnsetType = msgspec.UNSET
    stake: int | msgspec.UnsetType = msgspec.UNSET
    outcome: str | msgspec.UnsetType = msgspec.UNSET
    odds: str | msgspec.UnsetType | None = msgspec.UNSET
    returned: int | msgspec.UnsetType = msgspec.UNSET
    net: int | msgspec.UnsetType = msgspec.UNSET


class RejectedBet(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    bet: str | msgspec.UnsetType = msgspec.UNSET
    amount: int | msgspec.UnsetType = msgspec.UNSET
    why: str | msgspec.UnsetType = msgspec.UNSET


class ScriptExpectation(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The expected results."""

    dealer_cards: list[str] | msgspec.UnsetType = msgspec.UNSET
    hands: list[HandResult] | msgspec.UnsetType = msgspec.UNSET
    side_bets: list[SideBetResult] | msgspec.UnsetType = msgspec.UNSET
    seat_net: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    rejected_bets: list[RejectedBet] | msgspec.UnsetType = msgspec.UNSET
    rejected_actions: list[int] | msgspec.UnsetType = msgspec.UNSET


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    game: GameName
    seats: list[ScriptSeat]
    shoe: list[str]
    title: str = ""
    config: dict[str, Any] = {}
    first_round_of_shuffle: bool = True
    actions: list[ScriptAction] = []
    expect: ScriptExpectation = ScriptExpectation()
    decided_by: Any = None
    """A comment of the author; not used."""


class ScriptRound(Struct, frozen=True):
    """A validated script with its parsed cards."""

    script: Script
    cards: tuple[Card, ...]
    where: str


# The struct at each path, without indices.
_SHAPES: Final[dict[str, type[Struct]]] = {
    "": Script,
    "seats": ScriptSeat,
    "actions": ScriptAction,
    "expect": ScriptExpectation,
    "expect.hands": HandResult,
    "expect.side_bets": SideBetResult,
    "expect.rejected_bets": RejectedBet,
}
_WORDS: Final[dict[str, tuple[str, ...]]] = {
    "game": get_args(GameName),
    "actions.phase": get_args(Phase),
    "actions.do": get_args(Do),
    "actions.expect": ("rejected",),
}
_KINDS: Final = {
    "int": "a whole number",
    "float": "a number with a point",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_INDEX: Final = re.compile(r"\[[^]]*\]")
_STEP: Final = re.compile(r"([a-z_]+)|\[(\d+)\]")
_FIELD: Final = re.compile(r"Object (contains unknown|missing required) field `(.*)`", re.DOTALL)
_TYPES: Final = re.compile(r"Expected `(.*)`, got `(.*)`")


def read_scripts(path: Path) -> list[ScriptRound]:
    """Parse and validate a script file. Raises UsageProblem."""
    file = printable(path)
    raw = _read_json(path, file)
    if not isinstance(raw, dict):
        raise UsageProblem(file, "not a script file", '{"schema": 1, "rounds": [...]}')
    for key in raw:
        if key not in ("schema", "rounds"):
            raise UsageProblem(f"{file}: {printable(key)}", "unknown field", "schema, rounds")
    schema, rounds = raw.get("schema"), raw.get("rounds")
    if type(schema) is not int or schema != SCHEMA:
        raise UsageProblem(f"{file}: schema", f"{shown(schema)} is not known", str(SCHEMA))
    if not isinstance(rounds, list):
        raise UsageProblem(f"{file}: rounds", "not a list", "a list of rounds")
    read = [_read_round(each, _where(file, each, index)) for index, each in enumerate(rounds)]
    twice = [name for name, n in Counter(each.script.id for each in read).items() if n > 1]
    if twice:
        where = f"{file}: round {printable(twice[0])}: id"
        raise UsageProblem(where, "is given twice", "one round an id")
    return read


def _where(file: str, raw: object, index: int) -> str:
    """Returns file and round for messages; a round without an id by its number, from 1."""
    name = raw.get("id") if isinstance(raw, dict) else None
    return f"{file}: round {printable(name) if isinstance(name, str) else f'#{index + 1}'}"


def _read_json(path: Path, file: str) -> object:
    try:
        with path.open("rb") as stream:
            text = stream.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        raise UsageProblem(file, "no such file") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageProblem(file, f"cannot be read: {why}", "a file") from None
    if len(text) > _MAX_BYTES:
        raise UsageProblem(file, "too large for a script file", "64 MiB at most")
    try:
        raw: object = msgspec.json.decode(text)
        twice = _twice(json.loads(text, object_pairs_hook=_Pairs), ())
    except UnicodeDecodeError:
        raise UsageProblem(file, "not UTF-8", "JSON in UTF-8") from None
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise UsageProblem(file, f"not JSON: {error}", "JSON in UTF-8") from None
    if twice:
        raise UsageProblem(_at_path(file, raw, twice), "is given twice", "once")
    return raw


class _Pairs(list[tuple[str, object]]):
    """A JSON object with all its pairs, duplicates included."""


def _twice(value: object, path: tuple[str | int, ...]) -> tuple[str | int, ...]:
    """Returns the path of the first duplicate field, or ()."""
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for key, _ in value:
            if key in seen:
                return (*path, key)
            seen.add(key)
        below: list[tuple[str | int, object]] = list(value)
    else:
        below = list(enumerate(value)) if isinstance(value, list) else []
    for step, each in below:
        found = _twice(each, (*path, step))
        if found:
            return found
    return ()


def _at_path(file: str, raw: object, path: tuple[str | int, ...]) -> str:
    where = file
    rounds = raw.get("rounds") if isinstance(raw, dict) else None
    if len(path) > 2 and path[0] == "rounds" and isinstance(rounds, list):
        index = int(path[1])
        where, path = _where(file, rounds[index], index), path[2:]
    steps = [f"[{step}]" if isinstance(step, int) else f".{printable(step)}" for step in path]
    return f"{where}: {''.join(steps).removeprefix('.')}"


def _read_round(raw: object, where: str) -> ScriptRound:
    try:
        script = msgspec.convert(raw, Script)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _unfit(str(error), raw, where) from None
    _check_seats(script, where)
    _check_actions(script, where)
    cards = tuple(
        parse_card(text, f"{where}: shoe[{index}]") for index, text in enumerate(script.shoe)
    )
    _check_expected_cards(script, where)
    return ScriptRound(script, cards, where)


def _unfit(message: str, raw: object, where: str) -> UsageProblem:
    """Returns the decoder's error as UsageProblem."""
    what, _, at = message.partition(" - at ")
    path = _named(at.strip("`").removeprefix("$").removeprefix("."), raw)
    kind = _INDEX.sub("", path)
    field = _FIELD.fullmatch(what)
    types = _TYPES.fullmatch(what)
    if field:
        known = ", ".join(_SHAPES[kind].__struct_fields__) if kind in _SHAPES else None
        path = f"{path}.{printable(field[2])}".removeprefix(".")
        if field[1] == "missing required":
            return UsageProblem(f"{where}: {path}", "missing")
        return UsageProblem(f"{where}: {path}", "unknown field", known)
    at_field = f"{where}: {path}" if path else where
    if types:
        wanted = " or ".join(_KINDS.get(name, name) for name in types[1].split(" | "))
        return UsageProblem(at_field, f"{_KINDS.get(types[2], types[2])} is not valid here", wanted)
    if kind in _WORDS:
        return UsageProblem(at_field, printable(what), ", ".join(_WORDS[kind]))
    return UsageProblem(at_field, printable(what))


def _named(path: str, raw: object) -> str:
    """Returns `seats[0].bets[...]` with the name of the bet that is no whole number."""
    at: Any = raw
    head, unnamed, _ = path.partition("[...]")
    if not unnamed:
        return path
    for name, index in _STEP.findall(head):
        at = at[name] if name else at[int(index)]
    wrong = next(key for key, value in at.items() if type(value) is not int)
    return f"{head}.{printable(wrong)}"


def _check_seats(script: Script, where: str) -> None:
    if not script.seats:
        raise UsageProblem(f"{where}: seats", "no seat plays", "one seat or more")
    numbers = set()
    for index, seat in enumerate(script.seats):
        at = f"{where}: seats[{index}]"
        if not 1 <= seat.seat <= 7:
            raise UsageProblem(f"{at}.seat", f"there is no seat {seat.seat}", "1 to 7")
        if seat.seat in numbers:
            raise UsageProblem(f"{at}.seat", f"seat {seat.seat} is given twice", "once each")
        numbers.add(seat.seat)
        for bet in seat.bets:
            if bet not in BETS:
                raise UsageProblem(f"{at}.bets.{printable(bet)}", "unknown field", ", ".join(BETS))


def _check_actions(script: Script, where: str) -> None:
    for index, action in enumerate(script.actions):
        at = f"{where}: actions[{index}]"
        allowed = _IN_PHASE[action.phase]
        if action.do not in allowed:
            raise UsageProblem(
                f"{at}.do", f"{action.do} is not done in {action.phase}", ", ".join(allowed)
            )
        if action.phase == "play" and action.hand is None:
            raise UsageProblem(f"{at}.hand", "missing", "the hand's index at its seat, from 0")
        if action.phase == "insurance" and action.hand is not None:
            raise UsageProblem(f"{at}.hand", "insurance is a seat's, not a hand's", "no hand")
        if action.do == "insure" and action.amount is None:
            raise UsageProblem(f"{at}.amount", "missing", "the insurance's amount")


def _check_expected_cards(script: Script, where: str) -> None:
    expect = script.expect
    if expect.dealer_cards is not msgspec.UNSET:
        for index, card in enumerate(expect.dealer_cards):
            parse_card(card, f"{where}: expect.dealer_cards[{index}]")
    if expect.hands is not msgspec.UNSET:
        for number, hand in enumerate(expect.hands):
            for index, card in enumerate(hand.cards or ()):
                parse_card(card, f"{where}: expect.hands[{number}].cards[{index}]")


def check_copies(cards: tuple[Card, ...], decks: int, where: str) -> None:
    """Raises UsageProblem if the shoe has more copies of a card than the decks."""
    for card, copies in Counter(cards).items():
        if copies > decks:
            raise UsageProblem(
                f"{where}: shoe",
                f"{NAMES[card]} is in it {copies} times",
                f"{decks} times at most: the game has {decks} "
                + ("deck" if decks == 1 else "decks"),
            )
