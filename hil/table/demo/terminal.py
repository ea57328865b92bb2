"""A table shown in a terminal: the prompts, their results, and a picture of the felt.

On a terminal the picture is updated below the lines; elsewhere, and with --plain, it is printed
after the deal and when the round is settled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TextIO

from msgspec import Struct
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from controller.procedure.model.effects import Tell
from controller.procedure.model.game import BETS
from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts import BETS as BET_WORDS
from controller.procedure.prompts import AmountFormat, total_words
from controller.rules.cards import NAMES, SUIT, Card
from controller.rules.hands import Hand

_SUIT_STYLES: Final = ("green", "bright_blue", "red", "bold white")
"""Four colours for clubs, diamonds, hearts, spades; the letter says it too."""
_FACE_DOWN: Final = "##"
_IN_TURN: Final = frozenset(
    {Step.TURN, Step.HAND_CARD, Step.DOUBLE_CONFIRM, Step.SPLIT_CONFIRM, Step.NATURALS}
)
_WIDTH: Final = 100
"""Where there is no terminal to ask."""
_ANY_WIDTH: Final = 10_000

_PAUSES: Final = {
    Tell.DEAL: 0.06,
    Tell.BURN: 0.2,
    Tell.TAKE_WAGERS: 0.1,
    Tell.DECIDE: 0.2,
    Tell.PAY: 0.2,
    Tell.COLLECT: 0.15,
    Tell.GIVE_BACK: 0.15,
    Tell.CHECK_HOLE: 0.3,
    Tell.REVEAL: 0.3,
    Tell.RULE: 1.5,
}
_PAUSE: Final = 0.12
"""Of all other prompts."""


class FeltPicture(Struct, frozen=True):
    """What the picture shows besides the state."""

    title: str
    money: AmountFormat
    results: Mapping[tuple[int, int], str]
    """The result of each hand, by seat and hand."""
    people: str = ""
    """Who deals and who sits, as text; empty for none."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        raise  # noqa: PLE0704 - the command handles a closed output


class TerminalScreen:
    """Prints lines, with the updated picture below them where the stream is a terminal."""

    def __init__(self, console: Console, *, moving: bool, watched: bool) -> None:
        """`watched`: a user is watching, so that prompts are shown for a while."""
        self.moving = moving
        self.watched = watched
        self._console = console
        self._live: Live | None = None

    def heading(self, text: str) -> None:
        self._line(Text())
        self._line(Text(text, "bold reverse" if self.moving else "bold"))

    def show(self, prompt: str, state: State, felt: FeltPicture) -> None:
        """The prompt over the felt."""
        if self.moving:
            if self._live is None:
                self._live = Live(console=self._console, auto_refresh=False)
                self._live.start()
            now = Text(f"> {prompt}", "bold")
            self._live.update(Group(now, picture(state, felt)), refresh=True)

    def did(self, prompt: str, words: str, card: Card = -1) -> None:
        """Print a prompt and the act that answered it."""
        line = Text(f"  {prompt}")
        line.append(" -> ", "dim")
        line.append(words, "italic")
        if card >= 0:
            line.append(" " if words else "").append_text(card_text(card))
        self._line(line)

    def note(self, words: str) -> None:
        self._line(Text(f"    {words}", "dim"))

    def alarm(self, words: str, card: Card = -1) -> None:
        """Print an irregularity."""
        line = Text("  ! ", "bold yellow")
        line.append(words, "yellow")
        if card >= 0:
            line.append(" ").append_text(card_text(card))
        self._line(line)

    def draw(self, state: State, felt: FeltPicture) -> None:
        """The felt among the lines, where no picture moves."""
        if not self.moving:
            self._console.print(picture(state, felt))

    def fits(self, table: Table) -> bool:
        """Whether the table fits the console's width without being truncated."""
        wide = self._console.options.update(max_width=_ANY_WIDTH)
        return Measurement.get(self._console, wide, table).maximum <= self._console.width

    def table(self, table: Table) -> None:
        self._line(Text())
        self._console.print(table)

    def line(self, words: str = "") -> None:
        self._line(Text(words))

    def stop(self) -> None:
        """Stop updating the picture; further lines are printed below it."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, text: Text) -> None:
        self._console.print(text, soft_wrap=not self.moving)


def pause_before(tell: Tell) -> float:
    """Returns the seconds for which a prompt is shown before it is answered, at speed 1."""
    return _PAUSES.get(tell, _PAUSE)


def screen_for(stream: TextIO, *, plain: bool, quiet: bool = False) -> TerminalScreen:
    """Returns a screen on this stream; `quiet`: it prints nothing."""
    terminal = stream.isatty()
    console = _Console(
        file=stream,
        color_system=None if plain else "auto",
        width=None if terminal else _WIDTH,
        quiet=quiet,
        highlight=False,
        markup=False,
        emoji=False,
    )
    moving = terminal and not plain and not quiet and not console.is_dumb_terminal
    return TerminalScreen(console, moving=moving, watched=terminal and not quiet)


# --- the picture --------------------------------------------------------------------------------


def card_text(card: Card) -> Text:
    name = NAMES[card].replace("T", "10")
    return Text(name, _SUIT_STYLES[SUIT[card]])


def _cards(cards: tuple[Card, ...], *, gone: bool = False) -> Text:
    text = Text(" ").join(map(card_text, cards))
    if gone:
        text.stylize("dim")
    return text


def picture(state: State, felt: FeltPicture) -> Panel:
    """The felt: the dealer above, then each seat's hands in the order of play."""
    grid = Table.grid(padding=(0, 2))
    for width in (10, 7, 18, 7):
        grid.add_column(min_width=width, no_wrap=True)
    grid.add_column(min_width=20)
    grid.add_row("Dealer", "", _dealer_cards(state), _dealer_total(state), "")
    for seat in state.seats:
        hands = [hand for hand in state.hands if hand.seat == seat.number]
        if not hands:
            grid.add_row(
                f"Seat {seat.number}", felt.money.amount(seat.main), "", "", _bets(seat, felt)
            )
        for hand in hands:
            grid.add_row(*_hand(state, seat, hand, felt, several=len(hands) > 1))
    return Panel(
        grid,
        title=Text(felt.title),
        title_align="left",
        subtitle=Text(felt.people) if felt.people else None,
        subtitle_align="left",
        box=box.ROUNDED,
        expand=False,
    )


def _dealer_cards(state: State) -> Text:
    text = _cards(state.dealer)
    if state.hole:
        text.append(" " if state.dealer else "").append(_FACE_DOWN, "reverse")
    return text


def _dealer_total(state: State) -> str:
    if len(state.dealer) < 2:
        return ""
    if state.dealer_total > 21:
        return f"bust {state.dealer_total}"
    return total_words(state.dealer_total, soft=state.dealer_soft)


def _hand(
    state: State, seat: Seat, hand: Hand, felt: FeltPicture, *, several: bool
) -> tuple[Text | str, ...]:
    turn = state.step in _IN_TURN and state.hands[state.turn] is hand
    label = f"Seat {seat.number}.{hand.number + 1}" if several else f"Seat {seat.number}"
    total = total_words(hand.total, soft=hand.soft) if len(hand.cards) > 1 else ""
    note = Text(felt.results.get((seat.number, hand.number), ""))
    if not note:
        note = Text(", ".join(_standing(hand)))
    bets = _bets(seat, felt) if hand.number == 0 else Text()
    both = Text(", ").join(part for part in (note, bets) if part)
    amount = "" if hand.out else felt.money.amount(hand.wager)
    return (
        Text(f"{'>' if turn else ' '} {label}", "bold" if turn else ""),
        amount,
        _cards(hand.cards, gone=hand.out),
        total,
        both,
    )


def _standing(hand: Hand) -> list[str]:
    said = []
    if hand.natural:
        said.append("blackjack")
    elif hand.done:
        said.append("stands")
    if hand.doubles:
        said.append("doubled" if hand.doubles == 1 else f"doubled {hand.doubles} times")
    return said


def _bets(seat: Seat, felt: FeltPicture) -> Text:
    placed = []
    for bet in (*BETS[1:], "insurance"):
        amount: int = getattr(seat, bet)
        if amount:
            placed.append(f"{BET_WORDS[bet]} {felt.money.amount(amount)}")
    return Text(", ".join(placed), "cyan")
