"""The clauses of the sheets that a prompt cites: by its kind, its bet and its reason."""

from __future__ import annotations

from typing import Final

from controller.procedure.model.effects import Tell

TELL_RULES: Final[dict[Tell, tuple[str, ...]]] = {
    Tell.TAKE_WAGERS: ("maxtime.7a", "sf21x.1", "classic.wagers1", "mega.wager1", "mega.wager2"),
    Tell.DEAL: ("maxtime.intro2", "sf21x.3", "classic.deal2", "classic.deal3", "mega.deal1"),
    Tell.ASK_INSURANCE: (
        "maxtime.1c",
        "maxtime.1d",
        "classic.insurance1",
        "classic.insurance2",
        "mega.10",
        "mega.deal3",
    ),
    Tell.CONFIRM_INSURANCE: ("maxtime.1d", "classic.insurance2", "classic.locked2"),
    Tell.CHECK_HOLE: ("maxtime.4d", "sf21x.5", "mega.8"),
    Tell.DECIDE: ("maxtime.intro3", "classic.play1", "classic.rule7"),
    Tell.CONFIRM_DOUBLE: ("maxtime.3a", "sf21x.8", "sf21x.9b", "classic.locked2", "mega.4"),
    Tell.CONFIRM_SPLIT: ("maxtime.2", "sf21x.7", "classic.rule4", "classic.locked2", "mega.2"),
    Tell.REVEAL: ("classic.deal4", "classic.dealer1"),
    Tell.RULE: ("classic.rule8",),
    Tell.CLEAR: ("sf21x.4", "sf21x.12a"),
}

_MAIN: Final[dict[str, tuple[str, ...]]] = {
    "blackjack": (
        "maxtime.1a",
        "maxtime.1b",
        "sf21x.4",
        "sf21x.6",
        "classic.wagers2",
        "mega.8",
        "mega.pay1",
    ),
    "blackjack_in_diamonds": ("maxtime.1a", "maxtime.1b", "maxtime.7c"),
    "even_money": ("mega.10", "mega.deal3"),
    "dealer_blackjack": ("sf21x.4a", "mega.8", "mega.deal4"),
    "bust": ("classic.play2", "mega.deal5"),
    "instant21": ("maxtime.5a", "maxtime.5c", "sf21x.12", "sf21x.12a"),
    "instant6": ("maxtime.5b", "maxtime.5c", "sf21x.11", "sf21x.12a"),
    "surrender": ("maxtime.4a", "maxtime.4b", "maxtime.4c", "sf21x.10"),
    "wins_21": ("mega.7", "mega.pay2", "mega.pay3"),
    "dealer_22": ("sf21x.13a",),
    "dealer_bust_push": ("mega.6", "mega.7note", "mega.pay6"),
    "void": ("classic.rule8",),
}
_MAIN_BY_OUTCOME: Final[dict[str, tuple[str, ...]]] = {
    "win": ("sf21x.13b", "classic.play3", "classic.wagers2", "mega.9", "mega.pay4"),
    "push": ("sf21x.13b", "classic.dealer5", "mega.9", "mega.pay5"),
    "lose": ("sf21x.13b", "classic.intro1"),
}
_SIDE: Final[dict[str, dict[str, tuple[str, ...]]]] = {
    "insurance": {
        "win": ("maxtime.1d", "classic.insurance3", "classic.wagers2"),
        "lose": ("maxtime.1d", "classic.insurance4", "classic.insurance5"),
    },
    "diamond": {"win": ("maxtime.7b", "sf21x.2"), "lose": ("maxtime.7b", "sf21x.2")},
    "buster": {"win": ("mega.buster2",), "lose": ("mega.buster2", "mega.buster3")},
}
_TOKES: Final = {"toke_main": "main", "toke_buster": "buster"}


WHYS: Final = (
    *_MAIN,
    "diamond_blackjack",
    "no_diamond_blackjack",
    "no_dealer_blackjack",
    "against_total",
    "dealer_busts",
    "dealer_stands",
    "original_bets_only",
    "dead_hand",
    "asked_again",
)
"""Every reason for a payment, a collection or a return."""


def all_rules() -> set[str]:
    """Returns every clause of this module's tables."""
    sides = [rules for outcomes in _SIDE.values() for rules in outcomes.values()]
    tables = (*TELL_RULES.values(), *_MAIN.values(), *_MAIN_BY_OUTCOME.values(), *sides)
    return {clause for rules in tables for clause in rules}


def pay_rules(bet: str, why: str, outcome: str) -> tuple[str, ...]:
    """Returns the clauses that a payment, a collection or a return cites."""
    if bet in _TOKES:
        return ("mega.toke2", *pay_rules(_TOKES[bet], why, outcome))
    if bet != "main":
        return _SIDE[bet].get(outcome, ())
    return _MAIN.get(why, _MAIN_BY_OUTCOME.get(outcome, ()))


def of_game(rules: tuple[str, ...], game: str) -> tuple[str, ...]:
    """Returns the clauses among `rules` that are in the game's sheet."""
    return tuple(rule for rule in rules if rule.startswith(f"{game}."))
