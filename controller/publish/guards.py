"""Conditions of the rows as text, by the ids of rows and families in the published pages."""

from __future__ import annotations

from typing import Final

_SECOND: Final = "another person stands in as second"
_IN_TURN: Final = "the hand is the one in turn, and may {}"
_SAYS_WHY: Final = "a reason is given, and another person stands in where the house asks for it"
_NOT_TWICE: Final = "the table is not held for that already"
_BURN_MORE: Final = "more than one card is still to be burned"
_BURN_LAST: Final = "one card is still to be burned"
_HIDDEN: Final = "the card that lies beside the shoe, where one does, is the one that is dealt"
_WHOLE: Final = "the shoe is connected and holds as many cards as the decks"
_DEAL_PAID: Final = "nothing that the deal decides is left to ask or to pay"

CONDITIONS: Final[dict[str, str]] = {
    # opening, shuffle and closing
    "open_table": _SECOND,
    "close_table": f"{_SECOND}, and no wager lies on the felt",
    "start_shuffle": "no decks are out of play, and the shuffler is not lost",
    "change_decks": f"decks are out of play, and {_SECOND}",
    "shuffle_done": "no card is missing and none is too many",
    "load_and_burn": f"{_WHOLE}, and the house burns after a shuffle",
    "load": f"{_WHOLE}, and the house burns none",
    "burn_more": _BURN_MORE,
    "burn_last": _BURN_LAST,
    "call_shuffle": "no wager lies on the felt",
    "cut_card_at_*": "the cut card of this shoe was not seen before",
    "close_after_round_at_*": _SECOND,
    "close_now": "the table is to close",
    "shuffle_now": (
        "the table is not to close; no round is left after the cut card, or shuffle.max_rounds are "
        "dealt, or no shoe is in play"
    ),
    "next_round": (
        "the table is not to close, and the shoe in play has a round left and is connected"
    ),
    # wagers
    "place_wager": (
        "the seat is one of the table's; the game has the bet and it is open on this round; it is "
        "the main wager or lies beside one; the amount is made of whole money.unit and keeps to "
        "the limits; no card of the round was seen"
    ),
    "remove_wager": "such a wager lies there, and no card of the round was seen",
    "remove_wager_at_*": "such a wager lies there",
    "first_card": "a wager lies on the felt, and the card may be used",
    # the deal
    "deal_card": "the next place is for a card face up, another one follows; the card may be used",
    "deal_last_card": "the next place is for a card face up, and the last; the card may be used",
    "deal_hole": f"the next place is the hole card's, and the last of the deal; {_HIDDEN}",
    "deal_hole_early": f"the next place is the hole card's, and another one follows; {_HIDDEN}",
    # blackjacks, insurance and the check
    "ask_natural": "a blackjack may decline its pay, was not asked yet, and is to be paid next",
    "pay_taken": "the seat is the one that is asked, and the hole card is not checked",
    "pay_taken_after_check": "the seat is the one that is asked, and the hole card is checked",
    "pay_declined": "the seat is the one that is asked, and the hole card is not checked",
    "pay_declined_after_check": "the seat is the one that is asked, and the hole card is checked",
    "pay_with_deal": (
        "a blackjack is paid before the check (blackjack.tie = player_wins, or the up card makes "
        "no blackjack, or it is a ten and blackjack.ten_up = pay_first; never with blackjack.paid "
        "= at_settlement), or a diamond bet lies on the felt; nobody is to be asked before"
    ),
    "open_insurance": (
        f"the up card is an ace; {_DEAL_PAID}; a seat with two cards has not answered yet"
    ),
    "call_check": (
        f"the up card is in dealer.peek and the hole card is dealt; {_DEAL_PAID}; no seat is to be "
        "asked for insurance"
    ),
    "no_check": (
        "the up card is not in dealer.peek, or no hole card is dealt yet; "
        f"{_DEAL_PAID}; no seat is to be asked for insurance"
    ),
    "insure": (
        "the seat is the one that is asked; the amount is made of whole money.unit and is at most "
        "half of its main wager"
    ),
    "insurance_withdrawn": "a player takes back the own insurance only",
    "withdrawn": "a player takes back the own double or split only",
    "even_money": "the seat is the one that is asked, and has a blackjack that is not paid",
    "decline": "the seat is the one that is asked",
    "ask_next": "a seat has not answered yet",
    "all_asked": "every seat has answered",
    "close_insurance_and_pay": "a seat took even money",
    "close_insurance": "no seat took even money",
    "no_dealer_blackjack": "the check says that it is none",
    "dealer_blackjack": "the check says that it is one",
    "settle_after_check": (
        "insurance lies on the felt, or a blackjack that is paid at the check; nobody is to be "
        "asked before"
    ),
    "play_after_check": "neither insurance lies on the felt, nor a blackjack that is paid here",
    # the players' turns
    "turn_to_hand": "the next hand to decide has two cards or more, and its player still decides",
    "second_card_for_split": "the next hand to decide has one card",
    "quiet_hand_stands": "the next hand to decide is that of a player who decides no more",
    "players_done": "no hand is left to decide, and the dealer has missed no card",
    "players_done_dealer_late": "no hand is left to decide, and the dealer has missed a card",
    "hit": _IN_TURN.format("hit: split aces that get one card and doubled hands may not, nor 21"),
    "stand": _IN_TURN.format("stand: every hand may"),
    "double": (
        _IN_TURN.format("double by double.*")
        + "; the chips are as many as lie on it (fewer only with double.for_less)"
    ),
    "split": (
        _IN_TURN.format("split by split.*: two cards that match, and fewer hands than the most")
        + "; the chips are as many as lie on it"
    ),
    "surrender": _IN_TURN.format("surrender by surrender.when"),
    "refuse_spare": "the hand is the one in turn, and an exposed card lies beside the shoe",
    "hand_card": "the card may be used",
    "plays_on": (
        "21 or less, no instant winner, and a choice beside standing is left: at an undoubled 21 a "
        "double or split, at a doubled hand a double or surrender; its player still decides"
    ),
    "stands_by_itself": (
        "21 or less, no instant winner, and no such choice is left, or its player decides no more"
    ),
    "busts": "the total is over 21",
    "instant_winner": (
        "the hand is not doubled, and it is 21 of instant.cards_21 or more cards, or 20 or less of "
        "instant.cards_count; a hand that came of a split only with instant.on_split"
    ),
    # the dealer
    "reveal_hole": (
        "the decks hold the card, or the floor has confirmed one from the felt, which counts then; "
        "and it is what the check said"
    ),
    "late_card": "more than one card was missed, and the card may be used",
    "late_last_card": "one missed card is left, and the card may be used",
    "dealer_must_draw": (
        "the total is 16 or less, or a soft 17 with dealer.soft_17 = hit; and a hand on the felt "
        "depends on it (a blackjack does only when it is paid at settlement and a bust can push "
        "it) or a Buster wager"
    ),
    "dealer_card": "the card may be used",
    "settle": "the dealer draws no more, and a wager is not settled yet",
    "hole_only_shown": "the dealer draws no more, and every wager is settled",
    # payments and the end of the round
    "pay": (
        "another payment follows; the floor has passed it where it must; the amount is the right "
        "one where one is declared, and one is declared where the house wants it"
    ),
    "pay_last": (
        "no other payment follows; the floor has passed it where it must; the amount is the right "
        "one where one is declared, and one is declared where the house wants it"
    ),
    "pay_all": "no payment is to be declared, and none still waits for the floor",
    "approve_payment": "the first payment due waits for the floor",
    "paid_up_to_offer": "it was the deal that was paid",
    "paid_up_to_check": "it was even money that was paid",
    "paid_up_to_next_hand": "it was the check, or the hand in turn, that was paid or collected",
    "paid_up_to_clearing": "it was the settlement, or a void round, that was paid",
    "paid_up_to_after_deal": "it was a dead hand's wagers that went back, and the deal is over",
    "refill_shuffle": "the shuffler is not lost",
    "refill_shuffled": "no card is missing and none is too many",
    "paid_up_to_dealing": "it was a dead hand's wagers that went back",
    "paid_up_to_insurance": "it was an insurance to be asked again that went back",
    "paid_up_to_next_round": "it was wagers on decks out of play that went back",
    # irregularities
    "duplicate_card": (
        "the card was seen as often as the decks hold it, and the hole card is not the next one"
    ),
    "card_while_spare_waits": "a card lies beside the shoe and this one is another",
    "card_not_expected": "it is a new card, and the decks hold it",
    "card_without_wagers": "no wager lies on the felt; it is a new card, and the decks hold it",
    "second_card_at_wagering": (
        "a wager lies on the felt; a card lies beside the shoe and this one is another"
    ),
    "error_card": "the card comes with its commitment",
    "error_card_exposed": "a card that nobody saw lies beside the shoe",
    "dealer_card_missed": "the deal is not over, and its cards can lie as if that place came last",
    "seat_missed": "the deal is not over, and its cards can lie as if the seat were not in",
    "seat_shorted": "the deal is not over, and its cards can lie as if that place came last",
    "card_misread": (
        "it came face up, by the deal, to a hand that is in turn or stood by itself, or to the "
        "dealer; nobody has decided, and nothing was paid since"
    ),
    "shuffle_short_or_long": "a card is missing or too many",
    "shoe_short_or_long": "the shoe is connected and does not hold as many cards as the decks",
    "hole_duplicate": "the floor has confirmed no card there, and the decks hold this one no more",
    "hole_mismatch": "the card is not what the check said",
    "shoe_gone_at_load": "the shoe is not connected, or not the one it was",
    "shuffler_gone_at_shuffle": "the shuffler is lost, and no decks are out of play",
    "device_lost": (
        "it was not gone before, and it is the shoe while one is in play, the shuffler while cards "
        "are shuffled, or a station with wagers on the felt where decisions come by buttons only; "
        "or any device, if the record ends before events that it was told are stored"
    ),
    "device_lost_aside_at_*": "the device has no part in what happens next",
    "shoe_still_lost": (
        "the table is not to close, and the shoe in play has a round left and is not connected"
    ),
    "dealer_relieved_and_burn": (
        "the house burns for a new dealer, and no card lies beside the shoe"
    ),
    "dealer_relieved_at_*": "with wagers open only when no card is to be burned",
    "void_round": f"{_SAYS_WHY}; a wager is unresolved",
    "void_round_at_refill": _SAYS_WHY,
    "void_round_nothing_due": f"{_SAYS_WHY}; no wager is unresolved",
    "correct_payment_at_*": f"{_SECOND}; the round was dealt, and the two amounts differ",
    "hole_exposed": _NOT_TWICE,
    "hole_unchecked": _NOT_TWICE,
    "out_of_turn": _NOT_TWICE,
    "insurance_dispute": _NOT_TWICE,
    "misdeal": _NOT_TWICE,
    "floor_called": _NOT_TWICE,
    "player_absent": "the player has a hand, and was not known to be gone",
    # rulings
    "floor_decides": "the jurisdiction leaves it to the floor, or its way cannot be gone from here",
    "floor_rules": (
        "the way is one of those that are open, and another person stands in as second where the "
        "house asks for it"
    ),
    "way_burn": "the way on is burn, and it is not that a dealer was relieved",
    "way_relief_burn": "the way on is burn, and a dealer was relieved",
    "resume_*": "that is where it was stopped, or where the ruling leads",
    "way_device_check": "the way on is device check, and the device is still gone",
    "way_device_there": "the way on is device check, and the device is back",
    "enter_card": "the decks hold the card",
    "entered_card_unknown": "somebody looks at the card, and it is not the hole card",
    "another_card_unknown": "the shoe tells it of another card, or it is the hole card",
    "device_agrees": "it is the device that was lost, the same one, and its counters agree",
    "device_disagrees": "it is another device, or its identity or counters do not agree",
    "accept_counters": _SECOND,
    "refill": "there are as many cards as the decks hold beyond the felt",
    "close_when_lifted": "the table is to close, and no round is on",
    "device_still_gone": "below the hold that ends a device is waited for, and it is still gone",
    "device_there_again": "below the hold that ends a device is waited for, and it is back",
    "confirm_card": "somebody else than the one who entered the card confirms it",
    "relief_burn_more": _BURN_MORE,
    "relief_burn_last": _BURN_LAST,
}


def condition_of(row_id: str, family: str) -> str | None:
    """Returns the condition of a row; families with different conditions use the first row's id."""
    known = CONDITIONS.get(row_id) or CONDITIONS.get(family)
    if known is None and family.startswith("way_"):
        return f"the way on is {family.removeprefix('way_').replace('_', ' ')}"
    return known
