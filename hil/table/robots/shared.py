"""The robots of a table at which people can take over.

They deal while the robot dealer is signed in, and play at every seat that no person has taken."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final

from controller.procedure.model.effects import Prompt, Tell
from controller.procedure.model.state import State
from controller.procedure.prompts import MoneyFormat
from controller.table.memory import TableDisplay
from firmware_protocol.device import CannotDo, Describe, Draw, Press
from hil.table.robots.api_client import ApiProblem
from hil.table.robots.console import Console
from hil.table.robots.robot import Players, Robot, RobotOptions, RobotStuck
from hil.table.robots.surroundings import PlayerChoice, TableSurroundings, button_of, chips, lit

SEATS: Final = range(1, 8)


class SeatClaims:
    """The seats that people have taken, and what they want done."""

    def __init__(self, robots: int = 0) -> None:
        self.robots = frozenset(range(1, robots + 1))
        """Seats of robots, unless a person takes them."""
        self.seats: set[int] = set()
        """Seats of people."""
        self.out: set[int] = set()
        """Seats of people who sit this round out."""
        self.choices: dict[int, PlayerChoice] = {}
        """Choices for the robot dealer, by seat; each is consumed once."""
        self.signals: dict[int, str] = {}
        """Choices of robot players, by seat, that a human dealer has to enter."""
        self.next_pull: Draw | None = None
        """How the next card is pulled, by a robot or a person; None: as usual."""
        self.touched = False
        """Whether a person has acted here; then robots wait after errors instead of failing."""
        self.trouble = ""
        """What the robots wait for, as text; empty if they do not."""
        self.next_game = False
        """Whether another game was requested."""
        self._changed = asyncio.Event()

    def take(self, seat: int) -> None:
        self.seats.add(seat)
        self.signals.pop(seat, None)
        self.person_acted()

    def leave(self, seat: int) -> None:
        self.seats.discard(seat)
        self.out.discard(seat)
        self.choices.pop(seat, None)
        self.person_acted()

    def sit_out(self, seat: int) -> None:
        self.out.add(seat)
        self.person_acted()

    def choose(self, seat: int, chosen: PlayerChoice) -> None:
        self.choices[seat] = chosen
        self.person_acted()

    def take_next_pull(self, usual: Draw) -> Draw:
        """Returns how the current card is pulled, and resets `next_pull`."""
        wanted, self.next_pull = self.next_pull, None
        return usual if wanted is None else wanted

    # --- changes --------------------------------------------------------------------------

    def person_acted(self) -> None:
        """Record that a person has acted, and wake the robots."""
        self.touched = True
        self.wake()

    def wake(self) -> None:
        """Wake all tasks that wait in `wait_for_change`."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def wait_for_change(self, within: float | None = None) -> None:
        """Wait for the next change, for at most `within` seconds."""
        try:
            async with asyncio.timeout(within):
                await self._changed.wait()
        except TimeoutError:
            return


ASKING: Final = frozenset({Tell.DECIDE, Tell.ASK_INSURANCE, Tell.ASK_NATURAL})
"""Prompts that ask a seat."""
RETRY_INTERVAL: Final = 1.0
"""Seconds after which robots retry a failed step."""


class SharedRobot(Robot):
    """A robot that leaves the dealing and the seats to people."""

    def __init__(
        self,
        place: TableSurroundings,
        screen: Console,
        players: Players,
        ways: RobotOptions,
        claims: SeatClaims,
    ) -> None:
        super().__init__(place, screen, players, ways)
        self.claims = claims
        self._console = screen
        self._answered: TableDisplay | None = None
        """The display that the robot players have answered while a person deals."""
        self._bet: tuple[int, frozenset[int]] = (-1, frozenset())
        """The round, and the seats whose bet button was pressed in it, while a person deals."""

    @property
    def deals(self) -> bool:
        """Whether the robot is the current dealer."""
        return self._console.is_dealing

    @property
    def alone(self) -> bool:
        """Whether only robots deal and play."""
        return self.deals and not self.claims.seats

    def pull(self) -> Draw:
        return self.claims.take_next_pull(super().pull())

    # --- one step -------------------------------------------------------------------------

    async def step(self) -> None:
        """Do the robots' part of the current prompt, or wait for people."""
        shown = self.screen.shown
        prompt = shown.prompt
        claims = self.claims
        if prompt is None or shown.stopped:
            await super().step()
            return
        if shown.state.hands:
            claims.out.clear()
        if not self.deals:
            await self._play_only(shown, prompt)
        elif prompt.tell in ASKING and prompt.seat in claims.seats:
            await self._enter_choice(prompt)
        elif prompt.tell is Tell.TAKE_WAGERS and self._waits_for_bets(shown.state):
            await claims.wait_for_change()
        else:
            await self._run_while_dealing(super().step())

    async def _run_while_dealing(self, work: Coroutine[Any, Any, object]) -> None:
        """Run a step of the robot dealer; it is cancelled if a person takes the table over."""
        task = asyncio.create_task(work, name="robots")
        try:
            while not task.done() and self.deals:
                changed = asyncio.create_task(self.claims.wait_for_change(), name="change")
                await asyncio.wait({task, changed}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        finally:
            if not task.done():
                task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            if not task.cancelled() or self.deals:
                raise
        except (ApiProblem, CannotDo, RobotStuck, TimeoutError) as problem:
            await self._report_problem(problem)
        else:
            self.claims.trouble = ""

    async def _report_problem(self, problem: Exception) -> None:
        """Raise an error if only robots have acted; otherwise report it and wait for people."""
        if not self.claims.touched and self.deals:
            raise problem
        if self.deals:
            why = problem.args[0] if isinstance(problem, CannotDo) else str(problem)
            self.claims.trouble = str(why) or "nothing came of it in time"
        await self.claims.wait_for_change(RETRY_INTERVAL)

    # --- people in the seats --------------------------------------------------------------

    async def _enter_choice(self, prompt: Prompt) -> None:
        """Enter what the person at this seat has announced, or wait for it or a button."""
        chosen = self.claims.choices.pop(prompt.seat, None)
        if chosen is None:
            await self.claims.wait_for_change()
        else:
            await self._run_while_dealing(self.enter_choice(prompt, chosen))

    async def enter_choice(self, prompt: Prompt, chosen: PlayerChoice) -> None:
        """Enter a person's choice as the dealer; a refusal is reported to them."""
        before = len(self.refused)
        shown = self.screen.shown
        if await self.send_choice(prompt, chosen):
            while self.screen.shown is shown:
                await self.claims.wait_for_change(RETRY_INTERVAL)
        elif len(self.refused) > before:
            self.claims.trouble = f"seat {prompt.seat}: {self.refused[-1].why}"

    def _waits_for_bets(self, felt: State) -> bool:
        """Whether the dealer waits for wagers of people, after all robots' wagers are placed."""
        if self.pending_wagers is None:
            self.pending_wagers = self.players.wagers()
        claims = self.claims
        self.pending_wagers = [one for one in self.pending_wagers if one[0] not in claims.seats]
        if self.pending_wagers:
            return False
        if any(seat not in claims.out and not chips(felt, seat, "main") for seat in claims.seats):
            return True
        return not felt.seats

    # --- a person deals -------------------------------------------------------------------

    async def _play_only(self, shown: TableDisplay, prompt: Prompt) -> None:
        """Answer as the robot players: by their buttons, else by signals to the dealer."""
        claims = self.claims
        self.pending_wagers = None
        claims.trouble = ""
        if self._answered is not shown:
            self._answered = shown
            claims.signals.clear()
            with suppress(CannotDo):  # a station without power: the next prompt is answered
                if prompt.tell in ASKING and prompt.seat not in claims.seats:
                    await self._answer(prompt)
                elif prompt.tell is Tell.TAKE_WAGERS:
                    await self._place(shown.state)
        if self.screen.shown is shown and not self.deals:
            await claims.wait_for_change()

    async def _answer(self, prompt: Prompt) -> None:
        chosen = self.players.choose(prompt)
        button = button_of(prompt, chosen) if self.ways.buttons else None
        station = self.place.station_of(prompt.seat)
        if station is not None and button is not None and await lit(station, prompt.seat, button):
            station.request(Press(seat=prompt.seat, button=button))
        else:
            self.claims.signals[prompt.seat] = _choice_text(chosen, self._money)
            self.claims.wake()

    async def _place(self, felt: State) -> None:
        """Place each robot's standing wager, once a round."""
        number, done = self._bet
        if number != felt.round:
            done = frozenset()
        seats = {seat for seat, _, _ in self.players.wagers()} - self.claims.seats
        for seat in sorted(seats - done):
            station = self.place.station_of(seat)
            if station is not None and not chips(felt, seat, "main"):
                done |= {seat}
                if await lit(station, seat, "bet"):
                    station.request(Press(seat=seat, button="bet"))
        self._bet = (felt.round, done)

    @property
    def _money(self) -> MoneyFormat:
        shown = self._console.view.currency
        return MoneyFormat(shown.symbol, shown.minor_digits)

    # --- cards by a person's hand ---------------------------------------------------------

    def pull_for_person(self, draw: Draw) -> None:
        """Pull a card for a person, and keep track of the face-down card for the discards."""
        prompt = self.screen.shown.prompt
        inside = self.place.shoe.request(Describe()).get("mechanism")
        self.place.shoe.request(draw)
        if inside and prompt is not None and prompt.place == "hole" and prompt.tell is Tell.DEAL:
            self.face_down = len(inside["out"])


def _choice_text(chosen: PlayerChoice, money: MoneyFormat) -> str:
    """Returns a choice as text."""
    choice = chosen.choice.replace("_", " ")
    return choice if chosen.amount is None else f"{choice} {money.amount(chosen.amount)}"
