"""Who may bring which event: asked before any row is looked at."""

from __future__ import annotations

from typing import Final

from controller.procedure.model import events as e
from controller.procedure.model.events import Event, Role
from controller.rules.options import Options

NOBODY: Final = frozenset[Role]()
_DEALER: Final = frozenset[Role]({"dealer"})
_FLOOR: Final = frozenset[Role]({"floor"})
_TABLE: Final = frozenset[Role]({"dealer", "floor"})
_SHOE: Final = frozenset[Role]({"device", "dealer"})
_ANYONE: Final = frozenset[Role]({"device", "dealer", "floor"})
_SEATED: Final = frozenset[Role]({"player", "dealer"})
_DEVICE: Final = frozenset[Role]({"device"})

WHO: Final[dict[type[Event], frozenset[Role]]] = {
    e.TableOpened: _FLOOR,
    e.TableClosed: _FLOOR,
    e.ShuffleCalled: _TABLE,
    e.ShuffleStarted: _ANYONE,
    e.ShuffleDone: _ANYONE,
    e.ShoeLoaded: _ANYONE,
    e.DecksChanged: _FLOOR,
    e.CardBurned: _SHOE,
    e.CutCardSeen: _SHOE,
    e.DealerRelieved: _DEALER,
    e.WagerPlaced: _SEATED,
    e.WagerRemoved: _SEATED,
    e.CardDrawn: _SHOE,
    e.HoleDealt: _SHOE,
    e.HoleChecked: _SHOE,
    e.HoleRevealed: _SHOE,
    e.InsuranceClosed: _DEALER,
    e.Confirmed: _DEALER,
    e.Withdrawn: _SEATED,
    e.Paid: _DEALER,
    e.AllPaid: _DEALER,
    e.PaymentApproved: _FLOOR,
    e.PaymentCorrected: _FLOOR,
    e.Cleared: _DEALER,
    e.FaceUpCardFound: _ANYONE,
    e.ErrorCardDrawn: _SHOE,
    e.ErrorCardExposed: _ANYONE,
    e.DealerCardMissed: _TABLE,
    e.ShoeRanOut: _ANYONE,
    e.SeatMissed: _TABLE,
    e.SeatShorted: _TABLE,
    e.CardUnreadable: _SHOE,
    e.CardMisread: _TABLE,
    e.CardEntered: _DEALER,
    e.CardConfirmed: _FLOOR,
    e.CardRejected: _FLOOR,
    e.DeckSuspect: _ANYONE,
    e.UnknownCardDrawn: _SHOE,
    e.HoleExposed: _TABLE,
    e.HoleUnchecked: _TABLE,
    e.PlayedOutOfTurn: _TABLE,
    e.InsuranceDisputed: _TABLE,
    e.MisdealCalled: _TABLE,
    e.FloorCalled: frozenset[Role]({"player", "dealer", "floor"}),
    e.PlayerAbsent: _TABLE,
    e.DeviceLost: _DEVICE,
    e.DeviceBack: _DEVICE,
    e.CountersAccepted: _FLOOR,
    e.ControllerRestarted: _DEVICE,
    e.FeltConfirmed: _DEALER,
    e.FloorRuled: _FLOOR,
    e.RoundVoided: _FLOOR,
}

DECISIONS: Final[tuple[type[Event], ...]] = (
    e.Hit,
    e.Stand,
    e.Double,
    e.Split,
    e.Surrender,
    e.SpareRefused,
    e.Insure,
    e.EvenMoney,
    e.Decline,
    e.PayTaken,
    e.PayDeclined,
)
"""What a player decides: by hand signals the dealer enters it, by buttons the station does."""

_DECIDERS: Final[dict[str, frozenset[Role]]] = {
    "signals": _DEALER,
    "buttons": frozenset({"player"}),
    "both": _SEATED,
}


def who_may(o: Options) -> dict[type[Event], frozenset[Role]]:
    """The roles of every event in this game."""
    deciders = _DECIDERS[o.decisions.by]
    who = WHO | dict.fromkeys(DECISIONS, deciders)
    if "player" not in deciders:
        who[e.Withdrawn] = deciders
    return who


def theirs(event: Event, allowed: frozenset[Role]) -> bool:
    """The actor's role may bring the event, and a player brings it for the own seat."""
    role = event.actor.role
    return role in allowed and (role != "player" or own_seat(event))


def own_seat(event: Event) -> bool:
    """A player's station acts for the own seat."""
    return getattr(event, "seat", 0) in (0, event.actor.seat)
