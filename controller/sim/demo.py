"""Rounds shown as the dealer sees them, prompt by prompt, with robots at the live table."""

from __future__ import annotations

from random import Random
from typing import Final

from msgspec import Struct
from rich import box
from rich.table import Table

from controller.config.loader import TableConfig, load_table
from controller.procedure.effects import (
    Effect,
    Fact,
    Prompt,
    RoundOver,
    RoundVoid,
    Settled,
    Tell,
    Told,
    WagersLocked,
)
from controller.procedure.engine import Procedure
from controller.procedure.events import CardDrawn, MisdealCalled
from controller.procedure.live import LiveTable
from controller.procedure.row import Refused
from controller.procedure.states import State
from controller.procedure.words import Currency, fact, say
from controller.rules.rulings import Irregularity, Way
from controller.sim.games import DEALER, game_of_table
from controller.sim.plan import SEEDS, TABLES, Plan
from controller.sim.robots import Answer, Crew
from controller.sim.screen import Felt, Screen
from controller.sim.strategy import basic

MISHAPS: Final = {
    "sf21x": Irregularity.ERROR_CARD_EXPOSED,
    "classic": Irregularity.MISDEAL,
}
"""What goes wrong in the second round of a game. A misdeal is void, and another round follows."""

_DEALING: Final = frozenset({Tell.DEAL, Tell.LAY_SPARE})
_UNTOLD: Final = (Settled, RoundOver)
"""Facts that say what the prompt has said."""


class Tally(Struct):
    """What went over a game's felt. Tokes are the dealers' money and stand apart."""

    table: str
    money: Currency
    rounds: int = 0
    wagers: int = 0
    paid: int = 0
    tokes: int = 0
    for_dealers: int = 0

    def add(self, settled: Settled) -> None:
        if settled.outcome == "void":
            return
        if settled.bet.startswith("toke"):
            self.tokes += settled.stake
            self.for_dealers += settled.returned
        else:
            self.wagers += settled.stake
            self.paid += settled.returned


class Demo:
    """The plan, played on a screen."""

    def __init__(self, plan: Plan, screen: Screen) -> None:
        self._plan = plan
        self._screen = screen
        self.tallies: list[Tally] = []

    def run(self) -> None:
        for name in self._plan.games:
            table = load_table(TABLES[name])
            seed = SEEDS[name] if self._plan.seed is None else self._plan.seed
            _Rounds(table, self._plan, Random(f"{name} {seed}"), self._screen, self.tallies).play()

    def summary(self, *, interrupted: bool = False) -> None:
        """What was wagered, handed back and kept, and the tokes apart."""
        table = Table(box=box.SIMPLE, title_justify="left")
        table.title = "Interrupted: the rounds so far" if interrupted else "All rounds"
        for heading in ("", "rounds", "wagers", "paid back", "kept", "tokes", "to dealers"):
            table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
        for tally in self.tallies:
            amounts = (
                tally.wagers,
                tally.paid,
                tally.wagers - tally.paid,
                tally.tokes,
                tally.for_dealers,
            )
            written = map(tally.money.amount, amounts)
            table.add_row(tally.table, str(tally.rounds), *written)
        self._screen.table(table)


class _Rounds:
    """The rounds of one game at its table."""

    def __init__(
        self,
        table: TableConfig,
        plan: Plan,
        random: Random,
        screen: Screen,
        tallies: list[Tally],
    ) -> None:
        currency = table.currency
        self._game = game_of_table(table)
        self._money = Currency(currency.symbol, currency.minor_digits)
        self._live = LiveTable(self._game)
        self._crew = Crew(self._game, basic(table.sheet.name), plan.seats, random, self._money)
        self._rounds = plan.rounds
        self._screen = screen
        self._title = f"{table.title} - {table.sheet.title}"
        self._mishap = MISHAPS.get(table.sheet.name)
        self._state = State()
        self._void = False
        self._drawn: set[str] = set()
        self._results: dict[tuple[int, int], str] = {}
        self._tally = Tally(table.title, self._money)
        tallies.append(self._tally)

    def play(self) -> None:
        self._screen.heading(self._title)
        effects: tuple[Effect, ...] = Procedure(self._game).shows(self._state)
        while True:
            prompt = next(effect for effect in effects if isinstance(effect, Prompt))
            if self._tally.rounds >= self._rounds and not self._state.hands:
                return
            effects = self._do(prompt)

    def _do(self, prompt: Prompt) -> tuple[Effect, ...]:
        """Shows the prompt, has it answered, and tells what came of it."""
        several = sum(hand.seat == prompt.seat for hand in self._state.hands) > 1
        words = say(prompt, self._money, several=several)
        self._draw(prompt)
        self._screen.show(words, prompt.tell, self._state, self._felt())
        answer = self._goes_wrong(prompt)
        if answer is None:
            answer = self._crew.answer(prompt, self._state)
            self._tell(prompt, words, answer)
        effects: tuple[Effect, ...] = ()
        for event in answer.events:
            decision = self._live.step(self._state, event)
            if isinstance(decision, Refused):
                raise AssertionError(f"{event} at {self._state.step}: {decision.why}")
            self._state = decision.state
            effects = decision.effects
            self._note(effects)
        return effects

    def _tell(self, prompt: Prompt, words: str, answer: Answer) -> None:
        if prompt.tell is not Tell.TAKE_WAGERS or answer.card >= 0:
            self._screen.did(words, answer.words, answer.card)
            return
        if not prompt.count:
            self._screen.line(f"  {words}")
        self._screen.note(answer.words)

    # What came of it

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
                    self._tally.rounds += 1
            if isinstance(effect, Told):
                self._screen.alarm(fact(effect, self._money))
            elif isinstance(effect, Fact) and not isinstance(effect, _UNTOLD):
                self._screen.note(fact(effect, self._money))

    def _settle(self, settled: Settled) -> None:
        self._tally.add(settled)
        if settled.hand < 0:
            return
        won = settled.returned - settled.stake
        back = self._money.amount(settled.returned)
        words = f"paid {self._money.amount(won)}" if won > 0 else f"{back} back"
        self._results[settled.seat, settled.hand] = words if settled.returned else "taken"

    def _felt(self) -> Felt:
        title = f"{self._title} - round {self._state.round}" if self._state.round else self._title
        return Felt(title, self._money, self._results)

    def _draw(self, prompt: Prompt) -> None:
        """A picture when the deal is complete, after a split, and when all is settled."""
        state = self._state
        if not state.hands or state.dealt < len(state.places) or prompt.tell in _DEALING:
            return
        moment = "settled" if prompt.tell is Tell.CLEAR else f"{len(state.hands)} hands"
        if moment not in self._drawn:
            self._drawn.add(moment)
            self._screen.draw(state, self._felt())

    # When things go wrong

    def _goes_wrong(self, prompt: Prompt) -> Answer | None:
        """What happens instead of the answer, once, in the second round."""
        if self._mishap is None or self._tally.rounds != 1:
            return None
        if self._mishap is Irregularity.MISDEAL:
            if prompt.tell is not Tell.DEAL or prompt.count != 2 or not prompt.seat:
                return None
            answer = Answer((MisdealCalled(DEALER),), "")
            words = f"Seat {prompt.seat} was passed over: the dealer calls a misdeal"
        else:
            if prompt.tell is not Tell.DECIDE:
                return None
            answer = self._crew.cards.draw()
            if not isinstance(answer.events[-1], CardDrawn):
                return None
            words = "A card that nobody asked for slips out of the shoe, and its face is seen:"
        self._screen.alarm(words, answer.card)
        ruling = self._game.jurisdiction.ruling(self._mishap)
        if ruling.way is not Way.FLOOR_DECIDES:
            self._screen.alarm(ruling.text)
        self._screen.pause(1.5)
        self._mishap = None
        return answer
