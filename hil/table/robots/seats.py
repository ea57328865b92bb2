"""Seats of a simulated table that people have taken from the robots, and their requests.

Written by the bench page, read by the robots. The controller has no access to it: it sees badges at
its screens and button presses, as at any table.
"""

from __future__ import annotations

import asyncio
from typing import Final

from firmware_protocol.device import Draw
from hil.table.robots.text import PlayerChoice

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
        self.said: dict[int, PlayerChoice] = {}
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
        self._news = asyncio.Event()

    def take(self, seat: int) -> None:
        self.seats.add(seat)
        self.signals.pop(seat, None)
        self.change()

    def leave(self, seat: int) -> None:
        self.seats.discard(seat)
        self.out.discard(seat)
        self.said.pop(seat, None)
        self.change()

    def sit_out(self, seat: int) -> None:
        self.out.add(seat)
        self.change()

    def says(self, seat: int, said: PlayerChoice) -> None:
        self.said[seat] = said
        self.change()

    def pulled(self, usual: Draw) -> Draw:
        """Returns how the current card is pulled, and resets `next_pull`."""
        wanted, self.next_pull = self.next_pull, None
        return usual if wanted is None else wanted

    # --- news -----------------------------------------------------------------------------

    def change(self) -> None:
        """Record that a person has acted, and wake the robots."""
        self.touched = True
        self.look()

    def look(self) -> None:
        """Wake all tasks that wait in `news`."""
        self._news.set()
        self._news = asyncio.Event()

    async def news(self, within: float | None = None) -> None:
        """Wait for the next change, for at most `within` seconds."""
        try:
            async with asyncio.timeout(within):
                await self._news.wait()
        except TimeoutError:
            return
