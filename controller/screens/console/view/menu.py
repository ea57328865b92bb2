"""The menu: acts beside the prompt, for irregularities and the floor. Each is in it only while the
procedure accepts it."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from controller.api.service import ADOPT, TEST
from controller.procedure.model.game import BETS
from controller.procedure.model.state import Step
from controller.rules.cards import DECK
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import (
    ActButton,
    ActField,
    AllowedActs,
    FieldOption,
)
from controller.screens.console.view.buttons import bank_asks, card_ask, money

_DECKS: tuple[str, ...] = ("duplicate", "foreign_back", "short", "long", "factory_order")
_DISPUTES = (
    "HoleExposed",
    "HoleUnchecked",
    "PlayedOutOfTurn",
    "InsuranceDisputed",
    "MisdealCalled",
)
_REASONS = ("misdeal", "cards", "player", "device")


class MenuGroup(Struct, frozen=True):
    """Buttons under one title."""

    id: str
    title: str
    actions: tuple[ActButton, ...]


def groups(offers: AllowedActs, tongue: HouseTerms) -> tuple[MenuGroup, ...]:
    """Returns the groups that have buttons."""
    made = {
        "cards": _cards(offers, tongue),
        "play": _play(offers, tongue),
        "floor": _floor(offers, tongue),
    }
    return tuple(
        MenuGroup(name, tongue.texts(f"console.group.{name}"), actions)
        for name, actions in made.items()
        if actions
    )


def call_floor(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("FloorCalled", _does(t, "FloorCalled"), look="quiet", wish="f")


def _does(t: HouseTerms, name: str) -> str:
    return t.texts(f"console.do.{name}")


def _cards(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    card = (card_ask(t),)
    first = {"card": _free(o)}
    made = o.offer("CardMisread", _does(t, "CardMisread"))
    made += o.offer("FaceUpCardFound", _does(t, "FaceUpCardFound"), sample=first, asks=card)
    made += o.offer("ErrorCardExposed", _does(t, "ErrorCardExposed"), sample=first, asks=card)
    made += _which(o, t)
    for name in ("SeatMissed", "SeatShorted"):
        made += _of_seat(o, t, name)
    made += o.offer("UnknownCardDrawn", _does(t, "UnknownCardDrawn"))
    asks = (_choose(t, "why", "why", tuple(FieldOption(why, t.detail(why)) for why in _DECKS)),)
    made += o.offer("DeckSuspect", _does(t, "DeckSuspect"), sample={"why": _DECKS[0]}, asks=asks)
    empty = t.texts("console.sure.shoe_empty")
    return made + o.offer("ShoeRanOut", _does(t, "ShoeRanOut"), look="care", sure=empty)


def _free(o: AllowedActs) -> int:
    """Returns a card that may still be in the shoe."""
    return next((card for card in DECK if (o.state.seen >> 4 * card) & 15 < o.game.decks), 0)


def _which(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    open_to = [one for one in (1, 2) if o.takes("DealerCardMissed", {"which": one}, "dealer")]
    if not open_to:
        return ()
    options = tuple(FieldOption(one, t.detail(str(one))) for one in open_to)
    asks, sample = (_choose(t, "which", "which", options),), {"which": open_to[0]}
    return o.offer("DealerCardMissed", _does(t, "DealerCardMissed"), sample=sample, asks=asks)


def _choose(t: HouseTerms, name: str, label: str, options: tuple[FieldOption, ...]) -> ActField:
    return ActField(name, "one", t.texts(f"console.ask.{label}"), options)


def _seats_of(t: HouseTerms, seats: tuple[int, ...]) -> tuple[FieldOption, ...]:
    return tuple(FieldOption(seat, t.seat(seat)) for seat in seats)


def _playing(o: AllowedActs) -> tuple[int, ...]:
    return tuple(seat.number for seat in o.state.seats)


def _of_seat(o: AllowedActs, t: HouseTerms, name: str) -> tuple[ActButton, ...]:
    """An act for one of the seats for which it is accepted."""
    seats = o.seats(name, _playing(o))
    if not seats:
        return ()
    asks = (_choose(t, "seat", "seat", _seats_of(t, seats)),)
    return o.offer(name, _does(t, name), sample={"seat": seats[0]}, asks=asks)


def _play(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    made: tuple[ActButton, ...] = ()
    nobody = FieldOption(0, t.texts("console.ask.no_seat"))
    seats = (nobody, *_seats_of(t, _playing(o)))
    for name in _DISPUTES:
        asks = (_choose(t, "seat", "seat_or_none", seats),)
        made += o.offer(name, _does(t, name), sample={"seat": 0}, asks=asks)
    return made + _of_seat(o, t, "PlayerAbsent")


# --- the floor's ------------------------------------------------------------------------------


def _floor(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    reasons = tuple(FieldOption(t.texts(f"console.reason.{one}"), "") for one in _REASONS)
    reason = (ActField("reason", "text", t.texts("console.ask.reason"), reasons),)
    made = o.offer(
        "RoundVoided",
        _does(t, "RoundVoided"),
        who="floor",
        sample={"reason": "x"},
        look="care",
        asks=reason,
    )
    made += _correction(o, t)
    closed = _does(t, "TableClosed")
    made += o.offer("TableClosed", closed, who="floor", look="care", asks=bank_asks(t))
    return made + adoptions(o, t)


def _correction(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    s = o.state
    if s.round < 1:
        return ()
    seat = s.seats[0].number if s.seats else 1
    bets = tuple(FieldOption(bet, t.bet(bet)) for bet in (*BETS, "insurance") if _placed(o, bet))
    seats = _seats_of(t, tuple(range(1, o.game.seats + 1)))
    hands = tuple(
        FieldOption(hand, t.texts("console.ask.nth_hand", nth=hand + 1)) for hand in range(4)
    )
    asks = (
        ActField("round", "count", t.texts("console.ask.round"), value=str(s.round)),
        _choose(t, "seat", "seat", seats),
        _choose(t, "hand", "hand", hands),
        _choose(t, "bet", "bet", bets),
        money(t, "paid", "was_paid"),
        money(t, "due", "was_due"),
    )
    sample: dict[str, Any] = {"round": s.round, "seat": seat, "hand": 0, "bet": "main"}
    sample |= {"paid": 0, "due": 1}
    return o.offer(
        "PaymentCorrected",
        _does(t, "PaymentCorrected"),
        who="floor",
        sample=sample,
        look="care",
        asks=asks,
    )


def _placed(o: AllowedActs, bet: str) -> bool:
    return bet in o.game.offered or (bet == "insurance" and o.game.insures)


# --- the technician's ---------------------------------------------------------------------------


def tests(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    """While the table is closed, each device can be told to test itself."""
    if o.state.step is not Step.CLOSED:
        return ()
    return tuple(
        o.button(
            TEST,
            t.texts("console.do.SelfTest", device=t.device(device)),
            {"serial": device.serial},
            tail=device.serial.lower(),
        )
        for device in o.view.devices
    )


# --- devices whose log is held ------------------------------------------------------------------


def adoptions(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    """Devices whose log waits for adoption by two people. `skip`: without its unrecorded events."""
    made: list[ActButton] = []
    for device in o.view.devices:
        if not device.held:
            continue
        name = t.texts(f"console.device.{device.device}")
        for skip in (False, True):
            word = "adopt_skip" if skip else "adopt"
            label = t.texts(f"console.do.{word}", device=name, serial=device.serial)
            fields = {"serial": device.serial, "skip": skip}
            made.append(
                o.button(
                    ADOPT,
                    label,
                    fields,
                    tail=f"{device.serial.lower()}{'-skip' if skip else ''}",
                    look="care",
                    hint=device.held,
                    people=2,
                )
            )
    return tuple(made)
