"""The options of a game, one field each, named as their dotted paths in sheets and scripts.

A path leads from `Options` to the field: `blackjack.tie`, `limits.main.min`. None means that the
game does not have the option.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

from controller.rules.money import EVEN, Amount, Denomination, Money, Odds

UpCard: TypeAlias = Literal["A", "T"]


class Decisions(Struct, frozen=True, forbid_unknown_fields=True):
    by: Literal["signals", "buttons", "both"] = "both"


class Dealer(Struct, frozen=True, forbid_unknown_fields=True):
    soft_17: Literal["hit", "stand"] = "hit"
    peek: tuple[UpCard, ...] = ("A", "T")
    push_22: bool = False
    push_bust_cards: int = 0
    no_peek_takes: Literal["all", "original_bets"] | None = None


class Blackjack(Struct, frozen=True, forbid_unknown_fields=True):
    pays: Odds
    pays_diamonds: Odds | None = None
    tie: Literal["player_wins", "push"] = "push"
    ten_up: Literal["check_first", "pay_first"] = "check_first"
    paid: Literal["at_check", "at_settlement"] = "at_check"


class Wins(Struct, frozen=True, forbid_unknown_fields=True):
    pays_21: Odds = EVEN


class Splitting(Struct, frozen=True, forbid_unknown_fields=True):
    max_hands: int = 4
    match: Literal["value", "rank"] = "value"
    aces_one_card: bool = False
    aces_again: bool = True


class Doubling(Struct, frozen=True, forbid_unknown_fields=True):
    on: Literal["any_cards", "two_cards"] = "two_cards"
    max_total: int = 21
    ace_is_one_with_ten: bool = False
    times: int = 1
    after_split: bool = True
    natural: bool = False
    for_less: bool = False


class Surrendering(Struct, frozen=True, forbid_unknown_fields=True):
    when: Literal["never", "first_two", "any_time"] = "never"
    of_doubled: Literal["half_total", "original_bet"] | None = None


class Instant(Struct, frozen=True, forbid_unknown_fields=True):
    pays_21: Odds | None = None
    cards_21: int | None = None
    pays_count: Odds | None = None
    cards_count: int | None = None
    on_split: bool | None = None


class Insurance(Struct, frozen=True, forbid_unknown_fields=True):
    offered: bool = False
    pays: Odds | None = None
    max: Literal["half"] | None = None


class EvenMoney(Struct, frozen=True, forbid_unknown_fields=True):
    offered: bool = False


class Diamond(Struct, frozen=True, forbid_unknown_fields=True):
    pays: int | None = None
    first_round_only: bool | None = None


class Buster(Struct, frozen=True, forbid_unknown_fields=True):
    pays: dict[int, int] | None = None
    """Cards in the dealer's bust hand -> n to 1; the highest count also covers larger ones."""


class Bonus(Struct, frozen=True, forbid_unknown_fields=True):
    diamond: Diamond = Diamond()
    buster: Buster = Buster()


class Toke(Struct, frozen=True, forbid_unknown_fields=True):
    allowed: bool = False


class Limit(Struct, frozen=True, forbid_unknown_fields=True):
    min: Amount | None = None
    max: Amount | None = None
    step: Amount | None = None


class Limits(Struct, frozen=True, forbid_unknown_fields=True):
    main: Limit = Limit()
    diamond: Limit = Limit()
    buster: Limit = Limit()
    toke_main: Limit = Limit()
    toke_buster: Limit = Limit()
    table_payout: Amount | None = None


class Shuffle(Struct, frozen=True, forbid_unknown_fields=True):
    cut_cards_behind: int | None = None
    """None: a quarter of the shoe."""
    max_rounds: int | None = None


class Burn(Struct, frozen=True, forbid_unknown_fields=True):
    on_shuffle: int = 0
    on_dealer: int = 0


class Settle(Struct, frozen=True, forbid_unknown_fields=True):
    order: Literal["first_seat", "last_seat"] = "last_seat"


class Payout(Struct, frozen=True, forbid_unknown_fields=True):
    floor_from: Amount | None = None


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """All options of a game."""

    decks: int
    blackjack: Blackjack
    decisions: Decisions = Decisions()
    dealer: Dealer = Dealer()
    wins: Wins = Wins()
    split: Splitting = Splitting()
    double: Doubling = Doubling()
    surrender: Surrendering = Surrendering()
    instant: Instant = Instant()
    insurance: Insurance = Insurance()
    even_money: EvenMoney = EvenMoney()
    bonus: Bonus = Bonus()
    toke: Toke = Toke()
    money: Money = Money()
    limits: Limits = Limits()
    shuffle: Shuffle = Shuffle()
    burn: Burn = Burn()
    settle: Settle = Settle()
    payout: Payout = Payout()
    chips: tuple[Denomination, ...] = ()

    @property
    def cut_behind(self) -> int:
        behind = self.shuffle.cut_cards_behind
        return self.decks * 13 if behind is None else behind
