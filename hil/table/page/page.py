"""The content of the bench page: what a person at the table can see.

Only the fields named here are read from the devices. No card in the shoe, over the reader, at the
gate or face down on the felt is included.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from controller.api.contract.view import PromptShown, View
from controller.procedure.model.effects import Tell
from controller.procedure.model.state import State
from controller.procedure.prompts import MoneyFormat, total_words
from controller.rules.cards import NAMES, SUIT, Card
from firmware_protocol.device import Answer, ButtonName
from hil.table.robots import ASKING, SeatClaims, card_of
from hil.table.robots import BUTTONS as SAID_BY
from hil.table.setup import DEALER

BUTTONS: Final[tuple[ButtonName, ...]] = (
    "hit",
    "stand",
    "double",
    "split",
    "surrender",
    "yes",
    "no",
    "bet",
    "call",
)
FROM_FELT: Final = frozenset({Tell.ENTER_CARD, Tell.CONFIRM_CARD})
"""Prompts at which the card that came out last lies face up before the dealer."""
_SUITS: Final = "♣♦♥♠"
_SUIT_NAMES: Final = ("clubs", "diamonds", "hearts", "spades")
_RANKS: Final = {"A": "ace", "T": "ten", "J": "jack", "Q": "queen", "K": "king"}


class CardFace(Struct, frozen=True):
    """A card that lies face up."""

    text: str
    words: str
    suit: str


class ShownLamps(Struct, frozen=True):
    """Of a seat."""

    rgb: str
    pattern: str
    period_ms: int
    broken: tuple[bool, ...]
    words: str


class ShownHand(Struct, frozen=True):
    """On the felt, face up."""

    cards: tuple[CardFace, ...]
    total: str
    amount: str


class ShownSeat(Struct, frozen=True):
    """A place at the table."""

    number: int
    yours: bool
    """A person has taken the seat."""
    who: str
    """Who plays there, in one word."""
    asked: bool
    serial: str
    powered: bool
    lamps: ShownLamps | None
    armed: frozenset[str]
    """Names of the buttons that are lit."""
    down: frozenset[str]
    stuck: frozenset[str]
    wager: str
    hands: tuple[ShownHand, ...]
    signal: str
    """The choice that the robot player signals to the dealer."""
    choices: tuple[str, ...]
    """Spoken choices for the robot dealer, for which no button is lit."""
    may_sit_out: bool


class DeviceLook(Struct, frozen=True):
    """A device of the table, as seen from outside."""

    serial: str
    profile: str
    link: str
    """The controller's state of its connection."""
    powered: bool
    frozen: bool
    plugged: bool
    noisy: bool
    broken: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]


class BenchPicture(Struct, frozen=True):
    """The whole content."""

    title: str
    round: int
    prompt: PromptShown | None
    dealer: str
    robot_deals: bool
    trouble: str
    dealer_cards: tuple[CardFace, ...]
    hole: bool
    """A card lies face down before the dealer."""
    felt_card: CardFace | None
    """The card that the prompt asks to be read from the felt."""
    next_pull: str
    devices: tuple[DeviceLook, ...]
    seats: tuple[ShownSeat, ...]


def bench_picture(
    view: View,
    state: State,
    claims: SeatClaims,
    answers: Mapping[str, tuple[str, tuple[int, ...], Answer]],
    *,
    robot_deals: bool,
    next_pull: str,
) -> BenchPicture:
    """`answers`: each device's class, seats and answer to `describe`, by serial."""
    money = MoneyFormat(view.currency.symbol, view.currency.minor_digits)
    stations = {seat: (serial, one[2]) for serial, one in answers.items() for seat in one[1]}
    dealer = "nobody" if view.dealer is None else view.dealer.name
    if robot_deals:
        dealer = f"{DEALER.name}, the robot,"
    links = {one.serial: one.state for one in view.devices}
    return BenchPicture(
        title=view.title,
        round=view.state.round,
        prompt=view.prompt,
        dealer=dealer,
        robot_deals=robot_deals,
        trouble=view.stopped or claims.trouble,
        dealer_cards=tuple(map(face, state.dealer)),
        hole=bool(state.hole),
        felt_card=_felt_card(view, answers),
        next_pull=next_pull,
        devices=tuple(
            _device(serial, profile, seats, links.get(serial, ""), answer)
            for serial, (profile, seats, answer) in answers.items()
        ),
        seats=tuple(
            _seat(seat, At(view, state, claims, money, robot_deals), *stations[seat])
            for seat in sorted(stations)
        ),
    )


def face(card: Card) -> CardFace:
    name, suit = NAMES[card], SUIT[card]
    rank = "10" if name[0] == "T" else name[0]
    words = f"{_RANKS.get(name[0], name[0])} of {_SUIT_NAMES[suit]}"
    return CardFace(rank + _SUITS[suit], words, _SUIT_NAMES[suit])


def _felt_card(
    view: View, answers: Mapping[str, tuple[str, tuple[int, ...], Answer]]
) -> CardFace | None:
    """Returns None if it is not certain which card is meant."""
    if view.prompt is None or view.prompt.tell not in FROM_FELT or view.state.spare is not None:
        return None
    for profile, _, answer in answers.values():
        inside = answer.get("mechanism") or {}
        if profile == "shoe" and inside and not inside["held"] and not inside["over_reader"]:
            last = inside["out"][-1:]
            return face(card_of(last[0])) if last and last[0] != "cut" else None
    return None


# --- devices ------------------------------------------------------------------------------------


def _device(
    serial: str, profile: str, seats: tuple[int, ...], link: str, answer: Answer
) -> DeviceLook:
    inside = answer.get("mechanism") or {}
    line = answer["line"]
    noisy = any(line[name] for name in ("flip", "drop", "double", "splice", "cut", "delay_ms"))
    return DeviceLook(
        serial=serial,
        profile=profile,
        link=link,
        powered=answer["powered"],
        frozen=answer["frozen"],
        plugged=answer["plugged"],
        noisy=noisy,
        broken=tuple(sorted((*answer.get("defects", ()), *answer.get("breaks", ())))),
        facts=_FACTS[profile](inside, seats) if inside else (),
    )


def _shoe(inside: Mapping[str, Any], seats: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    over = len(inside["over_reader"])
    reader = "nothing" if not over else "a card" if over == 1 else "two cards"
    at_gate = len(inside["held"])
    return (
        ("cards left", str(inside["left"])),
        ("cards out", str(len(inside["out"]))),
        ("over the reader", reader),
        ("at the gate", str(at_gate) if at_gate else "nothing"),
        ("lock", inside["lock"]),
        ("cover", inside["cover"]),
        ("jam", "none" if inside["jam"] == "cleared" else _plain(inside["jam"])),
    )


def _shuffler(inside: Mapping[str, Any], seats: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    runs = f"{inside['percent']} %" if inside["running"] else "stands"
    return (
        ("motor", runs),
        ("cards inside", str(inside["count"])),
        ("left behind", str(len(inside["left_inside"])) if inside["left_inside"] else "none"),
        ("door", inside["door"]),
        ("jam", "none" if inside["jam"] == "cleared" else _plain(inside["jam"])),
    )


def _station(inside: Mapping[str, Any], seats: tuple[int, ...]) -> tuple[tuple[str, str], ...]:
    word = "seat" if len(seats) == 1 else "seats"
    return (
        (word, ", ".join(map(str, seats))),
        ("presses", str(inside["presses"])),
        ("buzzer", "quiet" if inside["buzz"] == "off" else _plain(inside["buzz"])),
    )


_FACTS: Final = {"shoe": _shoe, "shuffler": _shuffler, "station": _station}


def _plain(name: str) -> str:
    return name.replace("_", " ")


# --- seats --------------------------------------------------------------------------------------


class At(Struct, frozen=True):
    """The table that seats are at."""

    view: View
    state: State
    claims: SeatClaims
    money: MoneyFormat
    robot_deals: bool


def _seat(number: int, at: At, serial: str, answer: Answer) -> ShownSeat:
    inside = answer.get("mechanism") or {}
    found: Mapping[str, Any] = inside["seats"][str(number)] if inside else {}
    prompt, claims, money = at.view.prompt, at.claims, at.money
    yours = number in claims.seats
    asked = prompt is not None and prompt.tell in ASKING and prompt.seat == number
    betting = prompt is not None and prompt.tell is Tell.TAKE_WAGERS
    placed = next((one.main for one in at.state.seats if one.number == number), 0)
    tells = yours and asked and at.robot_deals
    out = number in claims.out
    return ShownSeat(
        number=number,
        yours=yours,
        who="person" if yours else "robot" if number in claims.robots else "empty",
        asked=asked,
        serial=serial,
        powered=bool(inside),
        lamps=_lamps(found["lamps"]) if found else None,
        armed=frozenset(found.get("armed", ())),
        down=frozenset(found.get("down", ())),
        stuck=frozenset(found.get("stuck", ())),
        wager=money.amount(placed) if placed else "sits out" if out else "",
        hands=tuple(
            ShownHand(
                tuple(map(face, hand.cards)),
                total_words(hand.total, soft=hand.soft) if len(hand.cards) > 1 else "",
                money.amount(hand.wager),
            )
            for hand in at.state.hands
            if hand.seat == number and not hand.out
        ),
        signal=claims.signals.get(number, ""),
        choices=_spoken_choices(prompt, found) if tells and prompt is not None else (),
        may_sit_out=yours and betting and at.robot_deals and not placed and not out,
    )


def _spoken_choices(prompt: PromptShown, found: Mapping[str, Any]) -> tuple[str, ...]:
    """Returns the choices for which the seat has no lit button."""
    lit = found.get("armed", ())
    both = "even_money" in prompt.choices  # then the button is for even money
    return tuple(
        one for one in prompt.choices if SAID_BY.get(one) not in lit or (one == "insure" and both)
    )


def _lamps(lamps: Mapping[str, Any]) -> ShownLamps:
    dark = lamps["pattern"] == "off" or not any(lamps["rgb"])
    return ShownLamps(
        rgb="rgb({},{},{})".format(*lamps["rgb"]),
        pattern="off" if dark else lamps["pattern"],
        period_ms=0 if dark else lamps["period_ms"],
        broken=tuple(index in lamps["broken"] for index in range(len(lamps["percent"]))),
        words="dark" if dark else f"{_colour(lamps['rgb'])}, {lamps['pattern']}",
    )


_COLOURS: Final = {
    (False, False, True): "blue",
    (False, True, False): "green",
    (True, False, False): "red",
    (True, True, False): "amber",
    (True, True, True): "white",
    (False, True, True): "cyan",
    (True, False, True): "magenta",
    (False, False, False): "dark",
}


def _colour(rgb: list[int]) -> str:
    """In a word, for who cannot see it."""
    most = max(rgb)
    red, green, blue = (value * 3 > most for value in rgb)
    return _COLOURS[(red, green, blue)]
