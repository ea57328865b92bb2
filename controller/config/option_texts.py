"""Options as text: a sentence for each, formatted values, and the parser of --set."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Final

from controller.config.option_paths import LEAVES
from controller.config.values import either
from controller.errors import UsageProblem, printable
from controller.rules.money import Denomination, Odds
from controller.rules.option_constraints import SHOES

SET: Final = "--set"
_BETS: Final = {
    "main": "main wager",
    "diamond": "diamond bet",
    "buster": "Buster wager",
    "toke_main": "toke on the main wager",
    "toke_buster": "toke on the Buster wager",
}
_BOUNDS: Final = {
    "min": "The smallest first {bet} that is taken; none for no such limit.",
    "max": "The largest first {bet} that is taken; none for no such limit.",
    "step": "A first {bet} must be a multiple of this; none for any amount.",
}

OPTION_TEXT: Final[dict[str, str]] = {
    "decks": "How many decks of 52 cards are in the shoe.",
    "blackjack.pays": "What a dealt blackjack pays.",
    "blackjack.pays_diamonds": "What a blackjack dealt in diamonds pays; none for no difference.",
    "blackjack.tie": "What becomes of a player's blackjack against the dealer's.",
    "blackjack.ten_up": (
        "With a ten up and ties that push: the dealer checks before a blackjack is paid, or after."
    ),
    "blackjack.paid": (
        "When a blackjack that waits for the check is paid: right after it, or at settlement."
    ),
    "decisions.by": (
        "How decisions come in: hand signals that the dealer enters, station buttons, or both."
    ),
    "dealer.soft_17": "What the dealer does with a soft 17.",
    "dealer.peek": "Under which up cards the dealer checks the hole card before play.",
    "dealer.push_22": "Whether a dealer's 22 pushes every unresolved hand.",
    "dealer.push_bust_cards": (
        "A dealer's bust with at least so many cards pushes every unresolved hand; 0 for never."
    ),
    "dealer.no_peek_takes": (
        "Where the dealer does not check under A and T: what doubled and split wagers lose to a "
        "blackjack."
    ),
    "wins.pays_21": "What a winning 21 that is no blackjack pays, on the whole wager.",
    "split.max_hands": "How many hands a seat may have after splitting; 1 for no splits.",
    "split.match": "Whether two cards split that are equal in value, or only in rank.",
    "split.aces_one_card": "Whether a split ace gets one card and no double.",
    "split.aces_again": "Whether a pair of aces that came from a split may be split again.",
    "double.on": "Whether a hand of any number of cards may double, or only one of two.",
    "double.max_total": "The highest total that may double.",
    "double.ace_is_one_with_ten": (
        "Whether an ace and a ten may double, the ace then counting 1 for good."
    ),
    "double.times": "How often one hand may double, each time its total wager.",
    "double.after_split": "Whether a hand that came from a split may double.",
    "double.natural": "Whether a dealt blackjack may decline its pay and double.",
    "double.for_less": "Whether a double may be for less than the hand's wager.",
    "surrender.when": (
        "When a hand may be given up for half: never, as the first decision on the two dealt "
        "cards, or at any time in turn."
    ),
    "surrender.of_doubled": (
        "What a doubled hand loses when it is given up: half of all, or the bet before the double."
    ),
    "instant.pays_21": "What an undoubled 21 of instant.cards_21 or more cards is paid at once.",
    "instant.cards_21": "From how many cards on a 21 is paid at once.",
    "instant.pays_count": (
        "What an undoubled hand of instant.cards_count cards, 20 or less, is paid at once."
    ),
    "instant.cards_count": "With how many cards a hand of 20 or less is paid at once.",
    "instant.on_split": "Whether hands that came from a split are paid at once too.",
    "insurance.offered": "Whether insurance is offered under an ace.",
    "insurance.pays": "What insurance pays.",
    "insurance.max": "How much of the main wager insurance may be.",
    "even_money.offered": "Whether a blackjack under an ace may take 1:1 at once.",
    "bonus.diamond.pays": (
        "How many to 1 the diamond bet pays for a blackjack dealt in diamonds; none for no such "
        "bet."
    ),
    "bonus.diamond.first_round_only": (
        "Whether the diamond bet is taken only on the first round after a shuffle."
    ),
    "bonus.buster.pays": (
        "How many to 1 the Buster wager pays by the cards in the dealer's bust hand, the highest "
        "count standing for more too; a count that is missing loses; none for no such wager."
    ),
    "toke.allowed": "Whether bets for the dealers are taken.",
    "money.rounding": "How winnings and halves that do not come out even are rounded.",
    "money.unit": "The smallest amount that can be paid, in the currency's smallest coin.",
    **{
        f"limits.{bet}.{bound}": sentence.format(bet=name)
        for bet, name in _BETS.items()
        for bound, sentence in _BOUNDS.items()
    },
    "limits.table_payout": (
        "The most that one round may cost the table, shown before wagers lock; none for no cap."
    ),
    "shuffle.cut_cards_behind": (
        "How many cards lie behind the cut card; none for a quarter of the shoe."
    ),
    "shuffle.max_rounds": "After how many rounds a shuffle is due at the latest; none for no end.",
    "burn.on_shuffle": "How many cards are burned after a shuffle.",
    "burn.on_dealer": "How many cards are burned when a dealer takes over.",
    "settle.order": "Which seat is settled first.",
    "payout.floor_from": "From which amount on a payment waits for the floor; none for never.",
    "chips": (
        "The house's chips, in the currency's smallest coin; the smallest value is money.unit."
    ),
}


def allowed(path: str, decks: tuple[int, ...] = SHOES) -> str:
    """Returns the allowed values of the option, for a game with these numbers of decks."""
    return either(decks) if path == "decks" else LEAVES[path].allowed


def hint(path: str, decks: tuple[int, ...] = SHOES) -> str:
    """Returns allowed values and sentence, for the end of an error message."""
    return f"{allowed(path, decks)} ({OPTION_TEXT[path].rstrip('.')})"


# --- values -----------------------------------------------------------------------------------


def written(value: object) -> str:
    """Returns an option's value as text."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case dict():
            return ", ".join(f"{key}={each_}" for key, each_ in value.items())
        case tuple():
            return ", ".join(map(written, value)) or "-"
        case Denomination(name=name, value=worth):
            return f"{name} {worth}"
        case _:
            return str(value)


def plain(value: object) -> object:
    """Returns an option's value as a file or script has it."""
    match value:
        case Odds():
            return str(value)
        case Denomination(name=name, value=worth):
            return {"name": name, "value": worth}
        case tuple():
            return [plain(one) for one in value]
        case dict():
            return {str(key): one for key, one in value.items()}
        case _:
            return value


# --- --set PATH=VALUE -------------------------------------------------------------------------


def add_settings(parser: argparse.ArgumentParser) -> None:
    """Add --set, which sets an option of the game."""
    parser.add_argument(
        SET,
        dest="settings",
        action="append",
        default=[],
        metavar="PATH=VALUE",
        help="lay an option over it, as often as needed",
    )


def read_settings(settings: Iterable[str]) -> dict[str, object]:
    """Parse PATH=VALUE arguments. Returns options by dotted path; raises UsageProblem."""
    values: dict[str, object] = {}
    for setting in settings:
        path, equals, text = setting.partition("=")
        if not equals or not path:
            raise UsageProblem(SET, f"'{printable(setting)}' sets nothing", "PATH=VALUE")
        if path in values:
            raise UsageProblem(f"{SET}: {printable(path)}", "is set twice", "once")
        values[path] = _read_value(text)
    return values


def _read_value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value
