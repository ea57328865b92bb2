"""The texts of prompts and terms: one catalogue for record, terminal and console.

Names are `console.SECTION.NAME`. A house translates them in a file of texts, which
`controller.screens.common.texts` parses; the record always has the texts of this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TERM: Final = {
    "no_decision": "no decision",
    "nothing": "nothing",
    "card": "{rank} of {suit}",
    "seat": "Seat {seat}",
    "hand": "Seat {seat}, hand {hand}",
    "odds": "{pays} to {on}",
    "soft": "soft {total}",
    "hard": "hard {total}",
    "either": "{first} or {last}",
    "or_else": ", or ",
    "busts_short": "dealer busts with too few cards",
    "instant": "instant winner",
    "bust_with": "bust with {total}",
}
"""Parts of sentences, and terms that contain other terms."""
_SAY: Final = {
    "floor": "Floor: {words}",
    "to_floor": "Floor",
    "open_table": "Open the table",
    "count_bank": "count the bank with a second person",
    "shuffle": "Shuffle {decks}",
    "await_shuffle": "Wait for the shuffle of {decks}",
    "change_decks": "Take these decks out of play",
    "shuffle_others": "shuffle {decks} of others",
    "load_shoe": "Cut, and load the shoe",
    "behind": "{cards} behind the cut card",
    "burn": "Burn {cards}",
    "take_wagers": "Take wagers: {bets}",
    "wagers": "Take wagers",
    "cap": "a round pays {amount} at most without the floor",
    "beside": "the first card lies beside the shoe",
    "ready": "{seats} in, the first card locks them",
    "deal": "Deal {place}",
    "dealer_has": "Dealer has {total}",
    "draw": "draw the {nth} card",
    "entered": "Confirm the card that was read from the felt: {place}",
    "lay_spare": "Use the {seen}card beside the shoe: {place}",
    "ask_natural": "Ask {seat}: blackjack",
    "asking": "{choices}?",
    "ask_even": "Ask seat {seat}: {even}, or insurance up to {amount}",
    "ask_insurance": "Ask seat {seat}: insurance up to {amount}",
    "comma_pays": ", pays {odds}",
    "insures": "{seat} insures",
    "doubles": "{seat} doubles",
    "doubles_again": "{seat} doubles a {nth} time",
    "splits": "{seat} splits",
    "more": "{amount} beside {stake}",
    "when_it_lies": "confirm when it lies there",
    "close_insurance": "Say aloud: insurance is closed",
    "check_hole": "Check hole card",
    "reveal": "Turn the hole card over",
    "clear": "Pick up the cards",
    "pays": "pays {odds}",
    "amount_on": "{amount} on {stake}",
    "floor_first": "see it before it is paid",
    "take": "take {amount}",
    "back_of": "give back {amount} of {stake}",
    "back": "give back {amount}",
    "declare": "count it out, then say what it comes to",
    "rule": "Rule on {case}",
    "enter_card": "Enter the card that lies on the felt",
    "confirm_card": "Confirm the card that was entered",
    "await_device": "Stop dealing",
    "device_way": (
        "goes on once nothing is wrong with it, or the floor and a second person accept its "
        "counters"
    ),
    "confirm_felt": "Compare the felt with the screen, confirm when they agree",
    "refill": "Shuffle, cut and load the discards",
}
"""Headlines and details of prompts."""
_PLACE: Final = {
    "up": "the dealer's up card, face up",
    "hole": "the hole card, face down",
    "dealer": "the dealer's {nth} card, face up",
    "burn": "the discard rack, face down",
    "hand": "{seat}, {nth} card",
}
"""Where the next card goes."""
CHOICES: Final = {
    "hit": "hit",
    "stand": "stand",
    "double": "double",
    "split": "split",
    "surrender": "surrender",
    "refuse_card": "refuse the exposed card",
    "take_pay": "take the pay",
    "decline_pay": "play it as 21",
    "insure": "insurance",
    "even_money": "even money",
    "decline": "decline",
    "confirm": "confirm",
    "withdraw": "withdraw",
    "bet": "bet",
}
BETS: Final = {
    "main": "main",
    "diamond": "diamond bet",
    "buster": "Buster",
    "toke_main": "toke",
    "toke_buster": "toke on Buster",
    "insurance": "insurance",
}
WARNS: Final = {
    "doubles_21": "it has 21 already",
    "ace_one": "the ace counts one from here on",
    "exposed": "exposed",
    "last_round": "last round of this shoe",
    "two_people": "bring a second person",
    "tuck": "tuck the cards under the Buster wager",
}
NEAR: Final = {
    "instant21": "one card from a {count}-card 21",
    "instant6": "one card from a {count}-card hand, paid at once",
}
"""The bonus that one more card can make of a hand."""
WHY: Final = {
    "blackjack": "blackjack",
    "blackjack_in_diamonds": "blackjack in diamonds",
    "diamond_blackjack": "blackjack in diamonds",
    "no_diamond_blackjack": "no blackjack in diamonds",
    "even_money": "even money",
    "no_dealer_blackjack": "dealer has no blackjack",
    "dealer_blackjack": "dealer has blackjack",
    "bust": "bust",
    "instant21": "{count}-card 21",
    "instant6": "{count} cards, {total}",
    "surrender": "surrender",
    "wins_21": "21 wins",
    "dealer_busts": "dealer busts",
    "dealer_22": "dealer has 22, push",
    "dealer_bust_push": "dealer's bust pushes",
    "dealer_stands": "dealer does not bust",
    "original_bets_only": "dealer has blackjack, original bet only",
    "void": "round void",
    "dead_hand": "dead hand",
    "asked_again": "asked again",
}
"""Why something is paid, taken or given back."""
WHAT: Final = {
    "face_up_card": "card face up in the shoe",
    "error_card": "card drawn in error, not seen",
    "error_card_exposed": "card drawn in error and seen",
    "dealer_overdrew": "dealer drew on a standing total",
    "dealer_card_missed": "dealer's own card missed",
    "shoe_ran_out": "shoe out of cards",
    "seat_missed": "seat got no cards",
    "seat_shorted": "seat got one card only",
    "card_unreadable": "card not read",
    "deck_suspect": "decks in doubt",
    "wrong_payment": "wrong payment",
    "hole_exposed": "hole card seen early",
    "hole_unchecked": "hole card not checked",
    "out_of_turn": "hand played out of turn",
    "insurance_dispute": "insurance disputed",
    "misdeal": "misdeal",
    "device_lost": "device lost",
    "restarted": "controller restarted",
    "player_absent": "player gone",
    "cannot_cover": "insurance, double or split withdrawn",
    "hole_mismatch": "hole card and its check disagree",
    "unknown_card": "joker or unknown card",
    "late_wager": "wager late or without main wager",
    "dealer_relieved": "dealer relieved",
    "floor_called": "floor called",
}
WAYS: Final = {
    "floor_decides": "floor decides",
    "discard": "discard the card",
    "use_next": "use it as the next card",
    "deal_on": "deal it on",
    "burn": "burn",
    "dealer_last": "dealer's cards last",
    "reshuffle": "shuffle the discards, finish the round",
    "dead_hand": "dead hand, wager back",
    "second_card_last": "second card last",
    "enter_card": "enter the card from the felt",
    "decks_out": "decks out of play",
    "correct": "correct the payment",
    "resume": "play on",
    "void": "void the round",
    "reopen_insurance": "ask for insurance again",
    "device_check": "wait for the device",
    "felt_check": "compare the felt",
    "stand_hand": "hand stands",
    "withdraw": "take it back",
    "refuse": "refuse it",
}
DETAILS: Final = {
    "duplicate": "one card too often",
    "foreign_back": "foreign back",
    "short": "cards missing",
    "long": "cards too many",
    "factory_order": "factory order",
    "1": "first card",
    "2": "second card",
    "misread": "read as another card",
    "counters_accepted": "device taken back as it is",
}
"""Details of events; a detail that is not listed is text already."""
_ORDINAL: Final = {
    "1": "first",
    "2": "second",
    "3": "third",
    "4": "fourth",
    "5": "fifth",
    "6": "sixth",
    "other": "{count}th",
}
_NUMBER: Final = {
    "1": "one",
    "2": "two",
    "3": "three",
    "4": "four",
    "5": "five",
    "6": "six",
    "7": "seven",
}
_RANK: Final = {
    "A": "ace",
    "2": "2",
    "3": "3",
    "4": "4",
    "5": "5",
    "6": "6",
    "7": "7",
    "8": "8",
    "9": "9",
    "T": "10",
    "J": "jack",
    "Q": "queen",
    "K": "king",
}
_SUIT: Final = {
    "C": "clubs",
    "D": "diamonds",
    "H": "hearts",
    "S": "spades",
}
_AGAINST: Final = {
    "beats": "{total} beats the dealer",
    "beats_alone": "beats the dealer",
    "loses": "{total} loses to the dealer",
    "loses_alone": "loses to the dealer",
    "pushes": "{total} pushes",
    "pushes_alone": "push",
}
"""A total against the dealer: with its number, and for a toke, which has no cards."""
_COUNT: Final = {
    "card_one": "{count} card",
    "card_many": "{count} cards",
    "deck_one": "{count} deck",
    "deck_many": "{count} decks",
    "seat_one": "{count} seat",
    "seat_many": "{count} seats",
    "payment_one": "{count} payment",
    "payment_many": "{count} payments",
}
_BET_NAME: Final = {
    "main": "main",
    "diamond": "diamond",
    "buster": "Buster",
    "toke_main": "toke",
    "toke_buster": "Buster toke",
}
"""Bets as refusals name them."""
_ROLE: Final = {
    "dealer": "dealer",
    "floor": "floor",
    "player": "player",
    "surveillance": "surveillance",
    "technician": "technician",
    "device": "device",
}

_SECTIONS: Final[Mapping[str, Mapping[str, str]]] = {
    "term": _TERM,
    "say": _SAY,
    "place": _PLACE,
    "choice": CHOICES,
    "bet": BETS,
    "warn": WARNS,
    "near": NEAR,
    "why": WHY,
    "what": WHAT,
    "way": WAYS,
    "detail": DETAILS,
    "ordinal": _ORDINAL,
    "number": _NUMBER,
    "rank": _RANK,
    "suit": _SUIT,
    "against": _AGAINST,
    "count": _COUNT,
    "bet_name": _BET_NAME,
    "role": _ROLE,
}

TEXTS: Final[Mapping[str, str]] = {
    f"console.{section}.{name}": text
    for section, texts in _SECTIONS.items()
    for name, text in texts.items()
}


class Texts:
    """Texts by name, "section.name"."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = dict(texts)

    def __call__(self, name: str, /, **values: object) -> str:
        """Returns the text with its {fields} filled in. Raises LookupError for an unknown name."""
        text = self._texts[name]
        return text.format(**values) if values else text

    def has(self, name: str) -> bool:
        return name in self._texts

    def under(self, section: str) -> dict[str, str]:
        """Returns the texts of a section, by their names in it."""
        head = f"{section}."
        return {
            name.removeprefix(head): text
            for name, text in self._texts.items()
            if name.startswith(head)
        }

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._texts)


ENGLISH: Final = Texts(TEXTS)
