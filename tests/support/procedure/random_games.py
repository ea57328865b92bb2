"""Games to play at random: the four sheets as they are, and with other options laid over them."""

from collections.abc import Mapping
from functools import cache
from random import Random
from typing import Final

from msgspec.structs import replace

from controller.config import GameSheet, load_game, load_jurisdiction
from controller.errors import UsageProblem
from controller.games import game_of
from controller.procedure.model.game import Game
from controller.rules.irregularities import WAYS, Irregularity, Jurisdiction, Ruling, Way

GAMES: Final = ("maxtime", "sf21x", "classic", "mega")
JURISDICTIONS: Final = ("default", "strict", "silent")
"""`silent` names no way on at all: the floor decides everything."""

_NOTHING: Final[Mapping[str, object]] = {}
_BOOL: Final = (False, True)
_ODDS: Final = ("1:1", "6:5", "3:2", "12:5", "5:2", "2:1", "3:1")

_VARIED: Final[dict[str, tuple[object, ...]]] = {
    "decks": (1, 2, 4, 6, 8),
    "decisions.by": ("signals", "buttons", "both"),
    "dealer.soft_17": ("hit", "stand"),
    "dealer.peek": ([], ["A"], ["T"], ["A", "T"]),
    "dealer.no_peek_takes": ("all", "original_bets"),
    "dealer.push_22": _BOOL,
    "dealer.push_bust_cards": (0, 3, 4, 5),
    "blackjack.pays": _ODDS,
    "blackjack.pays_diamonds": ("none", "2:1", "5:1"),
    "blackjack.tie": ("player_wins", "push"),
    "blackjack.ten_up": ("check_first", "pay_first"),
    "blackjack.paid": ("at_check", "at_settlement"),
    "wins.pays_21": _ODDS,
    "split.max_hands": (1, 2, 3, 4),
    "split.match": ("value", "rank"),
    "split.aces_one_card": _BOOL,
    "split.aces_again": _BOOL,
    "double.on": ("any_cards", "two_cards"),
    "double.max_total": (9, 11, 19, 20, 21),
    "double.ace_is_one_with_ten": _BOOL,
    "double.times": (1, 2, 3),
    "double.after_split": _BOOL,
    "double.natural": (False, True, True),
    "double.for_less": _BOOL,
    "surrender.when": ("never", "first_two", "any_time"),
    "surrender.of_doubled": ("half_total", "original_bet"),
    "instant.pays_21": ("none", "2:1", "3:2"),
    "instant.cards_21": (3, 4, 5),
    "instant.pays_count": ("none", "1:1", "6:5"),
    "instant.cards_count": (5, 6),
    "instant.on_split": _BOOL,
    "insurance.offered": _BOOL,
    "insurance.pays": ("2:1", "5:2"),
    "even_money.offered": _BOOL,
    "bonus.diamond.pays": ("none", 100, 300),
    "bonus.diamond.first_round_only": _BOOL,
    "bonus.buster.pays": ("none", {"3": 2, "4": 4, "5": 20}, {"5": 10}),
    "toke.allowed": _BOOL,
    "money.rounding": ("floor", "half_up", "ceil"),
    "money.unit": (1, 5, 25, 50),
    "limits.main.min": ("none", 50, 100),
    "limits.main.max": ("none", 1000, 5000),
    "limits.main.step": ("none", 50),
    "limits.table_payout": ("none", 500, 2000),
    "settle.order": ("first_seat", "last_seat"),
    "payout.floor_from": (0, 100, 1000),
    "burn.on_shuffle": (0, 1, 3),
    "burn.on_dealer": (0, 1, 2),
    "shuffle.max_rounds": ("none", 1, 3),
}
# Options that mean nothing, or cannot stand, without others.
_TOGETHER: Final[tuple[dict[str, object], ...]] = (
    {"dealer.peek": [], "dealer.no_peek_takes": "original_bets"},
    {"dealer.peek": ["A"], "dealer.no_peek_takes": "original_bets", "surrender.when": "never"},
    {"dealer.peek": ["T"], "dealer.no_peek_takes": "all", "insurance.offered": False},
    {"double.natural": True, "blackjack.tie": "push"},
    {"double.natural": True, "blackjack.tie": "push", "double.max_total": 21},
    {"double.natural": True, "double.max_total": 21, "double.ace_is_one_with_ten": False},
    {"blackjack.tie": "push", "blackjack.ten_up": "pay_first"},
    {"blackjack.tie": "push", "blackjack.paid": "at_settlement"},
    {"double.times": 1, "double.for_less": True},
    {"surrender.when": "any_time", "surrender.of_doubled": "original_bet"},
    {"instant.pays_21": "2:1", "instant.cards_21": 3, "instant.pays_count": "none"},
    {"even_money.offered": True, "blackjack.tie": "push", "blackjack.pays": "3:2"},
    {"toke.allowed": True, "bonus.buster.pays": {"4": 2, "5": 5}},
    {"chips": [{"name": "white", "value": 1}, {"name": "red", "value": 5}], "money.unit": 1},
)


@cache
def jurisdiction_of(name: str) -> Jurisdiction:
    if name != "silent":
        return load_jurisdiction(name)
    ways = {what.value: Ruling(Way.FLOOR_DECIDES, WAYS[what]) for what in Irregularity}
    return Jurisdiction("silent", "silent", "", ways)


@cache
def _sheet(name: str, jurisdiction: str) -> GameSheet:
    return load_game(name, jurisdiction=_layer(jurisdiction))


def _layer(jurisdiction: str) -> str | None:
    return None if jurisdiction == "silent" else jurisdiction


def game_as_it_is(name: str, jurisdiction: str = "default") -> Game:
    """The sheet without any override, under that jurisdiction."""
    return game_of(_sheet(name, jurisdiction), jurisdiction_of(jurisdiction))


def game_with(name: str, overrides: Mapping[str, object], jurisdiction: str = "default") -> Game:
    sheet = load_game(name, overrides, _layer(jurisdiction))
    return game_of(sheet, jurisdiction_of(jurisdiction))


def varied_game(
    rng: Random, name: str, always: Mapping[str, object] = _NOTHING
) -> tuple[Game, str]:
    """The sheet with other options that can stand together, and in words what was laid over it."""
    jurisdiction = rng.choice(JURISDICTIONS)
    while True:
        overrides = dict(rng.choice(_TOGETHER)) if rng.random() < 0.6 else {}
        overrides |= always
        for path in rng.sample(sorted(_VARIED), rng.randrange(1, 7)):
            overrides.setdefault(path, rng.choice(_VARIED[path]))
        try:
            game = game_with(name, overrides, jurisdiction)
        except UsageProblem:
            continue
        if rng.random() < 0.3:
            rulings = replace(game.jurisdiction, declare_payments=rng.random() < 0.5)
            game = Game(name, game.options, rulings, game.title, rng.choice((1, 5, 7)))
        return game, f"{name} {overrides} under {jurisdiction}"


def some_game(rng: Random, name: str) -> tuple[Game, str]:
    """Half of the time a sheet as it is, half of the time a varied one."""
    draw = rng.random()
    if draw < 0.5:
        jurisdiction = rng.choice(JURISDICTIONS)
        return game_as_it_is(name, jurisdiction), f"{name} under {jurisdiction}"
    return varied_game(rng, name)
