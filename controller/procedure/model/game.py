"""A game as the procedure uses it: options, jurisdiction, permissions, clauses to cite.

Derived values are computed once a sheet. The caches hold values that depend on the sheet alone, so
that equal prompts are built once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

from controller.procedure.model import events
from controller.procedure.model.effects import Effect, Stations, Tell
from controller.procedure.model.events import Event, Role
from controller.procedure.model.state import Place
from controller.rules.irregularities import Irregularity, Jurisdiction, Way
from controller.rules.money import Amount, in_chips
from controller.rules.option_constraints import BETS as RULE_BETS
from controller.rules.option_constraints import off_features
from controller.rules.options import Limit, Options
from controller.rules.payouts import can_push

# --- permissions: the roles that may bring each event, checked before any row ------------------

NOBODY: Final = frozenset[Role]()
_DEALER: Final = frozenset[Role]({"dealer"})
_FLOOR: Final = frozenset[Role]({"floor"})
_TABLE: Final = frozenset[Role]({"dealer", "floor"})
_SHOE: Final = frozenset[Role]({"device", "dealer"})
_ANYONE: Final = frozenset[Role]({"device", "dealer", "floor"})
_SEATED: Final = frozenset[Role]({"player", "dealer"})
_DEVICE: Final = frozenset[Role]({"device"})

WHO: Final[dict[type[Event], frozenset[Role]]] = {
    events.TableOpened: _FLOOR,
    events.TableClosed: _FLOOR,
    events.ShuffleCalled: _TABLE,
    events.ShuffleStarted: _ANYONE,
    events.ShuffleDone: _ANYONE,
    events.ShoeLoaded: _ANYONE,
    events.DecksChanged: _FLOOR,
    events.CardBurned: _SHOE,
    events.CutCardSeen: _SHOE,
    events.DealerRelieved: _DEALER,
    events.WagerPlaced: _SEATED,
    events.WagerRemoved: _SEATED,
    events.CardDrawn: _SHOE,
    events.HoleDealt: _SHOE,
    events.HoleChecked: _SHOE,
    events.HoleRevealed: _SHOE,
    events.InsuranceClosed: _DEALER,
    events.Confirmed: _DEALER,
    events.Withdrawn: _SEATED,
    events.Paid: _DEALER,
    events.AllPaid: _DEALER,
    events.PaymentApproved: _FLOOR,
    events.PaymentCorrected: _FLOOR,
    events.Cleared: _DEALER,
    events.FaceUpCardFound: _ANYONE,
    events.ErrorCardDrawn: _SHOE,
    events.ErrorCardExposed: _ANYONE,
    events.DealerCardMissed: _TABLE,
    events.ShoeRanOut: _ANYONE,
    events.SeatMissed: _TABLE,
    events.SeatShorted: _TABLE,
    events.CardUnreadable: _SHOE,
    events.CardMisread: _TABLE,
    events.CardEntered: _DEALER,
    events.CardConfirmed: _FLOOR,
    events.CardRejected: _FLOOR,
    events.DeckSuspect: _ANYONE,
    events.UnknownCardDrawn: _SHOE,
    events.HoleExposed: _TABLE,
    events.HoleUnchecked: _TABLE,
    events.PlayedOutOfTurn: _TABLE,
    events.InsuranceDisputed: _TABLE,
    events.MisdealCalled: _TABLE,
    events.FloorCalled: frozenset[Role]({"player", "dealer", "floor"}),
    events.PlayerAbsent: _TABLE,
    events.DeviceLost: _DEVICE,
    events.DeviceBack: _DEVICE,
    events.CountersAccepted: _FLOOR,
    events.ControllerRestarted: _DEVICE,
    events.FeltConfirmed: _DEALER,
    events.FloorRuled: _FLOOR,
    events.RoundVoided: _FLOOR,
}

DECISIONS: Final[tuple[type[Event], ...]] = (
    events.Hit,
    events.Stand,
    events.Double,
    events.Split,
    events.Surrender,
    events.SpareRefused,
    events.Insure,
    events.EvenMoney,
    events.Decline,
    events.PayTaken,
    events.PayDeclined,
)
"""Decisions of a player: entered by the dealer from hand signals, or by the station's buttons."""

_DECIDERS: Final[dict[str, frozenset[Role]]] = {
    "signals": _DEALER,
    "buttons": frozenset({"player"}),
    "both": _SEATED,
}


def who_may(o: Options) -> dict[type[Event], frozenset[Role]]:
    """Returns the permitted roles of every event in this game."""
    deciders = _DECIDERS[o.decisions.by]
    who = WHO | dict.fromkeys(DECISIONS, deciders)
    if "player" not in deciders:
        who[events.Withdrawn] = deciders
    return who


# --- the clauses of the sheets that a prompt cites: by its kind, its bet and its reason ---------

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


# --- the game ---------------------------------------------------------------------------------

BETS: Final = RULE_BETS
"""Every bet that is placed before the first card, in the order in which it is listed."""

_UP_VALUES: Final = {"A": 1, "T": 10}
_MAX_CACHED: Final = 20_000


class Game:
    """Options and jurisdiction with derived values; immutable except for its caches."""

    def __init__(
        self,
        name: str,
        options: Options,
        jurisdiction: Jurisdiction,
        title: str = "",
        seats: int = 7,
        clauses: tuple[str, ...] = (),
        say_amount: Callable[[Amount], str] = str,
    ) -> None:
        self.name = name
        self.title = title or name
        self.options = options
        self.jurisdiction = jurisdiction
        self.seats = seats
        self.clauses = clauses
        self.say_amount = say_amount
        """Formats an amount for refusals: in the table's currency, or as the bare integer."""
        self.decks = options.decks
        self.money = options.money
        self.peeks = frozenset(_UP_VALUES[card] for card in options.dealer.peek)
        self.offered = frozenset(
            bet for bet in BETS if not off_features(f"limits.{bet}.min", options)
        )
        self.limits: dict[str, Limit] = {bet: getattr(options.limits, bet) for bet in BETS}
        self.can_push = can_push(options)
        self.waits_for_settlement = options.blackjack.paid == "at_settlement"
        self.insures = options.insurance.offered
        self.buttons = options.decisions.by != "signals"
        self.who = who_may(options)
        self.tell_rules = {tell: of_game(rules, name) for tell, rules in TELL_RULES.items()}
        """The clauses of the sheet that a prompt cites."""
        self.chips_for = lru_cache(maxsize=_MAX_CACHED)(self._chips_for)
        self.deal_order = lru_cache(maxsize=256)(_deal_order)
        self.pay_rules = lru_cache(maxsize=256)(self._pay_rules)
        self.won_lamps = lru_cache(maxsize=64)(_won_lamps)
        self._shown: dict[object, tuple[Effect, ...]] = {}

    def _chips_for(self, amount: Amount) -> tuple[tuple[int, str], ...]:
        return in_chips(amount, self.options.chips)

    def _pay_rules(self, bet: str, why: str, outcome: str) -> tuple[str, ...]:
        return of_game(pay_rules(bet, why, outcome), self.name)

    def shown(self, key: object) -> tuple[Effect, ...] | None:
        """Effects cached by this key."""
        return self._shown.get(key)

    def keep(self, key: object, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        if len(self._shown) >= _MAX_CACHED:
            self._shown.clear()
        self._shown[key] = effects
        return effects

    def needs_two(self, what: Irregularity, way: Way) -> bool:
        ruling = self.jurisdiction.ruling(what)
        return ruling.two_people or way.value in self.jurisdiction.two_people


def _won_lamps(seat: int) -> Stations:
    return Stations((), ((seat, "won"),))


def _deal_order(seats: tuple[int, ...]) -> tuple[Place, ...]:
    """One card to each seat, the dealer's up card, a second to each seat, the hole card."""
    hands = tuple(Place("hand", seat, 0, turn) for turn, seat in enumerate(seats))
    return (*hands, Place("up"), *hands, Place("hole"))
