"""A round and its bets as lines of the pages."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from controller.audit.index import RoundRow
from controller.audit.text import format_clock, format_day, stamp
from controller.errors import printable
from controller.procedure.prompts import BETS, WHY, AmountFormat
from controller.screens.review.view.queries import SettledBet


class RoundLine(Struct, frozen=True):
    number: int
    first_seq: int
    day: str
    time: str
    stamp: str
    until: str
    seconds: float
    """From the first wager to the cleared felt; 0: not over."""
    over: bool
    dealer: str
    wagered: str
    won: str
    """Won by the players, without their wagers."""
    void: bool
    irregularities: int
    corrected: int
    problems: int
    """All problems, including refusals."""


class BetLine(Struct, frozen=True):
    seq: int
    seat: int
    hand: int
    bet: str
    outcome: str
    stake: str
    returned: str
    moved: str
    """The payment, signed from the player's view."""
    why: str


def round_line(found: RoundRow, money: AmountFormat, problems: int = 0) -> RoundLine:
    over = found.over_seq > 0
    return RoundLine(
        found.round,
        found.first_seq,
        format_day(found.first_utc),
        format_clock(found.first_utc),
        stamp(found.first_utc),
        format_clock(found.over_utc) if over else "",
        max(0.0, (found.over_utc - found.first_utc) / 1e6) if over else 0.0,
        over,
        printable(found.dealer),
        money.amount(found.wagered),
        money.amount(found.won),
        found.void > 0,
        found.irregularities,
        found.corrected,
        problems,
    )


def bet_lines(bets: Sequence[SettledBet], money: AmountFormat) -> list[BetLine]:
    """By seat, in the order of settlement."""
    return [_bet_line(bet, money) for bet in sorted(bets, key=lambda bet: (bet.seat, bet.seq))]


def _bet_line(bet: SettledBet, money: AmountFormat) -> BetLine:
    moved = bet.returned - bet.stake
    sign = "+" if moved > 0 else ""
    return BetLine(
        bet.seq,
        bet.seat,
        bet.hand,
        BETS.get(bet.bet, printable(bet.bet)),
        printable(bet.outcome).replace("_", " "),
        money.amount(bet.stake),
        money.amount(bet.returned),
        f"{sign}{money.amount(moved)}",
        _why(bet.why),
    )


def _why(key: str) -> str:
    """In short; the timeline has the cards."""
    words = WHY.get(key, printable(key).replace("_", " "))
    return key.replace("_", " ") if "{" in words else words
