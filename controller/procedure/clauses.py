"""Which sentences of the four sheets stand behind a prompt, by what it asks and why."""

from __future__ import annotations

from typing import Final

from controller.procedure.effects import Tell

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

WHY_RULES: Final[dict[str, tuple[str, ...]]] = {
    "blackjack": (
        "maxtime.1a",
        "maxtime.1b",
        "sf21x.4",
        "sf21x.6",
        "classic.wagers2",
        "mega.8",
        "mega.pay1",
    ),
    "blackjack_in_diamonds": ("maxtime.1a", "maxtime.7c"),
    "diamond_blackjack": ("maxtime.7b", "sf21x.2"),
    "no_diamond_blackjack": ("maxtime.7b", "sf21x.2"),
    "even_money": ("mega.10",),
    "no_dealer_blackjack": ("classic.insurance4", "classic.insurance5", "maxtime.1d"),
    "dealer_blackjack": ("sf21x.4a", "classic.insurance3", "maxtime.1d", "mega.8"),
    "bust": ("classic.play2", "mega.deal5"),
    "instant21": ("maxtime.5a", "maxtime.5c", "sf21x.12", "sf21x.12a"),
    "instant6": ("maxtime.5b", "maxtime.5c", "sf21x.11", "sf21x.12a"),
    "surrender": ("maxtime.4a", "maxtime.4b", "maxtime.4c", "sf21x.10"),
    "against_total": ("sf21x.13b", "classic.dealer5", "classic.play3", "mega.9", "mega.pay5"),
    "dealer_busts": ("sf21x.13b", "classic.wagers2", "mega.9", "mega.buster2"),
    "dealer_22": ("sf21x.13a",),
    "dealer_bust_push": ("mega.6", "mega.7note", "mega.pay6"),
    "dealer_stands": ("mega.buster3",),
    "original_bets_only": (),
    "void": ("classic.rule8",),
}


def of_game(rules: tuple[str, ...], game: str) -> tuple[str, ...]:
    """The clauses among `rules` that are the game's own."""
    return tuple(rule for rule in rules if rule.startswith(f"{game}."))
