"""Validation of options: ranges, features they depend on, combinations that cannot be dealt.

A sheet that passes can be dealt. All errors are reported together, so that they can be fixed in one
pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from controller.rules.money import Denomination, Odds
from controller.rules.options import Limit, Options

# --- features -----------------------------------------------------------------------------------
#
# The number of cards of an instant winner has no meaning if no instant winner is paid. A layer that
# turns a feature off removes the options that an earlier layer set for it; setting both in one
# layer is a contradiction.


def checks_both(options: Options) -> bool:
    """The dealer checks the hole card under an ace and under a ten."""
    return {"A", "T"} <= set(options.dealer.peek)


class Feature(NamedTuple):
    """A feature: the options that decide it, whether it is on, and how off is written."""

    paths: tuple[str, ...]
    on: Callable[[Options], bool]
    off: str


_SPLITTING: Final = Feature(
    ("split.max_hands",), lambda o: o.split.max_hands > 1, "split.max_hands is 1"
)
_SURRENDER: Final = Feature(
    ("surrender.when",), lambda o: o.surrender.when != "never", "surrender.when is never"
)
_INSTANT_21: Final = Feature(
    ("instant.pays_21",), lambda o: o.instant.pays_21 is not None, "there is no instant.pays_21"
)
_INSTANT_COUNT: Final = Feature(
    ("instant.pays_count",),
    lambda o: o.instant.pays_count is not None,
    "there is no instant.pays_count",
)
_INSTANT: Final = Feature(
    ("instant.pays_21", "instant.pays_count"),
    lambda o: o.instant.pays_21 is not None or o.instant.pays_count is not None,
    "there is neither instant.pays_21 nor instant.pays_count",
)
_INSURANCE: Final = Feature(
    ("insurance.offered",), lambda o: o.insurance.offered, "insurance.offered is false"
)
_DIAMOND: Final = Feature(
    ("bonus.diamond.pays",),
    lambda o: o.bonus.diamond.pays is not None,
    "there is no bonus.diamond.pays",
)
_BUSTER: Final = Feature(
    ("bonus.buster.pays",),
    lambda o: o.bonus.buster.pays is not None,
    "there is no bonus.buster.pays",
)
_TOKES: Final = Feature(("toke.allowed",), lambda o: o.toke.allowed, "toke.allowed is false")
_UNSEEN: Final = Feature(
    ("dealer.peek",), lambda o: not checks_both(o), "dealer.peek has both A and T"
)


def _limits(bet: str, *features: Feature) -> dict[str, tuple[Feature, ...]]:
    return {f"limits.{bet}.{bound}": features for bound in Limit.__struct_fields__}


FEATURES: Final[dict[str, tuple[Feature, ...]]] = {
    "dealer.no_peek_takes": (_UNSEEN,),
    "split.match": (_SPLITTING,),
    "split.aces_one_card": (_SPLITTING,),
    "split.aces_again": (_SPLITTING,),
    "double.after_split": (_SPLITTING,),
    "surrender.of_doubled": (_SURRENDER,),
    "instant.cards_21": (_INSTANT_21,),
    "instant.cards_count": (_INSTANT_COUNT,),
    "instant.on_split": (_INSTANT,),
    "insurance.pays": (_INSURANCE,),
    "insurance.max": (_INSURANCE,),
    "bonus.diamond.first_round_only": (_DIAMOND,),
    **_limits("diamond", _DIAMOND),
    **_limits("buster", _BUSTER),
    **_limits("toke_main", _TOKES),
    **_limits("toke_buster", _TOKES, _BUSTER),
}
"""Option -> the features that must all be on for it to have an effect."""

ALWAYS_THERE: Final = (
    "split.match",
    "split.aces_one_card",
    "split.aces_again",
    "double.after_split",
)
"""Options of FEATURES that have a value in every game."""

COMMON: Final[dict[str, object]] = {
    "surrender.of_doubled": "half_total",
    "instant.on_split": True,
    "insurance.pays": Odds(2, 1),
    "insurance.max": "half",
    "bonus.diamond.first_round_only": False,
}
"""Defaults of options whose feature is on and that no layer has set."""


def off_features(path: str, options: Options) -> tuple[Feature, ...]:
    """Returns the features that `path` depends on and that are off in these options."""
    return tuple(feature for feature in FEATURES.get(path, ()) if not feature.on(options))


# --- ranges and combinations --------------------------------------------------------------------

SHOES: Final = (1, 2, 4, 6, 8)
"""Numbers of decks that a shoe can have."""
MAX_MONEY: Final = 10**12
MAX_ODDS: Final = 10**6
"""The highest n of a bonus that pays n to 1."""
MAX_BUST_CARDS: Final = 22
"""Twenty-two aces: no hand can bust with more cards."""
MIN_TO_DEAL: Final = 13
"""Minimum cards before the cut card to start a round, and behind it to finish that round."""
BETS: Final = ("main", "diamond", "buster", "toke_main", "toke_buster")


class Impossible(NamedTuple):
    """One reason why options cannot be used: the option to change, and those it clashes with."""

    path: str
    message: str
    allowed: str
    others: tuple[str, ...] = ()


class Range(NamedTuple):
    low: int
    high: int
    also: tuple[int, ...] = ()

    def __contains__(self, value: object) -> bool:
        return isinstance(value, int) and (self.low <= value <= self.high or value in self.also)

    def __str__(self) -> str:
        return "".join((*(f"{value}, or " for value in self.also), f"{self.low} to {self.high}"))


_BUST_CARDS: Final = Range(3, MAX_BUST_CARDS)

RANGES: Final[dict[str, Range]] = {
    "dealer.push_bust_cards": Range(3, MAX_BUST_CARDS, also=(0,)),
    "split.max_hands": Range(1, 4),
    "double.max_total": Range(4, 21),
    "double.times": Range(1, 10),
    "instant.cards_21": Range(3, 21),
    "instant.cards_count": Range(3, 20),
    "bonus.diamond.pays": Range(1, MAX_ODDS),
    "money.unit": Range(1, MAX_MONEY),
    **{f"limits.{bet}.min": Range(0, MAX_MONEY) for bet in BETS},
    **{f"limits.{bet}.{bound}": Range(1, MAX_MONEY) for bet in BETS for bound in ("max", "step")},
    "limits.table_payout": Range(1, MAX_MONEY),
    "shuffle.cut_cards_behind": Range(MIN_TO_DEAL, SHOES[-1] * 52 - MIN_TO_DEAL),
    "shuffle.max_rounds": Range(1, 1000),
    "burn.on_shuffle": Range(0, 26),
    "burn.on_dealer": Range(0, 26),
    "payout.floor_from": Range(0, MAX_MONEY),
}
"""The range of every option that is a number, except decks, which each sheet lists."""


def value_at(options: Options, path: str) -> object:
    value: object = options
    for name in path.split("."):
        value = getattr(value, name)
    return value


class Clash(NamedTuple):
    """A combination that no table can deal; `when` is checked for every game."""

    path: str
    others: tuple[str, ...]
    when: Callable[[Options], bool]
    message: str
    allowed: str


def _even_or_less(odds: Odds | None) -> bool:
    return odds is not None and odds.pays <= odds.on


CLASHES: Final = (
    Clash(
        "surrender.when",
        ("dealer.peek",),
        lambda o: o.surrender.when != "never" and not checks_both(o),
        "surrender comes after the dealer's check, and dealer.peek lacks A or T",
        'never, or dealer.peek = ["A", "T"]',
    ),
    Clash(
        "insurance.offered",
        ("dealer.peek",),
        lambda o: o.insurance.offered and "A" not in o.dealer.peek,
        "insurance is settled at the check under an ace, and dealer.peek lacks A",
        "false, or dealer.peek with A",
    ),
    Clash(
        "even_money.offered",
        ("insurance.offered",),
        lambda o: o.even_money.offered and not o.insurance.offered,
        "even money is asked with insurance, and insurance.offered is false",
        "false, or insurance.offered = true",
    ),
    Clash(
        "even_money.offered",
        ("blackjack.tie",),
        lambda o: o.even_money.offered and o.blackjack.tie == "player_wins",
        "even money spares a tie, and blackjack.tie is player_wins",
        "false, or blackjack.tie = push",
    ),
    Clash(
        "even_money.offered",
        ("blackjack.pays", "blackjack.pays_diamonds"),
        lambda o: (
            o.even_money.offered
            and (_even_or_less(o.blackjack.pays) or _even_or_less(o.blackjack.pays_diamonds))
        ),
        "even money pays 1:1, and a blackjack pays no more than that",
        "false, or a blackjack that pays more than 1:1",
    ),
    Clash(
        "blackjack.ten_up",
        ("blackjack.tie",),
        lambda o: o.blackjack.ten_up == "pay_first" and o.blackjack.tie == "player_wins",
        "a blackjack that wins ties is paid before the check whatever the up card",
        "check_first, or blackjack.tie = push",
    ),
    Clash(
        "blackjack.paid",
        ("blackjack.tie",),
        lambda o: o.blackjack.paid == "at_settlement" and o.blackjack.tie == "player_wins",
        "a blackjack that wins ties has nothing to wait for",
        "at_check, or blackjack.tie = push",
    ),
    Clash(
        "blackjack.paid",
        ("blackjack.ten_up",),
        lambda o: o.blackjack.paid == "at_settlement" and o.blackjack.ten_up == "pay_first",
        "blackjack.ten_up = pay_first pays it before the check",
        "at_check, or blackjack.ten_up = check_first",
    ),
    Clash(
        "instant.cards_21",
        ("instant.pays_21",),
        lambda o: o.instant.pays_21 is not None and o.instant.cards_21 is None,
        "instant.pays_21 needs the number of cards that it pays for",
        str(RANGES["instant.cards_21"]),
    ),
    Clash(
        "instant.cards_count",
        ("instant.pays_count",),
        lambda o: o.instant.pays_count is not None and o.instant.cards_count is None,
        "instant.pays_count needs the number of cards that it pays for",
        str(RANGES["instant.cards_count"]),
    ),
    Clash(
        "instant.cards_21",
        ("instant.cards_count",),
        lambda o: (
            o.instant.cards_21 is not None
            and o.instant.cards_count is not None
            and o.instant.cards_21 > o.instant.cards_count
        ),
        "a hand would be paid by its count before it could be such a 21",
        "a number up to instant.cards_count",
    ),
    Clash(
        "double.for_less",
        ("double.times",),
        lambda o: o.double.for_less and o.double.times > 1,
        "a double for less cannot be doubled again, and double.times is over 1",
        "false, or double.times = 1",
    ),
    Clash(
        "double.ace_is_one_with_ten",
        ("double.max_total",),
        lambda o: o.double.ace_is_one_with_ten and o.double.max_total == 21,
        "with double.max_total = 21 an ace and a ten double as the 21 that they are",
        "false, or double.max_total up to 20",
    ),
    Clash(
        "double.ace_is_one_with_ten",
        ("double.after_split", "double.natural"),
        lambda o: (
            o.double.ace_is_one_with_ten and not o.double.after_split and not o.double.natural
        ),
        "an ace and a ten never come to a double: not dealt and not after a split",
        "false, or double.after_split = true, or double.natural = true",
    ),
    Clash(
        "dealer.no_peek_takes",
        ("dealer.peek",),
        lambda o: not checks_both(o) and o.dealer.no_peek_takes is None,
        "dealer.peek lacks A or T, and nothing says what doubled and split wagers then lose",
        'all or original_bets, or dealer.peek = ["A", "T"]',
    ),
)


def impossible(
    options: Options,
    explicit: Collection[str] = (),
    decks_allowed: tuple[int, ...] = SHOES,
) -> list[Impossible]:
    """Validate options. Returns the reasons why they cannot be dealt, at most one an option.

    `explicit` names the options that were set. It matters for those that have a value in every
    game (split.match), where having a value does not mean that it was set.
    """
    first: dict[str, Impossible] = {}
    for problem in _problems(options, explicit, decks_allowed):
        first.setdefault(problem.path, problem)
    return list(first.values())


def _problems(
    options: Options, explicit: Collection[str], decks_allowed: tuple[int, ...]
) -> Iterator[Impossible]:
    yield from _out_of_range(options, decks_allowed)
    yield from _hanging(options, explicit)
    for clash in CLASHES:
        if clash.when(options):
            yield Impossible(clash.path, clash.message, clash.allowed, clash.others)
    yield from _buster(options.bonus.buster.pays)
    yield from _amounts(options)
    yield from _chips(options.chips, options.money.unit)
    yield from _shoe(options)


def _out_of_range(options: Options, decks_allowed: tuple[int, ...]) -> Iterator[Impossible]:
    if options.decks not in decks_allowed:
        yield Impossible(
            "decks",
            f"the game is not dealt from {options.decks}",
            ", ".join(map(str, decks_allowed)),
        )
    for path, range_ in RANGES.items():
        value = value_at(options, path)
        if value is not None and value not in range_:
            yield Impossible(path, f"{value} is out of range", str(range_))
    if len(set(options.dealer.peek)) < len(options.dealer.peek):
        yield Impossible("dealer.peek", "a card is in it twice", "A, T, both or neither")


def _hanging(options: Options, explicit: Collection[str]) -> Iterator[Impossible]:
    for path in FEATURES:
        value = value_at(options, path)
        if path in ALWAYS_THERE:
            # Turning off what is off already is no contradiction.
            asked = path in explicit and value is not False
        else:
            asked = value is not None
        if not asked:
            continue
        for feature in off_features(path, options):
            yield Impossible(
                path,
                f"it is set, but {feature.off}",
                f"leave {path} out, or change {' or '.join(feature.paths)}",
                feature.paths,
            )


def _buster(pays: dict[int, int] | None) -> Iterator[Impossible]:
    path = "bonus.buster.pays"
    if pays is None:
        return
    if not pays:
        yield Impossible(path, "it pays for nothing", "at least one count, or none for no bonus")
        return
    counts = sorted(pays)
    if any(count not in _BUST_CARDS for count in counts):
        yield Impossible(path, "a bust has three cards or more", f"counts from {_BUST_CARDS}")
    missing = sorted(set(range(counts[0], counts[-1])) - set(counts))
    if missing:
        yield Impossible(
            path,
            f"it skips {', '.join(map(str, missing[:5]))}",
            f"every count from {counts[0]} to {counts[-1]}",
        )
    if any(not 1 <= odds <= MAX_ODDS for odds in pays.values()):
        yield Impossible(path, "a count pays out of range", f"1 to {MAX_ODDS} for each count")


def _amounts(options: Options) -> Iterator[Impossible]:
    unit = max(options.money.unit, 1)
    paths = [f"limits.{bet}.{bound}" for bet in BETS for bound in Limit.__struct_fields__]
    for path in (*paths, "limits.table_payout"):
        amount = value_at(options, path)
        if isinstance(amount, int) and amount % unit:
            yield Impossible(
                path,
                f"{amount} is not a multiple of money.unit",
                f"multiples of {unit}",
                ("money.unit",),
            )
    for bet in BETS:
        limit: Limit = getattr(options.limits, bet)
        if limit.min is not None and limit.max is not None and limit.min > limit.max:
            yield Impossible(
                f"limits.{bet}.min",
                f"{limit.min} is over limits.{bet}.max",
                f"an amount up to {limit.max}",
                (f"limits.{bet}.max",),
            )
        elif limit.step and limit.max and limit.max // limit.step * limit.step < (limit.min or 1):
            yield Impossible(
                f"limits.{bet}.step",
                f"no multiple of {limit.step} lies within the limits",
                "a step that some wager between min and max is a multiple of",
                (f"limits.{bet}.min", f"limits.{bet}.max"),
            )


def _chips(chips: tuple[Denomination, ...], unit: int) -> Iterator[Impossible]:
    if not chips:
        return
    values = [chip.value for chip in chips]
    if len({chip.name for chip in chips}) < len(chips):
        yield Impossible("chips", "two chips have one name", "names that differ")
    if len(set(values)) < len(values):
        yield Impossible("chips", "two chips have one value", "values that differ")
    off = [chip for chip in chips if not 1 <= chip.value <= MAX_MONEY or chip.value % max(unit, 1)]
    if off:
        yield Impossible(
            "chips",
            f"{off[0].name} is worth {off[0].value}, and money.unit is {unit}",
            f"values that are multiples of {unit}",
            ("money.unit",),
        )
    elif min(values) != unit:
        yield Impossible(
            "chips",
            f"the smallest is worth {min(values)}, and money.unit is {unit}",
            "the smallest value = money.unit, so that every payment can be made",
            ("money.unit",),
        )


def _shoe(options: Options) -> Iterator[Impossible]:
    if options.decks not in SHOES:
        return
    most = options.decks * 52 - MIN_TO_DEAL - options.burn.on_shuffle
    if options.cut_behind > most:
        yield Impossible(
            "shuffle.cut_cards_behind",
            f"{options.cut_behind} behind the cut card leave too few of "
            f"{options.decks * 52} to deal a round",
            f"{MIN_TO_DEAL} to {most}",
            ("decks", "burn.on_shuffle"),
        )
