"""Figures from outside: published by others, or exact by enumeration. Fresh shuffle, one seat."""

from fractions import Fraction
from typing import Final

from controller.sim.par.report import Figure

BLACKJACK_DEALT: Final = {
    1: Fraction(32, 663),
    2: Fraction(64, 1339),
    6: Fraction(192, 4043),
    8: Fraction(256, 5395),
}
DIAMONDS_DEALT: Final = {
    1: Fraction(2, 663),
    2: Fraction(4, 1339),
    6: Fraction(12, 4043),
    8: Fraction(16, 5395),
}
DIAMOND_RETURN: Final = {(1, 300): Fraction(-61, 663), (6, 250): Fraction(-1031, 4043)}
INSURANCE_RETURN: Final = {
    1: Fraction(-1, 17),
    2: Fraction(-7, 103),
    6: Fraction(-23, 311),
    8: Fraction(-31, 415),
}
BUSTS: Final = {
    6: {
        "3": 0.173031843,
        "4": 0.089391810,
        "5": 0.020472551,
        "6": 0.002637602,
        "7": 0.000214444,
        "8+": 0.000011945,
        "total_22": 0.073536228,
    },
    1: {
        "3": 0.173333333,
        "4": 0.091807800,
        "5": 0.020057151,
        "6": 0.002157275,
        "7": 0.000125693,
        "8+": 0.000003772,
        "total_22": 0.073361804,
    },
}
"""Of the dealer who always completes the hand and hits soft 17; by decks and by cards."""
STAND: Final = {
    "maxtime": -0.172375951341,
    "sf21x": -0.176492494524,
    "classic": -0.157207185679,
    "mega": -0.196599112447,
}
"""What a player earns who always stands and never insures, with the decks of the sheets."""
EDGE_MAXTIME: Final = 0.0094
EDGE_CLASSIC: Final = 0.0064
"""House edges of best play; aces are split once, and three quarters of the shoe are dealt."""
EDGE_WITHIN: Final = 0.0025
EXACT_WITHIN: Final = 1e-9
ERRORS_WITHIN: Final = 4
"""Simulated figures may be off by so many standard errors."""


def agrees(figure: Figure, wanted: float) -> bool:
    assert figure.value is not None
    assert figure.error is not None
    return abs(figure.value - wanted) <= ERRORS_WITHIN * figure.error
