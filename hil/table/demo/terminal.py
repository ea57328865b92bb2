"""A table shown in a terminal: the prompts, their results, and a picture of the felt.

On a terminal the picture is updated below the lines; elsewhere, and with --plain, it is printed
after the deal and when the round is settled. The acts that answer prompts are read from the record,
where they are durable before any screen shows them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, TextIO

from msgspec import Struct
from rich import box
from rich.console import Console, Group
from rich.live import Live
from rich.measure import Measurement
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from controller.api.contract.view import View
from controller.audit.read.follow import Follower
from controller.audit.replay import DecisionData, decode_decision
from controller.procedure.model import events
from controller.procedure.model.effects import (
    Effect,
    Fact,
    RoundOver,
    RoundVoid,
    Settled,
    Tell,
    Told,
    WagersLocked,
)
from controller.procedure.model.events import Event
from controller.procedure.model.game import BETS
from controller.procedure.model.state import Seat, State, Step
from controller.procedure.prompts import BETS as BET_WORDS
from controller.procedure.prompts import AmountFormat, MoneyFormat, fact, total_words
from controller.publish import event_words
from controller.rules.cards import NAMES, SUIT, Card
from controller.rules.hands import Hand
from hil.table.robots import state_of

_SUIT_STYLES: Final = ("green", "bright_blue", "red", "bold white")
"""Four colours for clubs, diamonds, hearts, spades; the letter shows the suit too."""
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

    def alarm(self, words: str) -> None:
        """Print an irregularity."""
        line = Text("  ! ", "bold yellow")
        self._line(line.append(words, "yellow"))

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
    notes = []
    if hand.natural:
        notes.append("blackjack")
    elif hand.done:
        notes.append("stands")
    if hand.doubles:
        notes.append("doubled" if hand.doubles == 1 else f"doubled {hand.doubles} times")
    return notes


def _bets(seat: Seat, felt: FeltPicture) -> Text:
    placed = []
    for bet in (*BETS[1:], "insurance"):
        amount = seat.amount(bet)
        if amount:
            placed.append(f"{BET_WORDS[bet]} {felt.money.amount(amount)}")
    return Text(", ".join(placed), "cyan")


_DOES: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        events.TableOpened: "open, the bank counted twice",
        events.ShuffleStarted: "in the shuffler",
        events.ShuffleDone: "done, no card missing",
        events.ShoeLoaded: "cut and loaded",
        events.CardBurned: "face down to the discard rack",
        events.CardDrawn: "",
        events.HoleDealt: "face down",
        events.HoleRevealed: "",
        events.Hit: "hits",
        events.Stand: "stands",
        events.Double: "doubles",
        events.Split: "splits",
        events.Surrender: "surrenders",
        events.SpareRefused: "refuses the exposed card",
        events.EvenMoney: "takes even money",
        events.Decline: "declines",
        events.InsuranceClosed: "closed",
        events.PayTaken: "takes the pay",
        events.Confirmed: "confirmed",
        events.PaymentApproved: "seen",
        events.Cleared: "in the discard rack",
        events.FloorRuled: "ruled, with a second",
    }
)
_PAID: Final = {Tell.PAY: "paid", Tell.COLLECT: "taken", Tell.GIVE_BACK: "given back"}
_DEALING: Final = frozenset({Tell.DEAL, Tell.LAY_SPARE})
_UNTOLD: Final = (Settled, RoundOver)
"""Facts that repeat the prompt."""


class Tally(Struct):
    """The money of a table: wagers and payments; tokes are the dealers' and counted apart."""

    table: str
    money: MoneyFormat
    rounds: int = 0
    decisions: int = 0
    wagers: int = 0
    paid: int = 0
    tokes: int = 0
    for_dealers: int = 0
    seconds: float = 0.0

    @property
    def an_hour(self) -> int:
        """Rounds."""
        return round(self.rounds * 3600 / self.seconds) if self.seconds else 0

    def add(self, settled: Settled) -> None:
        if settled.outcome == "void":
            return
        if settled.bet.startswith("toke"):
            self.tokes += settled.stake
            self.for_dealers += settled.returned
        else:
            self.wagers += settled.stake
            self.paid += settled.returned


class Spectator:
    """Follows one table from the current end of its record."""

    def __init__(
        self,
        screen: TerminalScreen,
        record: Follower,
        view: View,
        *,
        tally: Tally | None = None,
        people: Callable[[View], str] = lambda view: "",
    ) -> None:
        """`tally` continues that of an earlier game at this table. `people` returns who is at the
        table, as text; empty for no such line."""
        self._people = people
        self.screen = screen
        self._record = record
        money = MoneyFormat(view.currency.symbol, view.currency.minor_digits)
        self.tally = Tally(view.title, money) if tally is None else tally
        self._money = money
        self._view = view
        self._void = False
        self._drawn: set[str] = set()
        self._results: dict[tuple[int, int], str] = {}
        screen.heading(view.title)
        self._prompt()

    def see(self, view: View) -> None:
        """Show a view, after the decisions that were recorded up to it."""
        for entry in self._record.more():
            if entry.record.kind == "decision":
                self._did(decode_decision(entry.record))
        self._view = view
        self._prompt()

    # --- what is shown --------------------------------------------------------------------

    def _prompt(self) -> None:
        prompt, state = self._view.prompt, self._state
        if prompt is None:
            return
        if state.hands and state.dealt >= len(state.places) and prompt.tell not in _DEALING:
            moment = "settled" if prompt.tell is Tell.CLEAR else f"{len(state.hands)} hands"
            if moment not in self._drawn:
                self._drawn.add(moment)
                self.screen.draw(state, self._felt)
        self.screen.show(prompt.words, state, self._felt)

    @property
    def _state(self) -> State:
        return state_of(self._view)

    @property
    def _felt(self) -> FeltPicture:
        view = self._view
        number = view.state.round
        title = f"{view.title} - round {number}" if number else view.title
        return FeltPicture(title, self._money, self._results, self._people(view))

    # --- what was done --------------------------------------------------------------------

    def _did(self, made: DecisionData) -> None:
        prompt, event = self._view.prompt, made.event
        self.tally.decisions += 1
        words = self._words(event)
        if isinstance(event, events.WagerPlaced):
            self.screen.note(words)
        else:
            self.screen.did("" if prompt is None else prompt.words, words, _card(event))
        self._note(made.effects)

    def _words(self, event: Event) -> str:
        money = self._money
        prompt = self._view.prompt
        match event:
            case events.WagerPlaced():
                bet = "" if event.bet == "main" else f" {BET_WORDS[event.bet]}"
                return f"seat {event.seat}: {money.amount(event.amount)}{bet}"
            case events.Insure():
                return f"insures for {money.amount(event.amount)}"
            case events.HoleChecked():
                found = "blackjack" if event.blackjack else "no blackjack"
                return f"the reader says: {found}"
            case events.Paid() if prompt is not None:
                return _PAID.get(prompt.tell, "paid")
            case _:
                words = _DOES.get(type(event))
                return event_words(type(event)) if words is None else words

    def _note(self, effects: tuple[Effect, ...]) -> None:
        for effect in effects:
            match effect:
                case WagersLocked():
                    self._results.clear()
                    self._drawn.clear()
                    self._void = False
                case Settled():
                    self._settle(effect)
                case RoundVoid():
                    self._void = True
                case RoundOver() if not self._void:
                    self.tally.rounds += 1
            if isinstance(effect, Told):
                self.screen.alarm(fact(effect, self._money))
            elif isinstance(effect, Fact) and not isinstance(effect, _UNTOLD):
                self.screen.note(fact(effect, self._money))

    def _settle(self, settled: Settled) -> None:
        self.tally.add(settled)
        if settled.hand < 0:
            return
        won = settled.returned - settled.stake
        back = self._money.amount(settled.returned)
        words = f"paid {self._money.amount(won)}" if won > 0 else f"{back} back"
        self._results[settled.seat, settled.hand] = words if settled.returned else "taken"


def _card(event: Event) -> int:
    """The card of the event that lies face up, or -1."""
    return event.card if isinstance(event, events.CardDrawn | events.HoleRevealed) else -1
