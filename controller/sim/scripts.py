"""Script files: the form of a scripted round, read strictly."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from controller.procedure.game import BETS
from controller.rules.cards import NAMES, Card, parse_card
from controller.rules.problem import UsageProblem

SCHEMA: Final = 1
GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
_MOST_BYTES: Final = 64 * 1024 * 1024

Do = Literal["insure", "decline", "even_money", "hit", "stand", "double", "split", "surrender"]
_IN_PHASE: Final[dict[str, tuple[str, ...]]] = {
    "insurance": ("insure", "decline", "even_money"),
    "play": ("hit", "stand", "double", "split", "surrender"),
}


class ScriptSeat(Struct, frozen=True, forbid_unknown_fields=True):
    seat: int
    bets: dict[str, int]


class Action(Struct, frozen=True, forbid_unknown_fields=True):
    phase: Literal["insurance", "play"]
    seat: int
    do: Do
    hand: int | None = None
    amount: int | None = None
    expect: Literal["rejected"] | None = None
    implicit: bool = False

    @property
    def rejected(self) -> bool:
        return self.expect == "rejected"


class HandExpected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    hand: int | msgspec.UnsetType = msgspec.UNSET
    cards: list[str] | msgspec.UnsetType = msgspec.UNSET
    wager: int | msgspec.UnsetType = msgspec.UNSET
    outcome: str | msgspec.UnsetType = msgspec.UNSET
    odds: str | msgspec.UnsetType | None = msgspec.UNSET
    returned: int | msgspec.UnsetType = msgspec.UNSET
    net: int | msgspec.UnsetType = msgspec.UNSET
    when: str | msgspec.UnsetType = msgspec.UNSET


class SideBetExpected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    bet: str | msgspec.UnsetType = msgspec.UNSET
    stake: int | msgspec.UnsetType = msgspec.UNSET
    outcome: str | msgspec.UnsetType = msgspec.UNSET
    odds: str | msgspec.UnsetType | None = msgspec.UNSET
    returned: int | msgspec.UnsetType = msgspec.UNSET
    net: int | msgspec.UnsetType = msgspec.UNSET


class RejectedExpected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    seat: int | msgspec.UnsetType = msgspec.UNSET
    bet: str | msgspec.UnsetType = msgspec.UNSET
    amount: int | msgspec.UnsetType = msgspec.UNSET
    why: str | msgspec.UnsetType = msgspec.UNSET


class Expected(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is named here is compared, at every depth; what is left out is not."""

    dealer_cards: list[str] | msgspec.UnsetType = msgspec.UNSET
    hands: list[HandExpected] | msgspec.UnsetType = msgspec.UNSET
    side_bets: list[SideBetExpected] | msgspec.UnsetType = msgspec.UNSET
    seat_net: dict[str, int] | msgspec.UnsetType = msgspec.UNSET
    rejected_bets: list[RejectedExpected] | msgspec.UnsetType = msgspec.UNSET
    rejected_actions: list[int] | msgspec.UnsetType = msgspec.UNSET


class Script(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    game: Literal["maxtime", "sf21x", "classic", "mega"]
    seats: list[ScriptSeat]
    shoe: list[str]
    title: str = ""
    config: dict[str, Any] = {}
    first_round_of_shuffle: bool = True
    actions: list[Action] = []
    expect: Expected = Expected()
    decided_by: str = ""


class ScriptRound(Struct, frozen=True):
    """A script that was found usable, with its cards read."""

    script: Script
    cards: tuple[Card, ...]
    where: str


def read_scripts(path: Path) -> list[ScriptRound]:
    """The rounds of a script file; UsageProblem says what is wrong, and where."""
    file = str(path)
    raw = _read_json(path, file)
    if not isinstance(raw, dict):
        raise UsageProblem(file, "not a script file", '{"schema": 1, "rounds": [...]}')
    for key in raw:
        if key not in ("schema", "rounds"):
            raise UsageProblem(f"{file}: {key}", "unknown field", "schema, rounds")
    if raw.get("schema") != SCHEMA or isinstance(raw.get("schema"), bool):
        raise UsageProblem(f"{file}: schema", f"{raw.get('schema')!r} is not known", "1")
    rounds = raw.get("rounds")
    if not isinstance(rounds, list):
        raise UsageProblem(f"{file}: rounds", "not a list", "a list of rounds")
    read = [_read_round(each, file, number) for number, each in enumerate(rounds)]
    twice = [name for name, n in Counter(each.script.id for each in read).items() if n > 1]
    if twice:
        raise UsageProblem(f"{file}: round {twice[0]}: id", "stands twice", "one round an id")
    return read


def _read_json(path: Path, file: str) -> object:
    try:
        if path.is_file() and path.stat().st_size > _MOST_BYTES:
            raise UsageProblem(file, "too large for a script file", "64 MiB at most")
        text = path.read_bytes()
    except FileNotFoundError:
        raise UsageProblem(file, "no such file") from None
    except OSError as error:
        raise UsageProblem(file, f"cannot be read: {error.strerror}") from None
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageProblem(file, f"not JSON: {error}") from None


def _read_round(raw: object, file: str, number: int) -> ScriptRound:
    name = raw.get("id") if isinstance(raw, dict) else None
    where = f"{file}: round {name if isinstance(name, str) else f'#{number + 1}'}"
    try:
        script = msgspec.convert(raw, Script)
    except (msgspec.ValidationError, RecursionError) as error:
        what, _, at = str(error).partition(" - at ")
        field = at.strip("`").removeprefix("$.") or "round"
        raise UsageProblem(f"{where}: {field}", what) from None
    _check_seats(script, where)
    _check_actions(script, where)
    cards = tuple(
        parse_card(text, f"{where}: shoe[{index}]") for index, text in enumerate(script.shoe)
    )
    _check_expected_cards(script, where)
    return ScriptRound(script, cards, where)


def _check_seats(script: Script, where: str) -> None:
    if not script.seats:
        raise UsageProblem(f"{where}: seats", "nobody plays", "one seat or more")
    numbers = set()
    for index, seat in enumerate(script.seats):
        at = f"{where}: seats[{index}]"
        if not 1 <= seat.seat <= 7:
            raise UsageProblem(f"{at}.seat", f"there is no seat {seat.seat}", "1 to 7")
        if seat.seat in numbers:
            raise UsageProblem(f"{at}.seat", f"seat {seat.seat} stands twice", "once each")
        numbers.add(seat.seat)
        for bet in seat.bets:
            if bet not in BETS:
                raise UsageProblem(f"{at}.bets.{bet}", "unknown bet", ", ".join(BETS))


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
    """No card stands in the script's shoe more often than the decks hold it."""
    for card, copies in Counter(cards).items():
        if copies > decks:
            raise UsageProblem(
                f"{where}: shoe",
                f"{NAMES[card]} stands there {copies} times",
                f"{decks} times at most: the game has {decks} "
                + ("deck" if decks == 1 else "decks"),
            )
