"""The meaning of a seat's buttons: which event a press brings, and which buttons are armed.

Both use BUTTON_EVENTS: a button is armed if its event would be accepted now, and a press brings the
event that the button has when the press arrives.

A button token identifies one question to one seat. It stays valid as long as the question is
pending, so events at other seats do not make a press too late; a press for an earlier question
carries an older token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from controller.procedure.model import events
from controller.procedure.model.events import Actor, Event
from controller.procedure.model.felt import seat_of
from controller.procedure.model.game import Game
from controller.procedure.model.holds import HOLDING
from controller.procedure.model.state import State, Step
from controller.procedure.rows import max_insurance, may_take_even_money, seat_asked
from controller.rules.hands import DOUBLE, HIT, SPLIT, STAND, SURRENDER
from controller.table.intake.context import (
    DeviceSettings,
    DeviceSource,
    IntakeContext,
    TableInput,
    TableSnapshot,
)
from controller.table.memory import ButtonTokens, SeatButtons
from drivers.devices import ButtonPressed
from firmware_protocol.messages import ButtonMask, WhichButton

MAX_TOKEN: Final = 0xFFFF
"""A token has 16 bits; 0 means none."""
_ANSWERS: Final = int(~(ButtonMask.BET | ButtonMask.CALL))
"""The buttons that answer a question, as an int: checked for every seat at every event."""

ButtonEvent: TypeAlias = Callable[[Game, DeviceSettings, State, Actor], Event | None]
AcceptsEvent: TypeAlias = Callable[[State, Event], bool]
"""Whether the procedure accepts an event at a state: `Procedure.takes`."""


def _seat_actor(seat: int) -> Actor:
    """The player who presses the buttons of a seat."""
    return Actor("player", f"seat-{seat}", seat)


def _decides(kind: Callable[[Actor, int, int], Event], choice: int) -> ButtonEvent:
    """A decision for the hand in turn, if it is the seat's and the choice is legal."""

    def event_of(g: Game, settings: DeviceSettings, s: State, who: Actor) -> Event | None:
        if s.step is not Step.TURN:
            return None
        hand = s.hands[s.turn]
        legal = hand.seat == who.seat and bool(s.legal & choice)
        return kind(who, hand.seat, hand.number) if legal else None

    return event_of


def _yes(g: Game, settings: DeviceSettings, s: State, who: Actor) -> Event | None:
    """Accepts what the seat is offered: payment of its blackjack, even money, full insurance."""
    if s.step is Step.NATURALS and s.hands[s.turn].seat == who.seat:
        return events.PayTaken(who, who.seat)
    if s.step is not Step.INSURANCE or seat_asked(s).number != who.seat:
        return None
    if may_take_even_money(g, s, who.seat):
        return events.EvenMoney(who, who.seat)
    most = max_insurance(g, seat_asked(s))
    return events.Insure(who, who.seat, most) if most > 0 else None


def _no(g: Game, settings: DeviceSettings, s: State, who: Actor) -> Event | None:
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


def _bet(g: Game, settings: DeviceSettings, s: State, who: Actor) -> Event | None:
    """The seat's standing wager: each press places the next of its bets."""
    if s.step is not Step.WAGERING:
        return None
    seat = seat_of(s, who.seat)
    for bet, amount in settings.standing.get(who.seat, ()):
        if seat is None or seat.amount(bet) != amount:
            return events.WagerPlaced(who, who.seat, bet, amount)
    return None


def _calls(g: Game, settings: DeviceSettings, s: State, who: Actor) -> Event | None:
    """Not while the table is held: the floor has been called then."""
    if s.step in HOLDING or all(seat.number != who.seat for seat in s.seats):
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

_BITS: Final = tuple((1 << button, event_of) for button, event_of in BUTTON_EVENTS.items())


def open_buttons(
    game: Game, settings: DeviceSettings, accepts: AcceptsEvent, s: State, seats: Iterable[int]
) -> list[tuple[int, ButtonMask]]:
    """The buttons of each seat whose events the procedure accepts now."""
    masks = dict.fromkeys(seats, 0)
    candidates = []
    for seat in masks:
        who = _seat_actor(seat)
        for bit, event_of in _BITS:
            event = event_of(game, settings, s, who)
            if event is not None:
                candidates.append((seat, bit, event))
    for seat, bit, event in candidates:
        if accepts(s, event):
            masks[seat] |= bit
    return [(seat, ButtonMask(mask)) for seat, mask in masks.items()]


def _question(s: State, seat: int, buttons: ButtonMask) -> tuple[Any, ...]:
    """A key that changes when the question to the seat changes."""
    if not int(buttons) & _ANSWERS:
        return (s.round, buttons)
    hand: tuple[Any, ...] = ()
    if s.hands and s.hands[s.turn].seat == seat:
        turn = s.hands[s.turn]
        hand = (turn.number, len(turn.cards), turn.doubles, s.asking)
    return (s.step, s.round, s.turn, s.asked, hand, buttons)


def assign_tokens(
    former: ButtonTokens, s: State, masks: Iterable[tuple[int, ButtonMask]]
) -> ButtonTokens:
    """The buttons to arm at this state: `masks` by seat, with a new token for each new question."""
    last, armed = former.last, {arm.seat: arm for arm in former.seats}
    arms = []
    for seat, mask in masks:
        if not mask:
            continue
        question = _question(s, seat, mask)
        old = armed.get(seat)
        if old is not None and old.question == question:
            arms.append(old)
            continue
        last += 1
        arms.append(SeatButtons(seat, mask, last % MAX_TOKEN + 1, question))
    if last == former.last and tuple(arms) == former.seats:
        return former
    return ButtonTokens(last, tuple(arms))


def pressed(
    context: IntakeContext, now: TableSnapshot, press: ButtonPressed, source: DeviceSource
) -> TableInput:
    """A press counts only with the token of the current question; others are recorded with the
    reason why they were ignored."""
    s = now.state
    arm = next((arm for arm in now.arms.seats if arm.seat == press.seat), None)
    ignored = ""
    event = BUTTON_EVENTS[press.button](context.game, context.settings, s, _seat_actor(press.seat))
    if press.stale or arm is None or arm.token != press.token:
        ignored = "it came too late"
    elif event is None or not arm.buttons >> press.button & 1:
        ignored = "it is not open to the seat now"
    if ignored or event is None:
        return TableInput(notes=(source.entry_of(press, s.round, ignored=ignored),))
    return TableInput((event,))
