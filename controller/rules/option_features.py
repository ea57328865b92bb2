"""Features of a game that options depend on, and the defaults of those options.

The number of cards of an instant winner has no meaning if no instant winner is paid. A layer that
turns a feature off removes the options that an earlier layer set for it; setting both in one layer
is a contradiction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from controller.rules.money import Odds
from controller.rules.options import Limit, Options


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
