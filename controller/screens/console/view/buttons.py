"""The buttons that answer each prompt, with the fields to enter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from controller.api.contract.view import PromptShown
from controller.api.service import AGAIN
from controller.procedure.model.effects import Tell
from controller.rules.cards import DECK
from controller.screens.console.text import HouseTerms
from controller.screens.console.view.allowed_acts import (
    ActButton,
    ActField,
    AllowedActs,
    ButtonLook,
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


def answers(offers: AllowedActs, tongue: HouseTerms) -> tuple[ActButton, ...]:
    """Returns the buttons for the current prompt."""
    prompt = offers.view.prompt
    return () if prompt is None else _ANSWERS[prompt.tell](offers, prompt, tongue)


def _one(name: str, key: str) -> Makes:
    """One act of the dealer without fields."""

    def makes(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
        return o.offer(name, _does(t, name), wish=key)

    return makes


def _vault(name: str, key: str) -> Makes:
    """One act that the vault completes: only the prompt shows that it is due."""

    def makes(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
        return (o.button(name, _does(t, name), wish=key),)

    return makes


def _does(t: HouseTerms, name: str) -> str:
    return t.texts(f"console.do.{name}")


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
    first = o.offer(name, capital(t.choice(word)), fields, hint=hint, look=look, wish=_KEYS[word])
    return (*first, *_other_amount(o, p, t, word, fields))


def _other_amount(
    o: AllowedActs, p: PromptShown, t: HouseTerms, word: str, fields: dict[str, Any]
) -> tuple[ActButton, ...]:
    """A double for less, or an insurance below half the wager, if allowed."""
    unit = o.game.money.unit
    bare = {name: value for name, value in fields.items() if name != "amount"}
    label = t.texts("console.do.less", what=capital(t.choice(word)))
    whole = p.amount if word == "insure" else p.stake
    less = word == "insure" or (word == "double" and o.game.options.double.for_less)
    if not less or whole <= unit:
        return ()
    return o.offer(
        _ACTS[word],
        label,
        bare,
        sample={"amount": unit},
        tail="less",
        look="quiet",
        hint=t.texts("console.hint.below", amount=t.amount(whole)),
        asks=(money(t, "amount", "amount"),),
        wish="l",
    )


# --- payments ---------------------------------------------------------------------------------


def _pay(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    due = o.state.due[0]
    if o.game.jurisdiction.declare_payments:
        asks = (money(t, "amount", "declared"),)
        return o.offer(
            "Paid", _does(t, "Declared"), sample={"amount": due.moves}, asks=asks, wish="p"
        )
    alone = o.offer("Paid", t.texts(f"console.do.{p.tell.value}"), wish="p")
    if len(o.state.due) < 2:
        return alone
    every = t.counted(len(o.state.due), "payment")
    return (*alone, *o.offer("AllPaid", _does(t, "AllPaid"), look="choice", hint=every, wish="a"))


def _approve(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("PaymentApproved", _does(t, "PaymentApproved"), who="floor", wish="a")


# --- the table and its shoe -------------------------------------------------------------------


def bank_asks(t: HouseTerms) -> tuple[ActField, ...]:
    return money(t, "bank", "bank"), money(t, "counted_again", "counted_again")


def _open(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("TableOpened", _does(t, "TableOpened"), who="floor", asks=bank_asks(t), wish="o")


def _decks(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    return o.offer("DecksChanged", _does(t, "DecksChanged"), who="floor", wish="d")


def _shuffled(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The shuffler reports its end. Without one, or if two people have bypassed it, the dealer
    does."""
    if not _has(o, "shuffler"):
        return _by_hand(o, t)
    label, hint = _does(t, AGAIN), t.texts("console.hint.look_first")
    again = o.button(AGAIN, label, look="quiet", hint=hint, people=1, wish="s")
    return (*_by_hand(o, t), again)


def _by_hand(o: AllowedActs, t: HouseTerms) -> tuple[ActButton, ...]:
    if not o.view.by_hand:
        return ()
    return o.offer("ShuffleDone", _does(t, "ShuffleDone"), wish="s")


def _load(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """The shoe reports its cards; without a shoe the dealer does."""
    fields = {"count": p.count}
    if _has(o, "shoe"):
        return ()
    hint = t.counted(p.count, "card")
    return o.offer("ShoeLoaded", _does(t, "ShoeLoaded"), fields, hint=hint, wish="l")


def _refill(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    """During a round there are too few cards for a shuffler: the dealer shuffles."""
    started = o.offer("ShuffleStarted", _does(t, "ShuffleStarted"), look="choice", wish="s")
    return (*started, *_by_hand(o, t), *_load(o, p, t))


def _has(o: AllowedActs, device: str) -> bool:
    return any(one.device == device for one in o.view.devices)


def _wagers(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    lay = (o.button("LaySpare", _does(t, "LaySpare"), wish="l"),) if p.place == "spare" else ()
    shuffle = o.offer("ShuffleCalled", _does(t, "ShuffleCalled"), look="quiet", wish="b")
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
        made += o.offer("FloorRuled", label, {"way": way}, who="floor", tail=tail, look=look)
    return made


def card_ask(t: HouseTerms) -> ActField:
    return ActField("card", "card", t.texts("console.ask.card"))


def _enter(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    card = next((one for one in DECK if o.takes("CardEntered", {"card": one}, "dealer")), 0)
    asks, sample = (card_ask(t),), {"card": card}
    entered = o.offer("CardEntered", _does(t, "CardEntered"), sample=sample, asks=asks, wish="e")
    unknown = _does(t, "UnknownCardDrawn")
    return (*entered, *o.offer("UnknownCardDrawn", unknown, look="quiet", wish="j"))


def _confirm_card(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    yes = o.offer("CardConfirmed", _does(t, "CardConfirmed"), who="floor", wish="c")
    rejected = _does(t, "CardRejected")
    return (*yes, *o.offer("CardRejected", rejected, who="floor", look="quiet", wish="r"))


def _device(o: AllowedActs, p: PromptShown, t: HouseTerms) -> tuple[ActButton, ...]:
    label, hint = _does(t, "CountersAccepted"), t.texts("console.hint.accept")
    return o.offer("CountersAccepted", label, who="floor", look="quiet", hint=hint, wish="a")


_ANSWERS: Final[dict[Tell, Makes]] = {
    Tell.OPEN_TABLE: _open,
    Tell.SHUFFLE: _one("ShuffleStarted", "s"),
    Tell.AWAIT_SHUFFLE: _shuffled,
    Tell.CHANGE_DECKS: _decks,
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
    Tell.FLOOR_FIRST: _approve,
    Tell.CLEAR: _one("Cleared", "c"),
    Tell.RULE: _rule,
    Tell.ENTER_CARD: _enter,
    Tell.CONFIRM_CARD: _confirm_card,
    Tell.AWAIT_DEVICE: _device,
    Tell.CONFIRM_FELT: _one("FeltConfirmed", "c"),
    Tell.REFILL: _refill,
}
