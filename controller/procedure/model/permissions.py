"""Permissions: the roles that may bring each event, checked before any row."""

from __future__ import annotations

from typing import Final

from controller.procedure.model import events
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
