"""The buttons that answer each prompt, and those of the menu, with the fields to enter.

A button of the menu is in it only while the procedure accepts its act.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from controller.api.contract.view import PromptShown
from controller.api.service import ADOPT, AGAIN, TEST
from controller.procedure.model.effects import Tell
from controller.procedure.model.game import BETS
from controller.procedure.model.state import Step
from controller.rules.cards import DECK
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import (
    ActButton,
    ActField,
    ActingRole,
    AllowedActs,
    ButtonLook,
    FieldOption,
)

Makes: TypeAlias = Callable[[AllowedActs, PromptShown, HouseTerms], tuple[ActButton, ...]]

_ACTS: Final = {
    "hit": "Hit",
    "stand": "Stand",
    "double": "Double",
    "split": "Split",
    "surrender": "Surrender",
    "refuse_card": "SpareRefused",
    "insure": "Insure",
    "even_money": "EvenMoney",
    "decline": "Decline",
    "take_pay": "PayTaken",
    "decline_pay": "PayDeclined",
    "confirm": "Confirmed",
    "withdraw": "Withdrawn",
}
_OF_HANDS: Final = ("hit", "stand", "double", "split", "surrender", "refuse_card")
_KEYS: Final = {
    "hit": "h",
    "stand": "s",
    "double": "d",
    "split": "p",
    "surrender": "u",
    "refuse_card": "r",
    "insure": "y",
    "even_money": "e",
    "decline": "n",
    "take_pay": "y",
    "decline_pay": "n",
    "confirm": "c",
    "withdraw": "w",
}


def answers(offers: AllowedActs, terms: HouseTerms) -> tuple[ActButton, ...]:
    """Returns the buttons for the current prompt."""
    prompt = offers.view.prompt
    return () if prompt is None else _ANSWERS[prompt.tell](offers, prompt, terms)


def _one(name: str, key: str, who: ActingRole = "dealer") -> Makes:
    """One act without fields."""

    def makes(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
        return o.offer(name, who=who, preferred_key=key)

    return makes


def _vault(name: str, key: str) -> Makes:
    """One act that the vault completes: only the prompt shows that it is due."""

    def makes(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
        return (o.button(name, preferred_key=key),)

    return makes


def capital(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}"


def money(t: HouseTerms, name: str, label: str) -> ActField:
    return ActField(name, "money", t.texts(f"console.ask.{label}"))


# --- decisions --------------------------------------------------------------------------------


def _chosen(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The choices of the seat that the dealer may enter."""
    return tuple(action for word in p.choices for action in _choice(o, p, t, word))


def _choice(o: AllowedActs, p: PromptShown, t: HouseTerms, word: str) -> tuple[ActButton, ...]:
    name = _ACTS[word]
    if not o.dealers(name):
        return ()
    fields: dict[str, Any] = {"seat": p.seat}
    if word in _OF_HANDS:
        fields["hand"] = p.hand
    if word in ("confirm", "withdraw"):
        fields = {}
    hint = ""
    if word == "insure":
        fields["amount"] = p.amount
        hint = t.amount(p.amount)
    if word in ("double", "split"):
        hint = t.texts("console.hint.beside", amount=t.amount(p.stake))
    look: ButtonLook = "quiet" if word in ("withdraw", "surrender", "refuse_card") else "choice"
    look = "main" if word == "confirm" else look
    first = o.offer(
        name, fields, label=capital(t.choice(word)), hint=hint, look=look, preferred_key=_KEYS[word]
    )
    return (*first, *_other_amount(o, p, t, word, fields))


def _other_amount(
    o: AllowedActs, p: PromptShown, t: HouseTerms, word: str, fields: dict[str, Any]
) -> tuple[ActButton, ...]:
    """A double for less, or an insurance below half the wager, if allowed."""
    unit = o.game.money.unit
    bare = {name: value for name, value in fields.items() if name != "amount"}
    whole = p.amount if word == "insure" else p.stake
    less = word == "insure" or (word == "double" and o.game.options.double.for_less)
    if not less or whole <= unit:
        return ()
    return o.offer(
        _ACTS[word],
        bare,
        label=t.texts("console.do.less", what=capital(t.choice(word))),
        sample={"amount": unit},
        tail="less",
        look="quiet",
        hint=t.texts("console.hint.below", amount=t.amount(whole)),
        inputs=(money(t, "amount", "amount"),),
        preferred_key="l",
    )


# --- payments ---------------------------------------------------------------------------------


def _pay(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    due = o.state.due[0]
    if o.game.jurisdiction.declare_payments:
        inputs = (money(t, "amount", "declared"),)
        return o.offer(
            "Paid",
            label=t.texts("console.do.Declared"),
            sample={"amount": due.moves},
            inputs=inputs,
            preferred_key="p",
        )
    alone = o.offer("Paid", label=t.texts(f"console.do.{p.tell.value}"), preferred_key="p")
    if len(o.state.due) < 2:
        return alone
    every = t.counted(len(o.state.due), "payment")
    return (
        *alone,
        *o.offer("AllPaid", look="choice", hint=every, preferred_key="a"),
    )


# --- the table and its shoe -------------------------------------------------------------------


def bank_asks(t: HouseTerms) -> tuple[ActField, ...]:
    return money(t, "bank", "bank"), money(t, "counted_again", "counted_again")


def _open(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("TableOpened", who="floor", inputs=bank_asks(t), preferred_key="o")


def _shuffled(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The shuffler reports its end. Without one, or if two people have bypassed it, the dealer
    does."""
    if not _has(o, "shuffler"):
        return _by_hand(o, t)
    hint = t.texts("console.hint.look_first")
    again = o.button(AGAIN, look="quiet", hint=hint, people=1, preferred_key="s")
    return (*_by_hand(o, t), again)


def _by_hand(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    if not o.view.by_hand:
        return ()
    return o.offer("ShuffleDone", preferred_key="s")


def _load(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The shoe reports its cards; without a shoe the dealer does."""
    fields = {"count": p.count}
    if _has(o, "shoe"):
        return ()
    hint = t.counted(p.count, "card")
    return o.offer("ShoeLoaded", fields, hint=hint, preferred_key="l")


def _refill(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """During a round there are too few cards for a shuffler: the dealer shuffles."""
    started = o.offer("ShuffleStarted", look="choice", preferred_key="s")
    return (*started, *_by_hand(o, t), *_load(o, p, t))


def _has(o: AllowedActs, device: str) -> bool:
    return any(one.device == device for one in o.view.devices)


def _wagers(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    lay = (o.button("LaySpare", preferred_key="l"),) if p.place == "spare" else ()
    shuffle = o.offer("ShuffleCalled", look="quiet", preferred_key="b")
    return (*(lay if o.state.seats else ()), *shuffle)


def _by_shoe(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The shoe reports the card, so there is no button that a finger could hit by mistake. The menu
    has the acts for a missing card."""
    return ()


# --- when things go wrong ---------------------------------------------------------------------


def _rule(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    made: tuple[ActButton, ...] = ()
    for way in p.choices:
        label, tail = capital(t.way(way)), way.replace("_", "-")
        look: ButtonLook = "care" if way in ("void", "decks_out") else "choice"
        made += o.offer("FloorRuled", {"way": way}, label=label, who="floor", tail=tail, look=look)
    return made


def card_ask(t: HouseTerms) -> ActField:
    return ActField("card", "card", t.texts("console.ask.card"))


def _enter(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    card = next((one for one in DECK if o.takes("CardEntered", {"card": one}, "dealer")), 0)
    inputs, sample = (card_ask(t),), {"card": card}
    entered = o.offer("CardEntered", sample=sample, inputs=inputs, preferred_key="e")
    return (*entered, *o.offer("UnknownCardDrawn", look="quiet", preferred_key="j"))


def _confirm_card(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    yes = o.offer("CardConfirmed", who="floor", preferred_key="c")
    return (*yes, *o.offer("CardRejected", who="floor", look="quiet", preferred_key="r"))


def _device(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    hint = t.texts("console.hint.accept")
    return o.offer("CountersAccepted", who="floor", look="quiet", hint=hint, preferred_key="a")


_ANSWERS: Final[dict[Tell, Makes]] = {
    Tell.OPEN_TABLE: _open,
    Tell.SHUFFLE: _one("ShuffleStarted", "s"),
    Tell.AWAIT_SHUFFLE: _shuffled,
    Tell.CHANGE_DECKS: _one("DecksChanged", "d", "floor"),
    Tell.LOAD_SHOE: _load,
    Tell.BURN: _by_shoe,
    Tell.TAKE_WAGERS: _wagers,
    Tell.DEAL: _by_shoe,
    Tell.LAY_SPARE: _vault("LaySpare", "l"),
    Tell.ASK_NATURAL: _chosen,
    Tell.ASK_INSURANCE: _chosen,
    Tell.CONFIRM_INSURANCE: _chosen,
    Tell.CLOSE_INSURANCE: _one("InsuranceClosed", "c"),
    Tell.CHECK_HOLE: _vault("CheckHole", "c"),
    Tell.DECIDE: _chosen,
    Tell.CONFIRM_DOUBLE: _chosen,
    Tell.CONFIRM_SPLIT: _chosen,
    Tell.REVEAL: _vault("RevealHole", "t"),
    Tell.PAY: _pay,
    Tell.COLLECT: _pay,
    Tell.GIVE_BACK: _pay,
    Tell.FLOOR_FIRST: _one("PaymentApproved", "a", "floor"),
    Tell.CLEAR: _one("Cleared", "c"),
    Tell.RULE: _rule,
    Tell.ENTER_CARD: _enter,
    Tell.CONFIRM_CARD: _confirm_card,
    Tell.AWAIT_DEVICE: _device,
    Tell.CONFIRM_FELT: _one("FeltConfirmed", "c"),
    Tell.REFILL: _refill,
}


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


def groups(offers: AllowedActs, terms: HouseTerms) -> tuple[MenuGroup, ...]:
    """Returns the groups that have buttons."""
    made = {
        "cards": _cards(offers, terms),
        "play": _play(offers, terms),
        "floor": _floor(offers, terms),
    }
    return tuple(
        MenuGroup(name, terms.texts(f"console.group.{name}"), actions)
        for name, actions in made.items()
        if actions
    )


def call_floor(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("FloorCalled", look="quiet", preferred_key="f")


def _cards(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    card = (card_ask(t),)
    first = {"card": _free(o)}
    made = o.offer("CardMisread")
    made += o.offer("FaceUpCardFound", sample=first, inputs=card)
    made += o.offer("ErrorCardExposed", sample=first, inputs=card)
    made += _which(o, t)
    for name in ("SeatMissed", "SeatShorted"):
        made += _of_seat(o, t, name)
    made += o.offer("UnknownCardDrawn")
    inputs = (_choose(t, "why", "why", tuple(FieldOption(why, t.detail(why)) for why in _DECKS)),)
    made += o.offer("DeckSuspect", sample={"why": _DECKS[0]}, inputs=inputs)
    empty = t.texts("console.sure.shoe_empty")
    return made + o.offer("ShoeRanOut", look="care", confirmation=empty)


def _free(o: AllowedActs) -> int:
    """Returns a card that may still be in the shoe."""
    return next((card for card in DECK if (o.state.seen >> 4 * card) & 15 < o.game.decks), 0)


def _which(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    open_to = [one for one in (1, 2) if o.takes("DealerCardMissed", {"which": one}, "dealer")]
    if not open_to:
        return ()
    options = tuple(FieldOption(one, t.detail(str(one))) for one in open_to)
    inputs, sample = (_choose(t, "which", "which", options),), {"which": open_to[0]}
    return o.offer("DealerCardMissed", sample=sample, inputs=inputs)


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
    inputs = (_choose(t, "seat", "seat", _seats_of(t, seats)),)
    return o.offer(name, sample={"seat": seats[0]}, inputs=inputs)


def _play(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    made: tuple[ActButton, ...] = ()
    seats = (FieldOption(0, t.texts("console.ask.no_seat")), *_seats_of(t, _playing(o)))
    for name in _DISPUTES:
        inputs = (_choose(t, "seat", "seat_or_none", seats),)
        made += o.offer(name, sample={"seat": 0}, inputs=inputs)
    return made + _of_seat(o, t, "PlayerAbsent")


# --- the floor's ------------------------------------------------------------------------------


def _floor(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    reasons = tuple(FieldOption(t.texts(f"console.reason.{one}"), "") for one in _REASONS)
    reason = (ActField("reason", "text", t.texts("console.ask.reason"), reasons),)
    made = o.offer(
        "RoundVoided",
        who="floor",
        sample={"reason": "x"},
        look="care",
        inputs=reason,
    )
    made += _correction(o, t)
    made += o.offer("TableClosed", who="floor", look="care", inputs=bank_asks(t))
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
    inputs = (
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
        who="floor",
        sample=sample,
        look="care",
        inputs=inputs,
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
            {"serial": device.serial},
            label=t.texts("console.do.SelfTest", device=t.device(device)),
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
                    fields,
                    label=label,
                    tail=f"{device.serial.lower()}{'-skip' if skip else ''}",
                    look="care",
                    hint=device.held,
                    people=2,
                )
            )
    return tuple(made)
