"""What a seat's buttons say, in the procedure's words; and which of them are open to the seat now.

The same table says both: a button is armed when it would say something that the procedure takes,
and a press says what it would say when it comes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias

from controller.procedure.model import events
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.felt import seat_of
from controller.procedure.model.game import Game
from controller.procedure.model.holds import HOLDING
from controller.procedure.model.state import State, Step
from controller.procedure.rows import may_take_even_money, most_insurance, seat_asked
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER
from controller.table.intake.context import (
    DeviceSettings,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
    seat_actor,
)
from controller.table.intake.notes import note_of
from drivers.devices import station
from firmware_protocol.messages.enums import ButtonMask, WhichButton

ButtonEvent: TypeAlias = Callable[[Game, DeviceSettings, State, Actor], Event | None]
AcceptsEvent: TypeAlias = Callable[[State, Event], bool]
"""Whether the procedure takes an event at a state: `Procedure.takes`."""


def _decides(kind: Callable[[Actor, int, int], Event], choice: int) -> ButtonEvent:
    """A decision for the hand in turn, where that is the seat's and it is open to it."""

    def says(g: Game, house: DeviceSettings, s: State, who: Actor) -> Event | None:
        if s.step is not Step.TURN:
            return None
        hand = s.hands[s.turn]
        legal = hand.seat == who.seat and bool(s.legal & choice)
        return kind(who, hand.seat, hand.number) if legal else None

    return says


def _yes(g: Game, house: DeviceSettings, s: State, who: Actor) -> Event | None:
    """What is offered to the seat: its blackjack's pay, even money, or insurance in full."""
    if s.step is Step.NATURALS and s.hands[s.turn].seat == who.seat:
        return events.PayTaken(who, who.seat)
    if s.step is not Step.INSURANCE or seat_asked(s).number != who.seat:
        return None
    if may_take_even_money(g, s, who.seat):
        return events.EvenMoney(who, who.seat)
    most = most_insurance(g, seat_asked(s))
    return events.Insure(who, who.seat, most) if most > 0 else None


def _no(g: Game, house: DeviceSettings, s: State, who: Actor) -> Event | None:
    match s.step:
        case Step.NATURALS if s.hands[s.turn].seat == who.seat:
            return events.PayDeclined(who, who.seat)
        case Step.INSURANCE if seat_asked(s).number == who.seat:
            return events.Decline(who, who.seat)
        case Step.INSURANCE_CONFIRM if seat_asked(s).number == who.seat:
            return events.Withdrawn(who)
        case Step.DOUBLE_CONFIRM | Step.SPLIT_CONFIRM if s.hands[s.turn].seat == who.seat:
            return events.Withdrawn(who)
        case _:
            return None


def _bet(g: Game, house: DeviceSettings, s: State, who: Actor) -> Event | None:
    """The seat's standing wager, bet by bet: each press places the next one."""
    if s.step is not Step.WAGERING:
        return None
    seat = seat_of(s, who.seat)
    for bet, amount in house.standing.get(who.seat, ()):
        if seat is None or getattr(seat, bet) != amount:
            return events.WagerPlaced(who, who.seat, bet, amount)
    return None


def _calls(g: Game, house: DeviceSettings, s: State, who: Actor) -> Event | None:
    """Once: while the table is held somebody is there already, or on the way."""
    if s.step in HOLDING or seat_of(s, who.seat) is None:
        return None
    return events.FloorCalled(who, who.seat)


BUTTON_EVENTS: Final[Mapping[WhichButton, ButtonEvent]] = MappingProxyType(
    {
        WhichButton.HIT: _decides(events.Hit, HIT),
        WhichButton.STAND: _decides(events.Stand, STAND),
        WhichButton.DOUBLE: _decides(events.Double, DOUBLE),
        WhichButton.SPLIT: _decides(events.Split, SPLIT),
        WhichButton.SURRENDER: _decides(events.Surrender, SURRENDER),
        WhichButton.YES: _yes,
        WhichButton.NO: _no,
        WhichButton.BET: _bet,
        WhichButton.CALL: _calls,
    }
)

_BITS: Final = tuple((1 << button, says) for button, says in BUTTON_EVENTS.items())


def open_buttons(
    game: Game, house: DeviceSettings, takes: AcceptsEvent, s: State, seat: int
) -> ButtonMask:
    """The buttons of a seat that the procedure would take something from now."""
    who, mask = seat_actor(seat), 0
    for bit, says in _BITS:
        said = says(game, house, s, who)
        if said is not None and takes(s, said):
            mask |= bit
    return ButtonMask(mask)


def pressed(
    ear: IntakeContext, now: TableSnapshot, told: station.ButtonPressed, source: DeviceSource
) -> TableInput:
    """Only what was armed for this very question counts; all else is recorded with its reason."""
    s, arm = now.state, now.arms.of(told.seat)
    ignored = ""
    said = BUTTON_EVENTS[told.button](ear.game, ear.house, s, seat_actor(told.seat))
    if told.stale or arm is None or arm.token != told.token:
        ignored = "it came too late"
    elif said is None or not arm.buttons >> told.button & 1:
        ignored = "it is not open to the seat now"
    if ignored or said is None:
        return TableInput(notes=(note_of(told, source, s.round, ignored=ignored),))
    return TableInput((said,), notes=(note_of(told, source, s.round),))
