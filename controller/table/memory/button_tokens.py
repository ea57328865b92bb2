"""Which buttons of which seat count now, and under which token.

A token stands for one question to one seat. It stays as long as the question does, so that nobody's
press is too late because of what happened at another seat; and whatever was pressed for an older
question is known by its token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeAlias

from msgspec import Struct

from controller.procedure.model.state import State
from firmware_protocol.messages.enums import ButtonMask

TOKEN_COUNT: Final = 0xFFFF
"""A token has 16 bits, and 0 is none."""
NO_BUTTONS: Final = ButtonMask(0)

Question: TypeAlias = tuple[Any, ...]


class SeatButtons(Struct, frozen=True):
    """What a seat's buttons are armed for."""

    seat: int
    buttons: ButtonMask
    token: int
    question: Question


class ButtonTokens(Struct, frozen=True):
    """Those of all seats that have buttons."""

    last: int = 0
    """How many questions there were, before this start of the controller too. It begins with the
    number of the record's entries, of which each brought one question at most: so a token comes
    again only after 65535 others."""
    seats: tuple[SeatButtons, ...] = ()

    def of(self, seat: int) -> SeatButtons | None:
        for arm in self.seats:
            if arm.seat == seat:
                return arm
        return None


NO_TOKENS: Final = ButtonTokens()


_OF_A_TURN: Final = int(~(ButtonMask.BET | ButtonMask.CALL))
"""The buttons that answer a question. As a number: it is asked of every seat at every event."""


def question_key(s: State, seat: int, buttons: ButtonMask) -> Question:
    """What the seat is asked at this state, as far as another question would be another one."""
    if not int(buttons) & _OF_A_TURN:
        return (s.round, buttons)
    in_turn = bool(s.hands) and s.hands[s.turn].seat == seat
    hand: Question = ()
    if in_turn:
        turn = s.hands[s.turn]
        hand = (turn.number, len(turn.cards), turn.doubles, s.asking)
    return (s.step, s.round, s.turn, s.asked, hand, buttons)


def assign_tokens(
    former: ButtonTokens, s: State, seats: Iterable[int], buttons: Callable[[int], ButtonMask]
) -> ButtonTokens:
    """The arms of this state: a new token for each question that was not there before."""
    last = former.last
    arms = []
    for seat in seats:
        mask = buttons(seat)
        if not mask:
            continue
        asked = question_key(s, seat, mask)
        old = former.of(seat)
        if old is not None and old.question == asked:
            arms.append(old)
            continue
        last += 1
        arms.append(SeatButtons(seat, mask, last % TOKEN_COUNT + 1, asked))
    if last == former.last and tuple(arms) == former.seats:
        return former
    return ButtonTokens(last, tuple(arms))
